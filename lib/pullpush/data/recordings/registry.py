"""Datasets by name: cards that say what each is, what its own files list, where they are, how they are fetched.

A dataset is a card of a file in `data/sets`, whose `make` is a function `(place, split) -> Listing`; the further
functions here are what such functions have in common.
"""

import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import pandas as pd

from pullpush.cache import home
from pullpush.catalogue import Card, Catalogue
from pullpush.data.languages import read_table
from pullpush.data.recordings import debian
from pullpush.errors import DataNotFoundError, PullPushError, few, looked_up

DATA = "PULLPUSH_DATA"


class Listing(NamedTuple):
    """What a dataset's own files say of one split: recordings, and the captions or the label of each."""

    paths: list[Path]
    captions: list[list[str]] = []  # noqa: RUF012  (never changed)
    labels: list[str] = []  # noqa: RUF012
    classes: tuple[str, ...] = ()

    def rows(self, chosen: Iterable[int]) -> "Listing":
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
    SupCLAP's sentence: "{label}" where the labels are what is said. megabytes: that are fetched; clips: of the whole
    set as it is published; 0 where nobody has counted.
    """

    make: Callable[[Path, str], Listing] = field(repr=False)
    folder: str
    labelled: bool = False
    fetch: Callable[[Path], None] | None = field(default=None, repr=False)
    how: str = ""
    seconds: float = 10.0
    subsets: Mapping[str, Subset] = field(default_factory=dict, repr=False)
    of: "Callable[[DatasetCard, str], DatasetCard] | None" = field(default=None, repr=False)
    prompt: str = ""
    megabytes: float = 0.0
    clips: int = 0

    def where(self, root: Path) -> Path:
        return root / self.folder


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
    if kind not in SETS and Path(name).is_dir():
        raise PullPushError(f"{name} is a folder: ask for folder:{name}")
    dataset = SETS[kind if argument else name]
    if not argument:
        return dataset
    if dataset.of is None:
        raise PullPushError(f"{kind} is one dataset, got {name!r}: ask for {kind!r}")
    return dataset.of(dataset, argument)


def listing(name: str, split: str) -> Listing:
    """The files of one split ("train", "valid" or "test") with their captions or labels."""
    dataset, root = find(name), datasets_home()
    place = dataset.where(root)
    if not place.is_dir():
        get = f"`pullpush fetch {name}` gets it" if dataset.fetch else dataset.how or "put it there"
        raise DataNotFoundError(
            f"{dataset.title} is not at {place}: {get}, or set ${DATA} to the folder that holds {dataset.folder}"
        )
    return dataset.make(place, split)


def fetch(name: str) -> Path:
    """Download a dataset to its place below `datasets_home()`; what is there already is kept."""
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


def unpack(root: Path, url: str, checksum: str | None = None) -> None:
    """Download an archive to `root`/archives and unpack it to `root`; checksum: such as "md5:…", None for any.

    What is damaged, by the checksums of the files in it, is thrown away, so that the next try fetches it anew; so is,
    with nothing unpacked, what would write elsewhere.
    """
    import pooch

    path = Path(pooch.retrieve(url, checksum, fname=url.rpartition("/")[2], path=root / "archives"))
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                if outside := [each for each in archive.namelist() if each.startswith("/") or ".." in Path(each).parts]:
                    raise PullPushError(f"it would write outside of {root}: {few(outside)}")
                archive.extractall(root)
        else:
            debian.unpack(path, root)
    except (zipfile.BadZipFile, EOFError, zlib.error, PullPushError) as error:
        path.unlink()
        raise OSError(f"{url} came damaged ({error}) and was thrown away: try again") from error


# ------------------------------------------------------------------------------------------- what files of sets share


def cards(
    table: Path, readers: Mapping[str, Callable[..., Listing]], further: Mapping[str, Mapping[str, Any]], **common: Any
) -> tuple[DatasetCard, ...]:
    """A card for each entry of a table in YAML, whose keys the head of `sets/labelled.yaml` explains.

    readers: functions `(place, split, …) -> Listing` by their names; further: set → fields that are functions, such as
    `fetch`; common: fields of all.
    """
    found = []
    for name, entry in read_table(table).items():
        fields: dict[str, Any] = {"make": readers[name], **common, **entry, **further.get(name, {})}
        if "url" in fields:
            fields["fetch"] = partial(unpack, url=fields.pop("url"), checksum=fields.pop("checksum", None))
        if variants := fields.pop("variants", {}):
            fields["of"] = partial(_variant, variants.pop("noun"), variants)
        found.append(DatasetCard(name=name, **fields))
    return tuple(found)


def _variant(noun: str, variants: Mapping[str, Mapping[str, Any]], card: DatasetCard, name: str) -> DatasetCard:
    """The card of "audiocaps:v2" and the like; `UnknownNameError` where there is none of the name."""
    fields = dict(looked_up(noun, name, variants))
    options = fields.pop("options")
    functions = {"make": partial(card.make, **options), "fetch": card.fetch and partial(card.fetch, **options)}
    return replace(card, **functions, **fields)


def official_table(path: Path, columns: Sequence[str], **options: Any) -> pd.DataFrame:
    """A CSV as published; options: of `pandas.read_csv`."""
    if not path.is_file():
        raise DataNotFoundError(f"no table at {path}: is the dataset complete?")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, **options)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise PullPushError(f"{path} is not a CSV table in UTF-8: {error}") from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes what is too much for names of rows
        raise PullPushError(
            f"{path}: rows have more fields than its header has names; put a text that holds a comma into quotes, "
            '"a dog, then a cat", and take away commas at the ends of rows'
        )
    if missing := [name for name in columns if name not in table.columns]:
        raise PullPushError(f"{path} needs the columns {', '.join(columns)}, lacks {', '.join(missing)}")
    return table


def require_all(title: str, paths: Sequence[Path], table: Path | str) -> None:
    """Raise `DataNotFoundError` where recordings of a table are missing; it names the first ones."""
    missing = [path for path in paths if not path.is_file()]
    if not missing:
        return
    folders = {path.parent for path in missing if path.parent.is_dir()}
    there = {normalize("NFC", each.name) for folder in folders for each in folder.iterdir()}
    do = "put them there, or remove their rows"
    if any(normalize("NFC", path.name) in there for path in missing):
        do = "files that look alike are there, their accents in other bytes: rename these, or those in the table"
    raise DataNotFoundError(
        f"{title} lacks {len(missing)} of the {len(paths)} recordings of {table}: {few([*map(str, missing)])}; {do}"
    )


def warn_of_missing(title: str, split: str, present: Sequence[bool]) -> None:
    """Warn where clips are not on disk, as those that are gone from YouTube."""
    missing = sum(not is_present for is_present in present)
    if missing:
        warnings.warn(f"{title}: {missing} of {len(present)} clips for {split} are not on disk, left out", stacklevel=4)
