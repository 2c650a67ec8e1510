"""What the parts of a training step take, read from the table that `benchmarks/throughput.py` counts and measures.

throughput.flops("dasheng", 5, throughput.BOTH)   # of a clip of 5 s, forward and backward
throughput.seconds("decoding FLAC, 16 kHz", 5)    # of one core
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown

from pullpush.cache import atomic_path
from pullpush.errors import DataNotFoundError, unknown
from pullpush.lab.root import find_root
from pullpush.studies import costs

COMMAND = "python benchmarks/throughput.py --count --out book/measured/throughput.csv"
# What decides the counts.
PARTS = ("audio/beats", "audio/ced", "audio/dasheng", "audio/wavlm", "audio/whisper", "studies/counting")
COLUMNS = ["how", "machine", "what", "size", "quantity", "value"]
FORWARD, BOTH, KEPT, WEIGHTS = "FLOPs, forward", "FLOPs, forward and backward", "bytes kept", "weights"
SECONDS, RATE, PEAK = "seconds", "FLOP/s", "MiB"
TITLES: Mapping[str, str] = {
    "dasheng": "Dasheng-base",
    "ced": "CED-base",
    "beats": "BEATs",
    "wavlm": "WavLM-base",
    "whisper-small": "Whisper-small",
    "whisper-base": "Whisper-base",
    "sonar": "SONAR",
}


def measured(device: str) -> str:
    """How rows are found on a device, "cpu" or "cuda"."""
    return f"measured, {device}"


def table(how: str = costs.COUNTED, *, folder: Path | None = None) -> pd.DataFrame:
    """Rows found in one way: machine, what, size (seconds, tokens, or pairs of a batch), quantity, value.

    Raises:
        DataNotFoundError: no such file; the message says what makes it.
        UnknownNameError: nothing found so.
    """
    rows = _rows(_path(folder))
    if how not in set(rows["how"]):
        raise unknown("how of throughput.csv", how, rows["how"].unique())
    return rows[rows["how"] == how].drop(columns="how").reset_index(drop=True)


def counts(what: str, quantity: str, size: float, *, folder: Path | None = None) -> float:
    """A counted quantity at any size: linear between the sizes that were counted, and beyond the longest in proportion,
    for longer clips are heard in windows. Below the shortest it is the shortest's: encoders pad.

    Raises:
        UnknownNameError: not counted.
    """
    rows = table(folder=folder)
    for column, wanted in (("what", what), ("quantity", quantity)):
        if wanted not in set(rows[column]):
            raise unknown(column, wanted, rows[column].unique())
        rows = rows[rows[column] == wanted]
    rows = rows.sort_values("size")
    longest = float(rows["size"].max())
    value = float(np.interp(min(size, longest), rows["size"], rows["value"]))
    return value * max(1.0, size / longest) if longest else value


def seconds(what: str, size: float, *, device: str = "cpu", folder: Path | None = None) -> float:
    """Measured seconds of one thing of one size.

    Raises:
        UnknownNameError: not measured; the message says what was.
    """
    rows = table(measured(device), folder=folder)
    rows = rows[rows["quantity"] == SECONDS].set_index(["what", "size"])["value"]
    if (what, size) not in rows.index:
        raise unknown("measurement", f"{what} of {size:g}", [f"{name} of {each:g}" for name, each in rows.index])
    return float(rows[what, size])


def stale(how: str = costs.COUNTED, *, folder: Path | None = None) -> tuple[str, ...]:
    """Which components do something else since rows were counted; empty if none does."""
    return costs.changed(costs.read_stamp(how, COMMAND, path=_path(folder)).versions, PARTS)


def origin(how: str = costs.COUNTED, *, folder: Path | None = None) -> Markdown:
    """When, where and by what the rows were made; of counts, what has changed since."""
    source = costs.read_stamp(how, COMMAND, path=_path(folder))
    changed = stale(how, folder=folder) if how == costs.COUNTED else ()
    machines = table(how, folder=folder)["machine"].unique()
    where = "" if how == costs.COUNTED else f" On {', '.join(machines)}."
    return Markdown(costs.sentence(how, source, changed) + where)


def write(rows: Sequence[tuple[Any, ...]], how: str, took: float, command: str, *, path: Path) -> None:
    """Add rows to the file at `path`, in place of those of the same way and machine, and say beside it where they come
    from; took: seconds.
    """
    new = pd.DataFrame(rows, columns=COLUMNS)
    if path.is_file():
        old = pd.read_csv(path)
        same = (old["how"] == how) & old["machine"].isin(new["machine"]) & old["what"].isin(new["what"])
        new = pd.concat([old[~same], new]).sort_values("how", kind="stable")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as partial:
        new.to_csv(partial, index=False, float_format="%.15g")
    costs.write_stamp(how, took, command, path=path, parts=PARTS)


def _rows(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: `{COMMAND}` makes it")
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> pd.DataFrame:
    return pd.read_csv(path)


def _path(folder: Path | None) -> Path:
    return (folder or find_root() / "book" / "measured") / "throughput.csv"
