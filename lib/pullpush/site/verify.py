"""Kept runs trained again, here and now, and held against what was kept, within a band that is stated (band.py).

    pullpush verify                     # fifteen runs of all chapters, at most twenty minutes
    pullpush verify 02-svr-lab/frozen   # of this experiment

Nothing that was trained here before is read (`afresh`); the same seed draws the same runs, and a verification that
was killed goes on. What it found is a table, `executed/quick/verified.csv`, with the rows of each processor that
verified.
"""

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

from pullpush.cache import HOME, home
from pullpush.errors import CacheError, PullPushError, unknown
from pullpush.lab import compute, kept, profiles
from pullpush.lab.experiments import Experiment, Trial, trained_of
from pullpush.lab.kept import KeptError, Record
from pullpush.lab.provenance import processor
from pullpush.lab.root import alone, find_root
from pullpush.lab.scores import Scores
from pullpush.site import ledger_page as pages
from pullpush.site.band import Spread, band, moderated, prior
from pullpush.site.ledger_page import RUN, VERIFIED
from pullpush.site.standing import draw, notes, passed_over
from pullpush.site.sweep import Declared, declared
from pullpush.site.workers import SweepError, Tell
from pullpush.training.runs import train_missing

KIND = "verified"
OF_RUNS = ("runs", "scores", "teachers", "topics")  # kinds of the cache that come of training
OF_DATA = ("banks", "worlds", "features")  # others, made where there are none yet, so that they stay
FIRST, LAST = "loss of the first epoch", "loss of the last epoch"
Numbers = Mapping[str, tuple[float, int]]  # by metric: the mean, and of how many clips; 0 of what is no mean of clips
Groups = dict[str, list[list[float]]]  # by metric: the numbers by seed of each trial


class OutsideError(PullPushError, RuntimeError):
    """Runs that ended elsewhere than their band allows, or could not be held against anything."""


@dataclass(frozen=True)
class Verified:
    """A verification: a row a run and metric (VERIFIED), written to `path` beside those of other processors; runs that
    are left, since the minutes were over; what could not be verified, damaged or of another declaration.
    """

    table: pd.DataFrame
    left: tuple[str, ...]
    faults: tuple[str, ...]
    path: Path

    @property
    def runs(self) -> int:
        """How many were trained."""
        return len(self.table[list(RUN)].drop_duplicates())

    def check(self) -> None:
        """Raise OutsideError unless all is inside: which numbers are not, by how much, and what to do."""
        said = [] if self.left or len(self.table) else ["no run was trained again: give more --minutes"]
        said += [*self.faults, *(_outside(row) for _, row in self.table[~self.table["within"].astype(bool)].iterrows())]
        if said:
            raise OutsideError("\n".join([*said, ADVICE.format(path=self.path)]))


ADVICE = """the table with all numbers is {path}
`pullpush golden` says which components compute something else than they did. Where it names none, train the runs of the
same seed once more (a machine may err), then the whole experiment: `pullpush sweep`, `pullpush keep`."""


def verify(
    names: Sequence[str] = (),
    *,
    runs: int = 15,
    minutes: float = 20.0,
    every: bool = False,
    seed: int | None = None,
    profile: str = profiles.DEFAULT,
    root: Path | None = None,
    report: Tell = lambda line: None,
    watch: Tell = lambda state: None,
) -> Verified:
    """Train kept runs again and compare.

    Args:
        names: chapters, or chapter/experiment; default: all.
        runs, minutes: how many are drawn, and how long they may take; what has begun is finished.
        every: all kept runs, however long that takes.
        seed: of the draw; default: the date (UTC), such as 20261123, so that in time every result is tried.
        profile: that results are kept with.
        report: gets one line for each run; watch: how far it is.

    Raises:
        UnknownNameError: no such kept result.
        CacheError: another process verifies.
        KeyboardInterrupt: Ctrl-C or SIGTERM: the table of what was compared stands, runs are kept for the same seed.
    """
    root, now, began = root or find_root(), datetime.now(UTC), time.monotonic()
    seed = int(now.strftime("%Y%m%d")) if seed is None else seed
    known, faults = _chosen(root, names)
    drawn = [(one, number) for one in known for number in range(one.runs)]
    if not every:
        report(f"{runs} of {len(drawn)} kept runs are drawn by seed {seed}")
        drawn = draw(known, runs=runs, minutes=minutes, seed=seed)
        for one in passed_over(known, runs=runs, minutes=minutes):
            report(f"not {one}: a run takes {one.cost / 60:.0f} minutes, too long for {runs} in {minutes:g}")
    path, rows, left = pages.verified_file(root), [], []
    with afresh(str(seed)) as folder:
        plans, wanted = _wanted(drawn, profile, root, faults)
        comparisons = sum(len(one.numbers) for one in wanted)
        for chapter, group in groupby(wanted, key=lambda one: one.note.chapter):
            group = list(group)
            if not every and time.monotonic() - began > 60 * minutes:
                left += [str(one) for one in group]
                continue
            watch(f"{chapter}, {wanted.index(group[0])}/{len(wanted)} runs")
            try:
                for one, here, took in _trained(plans[chapter], group):
                    own = [*_rows(one, here, took, comparisons)]
                    rows += [{"date": f"{now:%Y-%m-%d}", "processor": processor(), **row} for row in own]
                    inside = sum(row["within"] for row in own)
                    report(f"{one}: {inside} of {len(own)} numbers are inside, {took:.1f} minutes")
            except PullPushError as error:
                faults.append(f"{chapter}: {error}")
            if rows:
                pages.save_verified(rows, path, processor=processor())
        if not left and all(row["within"] for row in rows):
            shutil.rmtree(folder, ignore_errors=True)
    return Verified(pd.DataFrame(rows, columns=list(VERIFIED)), tuple(left), tuple(faults), path)


