"""Long experiments of a chapter: trained run by run, in processes or on a Dask cluster, and kept with their provenance.

    pullpush sweep 02-svr --only end-to-end    # trains what is missing; killed and started again it goes on
    pullpush keep 02-svr end-to-end            # writes book/measured/02-svr/end-to-end

The chapter's own cells declare its experiments: those tagged `parameters`, `setup` and `experiments` are executed, and
nothing else of it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from pullpush.cache import home
from pullpush.errors import PullPushError, unknown
from pullpush.lab import compute, kept, profiles
from pullpush.lab.compute import Ground
from pullpush.lab.experiments import Experiment
from pullpush.lab.root import find_root
from pullpush.parallel import elsewhere
from pullpush.site import chapters
from pullpush.training.runs import Plan, missing_of, prepare

TAGS = ("setup", "experiments")
PATIENCE = 10  # seconds that a scheduler has to answer
ROUNDS = 3  # a process that is killed takes the others of its pool with it: so often is a new pool started


class LongError(PullPushError, RuntimeError):
    """A sweep of a chapter that cannot begin or go on, or an experiment that cannot be kept."""


class Declared(NamedTuple):
    """What a chapter declares: its ground, and its experiments by name."""

    ground: Ground
    experiments: dict[str, Experiment]


@dataclass(frozen=True)
class Swept:
    """What a sweep did: labels of the runs that it trained, that were there, and that failed, with the reason."""

    ran: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


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
    found = {one.name: one for one in space.values() if isinstance(one, Experiment)}
    if not found:
        raise LongError(f"{name} declares no experiment in cells tagged {' or '.join(map(repr, TAGS))}")
    return Declared(space["ground"], found)


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


def sweep(
    name: str,
    *,
    only: Sequence[str] = (),
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    jobs: int = 2,
    dask: str = "",
    root: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
    watch: Callable[[str], None] = lambda state: None,
) -> Swept:
    """Train the runs of a chapter's long experiments that are not there yet.

    Args:
        name: the chapter.
        only: names of experiments; default: all that are long.
        profile, parameters: as for `run`.
        jobs: processes at once, where there is no cluster.
        dask: address of a Dask scheduler, whose workers share this machine's cache folder (PULLPUSH_HOME).
        report: told one line for every run.
        watch: told how many runs are there, whenever that changes.

    Raises:
        LongError: the cluster cannot be reached, or goes away: what was trained stays.
        UnknownNameError: see `declared` and `chosen`.
        KeyboardInterrupt: Ctrl-C or SIGTERM; processes have been ended, finished runs are kept.
    """
    if jobs < 1:
        raise LongError(f"jobs must be at least 1, got {jobs}")
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    labels: dict[str, str] = {}
    plans: dict[str, Plan] = {}
    for experiment in chosen(plan, only):
        for (trial, seed), one in compute.plans_of(plan.ground, experiment).items():
            key = one.key
            labels.setdefault(key, f"{experiment.name}: {trial}, seed {seed}")
            plans.setdefault(key, one)
    missing = missing_of(plans.values())
    skipped = [label for key, label in labels.items() if key not in missing]
    report(f"{len(skipped)} of {len(plans)} runs are there")
    if not missing:
        return Swept((), tuple(skipped), ())
    ran, failed = [], []
    sent = elsewhere if jobs > 1 or dask else lambda call: call
    with ExitStack() as stack:
        work = stack.enter_context(_workers(jobs, dask))
        prepare(list(missing.values()))
        watch(f"{len(skipped)}/{len(plans)} runs")
        outcomes = stack.enter_context(closing(work({key: sent(one.order) for key, one in missing.items()})))
        for key, seconds, message in outcomes:
            if not message and not missing[key].finished:
                message = f"it is not in the cache: let all machines share {home()}, and restart workers of older code"
            failed.append((labels[key], message)) if message else ran.append(labels[key])
            count = f"{len(skipped) + len(ran) + len(failed)}/{len(plans)}"
            report(f"{count}  {labels[key]}  {'FAILED: ' + message if message else f'{seconds:.0f} s'}")
            watch(f"{count} runs")
    return Swept(tuple(ran), tuple(skipped), tuple(failed))


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
        runs = {one.key: one.finished for one in compute.plans_of(plan.ground, experiment).values()}
        said = _kept(plan, experiment, root) if experiment.long else ""
        found.append(State(experiment.name, experiment.long, sum(runs.values()), len(runs), said))
    return found


def _kept(plan: Declared, experiment: Experiment, root: Path | None) -> str:
    about = kept.about(plan.ground.book.chapter, experiment.name, root=root)
    if about is None:
        return "never kept"
    content, made = about
    if content != compute.content_of(plan.ground, experiment):
        return f"kept {made.made} as another declaration"
    stale = kept.why_stale(made, compute.code_of(plan.ground, experiment))
    more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
    return f"kept {made.made}" + (f", stale: {stale[0]}{more}" if stale else "")


def keep(
    name: str,
    *,
    only: Sequence[str] = (),
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> list[Path]:
    """Write what a chapter's long experiments found to book/measured, with the command that makes it again.

    Raises:
        LongError: runs are missing; the message says how many, and the command that trains them.
        KeptError: another process is keeping one of them.
    """
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    folders = []
    for experiment in chosen(plan, only):
        told = {"profile": profile, "parameters": parameters}
        again, then = (kept.command(verb, name, experiment.name, **told) for verb in ("sweep", "keep"))
        plans = compute.plans_of(plan.ground, experiment).values()
        missing = sum(not one.finished for one in plans)
        if missing:
            raise LongError(f"{missing} of {len(plans)} runs of {experiment.name} are missing: {again}")
        scores = compute.compute(plan.ground, experiment)
        scores = replace(scores, stamp=replace(scores.stamp, command=f"{again} && {then}"))
        content = compute.content_of(plan.ground, experiment)
        folders.append(kept.keep(scores, plan.ground.book.chapter, content, root=root))
    return folders


Outcome = tuple[str, float, str]  # key, seconds, what went wrong
Work = Callable[[Mapping[str, Callable[[], None]]], Iterator[Outcome]]


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at an address.

    Raises:
        LongError: dask is not installed, or nobody answers.
    """
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise LongError("--dask needs dask: pip install 'pullpush[cluster]'") from error
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise LongError(f"no Dask scheduler answers at {address} ({error}): start one, or leave --dask out") from error
    try:
        yield client
    finally:
        with suppress(Exception):  # it may have gone
            client.close(timeout=PATIENCE)


