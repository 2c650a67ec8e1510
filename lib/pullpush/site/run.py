"""Running a chapter: Markdown → notebook → papermill → `executed/local/<profile>/`, all of it or nothing.

A run happens in a folder of its own; only when the last cell has passed do the tables, then the notebook, take
their places. A failed run leaves what was there as it was, and keeps its notebook under `executed/local/failed/`; one
that is stopped leaves nothing. What the maintainers publish stands in `executed/<profile>/`, which only `publish`
writes to.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from pullpush import __version__
from pullpush.cache import content_key
from pullpush.errors import PullPushError
from pullpush.lab import profiles, provenance
from pullpush.lab.profiles import Profile
from pullpush.lab.root import find_root
from pullpush.site import chapters, status
from pullpush.site.chapters import Chapter
from pullpush.site.clean import publishable
from pullpush.source import why_differs

# What keeps a kernel's output fit for a page, and the same from run to run.
QUIET = {
    "PULLPUSH_PUBLISH": "1",
    "PULLPUSH_PROGRESS": "0",
    "TQDM_DISABLE": "1",
    "PYTHONWARNINGS": "ignore",
    "PYTHONHASHSEED": "0",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "JUPYTER_PLATFORM_DIRS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}
# The kernel's own settings: none of the user's; no warnings about its transport on the terminal, nor the error that it
# reports when jupyter_client ends it by an interrupt, as it always does; and its process id, for whoever must end it.
KERNEL_CONFIG = """
import logging, os
c = get_config()
c.IPKernelApp.log_level = 40
logging.getLogger("IPKernelApp").addFilter(lambda record: "KeyboardInterrupt caught" not in record.getMessage())
with open({pid!r} + ".part", "w") as file:
    file.write(str(os.getpid()))
