"""Running a chapter: Markdown → notebook → papermill → `executed/local/<profile>/`, all of it or nothing.

A run happens in a folder of its own; only when the last cell has passed do the tables, then the notebook, take
their places. A failed run leaves what was there as it was, and keeps its notebook under `executed/local/failed/`; one
that is stopped leaves nothing. What the maintainers publish stands in `executed/<profile>/`, see publish.py.

The kernel is quiet, has none of the user's settings, and can be ended.
"""

import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from pullpush import __version__
from pullpush.cache import atomic_path
from pullpush.errors import PullPushError
from pullpush.lab import profiles, provenance
from pullpush.lab.profiles import Profile
from pullpush.lab.root import find_root, workplace
from pullpush.progress import held_back
from pullpush.site import chapters, status
from pullpush.site.chapters import Chapter, gaps_of, is_current, place, publishable
from pullpush.site.warm import Manager
from pullpush.site.workers import THREADS, Tell, work_through

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
_starting = threading.Lock()  # the environment is the whole process's, and a Dask worker has threads
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


class ChapterError(PullPushError, RuntimeError):
    """A chapter's cell raised, or its kernel died."""


@dataclass(frozen=True)
class Execution:
    """What a run left: the executed notebook, how long it took, and of how many cells it says that they could not be
    measured on data of one's own.
    """

    notebook: Path
    seconds: float
    gaps: int


def run(
    name: str,
    *,
    profile: str = profiles.DEFAULT,
    parameters: Mapping[str, Any] | None = None,
    out: Path | None = None,
    failed: Path | None = None,
    root: Path | None = None,
    threads: int = 0,
    watch: Callable[[str], object] = lambda state: None,
) -> Execution:
    """Execute one chapter.

    Args:
        name: the chapter, such as `01-forces`.
        profile: `smoke`, `quick`, `full`, or the path of a profile's YAML file.
        parameters: values for the chapter's `parameters` cell; texts are converted to the type of the default.
        out: folder for notebook and tables; default `executed/local/<profile>`.
        failed: folder for the notebook of a run that fails; default `executed/local/failed/<profile>`.
        root: the book's root.
        threads: that the kernel computes by; default: one a core.
        watch: gets before each cell of code which one it is, such as "cell 17/46".

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
    out, failed = out or place(root, settings.name), failed or place(root, "failed") / settings.name
    source_hash, work = chapters.source_hash(chapter), workplace(root) / "executed"
    with status.run_folder(work) as folder, held_back(lambda: status.end_kernel(folder)) as came:
        target, tables = folder / f"{chapter.name}.ipynb", folder / "tables"
        tables.mkdir()
        places = {"PULLPUSH_OUT": str(tables), "PULLPUSH_BOOK": str(root)}
        places |= dict.fromkeys((*THREADS, "LOKY_MAX_CPU_COUNT"), str(threads)) if threads else {}
        began = time.monotonic()

        def started(at: str) -> None:
            if came:  # before there was a kernel to end
                status.end_kernel(folder)
            watch(at)

        try:
            _in_kernel(chapter, target, values, folder, places, started)
        except Exception as error:
            if came:  # whatever the end of its kernel did to papermill
                raise KeyboardInterrupt from None
            if not isinstance(error, PapermillExecutionError | DeadKernelError):
                raise
            kept = _move(target, failed)
            what = "lost its kernel (killed, or out of memory)"
            if isinstance(error, PapermillExecutionError):
                what = f"failed in cell {error.cell_index} with {error.ename}: {error.evalue}"
            message = f"chapter {chapter.name} {what}\nthe notebook up to there: {kept}"
            raise ChapterError(message) from error
        took = time.monotonic() - began
        about = {
            "chapter": chapter.name,
            "profile": settings.name,
            "parameters": values | ({"profile": settings.name} if settings.file else {}),
            "source_hash": source_hash,
            "seconds": round(took, 1),
            "version": __version__,
            "packages": provenance.installed(),
            "processor": provenance.processor(),
        }
        publishable(target, about)
        gaps = len(gaps_of(target))
        if came:
            raise KeyboardInterrupt
        moved = [_move(path, out) for path in sorted(tables.iterdir())]  # from here a stop comes too late, and is told
        for path in out.glob(f"{chapter.name}.*.*"):
            if path not in moved:
                path.unlink(missing_ok=True)  # what an earlier run left and this one did not write
        (failed / target.name).unlink(missing_ok=True)  # the error it shows is over
        done = Execution(_move(target, out), took, gaps)
    if came:
        raise KeyboardInterrupt(f"stopped; {chapter.name} had just been finished")
    return done


def _values(chapter: Chapter, settings: Profile, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters to inject: checked, with the profile, without those that are the defaults already."""
    values = chapters.check_parameters(chapter, given)
    if values.get("profile", settings.source) != settings.source:
        raise chapters.ParameterError(
            f"profile is {settings.source!r} by --profile and {given['profile']!r} by -p: give one"
        )
    defaults = chapters.parameters(chapter)
    if "profile" in defaults:
        values["profile"] = settings.source
    return {name: value for name, value in values.items() if value != defaults[name]}


