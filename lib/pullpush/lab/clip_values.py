"""Values by clip of many runs in one file: of each metric one array over the runs, beside it whose values they are.

Runs that differ in a seed find nearly the same, clip by clip, and in one array that compresses; an array a run, each
with its headers, takes nearly twice the space.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pullpush.metrics.cards import Values

Cell = tuple[int, int]  # number of a trial in its experiment, seed
WHOSE = "|whose"


def write(path: Path, values: Mapping[Cell, Values]) -> None:
    """Write values of runs, as float32.

    Arrays are named by metric and number: runs whose test data hold other numbers of clips stand in another array.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Cell]] = {}
    for cell, of_run in values.items():
        for metric, array in of_run.items():
            groups.setdefault((metric, array.shape), []).append(cell)
    arrays = {}
    for number, ((metric, _), cells) in enumerate(groups.items()):
        name = f"{metric}|{number}"
        arrays[name] = np.stack([values[cell][metric] for cell in cells]).astype(np.float32)
        arrays[name + WHOSE] = np.array(cells)
    with open(path, "wb") as file:
        # pyrefly: ignore[bad-argument-type]
        np.savez_compressed(file, **arrays)


def cells(path: Path) -> list[Cell]:
    """The runs whose values a file holds, as `read` orders them; the values themselves are not read.

    Raises:
        OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile: the file is damaged.
    """
    with np.load(path, allow_pickle=False) as file:
        whose = [file[name].tolist() for name in file.files if name.endswith(WHOSE)]
    return list(dict.fromkeys((trial, seed) for group in whose for trial, seed in group))


def read(path: Path) -> dict[Cell, dict[str, np.ndarray]]:
    """Values by run and metric, as float64; runs of a trial in the order in which they were written.

    Raises:
        OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile: the file is damaged.
    """
    found: dict[Cell, dict[str, np.ndarray]] = {}
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            if name.endswith(WHOSE):
                continue
            for (trial, seed), array in zip(file[name + WHOSE].tolist(), file[name].astype(float), strict=True):
                found.setdefault((trial, seed), {})[name.rpartition("|")[0]] = array
    return found
