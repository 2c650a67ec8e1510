"""What long experiments found, written to `book/measured`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullpush.cache import content_key
from pullpush.lab import compute, kept, profiles
from pullpush.lab.declarations import without_seeds
from pullpush.lab.experiments import Experiment
from pullpush.site.declared import LongError, chosen, declared, remaining


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
        sweep, both = _commands(name, experiment, profile, parameters)
        ground = plan.ground_of(experiment)
        cells, before = remaining(plan, experiment, root)
        runs = {run.key: run for run in cells.values()}.values()
        missing = sum(not run.finished for run in runs)
        if missing:
            raise LongError(f"{missing} of {len(runs)} runs of {experiment.name} are missing: {sweep}")
        scores = compute.compute(ground, experiment, cells)
        scores = replace(scores, stamp=replace(scores.stamp, command=both, data=_data(experiment, cells)))
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


def _commands(name: str, experiment: Experiment, profile: str, parameters: Mapping[str, Any] | None) -> tuple[str, str]:
    """What to type to train an experiment's runs, and to keep what they find as well."""
    sweep, keep = (
        kept.command(verb, name, experiment.name, profile=profile, parameters=parameters) for verb in ("sweep", "keep")
    )
    return sweep, f"{sweep} && {keep}"
