"""Datasets by name: where their files are, what they hold, how to fetch them; one file of `data/sets` each."""

from __future__ import annotations

import os
from pathlib import Path

from pullpush.cache import home
from pullpush.catalogue import Catalogue
from pullpush.data.listing import DatasetCard, Listing
from pullpush.errors import DataNotFoundError, PullPushError

DATA = "PULLPUSH_DATA"
SETS: Catalogue[DatasetCard] = Catalogue("pullpush.data.sets", DatasetCard, "dataset")


def datasets_home() -> Path:
    """Where datasets are looked for: `$PULLPUSH_DATA`, else `datasets` in the cache; it need not exist yet."""
    named = os.environ.get(DATA)
    return Path(named).expanduser().absolute() if named else home() / "datasets"


def find(name: str) -> DatasetCard:
    """The dataset `name`; of those with an argument that one: "folder:/path", recordings of your own.

    Raises:
        UnknownNameError: no such dataset; the nearest names are given.
        PullPushError: an argument that cannot be used.

    >>> find("esc50").title, find("folder:/data/mine").title
    ('ESC-50', 'mine')
    """
    kind, _, argument = name.partition(":")
    dataset = SETS[kind if argument else name]
    if not argument:
        return dataset
    if dataset.of is None:
        raise PullPushError(f"{kind} is one dataset, got {name!r}: ask for {kind!r}")
    return dataset.of(dataset, argument)


def listing(name: str, split: str) -> Listing:
    """The files of one split ("train", "valid" or "test") with their captions or labels.

    Raises:
        UnknownNameError: no such dataset.
        DataNotFoundError: it is not on disk, or recordings are missing.
        PullPushError: its tables are not as published, or the library that reads it is not installed.
    """
    dataset, root = find(name), datasets_home()
    place = dataset.where(root)
    if not place.is_dir():
        get = f"`pullpush fetch {name}` gets it" if dataset.fetch else dataset.how or "put it there"
        raise DataNotFoundError(
            f"{dataset.title} is not at {place}: {get}, or set ${DATA} to the folder that holds {dataset.folder}"
        )
    return dataset.make(place, split)


def fetch(name: str) -> Path:
    """Download a dataset to its place below `datasets_home()`; what is there already is kept.

    Raises:
        UnknownNameError: no such dataset.
        DataNotFoundError: it cannot be fetched; the message says what to do.
        PullPushError: the library that fetches it is not installed.
    """
    dataset, root = find(name), datasets_home()
    if dataset.fetch is None:
        raise DataNotFoundError(f"{dataset.title} cannot be fetched: {dataset.how}; put it at {dataset.where(root)}")
    root.mkdir(parents=True, exist_ok=True)
    try:
        dataset.fetch(root)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, PullPushError):
            raise
        raise DataNotFoundError(
            f"cannot fetch {dataset.title}: {error}; is there a network? Otherwise put it at {dataset.where(root)}"
        ) from error
    return dataset.where(root)


def unpack(root: Path, url: str, checksum: str | None) -> None:
    """Download an archive to `root`/archives and unpack it to `root`; checksum: such as "md5:…", None for any."""
    import pooch

    processor = (pooch.Unzip if url.endswith(".zip") else pooch.Untar)(extract_dir=str(root))
    pooch.retrieve(url, checksum, fname=url.rpartition("/")[2], path=root / "archives", processor=processor)
