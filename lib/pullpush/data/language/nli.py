"""Triples of sentences, one that follows and one that contradicts, and worlds whose clips bring such a triple each.

    load_data(NLIConfig(WorldConfig(), WorldConfig(seed=1)))  # triples of scenes: nothing is fetched
    load_data(NLIConfig(WorldConfig(), "nli"))                # SNLI and MNLI

The sentences have nothing to do with the clips: they only come at the same time. SNLI and MNLI are triples, grouped by
premise as in supervised SimCSE (Gao et al. 2021, section 4); `datasets` reads them, from the hub, which keeps them in
its cache, or from a folder of JSON lines.

Of a scene, a sentence is drawn as a small graph, a *statement*: which events it names, by name or by a general word ("a
bird"), and in which relation. Whether it follows is decided on graphs, by `holds`; `grammar.captions` puts it into
words. Premises may mention distance, repetition and noise; the others leave them out, so that they follow from the
premise's words as well. Statements are complete: a sound that a scene does not hold, is not there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from pullpush.cache import content_key
from pullpush.data.banks import create_bank
from pullpush.data.clips import Clips, Config, StoredClips, World
from pullpush.data.draws import number
from pullpush.data.language.grammar import captions
from pullpush.data.language.vocabulary import Event, parse_phrases
from pullpush.data.language.wording import LexiconConfig
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.world import WorldConfig, draw_scenes
from pullpush.data.sets.hf import load_dataset
from pullpush.errors import DataNotFoundError, PullPushError, check_known
from pullpush.settings import Count, check_fields

LANGUAGE = "eng"  # of the general words, and of what says that sounds are heard together
TRIES = 5  # captions of a scene to choose from: at least three are clear (see `_TOGETHER`), and all scenes have as many

# What every event of a category is, and is heard as; "animal" and "thing" are of several categories.
GENERAL = {
    "amphibian": (["an amphibian | calls", "an amphibian | can be heard"], "the call of an amphibian"),
    "animal": (["an animal | makes a sound", "an animal | can be heard"], "the sound of an animal"),
    "bird": (["a bird | calls", "a bird | can be heard"], "the call of a bird"),
    "household": (["a household sound | can be heard", "a household noise | can be heard"], "a household sound"),
    "insect": (["an insect | makes a sound", "an insect | can be heard"], "the sound of an insect"),
    "instrument": (["a musical instrument | sounds", "a musical instrument | plays"], "the sound of an instrument"),
    "mammal": (["a mammal | calls", "a mammal | can be heard"], "the call of a mammal"),
    "sweep": (["a tone | changes its pitch", "a changing tone | can be heard"], "the glide of a tone"),
    "tool": (["a tool | makes a sound", "a tool | can be heard"], "the sound of a tool"),
    "vehicle": (["a vehicle | makes a sound", "a vehicle | can be heard"], "the sound of a vehicle"),
}
ANIMALS = ("amphibian", "bird", "insect", "mammal")
# False wherever no event of theirs is heard; but a vacuum cleaner may be called a tool, and a siren changes its pitch.
FALSIFIABLE = ("amphibian", "animal", "bird", "insect", "instrument", "mammal")
UNHEARD = ("sonar",)  # a vehicle's, but no vehicle is heard
# One is the other, or a part of it, or is often called so: neither is said to be absent where the other is heard.
KIN = (
    {"bull", "cow"},
    {"caribou", "doe", "stag"},
    {"cymbal", "drum_kit", "floor_tom"},
    {"dolphin", "orca", "whale"},
    {"drake", "duck"},
    {"hammer", "metal_mallet"},
    {"hen", "rooster"},
    {"lamb", "sheep"},
)
# "A and B" leaves open whether they are heard together.
_TOGETHER = re.compile(r"\b(while|as|at the same time|together|at once)\b", re.IGNORECASE)


class Triple(NamedTuple):
    """Three sentences: the second follows from the first, the third contradicts it."""

    premise: str
    entailment: str
    contradiction: str


@dataclass(frozen=True)
class Statement:
    """What a sentence says: names of events or general words, in order, and their relation (see `scene.RELATIONS`)."""

    relation: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if (len(self.names) == 1) != (self.relation == "single"):
            raise ValueError(f"{len(self.names)} name(s) cannot have the relation {self.relation!r}")


def words_for(event: Event) -> tuple[str, ...]:
    """The general words that are true of an event, from near to far."""
    known = event.category in GENERAL and event.name not in UNHEARD
    return (event.category,) * known + ("animal",) * (known and event.category in ANIMALS)


def holds(scene: Statement, sentence: Statement, events: Sequence[Event], *, perhaps: bool = False) -> bool:
    """Whether a sentence is true of a scene: its names fit different sounds, in its relation and order.

    perhaps: whether it might be called true, by the names in `KIN`.
    """
    if sentence.relation not in ("single", scene.relation):
        return False
    known = {event.name: event for event in events}

    def fits(said: str, heard: str) -> bool:
        if said in (heard, *words_for(known[heard])):
            return True
        return perhaps and any({said, heard} <= kin for kin in KIN)

    places = permutations(range(len(scene.names)), len(sentence.names))
    return any(
        (sentence.relation != "sequence" or list(order) == sorted(order))
        and all(fits(said, scene.names[place]) for said, place in zip(sentence.names, order, strict=True))
        for order in places
    )


def triples(scenes: Sequence[Scene], events: Sequence[Event], *, seed: int = 0) -> list[Triple]:
    """One triple for every scene; none for a scene that nothing can be said to contradict.

    What follows: fewer of the events, one of them by a general word, or all of them retold. What contradicts: another
    event (of another category, or of the same one) or general word in place of one, another order or relation. Both are
    drawn evenly from what the scene allows; the same for the same scenes and seed on every machine.

    Raises:
        UnknownNameError: an event has no English phrases.

    >>> from pullpush.data.banks.synthetic import synthetic_events
    >>> scene = Scene((Sound(1, 0, onset=0.0), Sound(7, 0, onset=1.0)), "sequence", None, 3.0)
    >>> for sentence in triples([scene], synthetic_events())[0]:
    ...     print(sentence)
    A bell is ringing and then rain is pattering.
    After a bell rings, rain patters.
    The buzzing of an electric shaver, then the patter of rain.
    """
    table = [*events, *general_events()]
    found = (_triple(scene, table, len(events), number(("nli", seed, i))) for i, scene in enumerate(scenes))
    return [triple for triple in found if triple is not None]


@cache
def general_events() -> tuple[Event, ...]:
    """The general words as if they were events, so that the grammar can tell them."""
    return tuple(
        Event(word, word, (), {LANGUAGE: parse_phrases({"clauses": clauses, "nouns": [noun], "label": word})})
        for word, (clauses, noun) in GENERAL.items()
    )


def _triple(scene: Scene, table: Sequence[Event], count: int, seed: int) -> Triple | None:
    """One triple; `table`: `count` events, and the general words."""
    rng, events = np.random.default_rng(seed), table[:count]
    truth = Statement(scene.relation, tuple(table[event].name for event in scene.events))

    def choose(ways: dict[str, list[Statement]], is_right: Callable[[Statement], bool]) -> Statement | None:
        """A kind first, since some have many more statements; then the first of its statements that is right."""
        for kind in rng.permutation(len(ways)):
            several = list(ways.values())[kind]
            for row in rng.permutation(len(several)):
                if is_right(several[row]):
                    return several[row]
        return None

    follows = choose(_following(truth, events), lambda made: holds(truth, made, events))
    if follows is None:
        return None
    denied = choose(_contradicting(truth, follows, events), lambda made: not holds(truth, made, events, perhaps=True))
    if denied is None:
        return None
    premise = _told(scene, table, seed)
    return Triple(premise, _said(follows, table, seed + 1, premise), _said(denied, table, seed + 2, premise))


def _following(truth: Statement, events: Sequence[Event]) -> dict[str, list[Statement]]:
    """Statements that may follow, by kind."""
    whole = range(len(truth.names))
    fewer = [_part(truth, [place]) for place in whole if len(whole) > 1]
    fewer += [_part(truth, [place for place in whole if place != left]) for left in whole if len(whole) > 2]
    known = {event.name: event for event in events}
    general = [
        _renamed(part, place, word)
        for part in (truth, *fewer)
        for place, name in enumerate(part.names)
        for word in words_for(known[name])
        if sum(word in words_for(known[other]) for other in part.names) == 1  # not "a bird calls while a crow caws"
    ]
    return {"retold": [truth], "fewer": fewer, "general": general}


def _contradicting(truth: Statement, said: Statement, events: Sequence[Event]) -> dict[str, list[Statement]]:
    """Statements that may contradict, by kind; `said` follows, and those with other names are made of it."""
    known = {event.name: event for event in events}
    heard = {known[name].category for name in truth.names}
    words = [word for event in events for word in words_for(event) if word in FALSIFIABLE]  # as often as they are true
    places = range(len(said.names))
    others = [(known[name].category in heard, name) for name in known if name not in truth.names]
    turned = [Statement(truth.relation, order) for order in permutations(truth.names)] * (truth.relation == "sequence")
    switched = {"sequence": ["overlap"], "overlap": ["sequence"], "single": []}[truth.relation]
    return {
        "other": [_renamed(said, place, name) for place in places for near, name in others if not near],
        "near": [_renamed(said, place, name) for place in places for near, name in others if near],
        "general": [_renamed(said, place, word) for place in places for word in words],
        "order": turned,
        "relation": [Statement(relation, truth.names) for relation in switched],
    }


def _part(truth: Statement, places: Sequence[int]) -> Statement:
    return Statement("single" if len(places) == 1 else truth.relation, tuple(truth.names[place] for place in places))


def _renamed(said: Statement, place: int, name: str) -> Statement:
    return Statement(said.relation, (*said.names[:place], name, *said.names[place + 1 :]))


def _said(said: Statement, table: Sequence[Event], seed: int, premise: str) -> str:
    """A statement in words, other than the premise's."""
    place = {event.name: row for row, event in enumerate(table)}
    sounds = tuple(Sound(place[name], 0, onset=float(row)) for row, name in enumerate(said.names))
    return _told(Scene(sounds, said.relation, None, float(len(sounds))), table, seed, lambda text: text != premise)


