"""How long, how loud: the same trained systems, tested on clips that are cut, made quieter, or put in noise.

    ground = Altering(Grounds(book))
    scores = compute.run(ground, hearing("hearing", systems, tests, conditions(FIRST, LOUDEST, WINDOWS), seeds=seeds))
    curve(scores, "T2A R@1")           # test, system, way, at, value, low, high
    against_whole(scores, "T2A R@1")   # the same less what the whole clips give, paired by seed and clip

Training stays as it is, on whole clips: the cuts are new to the system. Scenes and phrases of music have 4 s at most,
words much less; of speech a few captions go on for longer. A clip that is shorter than asked for is heard whole:
`heard` says what share of the clips a length cuts at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data.clips import Clips
from pullpush.data.mixture import Mixed
from pullpush.data.scenes.altered import Alteration, First, Gain, Loudest, WhiteNoise, altered
from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.windows import over_windows
from pullpush.errors import unknown
from pullpush.golden import versions
from pullpush.lab.compute import Ground, View
from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference
from pullpush.training.frozen import KIND, Encoded, Heard, blocks, splits_encoder, trunk_of
from pullpush.training.trunk import Trunk

FIRST, LOUDEST, WINDOWS, GAIN, NOISE, WHOLE = "first", "loudest", "windows", "gain", "noise", "whole"
SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0)
LEVELS: Mapping[str, tuple[float, ...]] = {  # seconds; decibels against the clip as it is; clip over noise, decibels
    FIRST: SECONDS,
    LOUDEST: SECONDS,
    WINDOWS: SECONDS,
    GAIN: (-10.0, -20.0, -30.0, -40.0),
    NOISE: (20.0, 10.0, 0.0, -10.0),
}
ALTERATIONS: Mapping[str, Callable[[float], Alteration]] = {
    FIRST: First,
    LOUDEST: Loudest,
    GAIN: Gain,
    NOISE: WhiteNoise,
}
SIGN = "@"  # between a view's name and a condition's


class Condition(NamedTuple):
    """How test clips are heard. way: FIRST, …, or WHOLE; at: see LEVELS."""

    way: str
    at: float

    @property
    def name(self) -> str:
        """ "first 0.5", as views are named."""
        return f"{self.way} {self.at:g}"


ALL = Condition(WHOLE, math.inf)


def conditions(*ways: str) -> list[Condition]:
    """The whole clips, and all levels of some ways; default: of all.

    Raises:
        UnknownNameError: no such way.

    >>> [each.name for each in conditions("gain")][:2]
    ['whole inf', 'gain -10']
    """
    for way in ways:
        if way not in LEVELS:
            raise unknown("way of hearing", way, LEVELS)
    return [ALL, *(Condition(way, at) for way in ways or LEVELS for at in LEVELS[way])]


# ---------------------------------------------------------------- what is heard


class Altering:
    """A ground whose test clips can be heard otherwise: "test/yamnet/sound@first 0.5"; see `compute.Ground`."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.book, self.name = ground, ground.book, ground.name
        self.compute_long = ground.compute_long
        self._views: dict[str, View] = {}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        return *self.ground.parts, "data/altered", "studies/windows"

    def view(self, name: str) -> View:
        """The ground's own, or one whose test clips are heard under the condition behind the "@".

        Raises:
            UnknownNameError: no such view, or way of hearing.
            ValueError: a view of audio; or a level that is no number.
        """
        base, _, condition = name.partition(SIGN)
        if not condition:
            return self.ground.view(base)
        if name not in self._views:
            way, _, at = condition.partition(" ")
            self._views[name] = heard_as(self.ground.view(base), Condition(way, float(at)))
        return self._views[name]


def heard_as(view: View, condition: Condition) -> View:
    """The same view with its test clips encoded under a condition; singles stay as they are.

    Raises:
        UnknownNameError: no such way of hearing.
        ValueError: the view is of audio, which no trunk hears.
    """
    if (trunk := trunk_of(view.data)) is None:
        raise ValueError("only clips that an encoder hears can be heard otherwise: give a view that is encoded")
    if condition.way not in LEVELS:
        raise unknown("way of hearing", condition.way, LEVELS)

    def hear(clips: Clips) -> Clips:
        if isinstance(clips, Mixed):
            return clips.each(hear)
        source = clips.clips  # pyrefly: ignore[missing-attribute]
        if condition.way == WINDOWS:
            return in_windows(source, trunk, condition.at)
        return splits_encoder(trunk)(altered(source, ALTERATIONS[condition.way](condition.at)))

    return view._replace(data=replace(view.data, splits={**view.data.splits, "test": hear(view.data.test)}))


