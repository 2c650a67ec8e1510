"""The experiments that a chapter declares in its cells tagged `parameters`, `setup` and `experiments`.

Long ones are trained run by run, in processes or on a Dask cluster, then kept:

pullpush sweep 02-svr-lab --only end-to-end    # trains what is missing; killed and started again it goes on
pullpush keep 02-svr-lab end-to-end            # writes book/measured/02-svr-lab/end-to-end.nc
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pullpush.cache import content_key
from pullpush.errors import PullPushError, unknown
from pullpush.lab import compute, kept, profiles
from pullpush.lab.compute import Ground
from pullpush.lab.experiments import Experiment, without_seeds
from pullpush.lab.root import find_root
from pullpush.lab.scores import Scores
from pullpush.site import chapters
from pullpush.site.workers import LongError, Swept, Tell, check_jobs, work_through
from pullpush.training.runs import Plan, missing_of, prepare

TAGS = ("setup", "experiments")


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
    values["profile"] = profiles.profile(profile).source
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


def sweep(
    name: str,
    *,
    only: Sequence[str] = (),
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    jobs: int = 2,
    dask: str = "",
    root: Path | None = None,
    report: Tell = lambda line: None,
    watch: Tell = lambda state: None,
) -> Swept:
    """Train the runs of a chapter's long experiments that are not there yet.

    Args:
        name: the chapter.
        only: names of experiments; default: all that are long.
        profile, parameters: as for `run`.
        jobs: processes at once, where there is no cluster.
        dask: address of a Dask scheduler, whose workers share this machine's cache folder (PULLPUSH_HOME).
        report, watch: see `work_through`.

    Raises:
        UnknownNameError: see `declared` and `chosen`.
        LongError, KeyboardInterrupt: see `work_through`; finished runs are kept.
    """
    check_jobs(jobs)
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    labels, stages = _stages(plan, chosen(plan, only), root, report)
    every = [run for stage in stages for run in stage.values()]
    missing = missing_of(every)
    skipped = [label for key, label in labels.items() if key not in missing]
    report(f"{len(skipped)} of {len(every)} runs are there")
    ran: list[str] = []
    failed: list[tuple[str, str]] = []
    for stage in stages:
        left = {key: run for key, run in stage.items() if key in missing}
        if failed or not left:  # what starts from a run that failed would fail, too
            continue
        prepare(list(left.values()))
        more, failed = work_through(
            {key: run.order for key, run in left.items()},
            jobs=jobs,
            dask=dask,
            labels=labels,
            is_there=lambda key, left=left: left[key].finished,
            before=len(skipped) + len(ran),
            total=len(every),
            report=report,
            watch=watch,
        )
        ran += more
    return Swept(tuple(ran), tuple(skipped), tuple(failed))


def _stages(
    plan: Declared, experiments: Sequence[Experiment], root: Path | None, report: Tell
) -> tuple[dict[str, str], list[dict[str, Plan]]]:
    """A label for each run of several experiments, and the runs by key, one stage of training after the other."""
    labels: dict[str, str] = {}
    early: list[dict[str, Plan]] = []
    last: dict[str, Plan] = {}
    for experiment in experiments:
        ground = plan.ground_of(experiment)
        cells, earlier = remaining(plan, experiment, root)
        if earlier:
            report(f"{experiment.name}: {len(earlier.clips)} runs were kept, {len(cells)} of further seeds are added")
        for (trial, seed), run in cells.items():
            labels.setdefault(run.key, f"{experiment.name}: {trial}, seed {seed}")
        *before, own = compute.rounds(ground, experiment, cells)
        for number, plans in enumerate(before):
            early += [{}] if number == len(early) else []
            for run in plans:
                early[number].setdefault(run.key, run)
                labels.setdefault(run.key, f"{experiment.name}: stage {number + 1}, {run.recipe.name}, seed {run.seed}")
        last |= {run.key: run for run in own if run.key not in last}
    first = {key for stage in early for key in stage}
    return labels, [*early, {key: run for key, run in last.items() if key not in first}]


def keep(
    name: str,
    *,
    only: Sequence[str] = (),
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> list[Path]:
    """Write what a chapter's long experiments found to book/measured, with the command that makes it again.

    Where one was kept with other seeds, and all components do what they did, its runs are joined by the further ones.

    Returns:
        The files of arrays.

    Raises:
        LongError: runs are missing; the message says how many, and the command that trains them.
        KeptError: another process is keeping one of them.
    """
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    files = []
    for experiment in chosen(plan, only):
        train, write = (
            kept.command(verb, name, experiment.name, profile=profile, parameters=parameters)
            for verb in ("sweep", "keep")
        )
        ground = plan.ground_of(experiment)
        cells, before = remaining(plan, experiment, root)
        runs = {run.key for run in cells.values()}
        if missing := len(missing_of(cells.values())):
            raise LongError(f"{missing} of {len(runs)} runs of {experiment.name} are missing: {train}")
        scores = compute.compute(ground, experiment, cells)
        made = replace(scores.stamp, command=f"{train} && {write}", data=_data(experiment, cells))
        scores = replace(scores, stamp=made)
        scores = before.joined(scores) if before else scores
        content, but_seeds = (
            compute.content_of(ground, declaration) for declaration in (experiment, without_seeds(experiment))
        )
        files.append(kept.keep(scores, ground.book.chapter, content, but_seeds, root=root))
    return files


def _data(experiment: Experiment, cells: compute.Cells) -> dict[str, list[str]]:
    """Keys of what runs learn from, by the names of views; several where they depend on the seed."""
    found: dict[str, set[str]] = {}
    for (trial, _), run in cells.items():
        found.setdefault(trial.data or experiment.data, set()).add(content_key(run.world.identity))
    return {view: sorted(keys) for view, keys in found.items()}
