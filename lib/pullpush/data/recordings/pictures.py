"""Pictures as a world: Tux Paint's stamps with the captions that people wrote and translated into 77 languages.

    world = load_data(PictureConfig())
    model = create("picture-cnn", "hashed")            # an encoder of pictures in the place of one of audio
    encoded(world, Published("efficientnet-lite"))     # or features of a published one

Train, valid and test share no picture, no caption, and nothing that is nearly the same (see `groups`).
"singles" are the pictures of test once more: each has a category as its label.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data.clips import Columns, StoredClips, World
from pullpush.data.draws import number
from pullpush.data.languages import LANGUAGES, VocabularyError, read_table
from pullpush.data.recordings import picture_files, tuxpaint
from pullpush.errors import unknown
from pullpush.golden import versions

TABLE = Path(__file__).with_name("pictures.yaml")
ALIKE = 0.9  # correlation of two pictures of one kind from which on they count as nearly the same
WORD = re.compile(r"[^A-Za-z]*([A-Za-z]+)")
LETTERS = "symbols/alphabets/"  # each letter many times over: a task of reading
SAME_FOLDER, SAME_KIND = 0.5, 0.25  # relevance of another picture of the folder, and of the first folder
COMPARED = 96  # pixels, that pictures are compared at: the splits are the same for all sizes


@dataclass(frozen=True)
class Category:
    """One category. folders: of the stamps that belong to it; names: language → "a bird"."""

    name: str
    folders: tuple[str, ...]
    names: dict[str, str] = field(repr=False, hash=False)


@cache
def load_categories() -> tuple[Category, ...]:
    """All categories, in the order of the table, which is that of the labels.

    >>> load_categories()[0].names["fra"]
    'un oiseau'
    """
    found = []
    for name, entry in read_table(TABLE)["categories"].items():
        if missing := set(LANGUAGES) - set(entry["names"]):
            raise VocabularyError(f"{TABLE.name}: {name}: missing {sorted(missing)}")
        found.append(Category(name, tuple(entry["folders"]), entry["names"]))
    return tuple(found)


def category_of(stamp: str) -> int:
    """The number of a stamp's category, that with the longest folder that the stamp lies in.

    >>> load_categories()[category_of("animals/birds/cartoon/tux")].name, category_of("animals/birds/crow")
    ('bird', 0)
    """
    fits = [
        (len(folder), number)
        for number, category in enumerate(load_categories())
        for folder in category.folders
        if f"{stamp}/".startswith(f"{folder}/")
    ]
    if not fits:
        raise VocabularyError(f"{TABLE.name}: no category has a folder that the stamp {stamp!r} lies in")
    return max(fits)[1]


def folder_of(stamp: str) -> str:
    """The folder of a stamp, without what says how it is drawn.

    >>> folder_of("food/fruit/cartoon/apple")
    'food/fruit'
    """
    return stamp.rpartition("/")[0].removesuffix("/cartoon")


def first_word(stamp: str) -> str:
    """The first word of a stamp's name, all of the name where there is no word.

    >>> first_word("animals/bovines/cow_white"), first_word("space/planets/3_earth"), first_word("symbols/math/7")
    ('cow', 'earth', '7')
    """
    name = stamp.rpartition("/")[2]
    found = WORD.match(name)
    return found[1].lower() if found else name


def groups(stamps: Sequence[str], captions: Sequence[str], likeness: np.ndarray) -> np.ndarray:
    """Numbers of groups, `(N,)`: stamps are in one group if their captions are the same, if they lie in one folder and
    their names begin with the same word, if they are of one kind (the first folder) and look nearly the same, or if a
    chain of these connects them.

    Args:
        stamps: their paths, such as "animals/birds/crow".
        captions: one of each.
        likeness: `(N, N)`, see `picture_files.likeness`.

    >>> stamps = ["animals/cats/lion", "animals/cats/lion-2", "people/toys/lion", "people/cow"]
    >>> groups(stamps, ["A lion.", "Lion!", "A lion.", "A cow."], np.eye(4)).tolist()
    [0, 0, 0, 1]
    """
    kinds = np.array([stamp.partition("/")[0] for stamp in stamps])
    links = np.argwhere((likeness >= ALIKE) & (kinds[:, None] == kinds))
    names = [(folder_of(stamp), first_word(stamp)) for stamp in stamps]
    pairs = np.concatenate([links, _chained([text.casefold() for text in captions]), _chained(names)])
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(stamps), len(stamps)))
    return connected_components(graph, directed=False)[1]


def dealt(groups: Sequence[int], names: Sequence[str], sizes: dict[str, int], seed: int) -> dict[str, list[int]]:
    """Rows of each split: groups in an order drawn by a hash of their first name, each whole to the first split that
    still has room for it; the rest is "train".

    Args:
        groups: of each row.
        names: of each row.
        sizes: split → rows that it has room for.
        seed: of the order.

    >>> dealt([0, 0, 1, 2], ["a", "b", "c", "d"], {"test": 2}, seed=0)
    {'test': [2, 3], 'train': [0, 1]}
    """
    members: dict[int, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(int(group), []).append(row)
    found: dict[str, list[int]] = {split: [] for split in [*sizes, "train"]}
    for rows in sorted(members.values(), key=lambda rows: number(("pictures", seed, names[rows[0]]))):
        room = (split for split, size in sizes.items() if len(found[split]) + len(rows) <= size)
        found[next(room, "train")] += rows
    return {split: sorted(rows) for split, rows in found.items()}


def _chained(values: Sequence[Hashable]) -> np.ndarray:
    """Pairs `(L, 2)` of rows with the same value, each row with the first that has it."""
    first: dict[Hashable, int] = {}
    return np.array([(row, first.setdefault(value, row)) for row, value in enumerate(values)]).reshape(-1, 2)


@dataclass(frozen=True)
class PictureConfig:
    """Which pictures, and how they are dealt out.

    size: pixels, wide and high; n_valid, n_test: pictures of the splits, all others are learnt from; letters: with the
    156 letters of alphabets; seed: of the dealing.
    """

    size: int = 96
    n_valid: int = 100
    n_test: int = 200
    letters: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("size", "n_valid", "n_test"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def load(self) -> World:
        """See `load_pictures`."""
        return load_pictures(self)


def load_pictures(config: PictureConfig) -> World:
    """Draw the pictures, or read them from the cache.

    Returns:
        Clips of `3 size²` pixels (see picture_files.py) with the columns "stamp", "file" (the same: names the picture),
        "caption" (in English), "category" (its folder) and "label" (the number of its category, see pictures.yaml).
        A stamp has one caption a language, and none where it was not translated. Relevance is graded, see `grade`.
    """
    root = tuxpaint.fetch()
    table = _table(root, config.letters)
    stamps, paths, captions = (list(table[name]) for name in ("stamp", "path", "text"))
    likeness = picture_files.likeness(picture_files.read(_drawn(root, stamps, paths, COMPARED)))
    sizes = {"test": config.n_test, "valid": config.n_valid}
    rows = dealt(groups(stamps, captions, likeness).tolist(), stamps, sizes, config.seed)
    if not rows["train"]:
        raise ValueError(f"{len(stamps)} pictures leave none to learn from: lower n_valid or n_test")
    columns = {
        "stamp": stamps,
        "file": stamps,
        "caption": captions,
        "category": [folder_of(stamp) for stamp in stamps],
        "label": [category_of(stamp) for stamp in stamps],
    }
    folder = _drawn(root, stamps, paths, config.size)
    whole = StoredClips(
        "pictures",
        content_key([bytes_key(folder), columns]),
        picture_files.read(folder),
        np.arange(len(stamps)),
        columns,
        partial(write_captions, root),
        grade,
        ask,
        graded=True,
    )
    splits = {name: whole.select(rows[name], name=name) for name in ("train", "valid", "test")}
    splits["singles"] = splits["test"]
    return World(config, splits, content_key(_captions(root)), parts=("data/pictures", "data/relevance"))


def write_captions(root: Path, columns: Columns, language: str) -> list[list[str]]:
    """The caption of every stamp in one language, none where it was not translated."""
    texts = _captions(root)
    if language not in texts:
        raise unknown("language of captions", language, texts)
    found = (texts[language].get(stamp) for stamp in columns["stamp"])
    return [[text] if text else [] for text in found]


def grade(columns: Columns, other: Columns) -> Tensor:
    """Relevance of pictures, `(N, M)` float32: 1 for those with the same caption in English, 1/2 for those of the same
    folder ("animals/birds"), 1/4 for those of the same kind ("animals"), else 0.

    >>> columns = {"caption": ["A crow.", "An owl.", "A cow."], "category": ["animals/birds"] * 2 + ["animals/mammals"]}
    >>> grade({name: values[:1] for name, values in columns.items()}, columns).tolist()
    [[1.0, 0.5, 0.25]]
    """

    def same(here: Sequence[Any], there: Sequence[Any]) -> np.ndarray:
        return np.array(here, dtype=object)[:, None] == np.array(there, dtype=object)

    kinds = ([folder.partition("/")[0] for folder in side["category"]] for side in (columns, other))
    found = np.where(same(*kinds), SAME_KIND, 0.0)
    found[same(columns["category"], other["category"])] = SAME_FOLDER
    found[same(columns["caption"], other["caption"])] = 1.0
    return torch.from_numpy(found.astype(np.float32))


def ask(language: str, template: str | None = None) -> list[str]:
    """One sentence a category, as captions are written: "A bird."

    template: such as "A picture of {label}.", where the label is "a bird".

    >>> ask("eng")[:2], ask("fra", "Une image : {label}.")[0]
    (['A bird.', 'A sea animal.'], 'Une image : un oiseau.')
    """
    categories = load_categories()
    if language not in categories[0].names:
        raise unknown("language of categories", language, categories[0].names)
    labels = [category.names[language] for category in categories]
    if template is not None:
        return [template.format(label=label) for label in labels]
    stop = "。" if language in ("jpn", "zho") else "."
    return [f"{label[0].upper()}{label[1:]}{stop}" for label in labels]


def _table(root: Path, letters: bool) -> Any:
    """The stamps that have a picture and a caption in English: stamp, path, text."""
    tables = tuxpaint.index(root)
    english = tables.captions[tables.captions["language"] == "eng"]
    found = tables.pictures.merge(english[["stamp", "text"]], on="stamp")
    return found if letters else found[~found["stamp"].str.startswith(LETTERS)].reset_index(drop=True)


def _drawn(root: Path, stamps: Sequence[str], paths: Sequence[str], size: int) -> Path:
    """The folder of all pictures, drawn when first asked for."""
    key = content_key([versions("data/pictures"), str(root), list(stamps), size])
    return cached_dir("pictures", key, lambda folder: picture_files.write(folder, paths, size))


@lru_cache(maxsize=2)
def _captions(root: Path) -> dict[str, dict[str, str]]:
    """Language → stamp → caption."""
    table = tuxpaint.index(root).captions
    return {str(code): dict(zip(rows["stamp"], rows["text"], strict=True)) for code, rows in table.groupby("language")}
