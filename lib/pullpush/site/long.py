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
from pullpush.site.workers import SweepError, Swept, Tell, check_jobs, work_through
from pullpush.training.runs import Plan, missing_of, prepare

TAGS = ("setup", "experiments")


class State(NamedTuple):
    """How an experiment stands: whether it is long, its runs that are there, all of its runs, and what was kept."""

    name: str
    long: bool
    finished: int
    runs: int
    kept: str


@dataclass(frozen=True)
class Declared:
    """What a chapter declares, and what is done with it.

    Attributes:
        chapter: its name; profile, parameters: by which it was read.
        ground: what its experiments stand on; other_grounds: experiment → what that one stands on instead.
        experiments: by their names.
    """

    chapter: str
    profile: str
    parameters: Mapping[str, Any]
    root: Path | None
    ground: Ground
    experiments: Mapping[str, Experiment]
    other_grounds: Mapping[str, Ground] = field(default_factory=dict)

    def ground_of(self, experiment: Experiment) -> Ground:
        """What an experiment stands on."""
        return self.other_grounds.get(experiment.name, self.ground)

    def content(self, experiment: Experiment) -> str:
        """A name for what an experiment declares, see `compute.content_of`."""
        return compute.content_of(self.ground_of(experiment), experiment)

    def chosen(self, only: Sequence[str] = ()) -> list[Experiment]:
        """The experiments that are named, or all long ones.

        Raises:
            UnknownNameError: there is no such experiment.
        """
        for name in only:
            if name not in self.experiments:
                raise unknown("experiment", name, self.experiments)
        every = self.experiments.values()
        return [self.experiments[name] for name in only] if only else [one for one in every if one.long]

    def remaining(self, experiment: Experiment) -> tuple[compute.Cells, Scores | None]:
        """The run of each cell that is to be trained, and what is not: what was kept when there were other seeds.

        Of training in stages nothing is taken over, since what was kept does not tell which runs it started from.
        """
        ground = self.ground_of(experiment)
        views = [ground.view(trial.data or experiment.data) for trial in experiment.trials]
        before = None
        if not any(view.base or view.before or view.taught for view in views):
            but_seeds = self.content(without_seeds(experiment))
            before = kept.part(experiment, ground.book.chapter, but_seeds, root=self.root)
        there = before.clips if before else {}
        cells = compute.plans_of(ground, experiment)
        return {(trial, seed): run for (trial, seed), run in cells.items() if (str(trial), seed) not in there}, before

    def states(self, only: Sequence[str] = ()) -> list[State]:
        """How all experiments stand, or those that are named; of a long one that has gained seeds, the new ones alone.

        Raises:
            UnknownNameError: see `chosen`.
            KeptError: what was kept is damaged.
        """
        found = []
        for one in self.chosen(only or list(self.experiments)):
            cells, before = self.remaining(one) if one.long else (compute.plans_of(self.ground_of(one), one), None)
            runs = {run.key: run for run in cells.values()}
            finished = sum(run.finished for run in runs.values())
            found.append(State(one.name, one.long, finished, len(runs), self._kept(one, before) if one.long else ""))
        return found

    def _kept(self, experiment: Experiment, before: Scores | None) -> str:
        record = kept.about(self.ground_of(experiment).book.chapter, experiment.name, root=self.root)
        if record is None:
            return "never kept"
        if record.content != self.content(experiment):
            return f"kept {record.stamp.made} {'with other seeds' if before else 'as another declaration'}"
        stale = kept.changed(record.stamp)
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        return f"kept {record.stamp.made}" + (f", stale: {stale[0]}{more}" if stale else "")

    def sweep(
        self,
        only: Sequence[str] = (),
        *,
        jobs: int = 2,
        dask: str = "",
        report: Tell = lambda line: None,
        watch: Tell = lambda state: None,
    ) -> Swept:
        """Train the runs of long experiments, or of those that are named, that are not there yet.

        Args:
            jobs: processes at once, where there is no cluster.
            dask: address of a Dask scheduler, whose workers share this machine's cache folder (PULLPUSH_HOME).
            report, watch: see `work_through`.

        Raises:
            UnknownNameError: see `chosen`.
            SweepError, KeyboardInterrupt: see `work_through`; finished runs are kept.
        """
        check_jobs(jobs)
        labels, stages = self._stages(self.chosen(only), report)
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

    def _stages(self, experiments: Sequence[Experiment], report: Tell) -> tuple[dict[str, str], list[dict[str, Plan]]]:
        """A label for each run of several experiments, and the runs by key, one stage of training after the other."""
        labels: dict[str, str] = {}
        early: list[dict[str, Plan]] = []
        last: dict[str, Plan] = {}
        for one in experiments:
            cells, earlier = self.remaining(one)
            if earlier:
                report(f"{one.name}: {len(earlier.clips)} runs were kept, {len(cells)} of further seeds are added")
            for (trial, seed), run in cells.items():
                labels.setdefault(run.key, f"{one.name}: {trial}, seed {seed}")
            *before, own = compute.rounds(self.ground_of(one), one, cells)
            for number, plans in enumerate(before):
                early += [{}] if number == len(early) else []
                for run in plans:
                    early[number].setdefault(run.key, run)
                    labels.setdefault(run.key, f"{one.name}: stage {number + 1}, {run.recipe.name}, seed {run.seed}")
            last |= {run.key: run for run in own if run.key not in last}
        first = {key for stage in early for key in stage}
        return labels, [*early, {key: run for key, run in last.items() if key not in first}]

    def keep(self, only: Sequence[str] = ()) -> list[Path]:
        """Write what long experiments found, or those that are named, to book/measured, with the command for it.

        Where one was kept with other seeds, and all components do what they did, its runs are joined by the further.

        Returns:
            The files of arrays.

        Raises:
            SweepError: runs are missing; the message says how many, and the command that trains them.
            KeptError: another process is keeping one of them.
        """
        files = []
        told = {"profile": self.profile, "parameters": self.parameters}
        for one in self.chosen(only):
            train, write = (kept.command(verb, self.chapter, one.name, **told) for verb in ("sweep", "keep"))
            cells, before = self.remaining(one)
            if missing := len(missing_of(cells.values())):
                runs = {run.key for run in cells.values()}
                raise SweepError(f"{missing} of {len(runs)} runs of {one.name} are missing: {train}")
            scores = compute.compute(self.ground_of(one), one, cells)
            made = replace(scores.stamp, command=f"{train} && {write}", data=_data(one, cells))
            scores = replace(scores, stamp=made)
            scores = before.joined(scores) if before else scores
            contents = self.content(one), self.content(without_seeds(one))
            files.append(kept.keep(scores, self.ground_of(one).book.chapter, *contents, root=self.root))
        return files


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
        SweepError: its cells declare none, or fail.
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
            raise SweepError(f"the cell {tags[0]!r} of {name} failed: {type(error).__name__}: {error}") from error
        if chapters.PARAMETERS_TAG in tags:
            space |= values
    found = {thing.name: thing for thing in space.values() if isinstance(thing, Experiment)}
    if not found:
        raise SweepError(f"{name} declares no experiment in cells tagged {' or '.join(map(repr, TAGS))}")
    others = space.get("other_grounds", {})
    return Declared(name, profile, parameters or {}, root, space["ground"], found, others)


def _data(experiment: Experiment, cells: compute.Cells) -> dict[str, list[str]]:
    """Keys of what runs learn from, by the names of views; several where they depend on the seed."""
    found: dict[str, set[str]] = {}
    for (trial, _), run in cells.items():
        found.setdefault(trial.data or experiment.data, set()).add(content_key(run.world.identity))
    return {view: sorted(keys) for view, keys in found.items()}
