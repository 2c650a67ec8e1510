"""Running a chapter: Markdown → notebook → papermill → `executed/local/<profile>/`, all of it or nothing.

A run happens in a folder of its own; only when the last cell has passed do the tables, then the notebook, take
their places. A failed run leaves what was there as it was, and keeps its notebook under `executed/local/failed/`; one
that is stopped leaves nothing. What the maintainers publish stands in `executed/<profile>/`, see publish.py.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from pullpush import __version__
from pullpush.errors import PullPushError
from pullpush.lab import profiles, provenance
from pullpush.lab.profiles import Profile
from pullpush.lab.root import find_root, workplace
from pullpush.site import chapters, kernel, status
from pullpush.site.chapters import Chapter
from pullpush.site.clean import publishable
from pullpush.site.executions import gaps_of, place


class ChapterError(PullPushError, RuntimeError):
    """A chapter's cell raised, or its kernel died.

    Attributes:
        notebook: the notebook as far as it came, with the error in it.
    """

    def __init__(self, message: str, notebook: Path) -> None:
        super().__init__(message)
        self.notebook = notebook


@dataclass(frozen=True)
class Execution:
    """What a run left: the executed notebook, its tables, how long it took, what the kernel said on stderr, and of how
    many cells it says that they could not be measured on data of one's own.
    """

    notebook: Path
    tables: tuple[Path, ...]
    seconds: float
    stderr: str = field(default="", repr=False)
    gaps: int = 0


def run(
    name: str,
    *,
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    out: Path | None = None,
    failed: Path | None = None,
    root: Path | None = None,
    watch: Callable[[str], None] = lambda state: None,
) -> Execution:
    """Execute one chapter.

    Args:
        name: the chapter, such as `01-forces`.
        profile: `smoke`, `quick`, `full`, or the path of a profile's YAML file.
        parameters: values for the chapter's `parameters` cell; texts are converted to the type of the default.
        out: folder for notebook and tables; default `executed/local/<profile>`.
        failed: folder for the notebook of a run that fails; default `executed/local/failed/<profile>`.
        root: the book's root.
        watch: told before each cell of code which one it is, such as "cell 17/46".

    Raises:
        UnknownNameError: no such chapter, profile or parameter, with the nearest names.
        ParameterError: a value of the wrong type.
        ChapterError: a cell failed; says which, why, and where the notebook is.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the kernel has been ended, and nothing is changed.
    """
    root = root or find_root()
    chapter = chapters.find(root, name)
    settings = profiles.profile(profile)
    values = _values(chapter, settings, parameters or {})
    out = out or place(root, settings.name)
    failed = failed or place(root, "failed") / settings.name
    with status.run_folder(workplace(root) / "executed") as folder:
        return _execute(chapter, settings, values, folder, out=out, failed=failed, root=root, watch=watch)


def _values(chapter: Chapter, settings: Profile, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters to inject: checked, with the profile, without those that are the defaults already."""
    profile = str(settings.file or settings.name)
    values = chapters.check_parameters(chapter, given)
    if values.get("profile", profile) != profile:
        raise chapters.ParameterError(f"profile is {profile!r} by --profile and {given['profile']!r} by -p: give one")
    defaults = chapters.parameters(chapter)
    if "profile" in defaults:
        values["profile"] = profile
    return {name: value for name, value in values.items() if value != defaults[name]}


def _execute(
    chapter: Chapter,
    settings: Profile,
    values: dict[str, Any],
    folder: Path,
    *,
    out: Path,
    failed: Path,
    root: Path,
    watch: Callable[[str], None],
) -> Execution:
    target, tables = folder / f"{chapter.name}.ipynb", folder / "tables"
    tables.mkdir()
    source_hash = chapters.source_hash(chapter)
    began = time.monotonic()
    with status.held_back(lambda: status.end_kernel(folder)) as stop:
        try:
            with kernel.quiet(stop):
                kernel.execute(chapter, target, values, folder, root=root, hooks=kernel.hooks(stop, watch))
        except Exception as error:
            if stop.asked:  # whatever the end of its kernel did to papermill
                raise KeyboardInterrupt from None
            if not isinstance(error, PapermillExecutionError | DeadKernelError):
                raise
            kept = _move(target, failed)
            raise ChapterError(_failure(chapter, error, kept), kept) from error
        took = time.monotonic() - began
        about = {
            "chapter": chapter.name,
            "profile": settings.name,
            "parameters": values | ({"profile": settings.name} if settings.file else {}),
            "source_hash": source_hash,
            "seconds": round(took, 1),
            "version": __version__,
        }
        stderr = publishable(target, about)
        gaps = len(gaps_of(target))
        if stop.asked:
            raise KeyboardInterrupt
        written = _publish_tables(chapter, tables, out)  # from here on a stop comes too late, and is told so
        (failed / target.name).unlink(missing_ok=True)  # the error it shows is over
        done = Execution(_move(target, out), written, took, stderr, gaps)
    if stop.asked:
        raise KeyboardInterrupt(f"stopped; {chapter.name} had just been finished")
    return done


def _publish_tables(chapter: Chapter, tables: Path, out: Path) -> tuple[Path, ...]:
    moved = [_move(path, out) for path in sorted(tables.iterdir())]
    for path in [*out.glob(f"{chapter.name}.*.csv"), provenance.place(out, chapter.name)]:
        if path not in moved:
            path.unlink(missing_ok=True)  # an earlier run's table that this one did not write
    return tuple(path for path in moved if path.suffix == ".csv")


def _failure(chapter: Chapter, error: Exception, notebook: Path) -> str:
    if isinstance(error, PapermillExecutionError):
        what = f"failed in cell {error.cell_index} with {error.ename}: {error.evalue}"
    else:
        what = "lost its kernel (killed, or out of memory)"
    return f"chapter {chapter.name} {what}\nthe notebook up to there: {notebook}"


def _move(path: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if path.stat().st_dev == folder.stat().st_dev:
        os.replace(path, folder / path.name)
    else:  # across file systems: copy beside the target first, so that the last step is atomic
        beside = folder / f".{path.name}.{os.getpid()}"
        shutil.copyfile(path, beside)
        os.replace(beside, folder / path.name)
    return folder / path.name