def _told(scene: Scene, table: Sequence[Event], seed: int, allowed: Callable[[str], Any] = bool) -> str:
    """The first caption of a scene that is allowed and leaves nothing open."""
    texts: Iterator[str] = iter(captions(scene, table, language=LANGUAGE, n=TRIES, seed=seed))
    is_clear = _TOGETHER.search if scene.relation == "overlap" else bool
    return next(text for text in texts if is_clear(text) and allowed(text))


SOURCES = {"snli": "stanfordnlp/snli", "mnli": "nyu-mll/multi_nli"}
CORPORA = {"snli": ("snli",), "mnli": ("mnli",), "nli": ("snli", "mnli")}
COLUMNS = (("premise", "sentence1"), ("hypothesis", "sentence2"))  # on the hub, and as they are published
LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2, "-": -1}  # "-": the annotators did not agree
ENTAILMENT, CONTRADICTION = LABELS["entailment"], LABELS["contradiction"]
Scenes = WorldConfig | HeldOutConfig | LexiconConfig


def nli_corpus(name: str, *, n: int | None = None, seed: int = 0) -> list[Triple]:
    """Triples of the training pairs of "snli", "mnli", or "nli", which are both.

    Args:
        name: of the corpus, from the hub; "snli:/folder" reads `snli*.jsonl` there: lines with premise, hypothesis and
            label, or with sentence1, sentence2 and gold_label, as the corpora are published.
        n: how many to draw, in random order; None: all, in their own.
        seed: of that draw.

    Raises:
        UnknownNameError: there is no such corpus.
        DataNotFoundError: it is neither there nor on the hub.
        PullPushError: `datasets` is not installed, or cannot read it, or no premise has both kinds of hypotheses.
    """
    corpus, folder = located(name)
    found = [triple for part in CORPORA[corpus] for triple in grouped(_pairs(part, folder))]
    if not found:
        raise PullPushError(f"{name} has no premise with both an entailment and a contradiction")
    if n is None:
        return found
    return [found[row] for row in np.random.default_rng(seed).permutation(len(found))[:n].tolist()]