def _chosen(root: Path, names: Sequence[str]) -> tuple[list[Record], list[str]]:
    """The kept results that are named, by their chapter or by both, or all; and what is wrong with others of these."""
    found, faults = notes(root)
    every = [*map(str, found), *faults]
    for name in names:
        if not any(_among(one, [name]) for one in every):
            raise unknown("kept result", name, [*{one.partition("/")[0] for one in every}, *every])
    chosen = [one for one in found if not names or _among(str(one), names)]
    return chosen, [fault for name, fault in faults.items() if not names or _among(name, names)]


def _wanted(
    drawn: Sequence[tuple[Record, int]], profile: str, root: Path, faults: list[str]
) -> "tuple[dict[str, Declared], list[Expected]]":
    """What the chapters of drawn runs declare, and what was kept of these runs, chapter by chapter."""
    plans: dict[str, Declared] = {}
    found: list[Expected] = []
    for chapter in dict.fromkeys(one.chapter for one, _ in drawn):
        try:
            plans[chapter] = declared(chapter, profile=profile, root=root)
        except PullPushError as error:
            faults.append(f"{chapter}: {error}")
            continue
        of_chapter = Kept(plans[chapter])
        for one in dict.fromkeys(one for one, _ in drawn if one.chapter == chapter):
            try:
                found += of_chapter.expected(one, [number for other, number in drawn if other == one])
            except PullPushError as error:
                faults.append(f"{one}: {error}")
    return plans, found


def _trained(plan: Declared, group: "Sequence[Expected]") -> "Iterator[tuple[Expected, Numbers, float]]":
    """Train runs of a chapter, stage by stage and side by side, and score them: their numbers, and their minutes."""
    runs = []
    for one in group:
        ground = plan.ground_of(one.experiment)
        trained = trained_of(one.experiment)
        trials = [one.trial] if trained is one.experiment else trained.trials
        cell = {(trial, one.seed): compute.plan_of(ground, trained, trial, one.seed) for trial in trials}
        runs.append((one, ground, cell))
    for stage in compute.merged(compute.rounds(ground, one.experiment, cell) for one, ground, cell in runs):
        train_missing(list(stage.values()))
    for one, ground, cell in runs:
        scores = compute.compute(ground, one.experiment, cell)
        yield one, numbers(scores, one.trial, one.seed), next(iter(cell.values())).seconds / 60


def _rows(one: "Expected", here: Numbers, took: float, comparisons: int) -> Iterator[dict[str, Any]]:
    """A row for each number of a run."""
    for metric, (was, clips) in one.numbers.items():
        value = here[metric][0]
        width = band(one.spreads[metric], was, comparisons=comparisons, clips=clips)
        within = abs(value - was) <= width or (np.isnan(value) and np.isnan(was))
        yield {
            **dict(zip(RUN, (*str(one.note).split("/"), one.trial.system, one.point, one.seed), strict=True)),
            "metric": metric,
            "kept": was,
            "here": value,
            "difference": value - was,
            "band": width,
            "within": bool(within),
            "minutes": took,
        }


def _outside(row: pd.Series) -> str:
    """What is said of a number outside its band."""
    told = ", ".join(str(part) for part in (row["system"], row["point"], f"seed {row['seed']}") if part)
    apart = f"{row['kept']:.4g} → {row['here']:.4g}, {abs(row['difference']):.4g} apart"
    return f"{row['chapter']}/{row['experiment']}: {told}: {row['metric']} {apart}, its band is {row['band']:.4g}"