@contextmanager
def _workers(jobs: int, dask: str) -> Iterator[Work]:
    if not dask:
        yield lambda calls: _in_processes(calls, jobs)
        return
    with cluster(dask) as client:
        yield lambda calls: _on_cluster(client, dask, calls)


def _in_processes(calls: Mapping[str, Callable[[], None]], jobs: int) -> Iterator[Outcome]:
    left = dict(calls)
    for _ in range(ROUNDS):
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        outcomes = pool(joblib.delayed(_attempt)(key, call) for key, call in list(left.items()))
        try:
            for outcome in outcomes:
                left.pop(outcome[0])
                yield outcome
            return
        except TerminatedWorkerError:
            continue
        except BaseException:
            if jobs > 1:
                get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)  # else they end their runs
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, that work was left undone
                outcomes.close()
            raise
    yield from ((key, 0.0, "its process was killed, again and again: too little memory?") for key in left)


def _on_cluster(client: Any, address: str, calls: Mapping[str, Callable[[], None]]) -> Iterator[Outcome]:
    from dask.distributed import CancelledError, as_completed

    gone = f"the cluster at {address} went away with {{}} runs to go: give the same command again, there or elsewhere"
    futures = {client.submit(_attempt, key, call, pure=False): key for key, call in calls.items()}
    left = len(futures)
    try:
        for future in as_completed(futures):
            if future.status in ("cancelled", "lost") or client.status != "running":
                raise LongError(gone.format(left))
            left -= 1
            if future.status == "finished":
                yield future.result()
            else:
                yield futures[future], 0.0, f"lost with its worker: {future.exception()}"
    except (CancelledError, OSError) as error:
        raise LongError(gone.format(left)) from error
    if left:
        raise LongError(gone.format(left))


def _attempt(key: str, call: Callable[[], None]) -> Outcome:
    began = time.monotonic()
    try:
        call()
    except Exception as error:
        return key, time.monotonic() - began, f"{type(error).__name__}: {error}"
    return key, time.monotonic() - began, ""