os.replace({pid!r} + ".part", {pid!r})
"""


SHOWN = 5  # changed symbols that a message names


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
    """What a run left: the executed notebook, its tables, what the kernel said on stderr, and how long it took."""

    notebook: Path
    tables: tuple[Path, ...]
    seconds: float
    stderr: str = field(default="", repr=False)


def run(
    name: str,
    *,
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    out: Path | None = None,
    failed: Path | None = None,
    root: Path | None = None,
    publish: bool = False,
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
        publish: let the defaults be `executed/<profile>` and `executed/failed/<profile>`, which maintainers commit.
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
    out = out or place(root, settings.name, published=publish)
    failed = failed or place(root, "failed", published=publish) / settings.name
    with status.run_folder(root / "executed") as folder:
        return _execute(chapter, settings, values, folder, out=out, failed=failed, root=root, watch=watch)


def place(root: Path, profile: str, *, published: bool = False) -> Path:
    """The folder of a profile's executions: of this clone's own, or of those that the maintainers publish."""
    return root / "executed" / profile if published else root / "executed" / "local" / profile


def last_time(root: Path, name: str, profile: str) -> float | None:
    """The seconds that a chapter took when it was last executed here, else when it was published; None if neither."""
    mine, published = (seconds(place(root, profile, published=p) / f"{name}.ipynb") for p in (False, True))
    return published if mine is None else mine


def seconds(notebook: Path) -> float | None:
    """The seconds that an execution took; None if there is none."""
    return _told(notebook).get("seconds") if notebook.is_file() else None


def describe(notebook: Path) -> dict[str, Any]:
    """What an executed notebook says of itself: chapter, profile, parameters, source_hash, code, seconds, version."""
    return dict(nbformat.read(notebook, as_version=4).metadata.get("pullpush", {}))


def why_stale(notebook: Path, chapter: Chapter, settings: Profile | None = None) -> str | None:
    """Why an executed notebook is not what the chapter with its defaults and today's code would give; None if it is.

    settings: its profile, if that is one of your own; its name alone does not say where its file is.
    """
    if not notebook.is_file():
        return f"{chapter.name} has not been run: there is no {notebook}"
    made = _told(notebook)
    if not made:
        return f"{notebook} cannot be read as an execution of {chapter.name}"
    if made.get("source_hash") != chapters.source_hash(chapter):
        return f"{chapter.name} has changed since {notebook} was made"
    defaults = chapters.parameters(chapter) | {"profile": made["profile"]}
    changed = [f"{k}={v!r}" for k, v in made["parameters"].items() if v != defaults.get(k)]
    if changed:
        return f"{notebook} was made with {', '.join(changed)}, which are not the defaults of {chapter.name}"
    settings = settings or profiles.PROFILES.get(made["profile"])
    if settings is None:
        return None
    from pullpush.lab.chapter_code import code_of_chapter  # here, so that running a chapter does not wait for torch

    code = code_of_chapter(chapter.path, settings)
    if made.get("code") == content_key(code):
        return None
    old = provenance.code_named(notebook.parent, chapter.name, made.get("code", ""))
    names = why_differs(old, code) if old else ("it does not say which",)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{notebook} was made by other code: {', '.join(names[:SHOWN])}{more}"


def _told(notebook: Path) -> dict[str, Any]:
    """What a notebook says of itself; empty if it was cut off or is none of ours."""
    try:
        return describe(notebook)
    except (ValueError, TypeError, AttributeError, nbformat.ValidationError):
        return {}


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
            with _quiet(stop):
                _papermill(chapter, target, values, folder, root=root, hooks=_hooks(stop, watch))
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
            "code": next((one.digest for one in provenance.stamps(tables, chapter.name).values()), ""),
            "seconds": round(took, 1),
            "version": __version__,
        }
        stderr = publishable(target, about)
        if stop.asked:
            raise KeyboardInterrupt
        written = _publish_tables(chapter, tables, out)  # from here on a stop comes too late, and is told so
        (failed / target.name).unlink(missing_ok=True)  # the error it shows is over
        done = Execution(_move(target, out), written, took, stderr)
    if stop.asked:
        raise KeyboardInterrupt(f"stopped; {chapter.name} had just been finished")
    return done


def _papermill(
    chapter: Chapter,
    target: Path,
    values: dict[str, Any],
    folder: Path,
    *,
    root: Path,
    hooks: Mapping[str, Callable[..., None]],
) -> None:
    source = folder / "source.ipynb"
    config = folder / "ipython" / "profile_default" / "ipython_kernel_config.py"
    config.parent.mkdir(parents=True)
    config.write_text(KERNEL_CONFIG.format(pid=str(folder / status.KERNEL)), encoding="utf-8")
    nbformat.write(chapters.read(chapter), source)
    own = {"PULLPUSH_OUT": str(folder / "tables"), "PULLPUSH_BOOK": str(root), "IPYTHONDIR": str(folder / "ipython")}
    with _environment({**QUIET, **own}):
        papermill.execute_notebook(
            source, target, values, cwd=root / "book", kernel_name="python3", progress_bar=False, **hooks
        )


def _hooks(stop: status.Stop, watch: Callable[[str], None]) -> dict[str, Callable[..., None]]:
    """What nbclient calls as a notebook goes on; the notebook is not changed by it."""
    code: list[int] = []

    def started(notebook: nbformat.NotebookNode) -> None:
        code.extend(at for at, cell in enumerate(notebook.cells) if cell.cell_type == "code")
        stop.ready.set()  # the kernel is there and can be ended

    def cell(cell: nbformat.NotebookNode, cell_index: int) -> None:
        if cell_index in code:
            watch(f"cell {code.index(cell_index) + 1}/{len(code)}")

    return {"on_notebook_start": started, "on_cell_start": cell}


@contextmanager
def _quiet(stop: status.Stop) -> Iterator[None]:
    """Let papermill not complain of the death of a kernel that we end."""

    def wanted(record: logging.LogRecord) -> bool:
        return not stop.asked

    logger = logging.getLogger("papermill")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


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


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, which the kernel inherits, and put the old ones back."""
    before = dict(os.environ)
    os.environ.update(values)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before.get("PATH", "")])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