def _in_kernel(
    chapter: Chapter,
    target: Path,
    values: dict[str, Any],
    folder: Path,
    places: Mapping[str, str],
    watch: Callable[[str], None],
) -> None:
    """Execute a notebook, and say before each cell of code which one it is."""
    source = folder / "source.ipynb"
    config = folder / "ipython" / "profile_default" / "ipython_kernel_config.py"
    config.parent.mkdir(parents=True)
    config.write_text(KERNEL_CONFIG.format(pid=str(folder / status.KERNEL)), encoding="utf-8")
    nbformat.write(chapters.read(chapter), source)
    executed: list[nbformat.NotebookNode] = []

    def begin(notebook: nbformat.NotebookNode) -> None:
        executed.append(notebook)

    def cell(cell: nbformat.NotebookNode, cell_index: int) -> None:
        code = [at for at, each in enumerate(executed[0].cells) if each.cell_type == "code"]
        if cell_index in code:
            watch(f"cell {code.index(cell_index) + 1}/{len(code)}")

    hooks: dict[str, Any] = {"on_notebook_start": begin, "on_cell_start": cell, "kernel_manager_class": Manager}
    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # what it says of a kernel's death we say ourselves
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with _starting, patch.dict(os.environ, {**QUIET, **places, "IPYTHONDIR": str(folder / "ipython"), "PATH": path}):
        try:  # papermill would write all of it twice a cell; what nobody reads before the end is written there
            papermill.execute_notebook(
                source,
                target,
                values,
                cwd=chapter.path.parent,
                kernel_name="python3",
                progress_bar=False,
                request_save_on_cell_execute=False,
                **hooks,
            )
        except DeadKernelError:
            nbformat.write(executed[0], target)
            raise


def _move(path: Path, folder: Path) -> Path:
    with atomic_path(folder / path.name) as partial:
        shutil.copyfile(path, partial)
    return folder / path.name


# ---------------------------------------------------------------- several pages


def current(names: Sequence[str], settings: Profile, root: Path, folder: Path) -> list[str]:
    """Those pages whose executions in a folder need not be made again."""
    return [name for name in names if is_current(folder / f"{name}.ipynb", chapters.find(root, name), settings)]


def run_all(
    names: Sequence[str], settings: Profile, root: Path, *, jobs: int, report: Tell, watch: Tell, **options: Any
) -> dict[str, str]:
    """Execute pages; those that failed, and why.

    Args:
        names: of pages; settings, root, options: as for `run`.
        jobs: pages at once, each in a process of its own; the cores are shared out among them.
        report: gets one line for each page; watch: how many pages are there.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM; the processes have been ended, finished pages are kept.
    """
    jobs = max(1, min(jobs, len(names)))
    if jobs > 1:  # labs come last: beside its lesson one waits for what that encodes, and a core is idle
        names = sorted(names, key=lambda name: name.endswith("-lab"))
    calls: dict[str, Callable[[], str]] = {}
    for number, name in enumerate(names):
        given: dict[str, Any] = {"profile": settings.source, "root": root, **options}
        if jobs > 1:
            given["threads"] = max(1, (os.cpu_count() or 1) // jobs)
        else:  # in this process, which can say how far it is
            at = f"{number}/{len(names)} pages  {name}"
            given["watch"] = lambda state, at=at: watch(f"{at}: {state}")
        calls[name] = partial(run_page, name, **given)
    _, failed = work_through(calls, jobs=jobs, noun="pages", report=report, watch=watch)
    return dict(failed)


def run_page(name: str, **options: Any) -> str:
    """Run a page, see `run`; how many of its cells could not be measured on the data, where that is any."""
    done = run(name, **options)
    return f"{done.gaps} cells not measured on these data" if done.gaps else ""
