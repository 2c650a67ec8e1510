"""Two things that are swept, in processes or on a Dask cluster: a chapter's long experiments, and a grid over a page.

pullpush sweep 02-svr-lab --only end-to-end    # trains what is missing; killed and started again it goes on
pullpush keep 02-svr-lab end-to-end            # writes book/measured/02-svr-lab/end-to-end.nc
pullpush sweep book/sweeps/temperature.yaml    # executes a page at each point, and gathers its tables

A chapter declares experiments in its cells tagged `parameters`, `setup` and `experiments`.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pullpush.cache import atomic_path, content_key
from pullpush.cache.locks import named, who
from pullpush.errors import PullPushError, TrainingError, check_known, looked_up
from pullpush.lab import compute, kept, profiles
from pullpush.lab.compute import Ground
from pullpush.lab.experiments import Derived, Experiment, trained_of, without_seeds
from pullpush.lab.profiles import Profile
from pullpush.lab.root import alone, find_root, workplace
from pullpush.lab.scores import Scores
from pullpush.lab.session import RESULTS
from pullpush.settings import check_fields, check_folder, read_yaml
from pullpush.site import chapters, run as running
from pullpush.site.chapters import Chapter
from pullpush.site.workers import SweepError, Swept, check_jobs, work_through
from pullpush.training.runs import Plan, missing_of, prepare
from pullpush.training.stacked import groups, train_stacked

TAGS = ("setup", "experiments")
Scoring = Callable[[Plan], object]


class State(NamedTuple):
    """How an experiment stands: whether it is long, its runs that are there, all of its runs, and what was kept."""

    name: str
    long: bool
    finished: int
    runs: int
    kept: str


@dataclass(frozen=True)
class Declared:
    """What a chapter declares: the ground that its experiments stand on, but those of `other_grounds`, by their names;
    profile, parameters: by which it was read. Errors: UnknownNameError for names of experiments, SweepError.
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
        """The experiments that are named, or all long ones."""
        if only:
            return [looked_up("experiment", name, self.experiments) for name in only]
        return [one for one in self.experiments.values() if one.long]

    def remaining(self, experiment: Experiment) -> tuple[compute.Cells, Scores | None]:
        """The run of each cell that is to be trained, and what is not: what was kept when there were other seeds.

        Of training in stages nothing is taken over, since what was kept does not tell which runs it started from.
        """
        ground = self.ground_of(experiment)
        trained = trained_of(experiment)
        views = [ground.view(trial.data or trained.data) for trial in trained.trials]
        before = None
        if not any(view.base or view.before or view.taught for view in views):
            but_seeds = self.content(without_seeds(experiment))
            before = kept.part(experiment, ground.book.chapter, but_seeds, root=self.root)
        there = before.clips if before else {}
        cells = compute.plans_of(ground, experiment)
        return {(trial, seed): run for (trial, seed), run in cells.items() if (str(trial), seed) not in there}, before

    def states(self, only: Sequence[str] = ()) -> list[State]:
        """How all experiments stand, or those that are named; of a long one that has gained seeds, the new ones."""
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
            return f"kept {record.made} {'with other seeds' if before else 'as another declaration'}"
        stale = kept.changed(record)
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        return f"kept {record.made}" + (f", stale: {stale[0]}{more}" if stale else "")

    def sweep(self, only: Sequence[str] = (), *, jobs: int = 2, together: int = 1, **options: Any) -> Swept:
        """Train the runs of long experiments, or of those that are named, that are not there yet, and score each.

        jobs, options: as for `work_through`; workers of a cluster share this machine's cache folder (PULLPUSH_HOME).
        together: so many runs of one shape are trained as one where they can be (see `training.stacked`).
        """
        check_jobs(jobs)
        report = options.setdefault("report", lambda line: None)
        labels, stages, scoring = self._stages(self._decided(only, report), report)
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
            for group in groups(left.values(), together):
                report(f"{len(group)} runs together, the first {labels[group[0].key]}")
                try:
                    train_stacked(group)
                except TrainingError as error:
                    report(f"each alone: {error}")
            done = [key for key, run in left.items() if together > 1 and run.finished]
            ran += [labels[key] for key in done]
            left = {key: run for key, run in left.items() if key not in done}
            more, failed = work_through(
                {key: run.order(*scoring[key]) for key, run in left.items()},
                jobs=jobs,
                labels=labels,
                is_there=lambda key, left=left: left[key].finished,
                before=len(skipped) + len(ran),
                total=len(every),
                **options,
            )
            ran += more
        return Swept(tuple(ran), tuple(skipped), tuple(failed))

    def _decided(self, only: Sequence[str], report: Any) -> list[Experiment]:
        """The chosen experiments but those after a search that is not kept: its choices would be the defaults."""
        chosen, names = self.chosen(only), list(self.experiments)
        unkept = next((name for name in self.ground.book.missing if name in names), names[-1])
        later = [one for one in chosen if names.index(one.name) > names.index(unkept)]
        message = f"what {unkept} finds is not kept, and later experiments may rest on it: "
        message += f"{' && '.join(self._commands(unkept))}, then sweep {', '.join(one.name for one in later)}"
        if later and only:
            raise SweepError(message)
        if later:
            report(message)
        return [one for one in chosen if one not in later]

    def _commands(self, name: str) -> list[str]:
        """What to type to sweep and to keep an experiment."""
        told: dict[str, Any] = {"profile": self.profile, "parameters": self.parameters}
        return [kept.command(verb, self.chapter, name, **told) for verb in ("sweep", "keep")]

    def _stages(
        self, experiments: Sequence[Experiment], report: Any
    ) -> tuple[dict[str, str], list[dict[str, Plan]], Mapping[str, list[Scoring]]]:
        """A label for each run of several experiments; the runs by key, one stage of training after the other; and by
        key what scores a run where it was trained, on its own data alone, which any process can load.
        """
        labels: dict[str, str] = {}
        scoring: dict[str, list[Scoring]] = defaultdict(list)
        before: list[list[list[Plan]]] = []
        last: dict[str, Plan] = {}
        for one in experiments:
            cells, earlier = self.remaining(one)
            if earlier:
                report(f"{one.name}: {len(earlier.clips)} runs were kept, {len(cells)} of further seeds are added")
            for (trial, seed), run in cells.items():
                labels.setdefault(run.key, f"{one.name}: {trial}, seed {seed}")
                if not trial.test and not isinstance(one, Derived):
                    scoring[run.key].append(partial(compute.scored, replace(one, trials=(trial,))))
            *rounds, own = compute.rounds(self.ground_of(one), one, cells)
            for number, plans in enumerate(rounds, start=1):
                for run in plans:
                    labels.setdefault(run.key, f"{one.name}: stage {number}, {run.recipe.name}, seed {run.seed}")
            before.append(rounds)
            last |= {run.key: run for run in own}
        early = compute.merged(before)
        latest = {key: run for key, run in last.items() if not any(key in stage for stage in early)}
        return labels, [*early, latest], scoring

    def keep(self, only: Sequence[str] = ()) -> list[Path]:
        """Write what long experiments found, or those that are named, to book/measured; the files of arrays.

        Where one was kept with other seeds, and all components do what they did, its runs are joined by the further.
        """
        files = []
        for one in self.chosen(only):
            train, write = self._commands(one.name)
            cells, before = self.remaining(one)
            if missing := len(missing_of(cells.values())):
                runs = {run.key for run in cells.values()}
                raise SweepError(f"{missing} of {len(runs)} runs of {one.name} are missing: {train}")
            scores = compute.compute(self.ground_of(one), one, cells)
            data: dict[str, set[str]] = {}  # by views; several keys where they depend on the seed
            for (trial, _), run in cells.items():
                data.setdefault(trial.data or one.data, set()).add(content_key(run.world.identity))
            by_view = {view: sorted(keys) for view, keys in data.items()}
            scores = replace(scores, stamp=replace(scores.stamp, command=f"{train} && {write}", data=by_view))
            scores = before.joined(scores) if before else scores
            contents = self.content(one), self.content(without_seeds(one))
            files.append(kept.keep(scores, self.ground_of(one).book.chapter, *contents, root=self.root))
        return files


