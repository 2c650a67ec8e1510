"""A notebook executed by papermill in a kernel that is quiet, has none of the user's settings, and can be ended."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import papermill

from pullpush.site import chapters, status
from pullpush.site.chapters import Chapter

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


def execute(
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
    places = {"PULLPUSH_OUT": str(folder / "tables"), "PULLPUSH_BOOK": str(root), "IPYTHONDIR": str(folder / "ipython")}
    with environment({**QUIET, **places}):
        papermill.execute_notebook(
            source, target, values, cwd=root / "book", kernel_name="python3", progress_bar=False, **hooks
        )


def hooks(stop: status.Stop, watch: Callable[[str], None]) -> dict[str, Callable[..., None]]:
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
def quiet(stop: status.Stop) -> Iterator[None]:
    """Let papermill not complain of the death of a kernel that we end."""

    def wanted(record: logging.LogRecord) -> bool:
        return not stop.asked

    logger = logging.getLogger("papermill")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, which the kernel inherits, and put the old ones back."""
    before = dict(os.environ)
    os.environ.update(values)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before.get("PATH", "")])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