def in_windows(clips: Clips, trunk: Trunk, seconds: float) -> Encoded:
    """Clips as the mean of a trunk's features over windows of so many seconds; kept in the cache.

    Windows lie evenly over a clip and are all full (see encoders/windows.py); shorter clips are heard whole.
    """
    key = content_key([versions("studies/windows", *trunk.parts), clips.key, trunk.digest, seconds])

    def build(place: Path) -> None:
        np.save(place / "features.npy", over_clips(trunk.load(), clips, seconds))

    folder = cached_dir(KIND, key, build)
    return Encoded.read(clips, folder, content_key([bytes_key(folder), clips.key]))


def over_clips(encoder: AudioEncoder, clips: Clips, seconds: float) -> np.ndarray:
    """The features that `in_windows` keeps, `(N, D)` float32."""
    longest = round(seconds * (encoder.sample_rate or 0))

    def hear(audio: Tensor, lengths: Tensor) -> np.ndarray:
        with torch.no_grad():
            return over_windows(encoder, audio, lengths, longest).float().cpu().numpy()

    return np.concatenate(list(blocks(encoder, clips, hear, jobs=1)))


def heard(tests: Mapping[str, Clips], seconds: Iterable[float] = SECONDS) -> pd.DataFrame:
    """What a length leaves of each test: test, clips, seconds (mean of a clip), at, heard (mean), share cut."""
    rows = []
    for name, clips in tests.items():
        lengths = durations(clips)
        for each in seconds:
            left, cut = lengths.clamp(max=each).mean(), (lengths > each).double().mean()
            rows.append((name, len(lengths), float(lengths.mean()), each, float(left), float(cut)))
    return pd.DataFrame(rows, columns=["test", "clips", "seconds", "at", "heard", "share cut"])


def durations(clips: Clips) -> Tensor:
    """Seconds of clips, `(N,)` float64, of waveforms or of what was heard of them."""
    if isinstance(clips, Mixed):
        each = [durations(source) for source in clips.sources]
        return torch.stack([each[part][row] for part, row in zip(clips.part, clips.row, strict=True)])
    if isinstance(clips, Heard):
        return durations(clips.clips)
    return clips.lengths.double() / clips.sample_rate  # pyrefly: ignore[missing-attribute]


# ---------------------------------------------------------------- what is compared


def hearing(
    name: str,
    systems: Mapping[str, tuple[System, str]],
    tests: Mapping[str, str],
    ways: Sequence[Condition],
    *,
    seeds: Iterable[int],
    **options: Any,
) -> Experiment:
    """Every system on every test under every condition; each is trained once a seed.

    Args:
        systems: label → (recipe and overrides, view that is learnt from).
        tests: name → pattern of the view that is tested on, in which "{ears}" stands for what follows the last "/" of
            the view that is learnt from.
        options: of Experiment.
    """
    trials = [
        Trial(label, recipe, overrides, {"test": test, "heard": each.name}, data, _tested(pattern, data, each))
        for label, ((recipe, overrides), data) in systems.items()
        for test, pattern in tests.items()
        for each in ways
    ]
    chosen: dict[str, Any] = {"data": trials[0].data, **options}
    return Experiment(name, tuple(trials), tuple(seeds), **chosen)


def _tested(pattern: str, data: str, condition: Condition) -> str:
    view = pattern.format(ears=data.rpartition("/")[2])
    return view if condition == ALL else f"{view}{SIGN}{condition.name}"


def curve(scores: Scores, metric: str = "T2A R@1") -> pd.DataFrame:
    """Where every system stands under every condition: test, system, way, at, metric, value, low, high, seeds, clips;
    fractions, 95 % over seeds and clips. `at` is infinite for whole clips.
    """
    return _rows(scores, metric, lambda trial: scores.contrast(trial.system, None, metric, trial.where))


def against_whole(scores: Scores, metric: str = "T2A R@1") -> pd.DataFrame:
    """What every condition changes against whole clips, paired by seed and clip; columns as of `curve`."""
    whole = {"heard": ALL.name}
    change = partial(scores.contrast, metric=metric, baseline_where=whole)
    return _rows(scores, metric, lambda trial: change(trial.system, where=trial.where), without=ALL.name)


def _rows(scores: Scores, metric: str, found: Callable[[Trial], Difference], *, without: str = "") -> pd.DataFrame:
    trials = [trial for trial in (scores.experiment.trials if scores else ()) if trial.where["heard"] != without]
    names = ["test", "system", "way", "at", "metric", "value", "low", "high", "seeds", "clips"]
    return pd.DataFrame([_row(trial, metric, found(trial)) for trial in trials], columns=names)


def _row(trial: Trial, metric: str, found: Difference) -> tuple[Any, ...]:
    way, _, at = trial.where["heard"].partition(" ")
    span = (found.value, found.low, found.high, found.seeds, found.clips)
    return trial.where["test"], trial.system, way, float(at), metric, *span
