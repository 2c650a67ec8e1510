"""Pictures as a world: Tux Paint's stamps with the captions that people wrote and translated into 77 languages.

    world = load_data(PictureConfig())
    encoded(world, Published("efficientnet-lite"))     # an encoder of pictures in the place of one of audio

Train, valid and test share no picture, no caption, and nothing that is nearly the same (see `groups`).
"singles" are the pictures of test once more: each has a category as its label.
"""

import io
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data.clips import Columns, StoredClips, World, same
from pullpush.data.draws import number
from pullpush.data.languages import VocabularyError, read_table
from pullpush.data.recordings import tuxpaint
from pullpush.data.speech import translations
from pullpush.data.store import Waveforms
from pullpush.errors import AudioError, DataNotFoundError, check_known
from pullpush.golden import versions
from pullpush.settings import Count, check_fields

FILE = "pixels.npy"
MIDDLE = 127.5  # of the 256 values of a channel
DPI = 96  # pixels of an inch, for drawings that give their size in points or millimetres
THUMBNAIL = 24  # pixels, that pictures are compared by
TABLE = Path(__file__).with_name("pictures.yaml")
ALIKE = 0.9  # correlation of two pictures of one kind from which on they count as nearly the same
WORD = re.compile(r"[^A-Za-z]*([A-Za-z]+)")
LETTERS = "symbols/alphabets/"  # each letter many times over: a task of reading
SAME_FOLDER, SAME_KIND = 0.5, 0.25  # relevance of another picture of the folder, and of the first folder
COMPARED = 96  # pixels, that pictures are compared at: the splits are the same for all sizes


@cache
def load_categories() -> dict[str, dict[str, Any]]:
    """Category → the folders of its stamps, and what it is called by language: in the order of the labels."""
    return read_table(TABLE)["categories"]


def category_of(stamp: str) -> int:
    """The number of a stamp's category, that with the longest folder that the stamp lies in."""
    fits = [
        (len(folder), number)
        for number, category in enumerate(load_categories().values())
        for folder in category["folders"]
        if f"{stamp}/".startswith(f"{folder}/")
    ]
    if not fits:
        raise VocabularyError(f"{TABLE.name}: no category has a folder that the stamp {stamp!r} lies in")
    return max(fits)[1]


def folder_of(stamp: str) -> str:
    """The folder of a stamp, without what says how it is drawn: "food/fruit/cartoon/apple" → "food/fruit"."""
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
    chain of these connects them. stamps: such as "animals/birds/crow"; likeness: `(N, N)`, see `likeness`.

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
    still has room for it; the rest is "train". groups, names: of each row; sizes: split → rows that it has room for.

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


