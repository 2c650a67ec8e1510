"""More seeds of an experiment that was kept: runs of the earlier seeds stay, those of the new ones alone are trained.

Where seeds are all that a declaration has gained, and code and packages are those that made what was kept, the earlier
runs stand. Trained again on another processor they would differ in last digits, and in what comes of these; so do the
new runs, and the trunk on which they stand. The stamp names both processors.
"""

from __future__ import annotations

import platform
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pandas as pd

from pullpush.lab import clip_values, kept
from pullpush.lab.experiments import Experiment
from pullpush.lab.provenance import UNNOTED, Stamp, versions
from pullpush.lab.scores import Scores

AND = " and "


def fewer(experiment: Experiment, seeds: Mapping[int, tuple[int, ...]]) -> Experiment | None:
    """The experiment with fewer seeds, as it would have been declared; None unless each trial's are among its own, and
    one trial has more.

    seeds: of each trial, by its number.

    Example:
        >>> ten = Experiment.of("radius", {"InfoNCE": ("infonce", {})}, seeds=range(10))
        >>> fewer(ten, {0: (0, 1)}).seeds
        (0, 1)
        >>> fewer(ten, {0: (0, 11)}) is None
        True
    """
    declared = {n: trial.seeds or experiment.seeds for n, trial in enumerate(experiment.trials)}
    if seeds.keys() != declared.keys() or any(set(seeds[n]) - set(declared[n]) for n in declared):
        return None
    if all(set(seeds[n]) == set(declared[n]) for n in declared):
        return None  # at most their order is another
    trials = tuple(
        replace(trial, seeds=tuple(seeds[n]) if trial.seeds else ()) for n, trial in enumerate(experiment.trials)
    )
    # A trial without seeds of its own has the experiment's; where there is none, one that was given the same.
    common = next((tuple(seeds[n]) for n in declared if declared[n] == experiment.seeds), experiment.seeds)
    return replace(experiment, trials=trials, seeds=common)


def earlier(
    experiment: Experiment,
    chapter: str,
    content_of: Callable[[Experiment], str],
    code_of: Callable[[Experiment], Mapping[str, str]],
    *,
    root: Path | None = None,
) -> Scores | None:
    """What was kept of an experiment when it had fewer seeds and was the same otherwise.

    None if nothing was, if code or packages have changed since, or if a file is damaged: all is then to be trained.

    Args:
        content_of: names what was declared, `compute.content_of`.
        code_of: the symbols of today, `compute.code_of`; asked last, since it reads the sources.
    """
    with suppress(kept.KeptError):
        about = kept.about(chapter, experiment.name, root=root)
        if about is None or not _of_these_packages(about[1]):
            return None
        smaller = fewer(experiment, _seeds(kept.folder_of(chapter, experiment.name, root=root) / kept.CLIPS))
        if smaller and content_of(smaller) == about[0] and not kept.why_stale(about[1], code_of(experiment)):
            return kept.read(smaller, chapter, about[0], root=root)
    return None


def joined(before: Scores, now: Scores) -> Scores:
    """Earlier runs and new ones as one result; its stamp gives both dates, all seeds, and the seconds of all. What it
    says of a confirmation is about the earlier runs.

    now: the whole declaration, of which it may hold the new runs alone.
    """
    old, new = before.stamp, now.stamp
    seeds = tuple(sorted({*old.seeds, *new.seeds}))
    kinds = [*(old.processor or UNNOTED).split(AND), new.processor or UNNOTED]
    made = replace(
        old,
        made=f"{old.made}{AND}{new.made}",
        seeds=seeds,
        seconds=round(old.seconds + new.seconds, 1),
        processor=AND.join(dict.fromkeys(kinds)),
    )
    tables = {
        name: pd.concat([getattr(side, name) for side in (before, now)], ignore_index=True)
        for name in ("history", "steps")
    }
    return replace(now, clips={**before.clips, **now.clips}, stamp=made, **tables)


def _of_these_packages(made: Stamp) -> bool:
    return made.python == platform.python_version() and dict(made.packages) == versions()


def _seeds(clips: Path) -> dict[int, tuple[int, ...]]:
    """Of each trial by its number, the seeds whose values by clip are kept, in the order of the file."""
    try:
        cells = clip_values.cells(clips)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise kept.KeptError(f"{clips} is damaged: {error}") from error
    found: dict[int, tuple[int, ...]] = {}
    for number, seed in cells:
        found[number] = (*found.get(number, ()), seed)
    return found
