"""What a GPU measured, read from the tables that `make gpu` writes.

if gpu.there("tables"):
    display(gpu.ratios("02-svr"))    # a row a system, a column a cost
gpu.origin("tables")                 # the device and the versions, or what to type where no GPU has measured it
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from IPython.display import Markdown

from pullpush.studies import measured


def there(part: str, *, folder: Path | None = None) -> bool:
    """Whether a GPU has measured a part of `make gpu`; UnknownNameError if there is none such."""
    return measured.there(f"gpu-{part}", folder=folder)


def table(part: str, *, folder: Path | None = None) -> pd.DataFrame:
    """The rows of a part, as `benchmarks/gpu.py` wrote them; DataNotFoundError if no GPU has measured it."""
    return measured.read(f"gpu-{part}", folder=folder)


def origin(part: str, *, folder: Path | None = None) -> Markdown:
    """See `measured.origin`."""
    return measured.origin(f"gpu-{part}", folder=folder)


def ratios(chapter: str, *, folder: Path | None = None) -> pd.DataFrame:
    """A chapter's systems with their costs: columns system, then for each precision milliseconds, their ratio to the
    first system's with its quartiles over rounds, MiB of forward and backward pass, and its ratio.

    Raises:
        UnknownNameError: nothing was measured of this chapter.
    """
    rows = measured.read("gpu-tables", folder=folder, chapter=chapter)
    wide = pd.DataFrame({"system": rows["system"].unique()})
    for precision, of_precision in rows.groupby("precision", sort=False):
        by_quantity = of_precision.set_index(["quantity", "system"])
        seconds, memory = (by_quantity.loc[name] for name in ("seconds", "MiB, forward and backward"))
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
