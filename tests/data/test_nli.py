"""Triples for inference: what follows is true of the scene, what contradicts is not, as the sentences themselves say.

Sentences are read back here, by the phrases of events and the words of relations, and judged by what was read: nothing
of the grammar or of how triples are drawn is asked.
"""

import json
import pickle
import re
from functools import cache
from itertools import combinations

import datasets
import numpy as np
import pytest
import torch
from drawn_scenes import scenes

from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.batches import PairDataset
from pullpush.data.clips import load_data
from pullpush.data.language import nli as nli_corpora
from pullpush.data.language.nli import (
    KIN,
    NLIConfig,
    Statement,
    Triple,
    general_events,
    holds,
    nli_corpus,
    scene_triples,
    triples,
    with_triples,
)
from pullpush.data.language.vocabulary import load_events
from pullpush.data.language.wording import LexiconConfig
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError
from pullpush.training.frozen import Encoded

EVENTS = load_events()
CATEGORY = {event.name: event.category for event in EVENTS}
SMALL = WorldConfig("synthetic", n_train=20, n_valid=4, n_test=6, n_single_per_event=1)
MENTIONS = (
    "noise in the background",
    "background noise",
    "in the distance",
    "far away",
    "repeated",
    "again and",
    "over",
)


@pytest.fixture(scope="module")
def told() -> list[tuple[Scene, Triple]]:
    some = scenes(1000, len(EVENTS), seed=1)
    found = triples(some, EVENTS)
    assert len(found) == len(some)
    return list(zip(some, found, strict=True))