def declared(
    name: str, *, profile: str = profiles.DEFAULT, parameters: Mapping[str, Any] | None = None, root: Path | None = None
) -> Declared:
    """Read a chapter's experiments.

    Raises:
        UnknownNameError: no such chapter, profile or parameter.
        SweepError: its cells declare none, or fail.
    """
    chapter = chapters.find(root or find_root(), name)
    values = chapters.check_parameters(chapter, parameters or {}) | {"profile": profiles.profile(profile).source}
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
    return Declared(name, profile, parameters or {}, root, space["ground"], found, space.get("other_grounds", {}))


# ---------------------------------------------------------------- a grid over a page


@dataclass(frozen=True)
class Grid:
    """What a sweep file says.

    chapter: its name; grid: lists of values by parameter; profile: what `--profile` takes; fixed: parameters that all
    cells share; out: a folder, by default `executed/sweeps/<name of the file>`, relative to the book's root; figure:
    what `show.curves.curves` takes of the table of results, x, y, colours …, drawn as `figure.png` in that folder.
    """

    chapter: str
    grid: dict[str, list[Any]]
    profile: str = profiles.DEFAULT
    fixed: dict[str, Any] = field(default_factory=dict)
    out: str = ""
    figure: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """A point of the grid: `out`, its folder, is called by all that shapes it, so that a changed page is another cell.

    It is finished when its notebook is there, and never run twice. failed: the folder of its error.
    """

    chapter: str
    profile: str
    parameters: dict[str, Any]
    out: Path
    failed: Path
    root: Path

    @property
    def notebook(self) -> Path:
        """Where the executed notebook stands once the cell is finished."""
        return self.out / f"{self.chapter}.ipynb"

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())

    def run(self, threads: int = 0) -> None:
        """Execute the chapter; SweepError if it is no longer what the key says."""
        chapter, profile = chapters.find(self.root, self.chapter), profiles.profile(self.profile)
        if key_of(chapter, profile, self.parameters) != self.out.name:
            raise SweepError(f"{chapter.name} or its profile changed after this sweep had begun: run the sweep again")
        places = {"out": self.out, "failed": self.failed, "root": self.root}
        running.run(chapter.name, profile=self.profile, parameters=self.parameters, threads=threads, **places)


