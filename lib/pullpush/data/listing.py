"""What a dataset's own files say of a split, and the card that names a dataset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pullpush.catalogue import Card
from pullpush.errors import DataNotFoundError, PullPushError

NAMED = 5  # missing files that an error names


class Listing(NamedTuple):
    """What a dataset's own files say of one split: recordings, and the captions or the label of each."""

    paths: list[Path]
    captions: list[list[str]] = []  # noqa: RUF012  (never changed)
    labels: list[str] = []  # noqa: RUF012
    classes: tuple[str, ...] = ()

    def rows(self, chosen: Iterable[int]) -> Listing:
        """Some of the recordings by their numbers, in that order; the classes stay.

        >>> Listing([Path("a.wav"), Path("b.wav")], [["one"], ["two"]]).rows([1]).captions
        [['two']]
        """
        chosen = list(chosen)
        captions = [self.captions[row] for row in chosen] if self.captions else []
        labels = [self.labels[row] for row in chosen] if self.labels else []
        return Listing([self.paths[row] for row in chosen], captions, labels, self.classes)


class Subset(NamedTuple):
    """Some of a dataset's test clips, that papers test on: how many, and whether the clip of a file's stem is one."""

    clips: int
    holds: Callable[[str], bool]


@dataclass(frozen=True, kw_only=True)
class DatasetCard(Card):
    """A dataset; `make` is a function (its folder, split) → Listing, of "train", "valid" or "test".

    folder: its place below `registry.datasets_home()`; labelled: one label a clip in place of captions; fetch: fills
    its folder, given the home of datasets; how: what to do where `fetch` cannot. seconds: how long its longest clips
    are, as models are tested on them; subsets: some of the test clips, by the name that papers have for them. of: for
    names with an argument ("folder:/path"), the card of that one. prompt: how a class is asked for, in place of
    SupCLAP's sentence: "{label}" where the labels are what is said. language: of its captions and labels, ISO 639-3.
    megabytes: that are fetched; 0 where nobody has counted.
    """

    make: Callable[[Path, str], Listing] = field(repr=False)
    folder: str
    labelled: bool = False
    fetch: Callable[[Path], None] | None = field(default=None, repr=False)
    how: str = ""
    seconds: float = 10.0
    subsets: Mapping[str, Subset] = field(default_factory=dict, repr=False)
    of: Callable[[DatasetCard, str], DatasetCard] | None = field(default=None, repr=False)
    prompt: str = ""
    language: str = "eng"
    megabytes: float = 0.0

    def where(self, root: Path) -> Path:
        """Its folder."""
        return root / self.folder


def labelled(title: str, paths: list[Path], labels: Sequence[str]) -> Listing:
    """Recordings with one label each; the classes are sorted by name.

    Raises:
        DataNotFoundError: recordings are missing.
        PullPushError: a recording has an empty label.

    >>> labelled("Mine", [], []).classes
    ()
    """
    require_all(title, paths, "its table")
    for path, label in zip(paths, labels, strict=True):
        if not label.strip():
            raise PullPushError(f"{title}: {path} has an empty label: repair its row, or remove it")
    return Listing(paths, labels=list(labels), classes=tuple(sorted(set(labels))))


def every_tenth(paths: Sequence[Path], captions: Sequence[list[str]], split: str) -> Listing:
    """A split of a dataset that has none: of every ten files by name, eight train, one validates and one tests.

    >>> every_tenth([Path(f"{n}.wav") for n in range(10)], [["a"]] * 10, "test").paths[0].name
    '9.wav'
    """
    order = sorted(range(len(paths)), key=lambda row: paths[row].name)
    share = {"valid": {8}, "test": {9}}.get(split, set(range(8)))
    rows = [row for number, row in enumerate(order) if number % 10 in share]
    return Listing([paths[row] for row in rows], [captions[row] for row in rows])


def official_table(path: Path, columns: Sequence[str], **options: Any) -> pd.DataFrame:
    """A CSV as published; options: of `pandas.read_csv`.

    Raises:
        DataNotFoundError: it is not there.
        PullPushError: it is another table.
    """
    if not path.is_file():
        raise DataNotFoundError(f"no table at {path}: is the dataset complete?")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise PullPushError(f"{path} is not a CSV table in UTF-8: {error}") from error
    if missing := [name for name in columns if name not in table.columns]:
        raise PullPushError(f"{path} needs the columns {', '.join(columns)}, lacks {', '.join(missing)}")
    return table


def require_all(title: str, paths: Sequence[Path], table: Path | str) -> None:
    """Raise `DataNotFoundError` where recordings of a table are missing; it names the first ones."""
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise DataNotFoundError(
            f"{title} lacks {len(missing)} of the {len(paths)} recordings of {table}: {', '.join(missing[:NAMED])}"
            f"{' …' if missing[NAMED:] else ''}; put them there, or remove their rows"
        )


def warn_of_missing(title: str, split: str, present: Sequence[bool]) -> None:
    """Warn where clips are not on disk, as those that are gone from YouTube."""
    missing = sum(not is_present for is_present in present)
    if missing:
        warnings.warn(f"{title}: {missing} of {len(present)} clips for {split} are not on disk, left out", stacklevel=4)
