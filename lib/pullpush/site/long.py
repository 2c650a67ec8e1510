"""Long experiments of a chapter, trained run by run, in processes or on a Dask cluster.

pullpush sweep 02-svr-lab --only end-to-end    # trains what is missing; killed and started again it goes on
pullpush keep 02-svr-lab end-to-end            # writes book/measured/02-svr-lab/end-to-end.nc
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullpush.cache import home
from pullpush.lab import compute, profiles
from pullpush.lab.experiments import Experiment
from pullpush.parallel import elsewhere
from pullpush.site.declared import Declared, LongError, chosen, declared, remaining
from pullpush.site.workers import workers
from pullpush.training.runs import Plan, missing_of, prepare


@dataclass(frozen=True)
class Swept:
    """What a sweep did: labels of the runs that it trained, that were there, and that failed, with the reason."""

    ran: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]


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
    labels, stages = _stages(plan, chosen(plan, only), root, report)
    plans = {key: run for stage in stages for key, run in stage.items()}
    missing = missing_of(plans.values())
    skipped = [label for key, label in labels.items() if key not in missing]
    report(f"{len(skipped)} of {len(plans)} runs are there")
    ran, failed = [], []
    sent = elsewhere if jobs > 1 or dask else lambda call: call
    for stage in stages:
        left = {key: run for key, run in stage.items() if key in missing}
        if failed or not left:  # what starts from a run that failed would fail, too
            continue
        with ExitStack() as stack:
            work = stack.enter_context(workers(jobs, dask))
            prepare(list(left.values()))
            watch(f"{len(skipped) + len(ran)}/{len(plans)} runs")
            # pyrefly: ignore[bad-argument-type, bad-assignment]
            calls: dict[str, Callable[[], None]] = {key: sent(run.order) for key, run in left.items()}
            outcomes = stack.enter_context(closing(work(calls)))
            for key, seconds, message in outcomes:
                if not message and not left[key].finished:
                    message = (
                        f"it is not in the cache: let all machines share {home()}, and restart workers of older code"
                    )
                failed.append((labels[key], message)) if message else ran.append(labels[key])
                count = f"{len(skipped) + len(ran) + len(failed)}/{len(plans)}"
                report(f"{count}  {labels[key]}  {'FAILED: ' + message if message else f'{seconds:.0f} s'}")
                watch(f"{count} runs")
    return Swept(tuple(ran), tuple(skipped), tuple(failed))


def _stages(
    plan: Declared, experiments: Sequence[Experiment], root: Path | None, report: Callable[[str], None]
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
