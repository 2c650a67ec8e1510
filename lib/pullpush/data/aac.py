"""Captioned datasets read and fetched by `aac-datasets`, which knows their layouts."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pullpush.errors import DataNotFoundError, PullPushError


@contextmanager
def _names_that_torchaudio_dropped() -> Iterator[None]:
    """aac-datasets 0.7 imports `torchaudio.AudioMetaData`, for a type that we never meet; torchaudio 2.11 has none."""
    import torchaudio

    if hasattr(torchaudio, "AudioMetaData"):
        yield
        return
    torchaudio.AudioMetaData = object
    try:
        yield
    finally:
        del torchaudio.AudioMetaData


def module_of(name: str) -> ModuleType:
    """The module of aac-datasets that reads and fetches a dataset.

    Raises:
        PullPushError: it is not installed.
    """
    try:
        with _names_that_torchaudio_dropped():
            return importlib.import_module(f"aac_datasets.datasets.functional.{name}")
    except ModuleNotFoundError as error:
        raise PullPushError(
            f"reading {name} needs {error.name}, which is not installed: pip install 'pullpush[full]'"
        ) from error


def read_columns(name: str, place: Path, subset: str, expected: str, **options: Any) -> dict[str, list]:
    """The columns that aac-datasets gives for a subset.

    Args:
        name: of its module.
        place: the dataset's folder.
        subset: as the library calls it.
        expected: what is in the folder if all is well, for the error.
        options: of its function.

    Raises:
        DataNotFoundError: the folder is not as the dataset is published.
        PullPushError: the library is not installed.
    """
    load = getattr(module_of(name), f"load_{name}_dataset")
    try:
        columns = load(place.parent, subset, -1, **options)
    except (RuntimeError, OSError, KeyError, AssertionError) as error:
        raise DataNotFoundError(f"{place} is not as {name} is published ({subset}): expected {expected}") from error
    return columns[0] if isinstance(columns, tuple) else columns
