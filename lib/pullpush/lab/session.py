"""What a chapter does first: fix the seeds, know its size, know where its results go."""

import os
import random
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from pullpush.cache import atomic_path
from pullpush.lab import gaps
from pullpush.lab.profiles import Profile, profile as find_profile
from pullpush.lab.root import workplace
from pullpush.parallel import keep_memory
from pullpush.settings import check_setting

RESULTS = "results"


@dataclass(frozen=True)
class Session:
    """One execution of a chapter.

    Attributes:
        chapter: its name, such as `01-forces`.
        settings: the profile: sizes, encoders, number of seeds.
        seed: first seed.
        out: folder that its tables go to; exists.
        missing: long experiments that it asked for and that are not kept as they are declared.
    """

    chapter: str
    settings: Profile
    seed: int
    out: Path
    missing: list[str] = field(default_factory=list, compare=False)

    @property
    def seeds(self) -> range:
        """The seeds that comparisons run over: `seed`, `seed + 1`, …"""
        return range(self.seed, self.seed + self.settings.seeds)

    def save(self, table: pd.DataFrame, name: str = RESULTS) -> None:
        """Write `table` (its index is dropped) to `<chapter>.<name>.csv` in `out`.

        Six significant digits, so that committed tables do not change with the last bit of a sum.

        Raises:
            ValueError: `name` is not a plain name.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise ValueError(f"name of a table must be letters, digits, - and _, got {name!r}")
        write_table(table, self.out / f"{self.chapter}.{name}.csv")


def start(chapter: str, profile: str = "quick", seed: int = 0, *, out: Path | str | None = None) -> Session:
    """Begin a chapter: seed Python, NumPy and torch, quieten what must not be in a page, choose where results go.

    Args:
        chapter: its name, such as `01-forces`.
        profile: `smoke`, `quick`, `full`, or the path of a profile's YAML file.
        seed: a non-negative integer.
        out: folder for tables; default `$PULLPUSH_OUT` (set by `pullpush run`), else `executed/local`.

    Raises:
        UnknownNameError: no such profile.
        ValueError: a negative seed.
    """
    check_setting("seed", seed, int)
    settings = find_profile(profile)
    if seed < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed}")
    keep_memory()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (libraries such as umap still read the global state)
    torch.manual_seed(seed)
    folder = Path(out or os.environ.get("PULLPUSH_OUT") or workplace() / "executed" / "local")
    folder.mkdir(parents=True, exist_ok=True)
    if published():
        warnings.simplefilter("ignore")
    if settings.file:
        gaps.allow(f"the profile {settings.name}")
    return Session(chapter, settings, seed, folder)


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV, all of it or nothing: numbers to six digits, its index dropped."""
    with atomic_path(path) as partial:
        table.to_csv(partial, index=False, float_format="%.6g", lineterminator="\n")
    return path


def published() -> bool:
    """Whether `pullpush run` executes this notebook for a page, rather than a reader in JupyterLab."""
    return os.environ.get("PULLPUSH_PUBLISH") == "1"
