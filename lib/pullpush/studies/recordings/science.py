"""The experiments of chapter 8, and what they say of recordings that others made."""

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from pullpush.data.audio import trim_silence
from pullpush.data.clips import load_data
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.music.world import MusicConfig
from pullpush.data.recordings.overlap import overlap
from pullpush.data.speech.spoken import SpokenConfig
from pullpush.data.speech.stamps import SpeechConfig
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.yamnet import Bridge, class_names
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.material import NOTHING
from pullpush.lab.scores import Scores, numbers
from pullpush.metrics import difference
from pullpush.studies import measured
from pullpush.studies.recordings.data import BASE, GROUPS, LOSS, SET, WORDS, YAMNET, Recordings
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.recipes import CYCLIC
from pullpush.training.terms import Term

INFONCE, UNTRAINED, BRIDGE, RECIPE = "InfoNCE", "untrained", "bridge, never trained", "recipe of chapter 7"
ALL = "all languages (KCL)"
NAMED_BY, CLASS_BY, SOUND_BY = "class R@1", "class mAP@10", "sound mAP@10"
EVALUATIONS = ("recall-at-1", "sound-prompts", "prompts", "named-clips")
DRAWS = 2000  # of seeds and clips, for the intervals of ranks


def losses(dim: int) -> dict[str, Mapping[str, Any]]:
    """What each loss of chapters 2 to 7 has of its own, on one frozen encoder; dim: of the joint space."""
    svr = Term("svr", options={"modelling": "dynamic", "direction": "both", "beta": 0.01})
    static = Term("svr", options={"modelling": "static", "direction": "both"})
    topics = Term("clusters", 0.05, {"topics": 128, "dim": dim})
    return {
        INFONCE: {},
        "SVR": {"terms": (LOSS, svr)},
        "SVR, static": {"terms": (LOSS, static)},
        ALL: {"sampling": "all"},
        "SigLIP": {"terms": (Term("siglip-languages", 1.0, {"form": "siglip"}),)},
        "cyclic terms": {"terms": (LOSS, *CYCLIC)},
        "SimCSE": {"terms": (LOSS, Term("simcse", 0.1))},
        "soft labels": {"terms": (LOSS, Term("distillation"))},
        "topics": {"terms": (LOSS, topics)},
        RECIPE: {"terms": (LOSS, svr, topics), "sampling": "all"},
        UNTRAINED: NOTHING,
    }


def tested(name: str, systems: Mapping[str, tuple[str, Mapping[str, Any]]], seeds: Iterable[int]) -> Experiment:
    """Systems, as the frozen encoder and what a recipe has of its own, asked for the classes in all languages."""
    trials = tuple(
        Trial(label, "kcl", {**BASE, **own}, data=encoder, test=f"test/{encoder}")
        for label, (encoder, own) in systems.items()
    )
    asked = {"languages": LANGUAGES, "evaluations": EVALUATIONS, "long": True}
    return Experiment(name, trials, tuple(seeds), data=YAMNET, **asked)


def both(losses: Scores, encoders: Scores) -> dict[str, Scores]:
    """System → the scores that hold it, of both experiments, InfoNCE on YAMNet once."""
    found = {trial.system: scores for scores in (losses, encoders) if scores for trial in scores.experiment.trials}
    return {name: found[name] for name in (*(n for n in found if n != UNTRAINED), UNTRAINED) if name in found}


def levels(ground: Recordings, systems: Mapping[str, Scores]) -> pd.DataFrame:
    """Zero-shot accuracy of all systems, the bridge last: system, `scores.LEVEL`, chance; fractions."""
    values = {name: scores.values(name, NAMED_BY) for name, scores in systems.items()}
    return _beside(ground, values, "all", len(ground.classes))


def spoken(ground: Recordings, keywords: Scores) -> pd.DataFrame:
    """Spoken words named rightly, and by length alone: as `levels`."""
    names = [trial.system for trial in keywords.experiment.trials]
    classes = len(np.unique(keywords.values(names[0], "class")[0]))
    return _beside(ground, {name: keywords.values(name, NAMED_BY) for name in names}, WORDS, classes)


def _beside(ground: Recordings, values: Mapping[str, np.ndarray], group: str, classes: int) -> pd.DataFrame:
    """Systems, and what needs no training, on a group of clips."""
    untrained = of_bridge(ground).query("group == @group").drop(columns=["group", "metric"])
    found = [{"system": name, **numbers(difference(each))} for name, each in values.items()]
    table = pd.concat([pd.DataFrame(found), untrained])
    return table.assign(low=table["low"].clip(lower=0), chance=1 / classes).reset_index(drop=True)


def by_group(ground: Recordings, systems: Mapping[str, Scores]) -> pd.DataFrame:
    """Zero-shot accuracy and mAP@10, both ways, by what training names: group, classes, system, metric and `LEVEL`; of
    the bridge, which comes last, accuracy alone.
    """
    group = np.array([ground.group(name) for name in ground.classes])
    rows = []
    for name, scores in systems.items():
        of_clip = scores.values(name, "class")[0].astype(int)
        for metric, classes in {NAMED_BY: of_clip, CLASS_BY: of_clip, SOUND_BY: np.unique(of_clip)}.items():
            values, of = scores.values(name, metric), group[classes]
            for each in GROUPS:
                if (of == each).sum() > 1:
                    head = {"group": each, "classes": int((group == each).sum()), "system": name, "metric": metric}
                    rows.append({**head, **numbers(difference(values[:, of == each]))})
    return pd.concat([pd.DataFrame(rows), of_bridge(ground).query("group in @GROUPS")])


