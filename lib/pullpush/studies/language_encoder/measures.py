"""What judges the claims that no single contrast of two systems does: means over ranks, and differences of gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pullpush.lab.experiments import Where
from pullpush.lab.page import Experiments, Measure
from pullpush.metrics.inference import Difference, difference
from pullpush.studies.language_encoder.gains import RECALLS, between, gain
from pullpush.studies.measures import joined

SIMCSE, CYCLIC = ("CLAPs", "CLAP"), ("CyCLAP", "CLAP")
CYCLIC_SIMCSE = ("CyCLAPs", "CyCLAP")
BOTH = (SIMCSE, CYCLIC_SIMCSE)
FALL = [pair[::-1] for pair in BOTH]  # of a loss: how far SimCSE lowers it
TEXT, AUDIO = "A2T R@1", "T2A R@1"
TEXT_RANKS = tuple(name for name in RECALLS if name.startswith("A2T"))
LATER_AUDIO = ("T2A R@5", "T2A R@10")


def world(name: str) -> Where:
    """The point of an experiment that has several worlds."""
    return {"world": name}


def of_gain(experiment: str, pair: tuple[str, str], metric: str | Sequence[str], where: Where | None = None) -> Measure:
    """What a system has over another in the mean of several metrics."""
    return Measure((experiment,), lambda scores: gain(scores[experiment], pair, metric, where).difference)


def of_sides(experiment: str, pair: tuple[str, str]) -> Measure:
    """What a system gains in text retrieval, less what it gains in the other direction."""

    def sides(scores: Experiments) -> Difference:
        text, audio = (gain(scores[experiment], pair, metric) for metric in (TEXT, AUDIO))
        return between(text, audio, paired=True)

    return Measure((experiment,), sides)


Point = tuple[str, str]  # an experiment, and a world of it


def of_points(
    pairs: tuple[str, str] | Sequence[tuple[str, str]],
    metric: str,
    first: Point,
    second: Point,
    *,
    relative: bool = False,
) -> Measure:
    """What systems have over others at one point, less what they have at another, on the same clips."""

    def points(scores: Experiments) -> Difference:
        one, other = (
            gain(scores[experiment], pairs, metric, world(name), relative=relative)
            for experiment, name in (first, second)
        )
        return between(one, other, paired=True)

    return Measure(tuple(dict.fromkeys((first[0], second[0]))), points)


def over_sounds(picture: tuple[str, str], sound: tuple[str, str]) -> Measure:
    """What a term adds to pictures, less what it adds to sounds; both text encoders learn from nothing."""

    def pictures_over_sounds(scores: Experiments) -> Difference:
        sounds = gain(scores["scratch"], sound, "R@1", world("freesound"))
        return between(gain(scores["pictures"], picture, "R@1"), sounds, paired=False)

    return Measure(("pictures", "scratch"), pictures_over_sounds)


def scratch_falls(scores: Experiments) -> Difference:
    """CLAP from scratch against CLAP with a trained text encoder, on the same clips and seeds."""
    scratch, trained = (scores[name].values("CLAP", "R@1", world("freesound")) for name in ("scratch", "pretrained"))
    return difference(scratch, trained)


def ensemble(scores: Experiments) -> Difference:
    """Accuracy of the mean of a class's prompts, less the mean accuracy of one prompt."""
    several, one = (
        scores["pretrained"].values("CLAP", name, world("freesound")) for name in ("ensemble accuracy", "mean prompt")
    )
    return difference(several, one)


def zero_shot(pair: tuple[str, str], worlds: Sequence[str]) -> Measure:
    """A gain in zero-shot accuracy, the mean of both tests and of several worlds."""

    def both_tests(scores: Experiments) -> Difference:
        tests = [
            [gain(scores[test], pair, "accuracy", world(name)) for name in worlds] for test in ("pretrained", "others")
        ]
        return difference(joined([np.mean([one.values for one in gains], axis=0) for gains in tests]))

    return Measure(("pretrained", "others"), both_tests)


MEASURES: Mapping[str, Measure] = {
    "clotho-cyclic-all-ranks": of_gain("pretrained", CYCLIC, RECALLS, world("clotho")),
    "clotho-simcse-text-ranks": of_gain("pretrained", CYCLIC_SIMCSE, TEXT_RANKS, world("clotho")),
    "clotho-clap-simcse-text-ranks": of_gain("pretrained", SIMCSE, TEXT_RANKS, world("clotho")),
    "clotho-simcse-audio-ranks": of_gain("pretrained", SIMCSE, LATER_AUDIO, world("clotho")),
    "clotho-cyclic-simcse-audio-ranks": of_gain("pretrained", CYCLIC_SIMCSE, LATER_AUDIO, world("clotho")),
    "gain-by-size": of_points(BOTH, "R@1", ("scratch", "freesound"), ("scratch", "clotho")),
    "gain-by-vocabulary": of_points(BOTH, "R@1", ("scratch", "narrow"), ("scratch", "freesound")),
    "uniformity-by-vocabulary": of_points(FALL, "text uniformity", ("scratch", "skewed"), ("scratch", "freesound")),
    "gain-by-known-source": of_points(CYCLIC, "R@1", ("known", "freesound/known"), ("known", "freesound")),
    "text-gains-more-pictures": of_sides("pictures", ("CyCLIPs", "CyCLIP")),
    "cyclic-pictures-over-sounds": over_sounds(("CyCLIP", "CLIP"), CYCLIC),
    "simcse-pictures-over-sounds": over_sounds(("CLIPs", "CLIP"), SIMCSE),
    "uniformity-by-pretraining": of_points(
        FALL, "text uniformity", ("pretrained", "freesound"), ("scratch", "freesound")
    ),
    "zero-shot-freesound-cyclic": zero_shot(CYCLIC, ["freesound"]),
    "zero-shot-clotho-cyclic": zero_shot(CYCLIC, ["clotho"]),
    "zero-shot-simcse": zero_shot(SIMCSE, ["freesound", "clotho", "audiocaps"]),
    "zero-shot-cyclic-simcse": zero_shot(CYCLIC_SIMCSE, ["freesound", "clotho", "audiocaps"]),
    "prompt-ensemble": Measure(("pretrained",), ensemble),
    "scratch-falls": Measure(("scratch", "pretrained"), scratch_falls),
    "gain-by-pretraining": of_points(
        [CYCLIC_SIMCSE], "R@1", ("scratch", "freesound"), ("pretrained", "freesound"), relative=True
    ),
    "music-simcse-text-ranks": of_gain("music", SIMCSE, TEXT_RANKS),
    "music-cyclic-simcse-text-ranks": of_gain("music", CYCLIC_SIMCSE, TEXT_RANKS),
    "text-gains-more-music": of_sides("music", SIMCSE),
}
