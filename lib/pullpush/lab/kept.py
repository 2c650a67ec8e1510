"""Long experiments, kept: `book/measured/<chapter>/<experiment>/` holds scores by clip, tables and their stamp.

`pullpush sweep` trains, `keep` writes, a chapter reads. What is kept knows what was declared and the code that it went
through, so that `why_stale` can say what has changed since.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from pullpush.cache import atomic_path
from pullpush.errors import CacheError, PullPushError
from pullpush.lab import clip_values, profiles
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.root import find_root
from pullpush.lab.scores import Scores
from pullpush.source import why_differs

PRECISION = "%.6g"  # of the tables; values by clip are kept as float32
STAMP = "stamp.json"
CLIPS = "clips.npz"


class KeptError(PullPushError, RuntimeError):
    """A kept result that is damaged, or that another process is writing."""


def folder_of(chapter: str, name: str, *, root: Path | None = None) -> Path:
    """Where an experiment of a chapter is kept."""
    return (root or find_root()) / "book" / "measured" / chapter / name


def keep(scores: Scores, chapter: str, content: str, *, root: Path | None = None) -> Path:
    """Write what an experiment found, all of it or nothing, in place of what was kept before.

    content: what was declared, `experiments.content_of`.

    Raises:
        KeptError: another process is keeping it.
        CacheError: the folder cannot be written.
    """
    target = folder_of(chapter, scores.experiment.name, root=root)
    with _alone(target):
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            partial.chmod(0o755)
            _write(scores, content, partial)
            old = partial.with_name(f"{partial.name}.old")
            if target.exists():
                os.replace(target, old)
            os.replace(partial, target)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target


def read(experiment: Experiment, chapter: str, content: str, *, root: Path | None = None) -> Scores | None:
    """What was kept of an experiment as it is declared; None if nothing was, or of another declaration.

    Raises:
        KeptError: a file is damaged; the message says how to make it again.
    """
    found = about(chapter, experiment.name, root=root)
    if found is None or found[0] != content:
        return None
    folder = folder_of(chapter, experiment.name, root=root)
    with _whole(folder, chapter, experiment.name):
        values = clip_values.read(folder / CLIPS)
        clips = {(str(experiment.trials[number]), seed): of_run for (number, seed), of_run in values.items()}
        tables = [pd.read_csv(folder / f"{name}.csv") for name in ("history", "steps")]
        history, steps = (_as_declared(experiment, table) for table in tables)
        if not {"system", "seed", "step"} <= set(history) & set(steps):
            raise ValueError("its tables lack columns")
        if clips.keys() != {(str(trial), seed) for trial, seed in experiment.cells}:
            raise ValueError("runs are missing")
    return Scores(experiment, clips, history, steps, found[1], stored=True)


def about(chapter: str, name: str, *, root: Path | None = None) -> tuple[str, Stamp] | None:
    """What was declared when an experiment was kept, and its stamp; None if nothing was kept.

    Raises:
        KeptError: the stamp is damaged.
    """
    folder = folder_of(chapter, name, root=root)
    if not (folder / STAMP).is_file():
        return None
    with _whole(folder, chapter, name):
        data = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        return data["content"], Stamp.from_dict(data["stamp"])


def restamp(chapter: str, name: str, content: str, made: Stamp, *, root: Path | None = None) -> Path:
    """Give what was kept of an experiment another stamp, since today's code finds the same."""
    folder = folder_of(chapter, name, root=root)
    with _alone(folder), atomic_path(folder / STAMP) as partial:
        partial.write_text(_stamp_text(content, made), encoding="utf-8")
    return folder


def why_stale(kept: Stamp, code: Mapping[str, str]) -> tuple[str, ...]:
    """Which code has changed since a result was kept: "pullpush.losses._info_nce:info_nce changed"; empty if none has.

    code: the symbols of today, `experiments.code_of`.
    """
    return why_differs(kept.code, code)


def command(
    verb: str,
    chapter: str,
    name: str,
    *,
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
) -> str:
    """What to type to `sweep` or `keep` one experiment: "pullpush sweep 02-svr --only radius"."""
    words = ["pullpush", verb, chapter, *(["--only"] if verb == "sweep" else []), name]
    words += ["--profile", profile] if profile != profiles.DEFAULT else []
    words += [word for key, value in (parameters or {}).items() for word in ("-p", key, str(value))]
    return shlex.join(words)


def _write(scores: Scores, content: str, folder: Path) -> None:
    values = {(n, seed): scores.clips[str(trial), seed] for n, trial, seed in _cells(scores.experiment)}
    clip_values.write(folder / CLIPS, values)
    numbered = {name: _numbered(scores, getattr(scores, name)) for name in ("history", "steps")}
    for name, table in {"scores": scores.table, **numbered}.items():
        table.to_csv(folder / f"{name}.csv", index=False, float_format=PRECISION, lineterminator="\n")
    (folder / STAMP).write_text(_stamp_text(content, scores.stamp), encoding="utf-8")


def _stamp_text(content: str, made: Stamp) -> str:
    return json.dumps({"content": content, "stamp": made.to_dict()}, indent=1, ensure_ascii=False) + "\n"


def _numbered(scores: Scores, table: pd.DataFrame) -> pd.DataFrame:
    """The table with each trial's number, by which `_as_declared` finds it again."""
    rows = [scores.rows(table, trial, seed).assign(trial=n) for n, trial, seed in _cells(scores.experiment)]
    return pd.concat(rows, ignore_index=True)


def _cells(experiment: Experiment) -> Iterator[tuple[int, Trial, int]]:
    """Every trial with its number and every seed."""
    return ((n, trial, seed) for n, trial in enumerate(experiment.trials) for seed in trial.seeds or experiment.seeds)


def _as_declared(experiment: Experiment, table: pd.DataFrame) -> pd.DataFrame:
    """A table from a file, with what varies as it was declared: a column of 24, 0.001 and "cosine" is text there."""
    trials = [experiment.trials[n] for n in table["trial"]]
    names = dict.fromkeys(name for trial in experiment.trials for name in trial.where)
    return table.assign(**{name: [trial.where.get(name) for trial in trials] for name in names}).drop(columns="trial")


@contextmanager
def _whole(folder: Path, chapter: str, name: str) -> Iterator[None]:
    """Say what to do where a file is damaged."""
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        again = " && ".join(command(verb, chapter, name) for verb in ("sweep", "keep"))
        raise KeptError(f"{folder} is damaged ({type(error).__name__}: {error}): `{again}` makes it again") from error


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.parent / f".{target.name}.lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise KeptError(f"another process is keeping {target.name}: wait for it, nothing was changed") from None
    except OSError as error:
        raise CacheError(f"cannot write {target.parent}: {error}") from error
    try:
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)