def ranks(systems: Mapping[str, Scores], names: Sequence[str], seed: int = 0) -> tuple[pd.DataFrame, dict[str, float]]:
    """The rank of each system on scenes (R@1, mean of directions and languages) and on others' recordings (accuracy).

    Seeds, of those that all systems have, and clips are drawn anew, both with replacement and for all systems alike.

    Returns:
        A row a system and place: system, place, value (rank, 1 the best), low, high (95 %); and Spearman's correlation
        of both ranks: value, low, high.
    """
    places = {"scenes": "R@1", "ESC-50": NAMED_BY}
    shared = sorted(set.intersection(*(set(systems[n].seeds(n)) for n in names)))
    held = {place: np.stack([systems[n].values(n, of, seeds=shared) for n in names]) for place, of in places.items()}
    draw, drawn = np.random.default_rng(seed), []
    for _ in range(DRAWS):
        seeds = draw.integers(held["scenes"].shape[1], size=held["scenes"].shape[1])
        clips = {place: draw.integers(values.shape[2], size=values.shape[2]) for place, values in held.items()}
        means = {place: values[:, seeds][:, :, clips[place]].mean((1, 2)) for place, values in held.items()}
        drawn.append([rankdata(-means[place]) for place in places])
    order = np.stack([rankdata(-values.mean((1, 2))) for values in held.values()])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    rows = [
        {"system": name, "place": place, "value": order[at, row], "low": low[at, row], "high": high[at, row]}
        for at, place in enumerate(places)
        for row, name in enumerate(names)
    ]
    found = [np.corrcoef(each)[0, 1] for each in drawn]
    spearman = {"value": float(np.corrcoef(order)[0, 1])}
    return pd.DataFrame(rows), spearman | dict(zip(("low", "high"), np.quantile(found, [0.025, 0.975]), strict=True))


# ---------------------------------------------------------------- what nothing is trained for


@cache
def measure(ground: Recordings) -> pd.DataFrame:
    """What needs no training: the bridge by class names on the clips, by group and on "all"; of the spoken words what
    length alone says: the shortest clips have the words of the fewest letters, as many clips a word as there are.
    """
    clips, names = ground.others, ground.classes
    reader = TEXT[ground.book.settings.text].make()
    drawn = {} if ground.has_recordings else {"pretrained": False}
    known = class_names() if ground.has_recordings else [f"class {number}" for number in range(521)]
    model = Bridge(AUDIO["yamnet"].make(**drawn), known, reader).eval()
    predicted = (embed_audio(model, clips) @ embed_texts(model, clips.prompts()).T).argmax(dim=1)
    right = (predicted == clips.labels).double().numpy()[None]
    group = np.array([ground.group(names[label]) for label in clips.labels.tolist()])
    rows = [("all", right), *((each, right[:, group == each]) for each in GROUPS if (group == each).sum() > 1)]
    table = [{"group": each, "system": BRIDGE, "metric": NAMED_BY, **numbers(difference(hits))} for each, hits in rows]
    words = ground.words
    audio, lengths = words.audio(slice(None))
    spoken = [len(trim_silence(wave[:length])) for wave, length in zip(audio, lengths.tolist(), strict=True)]
    letters = np.array([len(name) for name in words.prompts("eng", "{label}")])
    by_letters = sorted(words.labels.tolist(), key=lambda label: (letters[label], label))
    guessed = np.empty(len(words), int)
    guessed[np.argsort(spoken, kind="stable")] = by_letters
    alone = numbers(difference((guessed == words.labels.numpy()).astype(float)[None]))
    return pd.DataFrame([*table, {"group": WORDS, "system": "length alone", "metric": NAMED_BY, **alone}])


def of_bridge(ground: Recordings) -> pd.DataFrame:
    """`measure`, or what was measured where none is tested here."""
    if ground.tests:
        return measure(ground)
    return measured.read("recordings").query("metric == @NAMED_BY").reset_index(drop=True)


def copies(ground: Recordings) -> pd.DataFrame:
    """Pairs of a test clip and of a recording that the book learns from, or another test clip, that are one recording
    by `overlap`: group (of test clips), system (what they are compared with), metric "pairs", value, clips.
    """
    speech = SpokenConfig(("prompts",)), SpeechConfig()
    learnt = {
        "events of the scenes": ground.scenes.singles,
        "phrases of music": load_data(MusicConfig(captions_per_phrase=1)).train,
        **{name: load_data(config).train for name, config in zip(("prompts", "descriptions"), speech, strict=True)},
    }
    rows = []
    for group, clips in ((SET, ground.others), (WORDS, ground.words)):
        for name, others in {"one another": clips, **learnt}.items():
            pairs = overlap(others, clips).query("train != test")
            rows.append({"group": group, "system": name, "metric": "pairs", "value": len(pairs), "clips": len(others)})
    return pd.DataFrame(rows)


def shared() -> pd.DataFrame:
    """`copies` as it was measured: test clips, compared with, clips, pairs of one recording."""
    table = measured.read("recordings", metric="pairs").astype({"value": int, "clips": int})
    names = {"group": "test clips", "system": "compared with", "value": "pairs of one recording"}
    return table.rename(columns=names)[["test clips", "compared with", "clips", "pairs of one recording"]]


def write(ground: Recordings) -> None:
    """Make the table that `of_bridge` and `shared` read."""
    began, path = time.time(), measured.path_of("recordings")
    table = pd.concat([measure(ground), copies(ground)], ignore_index=True)
    table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    command = measured.SOURCES["recordings"].command
    measured.note("recordings", measured.COUNTED, time.time() - began, command, path=path)
