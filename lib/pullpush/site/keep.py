"""What long experiments found, kept in `book/measured`: written anew, or confirmed by today's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullpush.lab import compute, kept, profiles
from pullpush.lab.confirm import differences, part
from pullpush.lab.experiments import Experiment
from pullpush.lab.growth import joined
from pullpush.lab.provenance import UNNOTED, processor, stamp
from pullpush.site.declared import LongError, chosen, declared, remaining, runs_of


def keep(
    name: str,
    *,
    only: Sequence[str] = (),
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
) -> list[Path]:
    """Write what a chapter's long experiments found to book/measured, with the command that makes it again.

    Where one was kept with fewer seeds by the code of today, the runs of the others join it.

    Raises:
        LongError: runs are missing; the message says how many, and the command that trains them.
        KeptError: another process is keeping one of them.
    """
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    folders = []
    for experiment in chosen(plan, only):
        sweep, both = _commands(name, experiment, profile, parameters)
        ground = plan.ground_of(experiment)
        cells, before = remaining(plan, experiment, root)
        runs = {run.key: run for run in cells.values()}.values()
        missing = sum(not run.finished for run in runs)
        if missing:
            raise LongError(f"{missing} of {len(runs)} runs of {experiment.name} are missing: {sweep}")
        scores = compute.compute(ground, experiment, cells)
        scores = joined(before, scores) if before else scores
        scores = replace(scores, stamp=replace(scores.stamp, command=both))
        content = compute.content_of(ground, experiment)
        folders.append(kept.keep(scores, ground.book.chapter, content, root=root))
    return folders


def confirm(
    name: str,
    *,
    only: Sequence[str] = (),
    seeds: int = 1,
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    root: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Train the first seeds of every system of what was kept again; where all numbers agree, it is of today's code.

    For code that was moved or reworded, on a processor of the kind that trained it: of 130 runs of 13 systems 13 are
    trained. What was kept stays as it is but for its stamp, which says how many runs were trained again, and when.

    Args:
        name: the chapter; only: its experiments; default: all that are long and stale.
        seeds: so many of each system.
        report: told one line for every experiment.

    Raises:
        LongError: nothing was kept of one as it is declared, or numbers differ; the message names them, and the
            experiments before it are confirmed.
    """
    plan = declared(name, profile=profile, parameters=parameters, root=root)
    folders = []
    for experiment in chosen(plan, only):
        ground = plan.ground_of(experiment)
        chapter, content = ground.book.chapter, compute.content_of(ground, experiment)
        found = kept.read(experiment, chapter, content, root=root)
        _, both = _commands(name, experiment, profile, parameters)
        if found is None:
            raise LongError(f"nothing was kept of {experiment.name} as it is declared: {both}")
        code = compute.code_of(ground, experiment)
        stale = kept.why_stale(found.stamp, code)
        if not stale and not only:
            report(f"{experiment.name} is of today's code")
            continue
        chosen_part = part(experiment, seeds)
        cells = compute.plans_of(ground, chosen_part)
        scores = compute.compute(ground, chosen_part, cells)
        if wrong := differences(found, scores):
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            there, here = found.stamp.processor or UNNOTED, processor()
            where = "" if there == here else f" (trained on {there}, now on {here}, whose sums end in other digits)"
            raise LongError(f"{experiment.name} differs: {'; '.join(wrong[:5])}{more}{where}: {both}")
        count, whole = len({run.key for run in cells.values()}), len(runs_of(plan, experiment))
        now = stamp(code, seeds=(), seconds=0)
        first = found.stamp.confirmed.get("code", found.stamp.digest)
        confirmed = {"made": now.made, "runs": count, "of": whole, "code": first}
        made = replace(found.stamp, code=code, command=both, confirmed=confirmed)
        folders.append(kept.restamp(chapter, experiment.name, content, made, root=root))
        report(f"{experiment.name}: {count} of {whole} runs trained again, every number the same")
    return folders


def _commands(name: str, experiment: Experiment, profile: str, parameters: Mapping[str, Any] | None) -> tuple[str, str]:
    """What to type to train an experiment's runs, and to keep what they find as well."""
    sweep, keep = (
        kept.command(verb, name, experiment.name, profile=profile, parameters=parameters) for verb in ("sweep", "keep")
    )
    return sweep, f"{sweep} && {keep}"