def located(name: str) -> tuple[str, str]:
    """The corpus and the folder of "snli:/folder"; `UnknownNameError` if there is no such corpus."""
    corpus, _, folder = name.partition(":")
    check_known("corpus of triples", corpus, CORPORA)
    return corpus, folder


def grouped(pairs: Iterable[Mapping[str, Any]]) -> list[Triple]:
    """One triple for each premise that has both an entailment and a contradiction; of several the first.

    pairs: see `nli_corpus`; labels are 0 entailment, 1 neutral, 2 contradiction, -1 none.

    >>> rows = [("a dog barks", "an animal is heard", 0), ("a dog barks", "it is quiet", 2), ("it rains", "so", 0)]
    >>> grouped(dict(zip(("premise", "hypothesis", "label"), row)) for row in rows)
    [Triple(premise='a dog barks', entailment='an animal is heard', contradiction='it is quiet')]
    """
    kinds: dict[str, dict[int, str]] = {}
    for pair in pairs:
        premise, hypothesis = (pair[new if new in pair else old].strip() for new, old in COLUMNS)
        label = pair["label"] if "label" in pair else LABELS[pair["gold_label"]]
        if label in (ENTAILMENT, CONTRADICTION) and premise and hypothesis:
            kinds.setdefault(premise, {}).setdefault(label, hypothesis)
    return [
        Triple(premise, found[ENTAILMENT], found[CONTRADICTION]) for premise, found in kinds.items() if len(found) == 2
    ]


