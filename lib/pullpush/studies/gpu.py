"""What a GPU measured, read from the tables that `make gpu` writes; each stands beside its device, date and versions.

if gpu.there("tables"):
    display(gpu.ratios("02-svr"))    # a row a system, a column a cost
gpu.origin("tables")                 # the device and the versions, or what to type where no GPU has measured it
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from IPython.display import Markdown

from pullpush.errors import DataNotFoundError, unknown
from pullpush.lab.root import find_root
from pullpush.studies import costs

COMMAND = "make gpu"
PARTS: Mapping[str, str] = {
    "tables": "time and memory of a training step at the papers' sizes",
    "throughput": "the library's loop against a plain loop of Hugging Face and open_clip",
    "tiles": "losses in tiles against the N × N matrix",
    "adam8bit": "Adam in eight bits",
    "correct": "every loss on the device against float64 on the CPU",
}
LOSSES = ("losses/infonce", "losses/siglip", "losses/svr")
STEP = ("training/objective", "audio/ced", "text/sonar")
# What each part goes through, as `golden.versions` takes it.
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "tables": (*STEP, *LOSSES),
    "throughput": (*STEP, "training/loop"),
    "tiles": LOSSES,
    "adam8bit": STEP,
    "correct": (*LOSSES, "losses/kcl", "losses/cacl"),
}


def there(part: str, *, folder: Path | None = None) -> bool:
    """Whether a GPU has measured a part.

    Raises:
        UnknownNameError: no such part.
    """
    return all(path.is_file() for path in _paths(part, folder))


def table(part: str, *, folder: Path | None = None) -> pd.DataFrame:
    """The rows of a part, as `benchmarks/gpu.py` wrote them.

    Raises:
        DataNotFoundError: no GPU has measured it; the message says what does.
        UnknownNameError: no such part.
    """
    path = _paths(part, folder)[0]
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: `{COMMAND}` makes it, on a machine with an NVIDIA GPU")
    return pd.read_csv(path, keep_default_na=False, na_values=["", "nan"])


def ratios(chapter: str, *, folder: Path | None = None) -> pd.DataFrame:
    """A chapter's systems with their costs: columns system, then for each precision milliseconds, their ratio to the
    first system's with its quartiles over rounds, MiB of forward and backward pass, and its ratio.

    Raises:
        UnknownNameError: nothing was measured of this chapter.
    """
    rows = table("tables", folder=folder)
    if chapter not in set(rows["chapter"]):
        raise unknown("chapter of gpu-tables.csv", chapter, rows["chapter"].unique())
    rows = rows[rows["chapter"] == chapter]
    wide = pd.DataFrame({"system": rows["system"].unique()})
    for precision in rows["precision"].unique():
        of_precision = rows[rows["precision"] == precision].set_index(["quantity", "system"])
        seconds, memory = (of_precision.loc[name] for name in ("seconds", "MiB, forward and backward"))
        columns = {
            "ms": seconds["value"] * 1e3,
            "time": [f"×{row.ratio:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in seconds.itertuples()],
            "MiB": memory["value"],
            "memory": memory["ratio"],
        }
        for name, values in columns.items():
            wide[f"{precision}: {name}"] = wide["system"].map(pd.Series(values, index=seconds.index))
    return wide


def formats(frame: pd.DataFrame) -> dict[str, str]:
    """How `ratios` is written, for `tables.styled`."""
    forms = {"ms": "{:.1f}", "MiB": "{:,.0f}", "memory": "×{:.4f}"}
    return {name: forms[kind] for name in frame.columns if (kind := name.rpartition(": ")[2]) in forms}


def origin(part: str, *, folder: Path | None = None) -> Markdown:
    """Where, when and with what a part was measured and what does something else since; where no GPU has measured it,
    what would.
    """
    if not there(part, folder=folder):
        return Markdown(
            f"> Not measured: {PARTS[part]}. `{COMMAND}` does it on a machine with an NVIDIA GPU, in at most 8 minutes "
            "for all parts; this page then shows it."
        )
    about = json.loads(_paths(part, folder)[1].read_text(encoding="utf-8"))
    packages, since = about["packages"], costs.since(stale(part, folder=folder))
    memory = f", {about['memory_gib']:.0f} GiB" if about["memory_gib"] else ""
    tools = f"torch {packages.get('torch', '–')}, CUDA {about['cuda'] or '–'}"
    tools += f", transformers {packages.get('transformers', '–')}, float32 products: {about['float32_products']}"
    tried = " Tiny sizes, to try the command out." if about["quick"] else ""
    cut = "" if about["complete"] else " Broken off: the table is not complete."
    return Markdown(
        f"> Measured on **{about['device']}**{memory}, {about['made']} UTC in {about['seconds']:.0f} s ({tools}) by "
        f"`{about['command']}`.{tried}{cut}{since}"
    )


def stale(part: str, *, folder: Path | None = None) -> tuple[str, ...]:
    """Which components do something else since a part was measured, such as "losses/svr"; empty if none does."""
    about = json.loads(_paths(part, folder)[1].read_text(encoding="utf-8"))
    return costs.changed(about["versions"], COMPONENTS[part])


def _paths(part: str, folder: Path | None) -> tuple[Path, Path]:
    """The table, and what stands beside it."""
    if part not in PARTS:
        raise unknown("part of `make gpu`", part, PARTS)
    path = (folder or find_root() / "book" / "measured") / f"gpu-{part}.csv"
    return path, path.with_suffix(".json")
