"""From what a kernel printed to what a page shows: no noise, no machine's paths, small figures."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from pullpush.show.markup import compress_png

WIDGET = "application/vnd.jupyter.widget-view+json"


def publishable(path: Path, about: dict[str, Any]) -> str:
    """Rewrite the executed notebook at `path` in place for publishing; returns what went to stderr.

    Taken out: stderr, widgets (a page has no kernel behind it), and papermill's notes, which hold times and the
    machine's paths. Figures get a palette. `about` becomes `metadata.pullpush`.
    """
    notebook = nbformat.read(path, as_version=4)
    stderr = []
    for position, cell in enumerate(notebook.cells):
        cell.id = f"cell-{position:03d}"  # random ids would change the file at every run
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            stderr += [o.text for o in cell.outputs if _is_stderr(o)]
            cell.outputs = [_smaller(o) for o in cell.outputs if not _is_stderr(o) and WIDGET not in o.get("data", {})]
    for noise in ("papermill", "widgets"):
        notebook.metadata.pop(noise, None)
    notebook.metadata.pullpush = about
    partial = path.with_suffix(".part")
    nbformat.write(notebook, partial)
    os.replace(partial, path)
    return "".join(stderr)


def _is_stderr(output: NotebookNode) -> bool:
    return output.output_type == "stream" and output.name == "stderr"


def _smaller(output: NotebookNode) -> NotebookNode:
    figure = output.get("data", {}).get("image/png")
    if figure:
        output.data["image/png"] = base64.b64encode(compress_png(base64.b64decode(figure))).decode("ascii")
    return output
