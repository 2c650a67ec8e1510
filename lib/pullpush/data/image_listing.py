"""What the files of a set of pictures say of a split, and the card that names the set."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pullpush.catalogue import Card
from pullpush.data.image_files import ENDINGS, Files, Pictures
from pullpush.data.listing import NAMED
from pullpush.errors import DataNotFoundError, PullPushError

CAPTIONS = 5  # of a picture: Karpathy's tables have up to seven, of which papers test on the first five
NAME_FILES = ("classnames.txt", "LOC_synset_mapping.txt")


class PictureListing(NamedTuple):
    """Pictures of one split, the name of each, and the captions of each or its class number."""

    pictures: Pictures
    names: Sequence[str]
    captions: list[list[str]] = []  # noqa: RUF012  (never changed)
    labels: list[int] = []  # noqa: RUF012
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageCard(Card):
    """A set of pictures; `make` is a function (its folder, split) → PictureListing.

    folder: its place below `registry.datasets_home()`; how: where to get it, and how its folder looks then; splits: of
    "train", "valid" and "test", those that it has; labelled: classes in place of captions; prompt: how a class is asked
    for.
    """

    make: Callable[[Path, str], PictureListing] = field(repr=False)
    folder: str
    how: str
    splits: tuple[str, ...] = ("train", "valid", "test")
    labelled: bool = False
    prompt: str = "a photo of a {label}."


def karpathy(title: str, place: Path, table: str, folders: Sequence[str], split: str) -> PictureListing:
    """One split of a table of Karpathy and Fei-Fei's, and the first five captions of each picture.

    table: such as dataset_coco.json; its "restval" counts as "train", as is usual. folders: where pictures may lie
    below `place`, the first that exists; the folder that a row names ("filepath") is below it.

    Raises:
        DataNotFoundError: the table or pictures are missing.
        PullPushError: it is another table.
    """
    ours = {"train": ("train", "restval"), "valid": ("val",), "test": ("test",)}[split]
    found = read_json(place / table)
    try:
        rows = [row for row in found["images"] if row["split"] in ours]
        names = [f"{row['filepath']}/{row['filename']}" if "filepath" in row else row["filename"] for row in rows]
        captions = [[part["raw"].strip() for part in row["sentences"][:CAPTIONS]] for row in rows]
    except (KeyError, TypeError) as error:
        raise PullPushError(f"{place / table} is no table of splits by Karpathy: {error} is missing") from error
    return captioned(title, first_folder(place, folders), names, captions, place / table)


def captioned(title: str, folder: Path, names: Sequence[str], captions: list[list[str]], table: Path) -> PictureListing:
    """Pictures of a folder, all of which must be there, with their captions."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise DataNotFoundError(
            f"{title} lacks {len(missing)} of the {len(names)} pictures of {table} in {folder}: "
            f"{', '.join(missing[:NAMED])}{' …' if missing[NAMED:] else ''}; unpack it again"
        )
    return PictureListing(Files(folder, names), [Path(name).name for name in names], captions)


def first_folder(place: Path, folders: Sequence[str]) -> Path:
    """The first of some folders that exists; the first, if none does."""
    return next((place / name for name in folders if (place / name).is_dir()), place / folders[0])


def class_folders(title: str, place: Path, count: int, *, whole: bool) -> PictureListing:
    """Pictures in a folder for each class, called by its WordNet id, or by its number among ImageNet's 1,000 in order.

    count: of classes that the set has; fewer are warned of. whole: all classes of the file of names are chosen among;
    else those that have a folder: ImageNet-A, -O and -R hold 200 of them.

    Raises:
        DataNotFoundError: there is no folder with pictures, or no file of names.
        PullPushError: a folder is no class of that file.
    """
    known = class_names(title, place)
    order = sorted(known)
    rows: list[tuple[str, str]] = []
    for folder in sorted(entry for entry in place.iterdir() if entry.is_dir()):
        own = order[int(folder.name)] if folder.name.isdecimal() and int(folder.name) < len(order) else folder.name
        if own not in known:
            raise PullPushError(
                f"{title}: the folder {folder} is no class of its file of names ({', '.join(order[:3])} …)"
            )
        names = sorted(file.name for file in folder.iterdir() if file.suffix.lower() in ENDINGS)
        rows += [(own, f"{folder.name}/{name}") for name in names]
    if not rows:
        raise DataNotFoundError(f"{title} has no pictures in {place}: expected folders such as {order[0]}")
    classes = order if whole else sorted({own for own, _ in rows})
    if len(classes) != count:
        warnings.warn(f"{title}: {len(classes)} of its {count} classes; scores are not those of all", stacklevel=4)
    number = {own: place for place, own in enumerate(classes)}
    names = [name for _, name in rows]
    labels = [number[own] for own, _ in rows]
    return PictureListing(Files(place, names), names, labels=labels, classes=tuple(known[own] for own in classes))


def class_names(title: str, place: Path) -> dict[str, str]:
    """WordNet id → name, of classnames.txt ("n01440764 tench" in each line), or LOC_synset_mapping.txt, of whose names
    the first counts; beside the pictures, one folder up, or in the folder `imagenet` beside theirs.

    Raises:
        DataNotFoundError: there is neither.
    """
    homes = (place, place.parent, place.parent / "imagenet", place.parent.parent / "imagenet")
    found = next((home / name for home in homes for name in NAME_FILES if (home / name).is_file()), None)
    if found is None:
        raise DataNotFoundError(
            f"{title} has no names of its classes: put classnames.txt, with lines such as 'n01440764 tench', to "
            f"{place.parent / 'imagenet'}; prompts that CLIP's are to be compared with need CLIP's names"
        )
    lines = [line.strip().partition(" ") for line in found.read_text(encoding="utf-8").splitlines() if line.strip()]
    first = found.name != NAME_FILES[0]
    return {own: (names.partition(",")[0] if first else names).strip() for own, _, names in lines}


def read_json(path: Path) -> Any:
    """A JSON file.

    Raises:
        DataNotFoundError: it is not there.
        PullPushError: it is no JSON.
    """
    if not path.is_file():
        raise DataNotFoundError(f"no table at {path}: is the set complete?")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PullPushError(f"{path} is not JSON: {error}") from error


def warn_of_lost(title: str, split: str, lost: int, count: int, why: str = "not on disk") -> None:
    """Warn where pictures are left out, such as those whose addresses have died."""
    if lost:
        warnings.warn(f"{title}: {lost} of {count} pictures for {split} are {why}, left out", stacklevel=4)
