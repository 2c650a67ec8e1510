"""What an experiment found, by seed and clip: tables of means, and differences by the book's one inference.

scores = compute.run(ground, radius)
scores.contrast("SVR", metric="T2A R@1", where={"radius": 0.3}, baseline_where={"radius": 0.0})
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from pullpush.errors import unknown
from pullpush.lab.experiments import Experiment, ExperimentError, Trial, Where
from pullpush.lab.provenance import Stamp
from pullpush.metrics.cards import Values
from pullpush.metrics.inference import Difference, difference, holm
from pullpush.training.loop import Result
from pullpush.training.runs import Plan

LEVEL = ("value", "low", "high", "seeds", "clips")
GAIN = ("value", "low", "high", "half width", "p", "seeds", "clips")
PATIENCE = 0.25  # the last part of training, whose gain says how far from its end a run stopped


@dataclass(frozen=True)
class Scores:
    """What an experiment found.

    Attributes:
        experiment: what was declared.
        clips: (trial, seed) → metric → values by clip, `(N,)` or `(N, K)`; see metrics/cards.py.
        history: a row an epoch: system, what varies, seed, epoch, step, loss, T2A R@1, A2T R@1, R@1 (validation).
        steps: measurements while training, averaged over twenty stretches: system, what varies, seed, step, …
        stamp: where it comes from.
        stored: whether it was read from what `pullpush keep` kept, not computed or read from this cache.
        stale: of what was stored, the components that do something else since; see `kept.changed`.
        runs: (system, seed) → Result of the trials of which nothing varies, read when asked for; none if stored.
    """

    experiment: Experiment
    clips: Mapping[tuple[str, int], Values]
    history: pd.DataFrame
    steps: pd.DataFrame
    stamp: Stamp
    stored: bool = False
    stale: tuple[str, ...] = ()
    plans: Mapping[tuple[str, int], Plan] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return bool(self.clips)

    @cached_property
    def runs(self) -> dict[tuple[str, int], Result]:
        """The trained models; see above."""
        return {key: plan.train() for key, plan in self.plans.items()}

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row a cell, and a language where there are several: system, what varies, seed, steps, `unconverged`, and
        the mean of each metric as a fraction.

        unconverged: what validation R@1 gained in the last quarter of training, as a fraction: how far from its end
        the run was stopped.
        """
        rows = []
        for trial, seed in self.experiment.cells:
            values = self.clips.get((str(trial), seed))
            if values is None:
                continue
            history = self.rows(self.history, trial, seed)
            head = {"system": trial.system, **trial.where, "seed": seed}
            head |= {"steps": int(history["step"].max()), "unconverged": last_gain(history)}
            split = any(array.ndim > 1 for array in values.values())
            for k, language in enumerate(self.experiment.languages[: None if split else 1]):
                row = {name: float((array[:, k] if array.ndim > 1 else array).mean()) for name, array in values.items()}
                rows.append(head | ({"language": language} if split else {}) | row)
        return pd.DataFrame(rows)

    def values(self, system: str, metric: str, where: Where | None = None, *, seeds: Sequence[int] = ()) -> np.ndarray:
        """A metric of a system by seed and clip, `(S, N)`: of one language (where={"language": …}), or their mean.

        Raises:
            ExperimentError: no such system, point or metric; the message says which there are.
        """
        where = dict(where or {})
        language = where.pop("language", None)
        trial = self.trial(system, where)
        rows = []
        for seed in seeds or self.seeds(system, where):
            values = self.clips[str(trial), seed]
            if metric not in values:
                raise ExperimentError(str(unknown("metric", metric, values)))
            rows.append(self._language(values[metric], language))
        return np.stack(rows)

    def seeds(self, system: str, where: Where | None = None) -> list[int]:
        """The seeds that a system was trained with."""
        trial = self.trial(system, {key: value for key, value in (where or {}).items() if key != "language"})
        return [seed for seed in trial.seeds or self.experiment.seeds if (str(trial), seed) in self.clips]

    def trial(self, system: str, where: Where | None = None) -> Trial:
        """The one trial of a system at a point.

        Raises:
            ExperimentError: there is none, or several.
        """
        where = where or {}
        named = [trial for trial in self.experiment.trials if trial.system == system]
        found = [trial for trial in named if all(trial.where.get(key) == value for key, value in where.items())]
        if not named:
            systems = dict.fromkeys(trial.system for trial in self.experiment.trials)
            raise ExperimentError(f"experiment {self.experiment.name!r}: {unknown('system', system, systems)}")
        if len(found) != 1:
            points = "; ".join(str(dict(trial.where)) for trial in named)
            raise ExperimentError(
                f"experiment {self.experiment.name!r} has {len(found)} trials of {system!r} where {dict(where)}: "
                f"name one of {points}"
            )
        return found[0]

    def contrast(
        self,
        system: str,
        baseline: str | float | None = None,
        metric: str = "R@1",
        where: Where | None = None,
        *,
        baseline_where: Where | None = None,
        relative: bool = False,
    ) -> Difference:
        """What a system has over a baseline, by the book's one inference, over the seeds and clips of both.

        Args:
            system, baseline: labels; a number or None (0) to compare with that instead. A baseline of the same label
                is told apart by `baseline_where`.
            metric: such as "T2A R@1".
            where: the point, and the language, of both.
            baseline_where: of the baseline, where that differs.
            relative: the ratio of the means minus 1, linearised in both, instead of their difference.

        Raises:
            ExperimentError: a system, point or metric that is not there, or no seed that both have.
        """
        if baseline is None and baseline_where is not None:
            baseline = system
        if not isinstance(baseline, str):
            return difference(self.values(system, metric, where), baseline)
        ours, theirs = self._both(system, baseline, metric, where, {**(where or {}), **(baseline_where or {})})
        return difference(over(ours, theirs)) if relative else difference(ours, theirs)

    def gains(
        self,
        pairs: Iterable[tuple[str, str]],
        metrics: Sequence[str] = ("T2A R@1", "A2T R@1"),
        *,
        where: Where | None = None,
    ) -> pd.DataFrame:
        """`contrast` of several (system, baseline), as one table, within which p is adjusted by Holm.

        Returns:
            Columns system, baseline, metric, value, low, high, half width, p (Holm), seeds, clips, wins (seeds in
            which the system is ahead by more than storage leaves of a tie), and the shares of seed, clip and
            interaction in the variance of the mean.
        """
        plans = [(system, baseline, metric) for system, baseline in pairs for metric in metrics]
        rows = []
        for plan, gain in zip(plans, holm([self.contrast(*plan, where) for plan in plans]), strict=True):
            system, baseline, metric = plan
            ours, theirs = (side.mean(axis=1) for side in self._both(system, baseline, metric, where, where))
            row = {"system": system, "baseline": baseline, "metric": metric, **numbers(gain, GAIN)}
            row["wins"] = f"{int((ours > theirs + 1e-6).sum())}/{len(ours)}"
            rows.append(row | dict(gain.variance.shares or {}))
        return pd.DataFrame(rows)

    def placed(
        self, systems: Iterable[str], where: Where, *, at: Where | None = None, labels: Mapping[str, str] | None = None
    ) -> "Scores":
        """Runs of systems as a point of an experiment in which something else varies, so that they are trained and
        stored once: `frozen.placed(["infonce"], {"clips": "all"})`.

        at: their point here, where something varies; labels: those that are others there.
        """
        names, at = {name: (labels or {}).get(name, name) for name in systems}, at or {}
        trials, clips = [], {}
        for name, label in names.items():
            here = self.trial(name, at)
            one = replace(here, system=label, where=where, seeds=tuple(self.seeds(name, at)))
            trials.append(one)
            clips |= {(str(one), seed): self.clips[str(here), seed] for seed in one.seeds}
        history, steps = (
            table[table["system"].isin(names) & (table.reindex(columns=[*at]) == pd.Series(at)).all(axis=1)]
            .drop(columns=[*at], errors="ignore")
            .assign(**where)
            .replace({"system": names})
            for table in (self.history, self.steps)
        )
        experiment = replace(self.experiment, trials=tuple(trials))
        return replace(self, experiment=experiment, clips=clips, history=history, steps=steps, plans={})

    def __add__(self, more: "Scores") -> "Scores":
        """The runs of two experiments as one that has the second's name and scores, each trial with its seeds."""
        sides = [side.experiment for side in (self, more)]
        trials = [replace(each, seeds=each.seeds or side.seeds) for side in sides for each in side.trials]
        scored = {name for values in more.clips.values() for name in values}
        clips = {key: {name: each[name] for name in each if name in scored} for key, each in self.clips.items()}
        whole = replace(more, experiment=replace(more.experiment, trials=tuple(trials)))
        return replace(self, clips=clips).joined(whole)

    def joined(self, more: "Scores") -> "Scores":
        """These earlier runs and further ones as one result of the declaration that the further ones are of."""
        tables = {
            name: pd.concat([getattr(side, name) for side in (self, more)], ignore_index=True)
            for name in ("history", "steps")
        }
        return replace(more, clips={**self.clips, **more.clips}, stamp=self.stamp.joined(more.stamp), **tables)

    def _both(
        self, system: str, baseline: str, metric: str, where: Where | None, other: Where | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """A metric of a system and of a baseline at another point, `(S, N)` each, over the seeds of both."""
        seeds = [seed for seed in self.seeds(system, where) if seed in self.seeds(baseline, other)]
        if not seeds:
            raise ExperimentError(f"{system!r} and {baseline!r} share no seed: train both with one")
        return self.values(system, metric, where, seeds=seeds), self.values(baseline, metric, other, seeds=seeds)

    def _language(self, values: np.ndarray, language: str | None) -> np.ndarray:
        if values.ndim == 1:
            return values
        if language is None:
            return values.mean(axis=1)
        if language not in self.experiment.languages:
            raise ExperimentError(str(unknown("language", language, self.experiment.languages)))
        return values[:, self.experiment.languages.index(language)]

    @staticmethod
    def rows(table: pd.DataFrame, trial: Trial, seed: int) -> pd.DataFrame:
        """The rows of `history` or `steps` that belong to a trial and a seed."""
        if table.empty:  # of what is derived
            return table
        found = table[(table["system"] == trial.system) & (table["seed"] == seed)]
        for name, value in trial.where.items():
            found = found[found[name] == value]
        return found


def over(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """The ratio of two means minus 1 as values `(S, N)` that have it for their mean: its first order in both means."""
    ratio = ours.mean() / theirs.mean()
    return (ours - ratio * theirs) / theirs.mean() + ratio - 1


def last_gain(history: pd.DataFrame) -> float:
    """What validation R@1 gained in the last quarter of a run, as a fraction; NaN of runs of a single epoch."""
    best = history.sort_values("epoch")["R@1"].cummax().to_numpy()
    before = int(np.floor(len(best) * (1 - PATIENCE))) - 1
    return float(best[-1] - best[before]) if before >= 0 and len(best) > 1 else float("nan")


def numbers(found: Difference, names: Iterable[str] = LEVEL) -> dict[str, float | int | None]:
    """Numbers of a difference, by the names of columns."""
    return {name: getattr(found, {"half width": "half_width", "p": "p_holm"}.get(name, name)) for name in names}