def _pairs(name: str, folder: str) -> Iterable[Mapping[str, Any]]:
    """The training pairs of one corpus."""
    files = sorted(str(path) for path in Path(folder).glob(f"{name}*.jsonl")) if folder else []
    if folder and not files:
        raise DataNotFoundError(f"{folder} holds no {name}*.jsonl: expected lines with premise, hypothesis and label")
    try:
        if files:
            return load_dataset("json", data_files=files, split="train")
        return load_dataset(SOURCES[name], split="train")
    except OSError as error:
        raise DataNotFoundError(f"{SOURCES[name]} cannot be fetched: {error}") from error


@dataclass(frozen=True)
class NLIConfig:
    """Any data, with a triple of sentences beside each clip.

    data: the world; sentences: a world of scenes, whose training scenes make a triple each (only its events and sizes
    count: nothing is rendered), or a corpus: "snli", "mnli", "nli" (see `nli_corpus`); n: most triples,
    None for all; seed: of what is drawn, the triples and which clip has which.
    """

    data: Config
    sentences: Scenes | str
    n: Count | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.sentences, str):
            located(self.sentences)
        check_fields(self, of="NLI", but=("data", "sentences"))

    def load(self) -> World:
        """The world with the columns "premise", "entailment" and "contradiction"; see `with_triples`."""
        if isinstance(self.sentences, str):
            found = nli_corpus(self.sentences, n=self.n, seed=self.seed)
        else:
            found = scene_triples(self.sentences, seed=self.seed)[: self.n]
        world = with_triples(self.data.load(), found, seed=self.seed)
        return replace(world, config=self, parts=(*world.parts, "data/nli"))


def scene_triples(config: Scenes, *, seed: int = 0) -> list[Triple]:
    """The triples of a world's training scenes, which are drawn and not rendered; see `triples`."""
    while not isinstance(config, WorldConfig):
        config = config.world if isinstance(config, HeldOutConfig) else config.scenes
    bank = create_bank(config.bank)
    return triples(draw_scenes("train", config.n_train, bank, config), bank.events, seed=seed)


def with_triples(world: World, sentences: Sequence[Triple], *, seed: int = 0) -> World:
    """The same world, in which clip i of every split brings one of M triples, number i mod M of their shuffled order.

    Captions, audio and relevance are the world's own, be it of waveforms or of features. Runs are named apart by the
    triples. What is trained in another process is loaded from its configuration, which knows of no triples: describe
    such a world by `NLIConfig`.
    """
    if not sentences:
        raise PullPushError(
            "there are no triples to bring: a contradiction tells of sounds that are not heard, so that the bank needs "
            "two kinds of sounds or more: give its folder another class"
        )
    order = np.random.default_rng(seed).permutation(len(sentences)).tolist()
    shuffled = [sentences[place] for place in order]
    splits = {name: _bring(clips, shuffled) for name, clips in world.splits.items()}
    return replace(world, splits=splits, words=content_key([world.words, [list(triple) for triple in shuffled]]))


def _bring(clips: Any, sentences: Sequence[Triple]) -> Clips:
    """The same clips with the columns; features hold the clips that they were made of."""
    if not isinstance(clips, StoredClips):
        return replace(clips, clips=_bring(clips.clips, sentences))
    rows = [sentences[row % len(sentences)] for row in range(len(clips))]
    columns = dict(zip(Triple._fields, map(list, zip(*rows, strict=True)), strict=True))
    return cast(Clips, replace(clips, columns={**clips.columns, **columns}))
