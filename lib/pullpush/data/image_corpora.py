"""Published pictures with captions or labels, as worlds and clips: decoded when they are asked for, never all at once.

    world = ImageCorpusConfig("cc3m", test="mscoco").load()  # learn from one, test on the other
    clips = load_pictures("cifar10", size=32)                # labels and prompts, for zero-shot classification

A picture is a row of 3 S² numbers in [-1, 1], red, green and blue one after the other, and stands
where others have audio: encoders of pictures take it as they take those of stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data.clips import Columns, Index, NoLabelsError, World, identity
from pullpush.data.decoding import fingerprint
from pullpush.data.image_files import Pictures, pixels, readable
from pullpush.data.image_listing import ImageCard, warn_of_lost
from pullpush.data.image_sets import IMAGES
from pullpush.data.registry import DATA, datasets_home
from pullpush.data.store import row_numbers
from pullpush.data.texts import CLEANINGS, label_prompts, recorded_captions
from pullpush.errors import AudioError, DataNotFoundError, PullPushError, unknown
from pullpush.golden import versions

SPLITS = ("train", "valid", "test")
SIZE = 224  # pixels, of CLIP and CyCLIP


@dataclass(frozen=True)
class ImageCorpusConfig:
    """Which set of pictures with captions, and how much of it.

    dataset: a name in `image_sets.IMAGES`; size: S, pixels of a side; n_train, n_valid, n_test: only the first so many
    of a split; None takes all. test: another set, whose test pictures are tested on: for "cc3m", which has none of its
    own. text_cleaning: see `texts.clean`. verify: try every picture once and leave out those that cannot be read; else
    the first of them raises an error when it is asked for.
    """

    dataset: str
    size: int = SIZE
    n_train: int | None = None
    n_valid: int | None = None
    n_test: int | None = None
    test: str | None = None
    text_cleaning: str = "none"
    verify: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "n_train", "n_valid", "n_test"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be more than 0, got {value}")
        if self.text_cleaning not in CLEANINGS:
            raise unknown("text cleaning", self.text_cleaning, CLEANINGS)

    def load(self) -> World:
        """The splits that there are.

        Returns:
            Clips with the columns "file" and "captions"; captions in further languages are read from
            `captions.deu.csv` and so on beside the set's own files; relevance is 1 for the same picture, else 0.

        Raises:
            UnknownNameError: no such set.
            DataNotFoundError: it is not on disk; the message says where it is looked for and how to get it.
            PictureError: an archive cannot be read.
            PullPushError: it has labels in place of captions, or its tables are not as published.
        """
        splits = {}
        for split in SPLITS:
            card = IMAGES[self.test if split == "test" and self.test else self.dataset]
            if card.labelled:
                raise PullPushError(f"{card.title} has labels, not captions: it is for zero-shot classification")
            if split in card.splits:
                clips = _clips(card, split, self.size, self.text_cleaning, verify=self.verify)
                most = getattr(self, f"n_{split}")
                splits[split] = clips if most is None else clips.head(most)
        tables = [[fingerprint(path) for path in _tables(IMAGES[self.dataset]).values()]]
        texts = [splits[split].columns["captions"] for split in ("train", "valid") if split in splits]
        words = content_key([versions("data/texts"), self.text_cleaning, texts, tables])
        return World(self, splits, words, parts=("data/pictures", "data/texts", "data/relevance"))


def load_pictures(
    name: str, *, split: str = "test", size: int = SIZE, n: int | None = None, verify: bool = False
) -> PictureClips:
    """Pictures with labels, for zero-shot classification.

    n: only so many, spread evenly over the files; verify: see `ImageCorpusConfig`.

    Returns:
        Clips with the columns "file" and "label".

    Raises:
        UnknownNameError, DataNotFoundError, PullPushError: see `ImageCorpusConfig.load`.
    """
    card = IMAGES[name]
    if not card.labelled:
        raise PullPushError(f"{card.title} has captions, not labels: take a set such as cifar10")
    if split not in card.splits:
        raise unknown(f"split of {card.title}", split, card.splits)
    clips = _clips(card, split, size, "none", verify=verify)
    return (
        clips
        if n is None or n >= len(clips)
        else clips.select([int(row) for row in np.linspace(0, len(clips) - 1, n).round()])
    )


@dataclass(frozen=True, eq=False)
class PictureClips:
    """Clips that are pictures on disk; see `data.clips.Clips` and, for its fields, `StoredClips`.

    pictures: where they are; rows: `(N,)` int64, which of them these are; size: S, pixels of a side.
    """

    name: str
    key: str
    pictures: Pictures = field(repr=False)
    rows: np.ndarray = field(repr=False)
    columns: Columns = field(repr=False)
    size: int
    write: Callable[[Columns, str], list[list[str]]] = field(repr=False)
    ask: Callable[..., list[str]] = field(repr=False)
    graded: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> Tensor:
        """`(N,)` int64: 3 S² of each."""
        return torch.full((len(self),), 3 * self.size * self.size)

    def audio(self, index: Index, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Some pictures, decoded now: `(B, 3 S²)` float32 in [-1, 1], and the numbers in each, `(B,)` int64.

        Raises:
            PictureError: a picture cannot be decoded; the message names it.
            AudioError: a sample rate was asked for, which pictures have none of.
        """
        if sample_rate is not None:
            raise AudioError(f"pictures have no sample rate, got {sample_rate}: take an encoder of pictures")
        chosen = row_numbers(index, len(self))
        found = pixels(self.pictures, self.rows[chosen].tolist(), self.size)
        return found, torch.full((len(found),), found.shape[1])

    def captions(self, language: str) -> list[list[str]]:
        """See `Clips`."""
        return self.write(self.columns, language)

    @property
    def labels(self) -> Tensor:
        """See `Clips`."""
        if "label" not in self.columns:
            raise NoLabelsError(f"the pictures of {self.name!r} have no labels: take a set such as cifar10")
        return torch.tensor(self.columns["label"], dtype=torch.int64)

    def prompts(self, language: str = "eng", template: str | None = None) -> list[str]:
        """One sentence a class; template: with "{label}" in it, as CLIP writes them; None: the set's own prompt."""
        return self.ask(language, template)

    def relevance(self, other: Any = None) -> Tensor:
        """See `Clips`."""
        return identity(self.columns, self.columns if other is None else other.columns)

    def select(self, rows: Sequence[int], *, name: str | None = None) -> PictureClips:
        """See `Clips`."""
        rows = row_numbers(rows, len(self)).tolist()
        columns = {column: [values[row] for row in rows] for column, values in self.columns.items()}
        key = content_key([self.key, rows])
        return replace(self, name=name or self.name, key=key, rows=self.rows[rows], columns=columns)

    def head(self, n: int) -> PictureClips:
        """See `Clips`."""
        return self.select(range(min(n, len(self))))


