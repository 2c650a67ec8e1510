"""What judges the claims that no single contrast of two systems does: means over ranks, and differences of gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pullpush.lab.comparisons import Pair
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.page import Experiments, Measure
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Array, Difference, Variance, difference
from pullpush.studies.language_encoder.comparisons import RECALLS
from pullpush.studies.measures import joined

Metric = str | Sequence[str]  # several: their mean
Point = tuple[str, str]  # an experiment, and a world of it
PARTS = ("seed", "clip", "interaction")  # of a variance
SIMCSE, CYCLIC = ("CLAPs", "CLAP"), ("CyCLAP", "CLAP")
CYCLIC_SIMCSE = ("CyCLAPs", "CyCLAP")
BOTH = (SIMCSE, CYCLIC_SIMCSE)
FALL = [pair[::-1] for pair in BOTH]  # of a loss: how far SimCSE lowers it
TEXT, AUDIO = "A2T R@1", "T2A R@1"
TEXT_RANKS = tuple(name for name in RECALLS if name.startswith("A2T"))
LATER_AUDIO = ("T2A R@5", "T2A R@10")


def gain(
    scores: Scores, pairs: Pair | Sequence[Pair], metric: Metric = "R@1", where: Where | None = None, *, relative=False
) -> Array:
    """What a system has over its baseline, or several over theirs on average, by seed and test item, `(S, N)`.

    Args:
        scores: of an experiment.
        pairs: (system, baseline), one or several. Exchanged they give the fall of a loss.
        metric: a score, or several for their mean.
        where: the point of all of them.
        relative: of each pair the ratio of its means minus 1, linearised in both (the delta method).

    Raises:
        ExperimentError: a system, point or score that is not there, or no seed that all have.
    """
    chosen: Sequence[Pair] = [pairs] if isinstance(pairs[0], str) else pairs  # pyrefly: ignore[bad-assignment]
    metrics = [metric] if isinstance(metric, str) else list(metric)
    names = {name for pair in chosen for name in pair}
    seeds = sorted(set.intersection(*(set(scores.seeds(name, where)) for name in names)))
    if not seeds:
        raise ExperimentError(f"{', '.join(sorted(names))} share no seed: train them with one")
    parts = []
    for pair in chosen:
        ours, theirs = (
            np.mean([scores.values(name, each, where, seeds=seeds) for each in metrics], axis=0) for name in pair
        )
        ratio = ours.mean() / theirs.mean() if relative else 1.0
        parts.append((ours - ratio * theirs) / theirs.mean() + ratio - 1 if relative else ours - theirs)
    return np.mean(parts, axis=0)


def unpaired(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Difference:
    """mean(first) − mean(second) of two experiments with nothing in common, each `(seeds, items)`.

    The variances of both means are those of `metrics.difference`; they add up, and 1/df is the sum of each one's
    squared share of that, divided by its df (Welch 1947). For three seeds and more, 93.4 to 96.3 % of the intervals for
    95 % hold the truth, in the designs of `metrics.inference`; for two, 90.5 %. Seeds and clips are the smaller number
    of both, components of the variance the sum.

    >>> print(unpaired([[3.0, 2.0], [4.0, 3.0], [3.5, 2.5]], [[1.0, 1.5, 0.5], [1.0, 2.0, 0.0]]))
    +2.00 ± 2.74 [−0.74, 4.74]
    """
    one, other = (difference(values, level=level) for values in (first, second))
    quantile = (1 + level) / 2
    squares = [(each.half_width / special.stdtrit(each.df, quantile)) ** 2 for each in (one, other)]
    total, value = sum(squares), one.value - other.value
    share = squares[0] / total if total else 0.5
    df, error = 1 / (share**2 / one.df + (1 - share) ** 2 / other.df), float(np.sqrt(total))
    half = float(special.stdtrit(df, quantile)) * error
    p = 2 * float(special.stdtr(df, -abs(value) / error)) if error else float(value == 0)
    parts = {name: getattr(one.variance, name) + getattr(other.variance, name) for name in PARTS}
    shares = {name: share * one.variance.shares[name] + (1 - share) * other.variance.shares[name] for name in PARTS}
    return Difference(
        value, value - half, value + half, half, p, float(df), level,
        seeds=min(one.seeds, other.seeds), clips=min(one.clips, other.clips), trunks=1,
        variance=Variance(**parts, shares=shares),
    )  # fmt: skip


def world(name: str) -> Where:
    """The point of an experiment that has several worlds."""
    return {"world": name}


def of_gain(experiment: str, pair: Pair, metric: Metric, where: Where | None = None) -> Measure:
    """What a system has over another in the mean of several metrics."""
    return Measure((experiment,), lambda scores: difference(gain(scores[experiment], pair, metric, where)))


def of_sides(experiment: str, pair: Pair) -> Measure:
    """What a system gains in text retrieval, less what it gains in the other direction."""
    return Measure(
        (experiment,), lambda scores: difference(*(gain(scores[experiment], pair, metric) for metric in (TEXT, AUDIO)))
    )


def of_points(
    pairs: Pair | Sequence[Pair], metric: str, first: Point, second: Point, *, relative: bool = False
) -> Measure:
    """What systems have over others at one point, less what they have at another, on the same clips."""

    def points(scores: Experiments) -> Difference:
        return difference(
            *(gain(scores[name], pairs, metric, world(where), relative=relative) for name, where in (first, second))
        )

    return Measure(tuple(dict.fromkeys((first[0], second[0]))), points)


def over_sounds(picture: Pair, sound: Pair) -> Measure:
    """What a term adds to pictures, less what it adds to sounds; both text encoders learn from nothing."""

    def pictures_over_sounds(scores: Experiments) -> Difference:
        sounds = gain(scores["scratch"], sound, "R@1", world("freesound"))
        return unpaired(gain(scores["pictures"], picture, "R@1"), sounds)

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
        return difference(joined([np.mean(gains, axis=0) for gains in tests]))

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