def sweep_grid(path: Path, *, jobs: int = 2, **options: Any) -> Swept:
    """Run the cells of a sweep file that are not finished yet, and gather the tables of all that are.

    jobs, options: as for `work_through`; the cores are shared out among processes.

    Raises:
        SweepError: another process is running this sweep; or see `read_grid` and `work_through`.
    """
    cells, out = read_grid(path)
    holder = out / ".holder"
    refusal = SweepError(f"another sweep writes to {out} ({who(holder)}): wait for it, or give this one another `out`")
    with alone(out / ".lock", refusal), named(holder):
        there = [cell for cell in cells if cell.notebook.is_file()]
        todo = {cell.out.name: cell for cell in cells if cell not in there}
        for cell in there if "report" in options else ():
            options["report"](f"finished before: {cell}")
        threads = max(1, (os.cpu_count() or 1) // max(1, jobs))
        ran, failed = work_through(
            {key: partial(cell.run, threads) for key, cell in todo.items()},
            jobs=jobs,
            labels={key: str(cell) for key, cell in todo.items()},
            is_there=lambda key: todo[key].notebook.is_file(),
            before=len(there),
            total=len(cells),
            **options,
        )
        tables = _gather([cell for cell in cells if cell.notebook.is_file()], out)
        if (figure := read_yaml(path).get("figure")) and RESULTS in tables:
            from pullpush.show.curves import curves

            table, tables["figure"] = pd.read_csv(tables[RESULTS]), out / "figure.png"
            for name in [key for key in figure if key in ("x", "y", "colours", "lines", "panels")]:
                check_known("column", str(figure[name]), table.columns)
            curves(table, **figure).savefig(tables["figure"], bbox_inches="tight")
    return Swept(tuple(ran), tuple(map(str, there)), tuple(failed), tables)


def read_grid(path: Path, *, root: Path | None = None) -> tuple[list[Cell], Path]:
    """The cells of a sweep file, which is a `Grid` in YAML, and the folder that it writes to.

    Raises:
        DataNotFoundError: no such file.
        SettingError, SweepError: it is no `Grid`.
        UnknownNameError, ParameterError: names or values that the chapter does not take.
    """
    root = root or find_root()
    told = read_yaml(path)
    check_fields(told, of=str(path), kind=Grid)
    if missing := [key for key in ("chapter", "grid") if not told.get(key)]:
        raise SweepError(f"{path} lacks {' and '.join(missing)}")
    plan = Grid(**told)
    if both := sorted(plan.grid.keys() & plan.fixed.keys()):
        raise SweepError(f"{path}: {', '.join(both)} is in grid and in fixed: keep one")
    if empty := [name for name, values in plan.grid.items() if not values]:
        raise SweepError(f"{path}: grid.{empty[0]} must be a list with at least one value")
    chapter, profile = chapters.find(root, plan.chapter), profiles.profile(plan.profile)
    out = workplace(root) / (plan.out or Path("executed") / "sweeps" / path.stem)
    check_folder(out, f"{path}: out")
    cells = {}
    for values in product(*plan.grid.values()):
        parameters = chapters.check_parameters(chapter, plan.fixed | dict(zip(plan.grid, values, strict=True)))
        key = key_of(chapter, profile, parameters)
        cells[key] = Cell(chapter.name, profile.source, parameters, out / "cells" / key, out / "failed" / key, root)
    return list(cells.values()), out


def key_of(chapter: Chapter, profile: Profile, parameters: Mapping[str, Any]) -> str:
    """A name for all that a cell's results depend on."""
    sizes = [profile.content, profile.listening.content, profile.points]
    return content_key([chapters.source_hash(chapter), sizes, repr(dict(parameters))], length=12)


def _gather(cells: list[Cell], out: Path) -> dict[str, Path]:
    """Put the cells' tables of one name under each other, the parameters in front, into `out/<name>.csv`."""
    found: dict[str, list[pd.DataFrame]] = {}
    for cell in cells:  # in the order of the grid: the table is the same whatever ran when
        for path in sorted(cell.out.glob(f"{cell.chapter}.*.csv")):
            table = pd.read_csv(path)
            for column, value in reversed(cell.parameters.items()):
                if column not in table:  # a chapter may write its own, such as one row a seed
                    table.insert(0, column, str(value) if isinstance(value, list | tuple | dict) else value)
            found.setdefault(path.name.removeprefix(f"{cell.chapter}.").removesuffix(".csv"), []).append(table)
    written = {}
    for name in sorted(found, key=lambda name: (name != RESULTS, name)):
        written[name] = out / f"{name}.csv"
        with atomic_path(written[name]) as partial:
            pd.concat(found[name], ignore_index=True).to_csv(partial, index=False, lineterminator="\n")
    return written