@cache
def phrases() -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds the phrases of events and general words, and whose each is."""
    owner = {}
    for event in (*EVENTS, *general_events()):
        words = event.phrases["eng"]
        owner |= {f"{clause.subject} {clause.verb}".lower(): event.name for clause in words.clauses}
        owner |= {noun.lower(): event.name for noun in words.nouns}
    return re.compile(r"\b(" + "|".join(sorted(map(re.escape, owner), key=len, reverse=True)) + r")\b"), owner


def read(text: str) -> tuple[str, list[str]]:
    """The relation and the names that a sentence tells, in the order in which they sound."""
    text = text.lower().replace("the repeated ", "the ")
    pattern, owner = phrases()
    names = [owner[phrase] for phrase in pattern.findall(text)]
    rest = pattern.sub("…", text)
    together = re.search(r"\b(while|as|at the same time|together|all at once)\b", rest)
    in_turn = re.search(r"\b(then|before|after|followed|next|finally)\b", rest)
    assert names, text
    assert bool(together) + bool(in_turn) == (len(names) > 1), text
    if " after " in rest and "after that" not in rest:  # "a dog barks after a cat meows"; not "after a cat …, a dog …"
        names.reverse()
    return "single" if len(names) == 1 else "overlap" if together else "sequence", names


def is_a(heard: str, said: str) -> bool:
    """Whether an event may be called so, by its name or its category."""
    category = CATEGORY[heard]
    return said in (heard, category) or (said == "animal" and category in ("bird", "mammal", "insect", "amphibian"))


def is_true(scene: Scene, relation: str, names: list[str], alike=is_a) -> bool:
    """Whether what was read is true of a scene; events of one scene are all different."""
    heard = [EVENTS[event].name for event in scene.events]
    if relation not in ("single", scene.relation) or len(names) > len(heard):
        return False
    options = [[place for place, name in enumerate(heard) if alike(name, said)] for said in names]
    if relation == "sequence":
        for chosen in combinations(range(len(heard)), len(names)):
            if all(place in option for place, option in zip(chosen, options, strict=True)):
                return True
        return False
    taken: list[int] = []
    for option in sorted(options, key=len):  # names are of one event or of a word true of one, so that greedy does
        free = [place for place in option if place not in taken]
        if not free:
            return False
        taken.append(free[0])
    return True


def test_premises_tell_their_scenes(told):
    for scene, triple in told:
        relation, names = read(triple.premise)
        heard = [EVENTS[event].name for event in scene.events]
        assert relation == scene.relation
        assert names == heard if relation == "sequence" else sorted(names) == sorted(heard)


def test_what_follows_is_true_and_what_contradicts_is_not(told):
    def kin(heard: str, said: str) -> bool:
        return is_a(heard, said) or any({heard, said} <= group for group in KIN)

    for scene, triple in told:
        assert is_true(scene, *read(triple.entailment)), triple
        assert not is_true(scene, *read(triple.contradiction), alike=kin), triple


def test_only_premises_mention_distance_repetition_and_noise(told):
    for mention in MENTIONS:
        assert any(mention in triple.premise for _, triple in told), mention
        for _, triple in told:
            assert not any(re.search(rf"\b{mention}\b", text) for text in triple[1:]), triple


@pytest.mark.parametrize(
    ("scene", "sentence", "expected"),
    [
        (("single", "frog"), ("single", "frog"), True),
        (("single", "frog"), ("single", "amphibian"), True),
        (("single", "frog"), ("single", "toad"), False),
        (("single", "frog"), ("single", "bird"), False),
        (("single", "sonar"), ("single", "vehicle"), False),  # not a vehicle's own sound
        (("sequence", "crow", "frog", "saw"), ("sequence", "crow", "saw"), True),
        (("sequence", "crow", "frog", "saw"), ("sequence", "saw", "crow"), False),
        (("sequence", "crow", "frog", "saw"), ("overlap", "crow", "saw"), False),
        (("sequence", "crow", "frog", "saw"), ("single", "animal"), True),
        (("overlap", "crow", "saw"), ("overlap", "saw", "crow"), True),
        (("overlap", "crow", "saw"), ("sequence", "crow", "saw"), False),
        (("overlap", "crow", "saw"), ("overlap", "crow", "bird"), False),  # one crow is not two birds
        (("overlap", "crow", "owl"), ("overlap", "owl", "bird"), True),
        (("single", "crow"), ("sequence", "crow", "owl"), False),
    ],
)
def test_truth_is_decided_on_graphs(scene, sentence, expected):
    told = [Statement(relation, tuple(names)) for relation, *names in (scene, sentence)]
    assert holds(told[0], told[1], EVENTS) is expected


def test_names_of_kin_are_perhaps_true():
    drake, duck = Statement("single", ("drake",)), Statement("single", ("duck",))
    assert not holds(drake, duck, EVENTS)
    assert holds(drake, duck, EVENTS, perhaps=True)
    assert not holds(drake, Statement("single", ("hen",)), EVENTS, perhaps=True)
    known = {event.name for event in EVENTS}
    assert all(kin <= known for kin in KIN)
    with pytest.raises(ValueError, match=r"1 name\(s\) cannot have the relation 'overlap'"):
        Statement("overlap", ("drake",))


def test_nothing_is_said_where_nothing_contradicts():
    alone = Scene((Sound(0, 0, 0.0),), "single", None, 2.0)
    assert triples([alone], synthetic_events()[:1]) == []


# ---------------------------------------------------------------- worlds


def test_clips_bring_triples_and_are_otherwise_as_they_were(module_home):
    plain, world = SMALL.load(), load_data(NLIConfig(SMALL, SMALL))
    expected = scene_triples(SMALL)
    for name, clips in world.splits.items():
        brought = list(map(Triple, *(clips.columns[column] for column in Triple._fields)))
        assert set(brought) <= set(expected)
        assert brought[: len(expected)] == list(
            map(Triple, *(world.train.columns[column][: len(brought)] for column in Triple._fields))
        )
        assert clips.key == plain.split(name).key
        assert clips.captions("eng") == plain.split(name).captions("eng")
        assert torch.equal(clips.relevance(), plain.split(name).relevance())
    assert sorted(map(Triple, *(world.train.columns[column] for column in Triple._fields))) == sorted(expected)
    assert world.test.select([3]).columns["premise"] == [world.test.columns["premise"][3]]


def test_triples_name_worlds_apart(module_home):
    configs = [
        SMALL,
        NLIConfig(SMALL, SMALL),
        NLIConfig(SMALL, SMALL, seed=1),
        NLIConfig(SMALL, SMALL, n=3),
        NLIConfig(LexiconConfig(SMALL, "narrow"), SMALL),
    ]
    worlds = [config.load() for config in configs]
    assert len({json.dumps(world.identity) for world in worlds}) == len(worlds)
    assert len(set(worlds[3].train.columns["premise"])) == 3
    assert pickle.loads(pickle.dumps(configs[1])).load().identity == worlds[1].identity  # as it travels


def test_features_bring_triples_too(module_home):
    world = SMALL.load()
    heard = {name: Encoded(clips, np.ones((len(clips), 2), np.float32), name) for name, clips in world.splits.items()}
    some = [Triple("a", "b", "c"), Triple("d", "e", "f")]
    found = with_triples(type(world)(SMALL, heard), some)
    assert isinstance(found.train, Encoded)
    assert sorted(found.train.columns["contradiction"]) == ["c"] * 10 + ["f"] * 10
    batch = next(iter(PairDataset(found.train, columns=["premise", "contradiction"]).batches(5, seed=0, epoch=0)))
    assert all({"a": "c", "d": "f"}[one] == other for one, other in zip(*batch.columns.values(), strict=True))
    with pytest.raises(PullPushError, match="no triples"):
        with_triples(world, [])


# ---------------------------------------------------------------- corpora

PAIRS = [
    ("a man plays", "a person plays", 0),
    ("a man plays", "nobody plays", 2),
    ("a man plays", "a man is happy", 1),
    ("a man plays", "a human plays", 0),
    ("two dogs run", "dogs run", 0),  # nothing contradicts it
    ("it rains", "it is dry", 2),
    ("it rains", "someone sings", -1),
    ("it rains", "water falls", 0),
]
EXPECTED = [Triple("a man plays", "a person plays", "nobody plays"), Triple("it rains", "water falls", "it is dry")]


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A cache of `datasets` of one's own, without the hub."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "corpora"


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_corpora_are_grouped_by_premise_from_lines_of_either_layout(offline, home):
    names = {0: "entailment", 1: "neutral", 2: "contradiction", -1: "-"}
    rows = [{"premise": one, "hypothesis": two, "label": label} for one, two, label in PAIRS]
    write_lines(offline / "snli_1.0_train.jsonl", rows)
    published = [{"sentence1": "M: " + one, "sentence2": two, "gold_label": names[label]} for one, two, label in PAIRS]
    write_lines(offline / "mnli_train.jsonl", published)
    assert nli_corpus(f"snli:{offline}") == EXPECTED
    both = nli_corpus(f"nli:{offline}")
    assert both == EXPECTED + [triple._replace(premise="M: " + triple.premise) for triple in EXPECTED]
    drawn = nli_corpus(f"nli:{offline}", n=3, seed=1)
    assert len(drawn) == 3
    assert set(drawn) < set(both)
    world = NLIConfig(SMALL, f"snli:{offline}").load()
    assert sorted(world.valid.columns["entailment"]) == ["a person plays"] * 2 + ["water falls"] * 2


def test_corpora_come_from_the_hub(offline, monkeypatch):
    columns = dict(zip(("premise", "hypothesis", "label"), map(list, zip(*PAIRS, strict=True)), strict=True))
    offline.mkdir()
    datasets.Dataset.from_dict(columns).to_parquet(str(offline / "train-00000-of-00001.parquet"))
    datasets.Dataset.from_dict({name: values[:1] for name, values in columns.items()}).to_parquet(
        str(offline / "test-00000-of-00001.parquet")
    )
    monkeypatch.setitem(nli_corpora.SOURCES, "snli", str(offline))
    assert nli_corpus("snli") == EXPECTED


def test_corpora_that_are_not_there_are_named(offline):
    with pytest.raises(UnknownNameError, match="corpus of triples 'xnli'"):
        NLIConfig(SMALL, "xnli")
    with pytest.raises(ValueError, match="n must be at least 1"):
        NLIConfig(SMALL, "snli", n=0)
    offline.mkdir()
    with pytest.raises(DataNotFoundError, match=r"holds no mnli\*\.jsonl"):
        nli_corpus(f"mnli:{offline}")
    write_lines(offline / "snli.jsonl", [{"premise": "a", "hypothesis": "b", "label": 1}])
    with pytest.raises(PullPushError, match="no premise with both"):
        nli_corpus(f"snli:{offline}")
    with pytest.raises(DataNotFoundError, match="stanfordnlp/snli"):
        nli_corpus("snli")
