"""How long, how loud: the same trained systems, tested on clips that are cut, made quieter, or put in noise.

    ground = Altering(Grounds(book))
    found = compute.run(ground, experiment(run, BRIEF, conditions(FIRST, LOUDEST), seeds=seeds))
    curve(found)           # test, system, way, at, metric, value, low, high, seeds, clips

Training stays as it is, on whole clips: the cuts are new to the system. Scenes and phrases of music have 4 s at most,
words much less; of speech a few captions go on for longer. A clip that is shorter than asked for is heard whole:
`heard` says what share of the clips a length cuts at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

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
from pullpush.lab.comparisons import levels
from pullpush.lab.compute import Ground, View
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.scores import Scores
from pullpush.studies.glap.experiments import Run
from pullpush.training.frozen import KIND, Encoded, EncodedClips, blocks, splits_encoder, trunk_of
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


WHOLE_CLIPS = f"{WHOLE} inf"  # a condition


def conditions(*ways: str) -> list[str]:
    """How test clips are heard, as views are named: whole, and at all levels of some ways.

    >>> conditions("gain")[:2]
    ['whole inf', 'gain -10']
    """
    return [WHOLE_CLIPS, *(f"{way} {at:g}" for way in ways for at in LEVELS[way])]


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
            self._views[name] = heard_as(self.ground.view(base), condition)
        return self._views[name]


def heard_as(view: View, condition: str) -> View:
    """The same view with its test clips encoded under a condition, such as "first 0.5"; singles stay as they are.

    Raises:
        UnknownNameError: no such way of hearing.
        ValueError: the view is of audio, which no trunk hears; or a level that is no number.
    """
    if (trunk := trunk_of(view.data)) is None:
        raise ValueError("only clips that an encoder hears can be heard otherwise: give a view that is encoded")
    way, _, level = condition.partition(" ")
    if way not in LEVELS:
        raise unknown("way of hearing", way, LEVELS)
    at = float(level)

    def hear(clips: Clips) -> Clips:
        if isinstance(clips, Mixed):
            return clips.each(hear)
        source = clips.clips  # pyrefly: ignore[missing-attribute]
        if way == WINDOWS:
            return in_windows(source, trunk, at)
        return splits_encoder(trunk)(altered(source, ALTERATIONS[way](at)))

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
    """What share of each test a length cuts: test, clips, seconds (mean of a clip), at, share cut."""
    lengths = {name: durations(clips) for name, clips in tests.items()}
    rows = [
        (name, len(own), float(own.mean()), each, float((own > each).double().mean()))
        for name, own in lengths.items()
        for each in seconds
    ]
    return pd.DataFrame(rows, columns=["test", "clips", "seconds", "at", "share cut"])


def durations(clips: Clips) -> Tensor:
    """Seconds of clips, `(N,)` float64, of waveforms or of what was heard of them."""
    if isinstance(clips, Mixed):
        each = [durations(source) for source in clips.sources]
        return torch.stack([each[part][row] for part, row in zip(clips.part, clips.row, strict=True)])
    if isinstance(clips, EncodedClips):
        return durations(clips.clips)
    return clips.lengths.double() / clips.sample_rate  # pyrefly: ignore[missing-attribute]


def experiment(run: Run, tests: Sequence[str], ways: Sequence[str], *, seeds: Iterable[int]) -> Experiment:
    """A run on every test under every condition; it is trained once a seed."""
    data = f"{run.mix}/{run.ears}"
    signs = {each: "" if each == WHOLE_CLIPS else f"{SIGN}{each}" for each in ways}
    trials = [
        Trial(run.label, *run.system, {"test": test, "heard": each}, data, f"test/{run.ears}/{test}{sign}")
        for test in tests
        for each, sign in signs.items()
    ]
    return Experiment("hearing", tuple(trials), tuple(seeds), data, long=True, languages=("mul",))


def curve(scores: Scores, metric: str = "T2A R@1") -> pd.DataFrame:
    """Where every system stands under every condition: test, system, way, at, metric, value, low, high, seeds, clips;
    fractions, 95 % over seeds and clips. `at` is infinite for whole clips.
    """
    found = levels(scores, [metric])
    way = found.pop("heard").str.split(" ", expand=True)
    found.insert(2, "way", way[0])
    found.insert(3, "at", way[1].astype(float))
    return found