def _clips(card: ImageCard, split: str, size: int, cleaning: str, *, verify: bool) -> PictureClips:
    """One split of a set."""
    place = datasets_home() / card.folder
    if not place.is_dir():
        raise DataNotFoundError(
            f"{card.title} is not at {place}: {card.how}, or set ${DATA} to the folder that holds {card.folder}"
        )
    found = card.make(place, split)
    if not len(found.pictures):
        raise PullPushError(f"{card.title} has no picture for {split}: see {place}")
    column: dict[str, Sequence] = {"label": found.labels} if card.labelled else {"captions": found.captions}
    clips = PictureClips(
        split,
        content_key([versions("data/pictures"), card.name, split, size, found.pictures.key]),
        found.pictures,
        np.arange(len(found.pictures)),
        {"file": found.names, **column},
        size,
        partial(recorded_captions, card.title, _tables(card), cleaning),
        partial(label_prompts, found.classes, prompt=card.prompt),
    )
    if not verify:
        return clips
    whole = readable(found.pictures)
    warn_of_lost(card.title, split, len(clips) - len(whole), len(clips), "corrupt or cut short")
    return clips if len(whole) == len(clips) else clips.select(whole)


def _tables(card: ImageCard) -> dict[str, Any]:
    """Captions in further languages: `captions.deu.csv` beside the set's own files."""
    folder = datasets_home() / card.folder
    return {path.name.split(".")[1]: path for path in sorted(folder.glob("captions.*.csv"))}
