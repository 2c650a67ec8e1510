"""The experiments that a chapter declares in its cells tagged `parameters`, `setup` and `experiments`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pullpush.errors import PullPushError, unknown
from pullpush.lab import compute, kept, profiles
from pullpush.lab.compute import Ground
from pullpush.lab.declarations import without_seeds
from pullpush.lab.experiments import Experiment
from pullpush.lab.root import find_root
from pullpush.lab.scores import Scores
from pullpush.site import chapters
from pullpush.training.runs import Plan

TAGS = ("setup", "experiments")


class LongError(PullPushError, RuntimeError):
    """A sweep of a chapter that cannot begin or go on, or an experiment that cannot be kept."""


@dataclass(frozen=True)
class Declared:
    """What a chapter declares: its `ground`, its experiments by name, and its `other_grounds`: experiment → what that
    one stands on instead.
    """

    ground: Ground
    experiments: dict[str, Experiment]
    other_grounds: Mapping[str, Ground] = field(default_factory=dict)

    def ground_of(self, experiment: Experiment) -> Ground:
        """What an experiment stands on."""
        return self.other_grounds.get(experiment.name, self.ground)


def declared(
    name: str,
    *,
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> Declared:
    """Read a chapter's experiments.

    Raises:
        UnknownNameError: no such chapter, profile or parameter.
        LongError: its cells declare none, or fail.
    """
    chapter = chapters.find(root or find_root(), name)
    values = chapters.check_parameters(chapter, parameters or {})
    values["profile"] = str(profiles.profile(profile).file or profile)
    space: dict[str, Any] = {"__name__": f"chapter {name}"}
    for cell in chapters.read(chapter).cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or not {chapters.PARAMETERS_TAG, *TAGS} & set(tags):
            continue
        try:
            exec(compile(cell.source, f"<{name}, {tags[0]}>", "exec"), space)
        except PullPushError:
            raise
        except Exception as error:
            raise LongError(f"the cell {tags[0]!r} of {name} failed: {type(error).__name__}: {error}") from error
        if chapters.PARAMETERS_TAG in tags:
            space |= values
    found = {thing.name: thing for thing in space.values() if isinstance(thing, Experiment)}
    if not found:
        raise LongError(f"{name} declares no experiment in cells tagged {' or '.join(map(repr, TAGS))}")
    return Declared(space["ground"], found, space.get("other_grounds", {}))


def chosen(plan: Declared, only: Sequence[str] = ()) -> list[Experiment]:
    """The experiments that are named, or all long ones.

    Raises:
        UnknownNameError: there is no such experiment.
    """
    for name in only:
        if name not in plan.experiments:
            raise unknown("experiment", name, plan.experiments)
    if only:
        return [plan.experiments[name] for name in only]
    return [experiment for experiment in plan.experiments.values() if experiment.long]


def runs_of(plan: Declared, experiment: Experiment) -> dict[str, Plan]:
    """The runs of an experiment by their keys; trials may share some."""
    return {run.key: run for run in compute.plans_of(plan.ground_of(experiment), experiment).values()}


def remaining(plan: Declared, experiment: Experiment, root: Path | None = None) -> tuple[compute.Cells, Scores | None]:
    """The run of each cell that is to be trained, and what is not: what was kept when there were other seeds.

    Of training in stages nothing is taken over, since what was kept does not tell which runs it started from.
    """
    ground = plan.ground_of(experiment)
    before = _earlier(plan, experiment, root)
    cells = compute.plans_of(ground, experiment)
    there = before.clips if before else {}
    return {(trial, seed): run for (trial, seed), run in cells.items() if (str(trial), seed) not in there}, before


def _earlier(plan: Declared, experiment: Experiment, root: Path | None) -> Scores | None:
    ground = plan.ground_of(experiment)
    views = [ground.view(trial.data or experiment.data) for trial in experiment.trials]
    if any(view.base or view.before or view.taught for view in views):
        return None
    but_seeds = compute.content_of(ground, without_seeds(experiment))
    return kept.part(experiment, ground.book.chapter, but_seeds, root=root)


class State(NamedTuple):
    """How an experiment stands: whether it is long, its runs that are there, all of its runs, and what was kept."""

    name: str
    long: bool
    finished: int
    runs: int
    kept: str


def states(
    name: str,
    *,
    only: Sequence[str] = (),
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> list[State]:
    """How a chapter's experiments stand, or those that are named.

    Raises:
        UnknownNameError, LongError: see `declared` and `chosen`.
        KeptError: what was kept is damaged.
    """
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    found = []
    for experiment in chosen(plan, only or list(plan.experiments)):
        if experiment.long:  # of one that has gained seeds, the new ones alone
            cells, before = remaining(plan, experiment, root)
            runs, said = {run.key: run for run in cells.values()}, _kept(plan, experiment, before, root)
        else:
            runs, said = runs_of(plan, experiment), ""
        finished = sum(run.finished for run in runs.values())
        found.append(State(experiment.name, experiment.long, finished, len(runs), said))
    return found


def _kept(plan: Declared, experiment: Experiment, before: Scores | None, root: Path | None) -> str:
    ground = plan.ground_of(experiment)
    record = kept.about(ground.book.chapter, experiment.name, root=root)
    if record is None:
        return "never kept"
    if record.content != compute.content_of(ground, experiment):
        return f"kept {record.stamp.made} {'with other seeds' if before else 'as another declaration'}"
    stale = kept.changed(record.stamp)
    more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
    return f"kept {record.stamp.made}" + (f", stale: {stale[0]}{more}" if stale else "")