@dataclass(frozen=True, eq=False)
class Pixels(Waveforms):
    """Pictures of one size, kept as waveforms are, so that all that takes clips takes pictures: one row a picture, 3 S²
    uint8, red, green and blue one after the other, each row by row.
    """

    @classmethod
    def of(cls, rows: np.ndarray) -> "Pixels":
        """`(N, 3 S²)` uint8 as a store."""
        return cls(rows.reshape(-1), np.arange(1, len(rows) + 1, dtype=np.int64) * rows.shape[1])

    def audio(self, rows: Iterable[int], *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Some pictures, `(B, 3 S²)` float32 in [-1, 1], and the numbers in each, `(B,)` int64."""
        if sample_rate is not None:
            raise AudioError(
                f"pictures have no sample rate, got {sample_rate}: take an encoder of pictures, 'efficientnet-lite'"
            )
        return super().audio(rows)

    def wave(self, row: int) -> Tensor:
        return torch.from_numpy(self[row].astype(np.float32) / MIDDLE - 1)


def write_pixels(folder: Path, paths: Sequence[str], size: int) -> None:
    np.save(folder / FILE, np.stack([flat(square(opened(path, size), size)) for path in paths]))


def read_pixels(folder: Path) -> Pixels:
    return Pixels.of(np.asarray(np.load(folder / FILE, mmap_mode="r")))


def opened(path: str, size: int) -> Image.Image:
    """A PNG as it is, or an SVG drawn `size` pixels high, in RGBA; `DataNotFoundError` if it cannot be read."""
    try:
        source: Any = path
        if path.endswith(".svg"):
            import resvg_py  # as large as all else here, and needed once

            # Fonts of this computer do not count, so that it looks the same everywhere.
            drawn = resvg_py.svg_to_bytes(svg_path=path, height=size, dpi=DPI, skip_system_fonts=True)
            source = io.BytesIO(bytes(drawn))
        with Image.open(source) as image:
            return image.convert("RGBA")
    except (OSError, ValueError) as error:
        raise DataNotFoundError(f"{path} cannot be read as a picture ({error}): fetch it again") from error


def square(image: Image.Image, size: int) -> Image.Image:
    """A picture scaled to fit a white square of `size` pixels, in its middle, without what is transparent around it."""
    image = image.crop(image.getchannel("A").getbbox())
    scale = size / max(image.size)
    # Transparent pixels have a colour, too, which would bleed into the edge: white before scaling.
    paper = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    width, height = (max(1, round(side * scale)) for side in image.size)
    found = Image.new("RGB", (size, size), "white")
    found.paste(paper.resize((width, height), Image.Resampling.BICUBIC), ((size - width) // 2, (size - height) // 2))
    return found


def flat(image: Image.Image) -> np.ndarray:
    """The pixels of a picture, `(3 S²,)` uint8, a channel after the other."""
    return np.asarray(image, dtype=np.uint8).transpose(2, 0, 1).reshape(-1)


def likeness(pictures: Pixels) -> np.ndarray:
    """How alike pictures look, `(N, N)` float32 in [-1, 1]: the correlation of their grey values at 24×24 pixels, as
    they are or with one seen in a mirror, whichever is higher. A picture of one colour is like no other.
    """
    side = round((pictures.lengths[0] / 3) ** 0.5)
    rows = np.stack([pictures[row] for row in range(len(pictures))]).reshape(-1, 3, side, side)
    images = [Image.fromarray(row.transpose(1, 2, 0)).convert("L") for row in rows]
    small = [image.resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX) for image in images]
    grey = np.stack([np.asarray(image, dtype=np.float32) for image in small])
    grey -= grey.mean(axis=(1, 2), keepdims=True)
    grey /= np.maximum(np.linalg.norm(grey, axis=(1, 2), keepdims=True), 1e-6)
    flipped = grey[:, :, ::-1].reshape(len(grey), -1)
    grey = grey.reshape(len(grey), -1)
    return np.maximum(grey @ grey.T, grey @ flipped.T)


@dataclass(frozen=True)
class PictureConfig:
    """Which pictures, `size` pixels wide and high, and how they are dealt out: all but `n_valid` and `n_test` are
    learnt from. letters: with the 156 letters of alphabets; seed: of the dealing.
    """

    size: Count = 96
    n_valid: Count = 100
    n_test: Count = 200
    letters: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, of="pictures")

    def load(self) -> World:
        """Draw the pictures, or read them from the cache.

        Returns:
            Clips of `3 size²` pixels (see `Pixels`) with the columns "stamp", "file" (the same: names the picture),
            "caption" (in English), "category" (its folder) and "label" (the number of its category, see pictures.yaml).
            A stamp has one caption a language, and none where it was not translated. Relevance is graded, see `grade`.
        """
        root = tuxpaint.fetch()
        tables = tuxpaint.index(root)
        english = tables.captions[tables.captions["language"] == "eng"]
        table = tables.pictures.merge(english[["stamp", "text"]], on="stamp")
        table = table if self.letters else table[~table["stamp"].str.startswith(LETTERS)]
        stamps, paths, captions = (list(table[name]) for name in ("stamp", "path", "text"))
        alike = likeness(read_pixels(_drawn(root, stamps, paths, COMPARED)))
        sizes = {"test": self.n_test, "valid": self.n_valid}
        rows = dealt(groups(stamps, captions, alike).tolist(), stamps, sizes, self.seed)
        if not rows["train"]:
            raise ValueError(f"{len(stamps)} pictures leave none to learn from: lower n_valid or n_test")
        columns = {
            "stamp": stamps,
            "file": stamps,
            "caption": captions,
            "category": [folder_of(stamp) for stamp in stamps],
            "label": [category_of(stamp) for stamp in stamps],
        }
        folder = _drawn(root, stamps, paths, self.size)
        whole = StoredClips(
            "pictures",
            content_key([bytes_key(folder), columns]),
            read_pixels(folder),
            np.arange(len(stamps)),
            columns,
            partial(translations, _captions(root), column="stamp"),
            grade,
            ask,
            graded=True,
        )
        splits = {name: whole.select(rows[name], name=name) for name in ("train", "valid", "test")}
        splits["singles"] = splits["test"]
        return World(self, splits, content_key(_captions(root)), parts=("data/pictures", "data/relevance"))


def grade(columns: Columns, other: Columns) -> Tensor:
    """Relevance of pictures, `(N, M)` float32: 1 for those with the same caption in English, 1/2 for those of the same
    folder ("animals/birds"), 1/4 for those of the same kind ("animals"), else 0.
    """
    kinds = ([folder.partition("/")[0] for folder in side["category"]] for side in (columns, other))
    found = SAME_KIND * same(*kinds).float()
    found[same(columns["category"], other["category"])] = SAME_FOLDER
    found[same(columns["caption"], other["caption"])] = 1.0
    return found


def ask(language: str, template: str | None = None) -> list[str]:
    """One sentence a category, as captions are written, "A bird.", or by a template such as "A picture of {label}."."""
    names = [category["names"] for category in load_categories().values()]
    check_known("language of categories", language, names[0])
    labels = [each[language] for each in names]
    if template is not None:
        return [template.format(label=label) for label in labels]
    stop = "。" if language in ("jpn", "zho") else "."
    return [f"{label[0].upper()}{label[1:]}{stop}" for label in labels]


def _drawn(root: Path, stamps: Sequence[str], paths: Sequence[str], size: int) -> Path:
    """The folder of all pictures, drawn when first asked for."""
    key = content_key([versions("data/pictures"), str(root), list(stamps), size])
    return cached_dir("pictures", key, lambda folder: write_pixels(folder, paths, size))


@lru_cache(maxsize=2)
def _captions(root: Path) -> dict[str, dict[str, str]]:
    """Language → stamp → caption."""
    table = tuxpaint.index(root).captions
    return {str(code): dict(zip(rows["stamp"], rows["text"], strict=True)) for code, rows in table.groupby("language")}