def _among(one: str, names: Sequence[str]) -> bool:
    """Whether a kept result is one that was named."""
    return any(name in (one, one.partition("/")[0]) for name in names)


# ---------------------------------------------------------------- what is expected


class Expected(NamedTuple):
    """A kept run: its experiment, trial and seed, its numbers, and of each the spread, None where none is known."""

    note: Record
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
        parts = (self.trial.system, self.point, f"seed {self.seed}")
        return f"{self.note}: {', '.join(part for part in parts if part)}"


class Kept:
    """What was kept of the experiments that one chapter declares."""

    def __init__(self, plan: Declared) -> None:
        self._plan = plan

    def expected(self, note: Record, runs: Sequence[int]) -> list[Expected]:
        """The runs of an experiment that have these numbers, counted from 0; SweepError if it is declared otherwise."""
        experiment = self._plan.experiments.get(note.experiment)
        scores = self._read(experiment) if experiment else None
        if not experiment or not scores:
            both = " && ".join(kept.command(verb, note.chapter, note.experiment) for verb in ("sweep", "keep"))
            raise SweepError(f"{note} was kept of another declaration than that of its chapter: `{both}` makes it anew")
        priors = {name: prior(group) or prior(self._groups.get(name, [])) for name, group in groups(scores).items()}
        cells = list(experiment.cells)
        found = []
        for trial, seed in (cells[number] for number in runs):
            seeds = [numbers(scores, trial, other) for other in trial.seeds or experiment.seeds]
            here = numbers(scores, trial, seed)
            spreads = {name: moderated([of_seed[name][0] for of_seed in seeds], priors[name]) for name in here}
            found.append(Expected(note, experiment, trial, seed, here, spreads))
        return found

    @cached_property
    def _groups(self) -> Groups:
        """Those of all kept experiments of the chapter, for searches, which have one seed."""
        found: Groups = {}
        for experiment in self._plan.experiments.values():
            with suppress(KeptError):  # it is told of where it is drawn
                if experiment.long and (scores := self._read(experiment)):
                    for name, group in groups(scores).items():
                        found.setdefault(name, []).extend(group)
        return found

    def _read(self, experiment: Experiment) -> Scores | None:
        chapter = self._plan.ground_of(experiment).book.chapter
        return kept.read(experiment, chapter, self._plan.content(experiment), root=self._plan.root)


def numbers(scores: Scores, trial: Trial, seed: int) -> Numbers:
    """The mean over clips and languages of each metric of a run, and the training loss of its first and last epoch,
    which depend on the loss function more than any score does.
    """
    values = scores.clips[str(trial), seed]
    found = {name: (float(np.nanmean(array)), len(array)) for name, array in values.items()}
    history = scores.rows(scores.history, trial, seed)
    if history.empty:  # of what is derived
        return found
    losses = history.sort_values("epoch")["loss"]
    return found | {FIRST: (float(losses.iloc[0]), 0), LAST: (float(losses.iloc[-1]), 0)}


def groups(scores: Scores) -> Groups:
    """The numbers by seed of each trial, by metric."""
    found: Groups = {}
    for trial in scores.experiment.trials:
        seeds = [numbers(scores, trial, seed) for seed in trial.seeds or scores.experiment.seeds]
        for name in seeds[0]:
            found.setdefault(name, []).append([of_seed[name][0] for of_seed in seeds])
    return found


# ---------------------------------------------------------------- a cache without runs


@contextmanager
def afresh(name: str) -> Iterator[Path]:
    """Let `home()` be `home()/verified/<name>` for the block: links to all kinds but those that come of training.

    What was trained in a block of this name before is there again; that of other names is removed. CacheError where
    another process is in such a block.
    """
    usual, folder = home(), home() / KIND / name
    refusal = CacheError(f"another process trains in {folder.parent}: wait for it, nothing was changed")
    with alone(folder.parent / ".lock", refusal):
        folder.mkdir(exist_ok=True)
        for other in folder.parent.iterdir():
            if other.is_dir() and other != folder:
                shutil.rmtree(other, ignore_errors=True)
        kinds = {path.name for path in usual.iterdir() if path.is_dir() and not path.name.startswith(".")}
        for kind in (kinds | {*OF_DATA}) - {KIND, *OF_RUNS}:
            (usual / kind).mkdir(exist_ok=True)
            if not (folder / kind).exists():
                (folder / kind).symlink_to(usual / kind, target_is_directory=True)
        with patch.dict(os.environ, {HOME: str(folder)}):
            yield folder
