"""Which stamps show the same or nearly so, so that no two of them lie in different splits; and their categories."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pullpush.data.draws import number
from pullpush.data.languages import LANGUAGES, VocabularyError, read_table

TABLE = Path(__file__).with_name("pictures.yaml")
ALIKE = 0.9  # correlation of two pictures of one kind from which on they count as nearly the same
WORD = re.compile(r"[^A-Za-z]*([A-Za-z]+)")


@dataclass(frozen=True)
class Category:
    """One category. folders: of the stamps that belong to it; names: language → "a bird"."""

    name: str
    folders: tuple[str, ...]
    names: dict[str, str] = field(repr=False, hash=False)


@cache
def load_categories() -> tuple[Category, ...]:
    """All categories, in the order of the table, which is that of the labels.

    Raises:
        VocabularyError: a category lacks a name in one of the eight languages.

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

    Raises:
        VocabularyError: there is none.

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
