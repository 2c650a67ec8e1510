"""What was kept of runs that are to be trained again: their numbers, and how far these vary over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pullpush.lab import compute, kept
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.kept import KeptError
from pullpush.lab.scores import Scores
from pullpush.site.band import Spread, moderated, prior
from pullpush.site.declared import Declared, LongError
from pullpush.site.draw import Kept

FIRST, LAST = "loss of the first epoch", "loss of the last epoch"
Numbers = Mapping[str, tuple[float, int]]  # by metric: the mean, and of how many clips; 0 of what is no mean of clips
Groups = dict[str, list[list[float]]]  # by metric: the numbers by seed of each trial


class Expected(NamedTuple):
    """A kept run: its experiment, trial and seed, its numbers, and of each the spread, None where none is known."""

    kept: Kept
    experiment: Experiment
    trial: Trial
    seed: int
    numbers: Numbers
    spreads: Mapping[str, Spread | None]

    @property
    def point(self) -> str:
        """What else tells the trial from others of its system: "radius=0.3, times=8"."""
        return ", ".join(f"{name}={value}" for name, value in self.trial.where.items())

    def __str__(self) -> str:
        told = ", ".join(part for part in (self.trial.system, self.point, f"seed {self.seed}") if part)
        return f"{self.kept}: {told}"


class Expectations:
    """What was kept of the experiments that one chapter declares."""

    def __init__(self, plan: Declared, *, root: Path | None = None) -> None:
        self._plan, self._root = plan, root

    def of(self, one: Kept, runs: Sequence[int]) -> list[Expected]:
        """The runs of an experiment that have these numbers, counted from 0.

        Raises:
            LongError: it was not kept as it is declared.
            KeptError: what was kept is damaged.
        """
        experiment = self._plan.experiments.get(one.experiment)
        scores = self._read(experiment) if experiment else None
        if not experiment or not scores:
            both = " && ".join(kept.command(verb, one.chapter, one.experiment) for verb in ("sweep", "keep"))
            raise LongError(f"{one} was kept of another declaration than that of its chapter: `{both}` makes it anew")
        priors = {name: prior(group) or prior(self._of_chapter.get(name, [])) for name, group in groups(scores).items()}
        cells = list(experiment.cells)
        found = []
        for trial, seed in (cells[number] for number in runs):
            own = [numbers(scores, trial, other) for other in trial.seeds or experiment.seeds]
            here = numbers(scores, trial, seed)
            spreads = {name: moderated([of_seed[name][0] for of_seed in own], priors[name]) for name in here}
            found.append(Expected(one, experiment, trial, seed, here, spreads))
        return found

    @cached_property
    def _of_chapter(self) -> Groups:
        """The groups of all kept experiments of the chapter, for searches, which have one seed."""
        found: Groups = {}
        for scores in self._every():
            for name, group in groups(scores).items():
                found.setdefault(name, []).extend(group)
        return found

    def _every(self) -> Iterator[Scores]:
        for experiment in self._plan.experiments.values():
            with suppress(KeptError):  # it is told of where it is drawn
                if experiment.long and (scores := self._read(experiment)):
                    yield scores

    def _read(self, experiment: Experiment) -> Scores | None:
        ground = self._plan.ground_of(experiment)
        content = compute.content_of(ground, experiment)
        return kept.read(experiment, ground.book.chapter, content, root=self._root)


def numbers(scores: Scores, trial: Trial, seed: int) -> Numbers:
    """The mean over clips and languages of each metric of a run, and the training loss of its first and last epoch,
    which depend on the loss function more than any score does.
    """
    values = scores.clips[str(trial), seed]
    found = {name: (float(np.nanmean(array)), len(array)) for name, array in values.items()}
    losses = scores.rows(scores.history, trial, seed).sort_values("epoch")["loss"]
    return found | {FIRST: (float(losses.iloc[0]), 0), LAST: (float(losses.iloc[-1]), 0)}


def groups(scores: Scores) -> Groups:
    """See above."""
    found: Groups = {}
    for trial in scores.experiment.trials:
        seeds = [numbers(scores, trial, seed) for seed in trial.seeds or scores.experiment.seeds]
        for name in seeds[0]:
            found.setdefault(name, []).append([of_seed[name][0] for of_seed in seeds])
    return found
