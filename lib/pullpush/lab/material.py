"""What a chapter trains and tests on: the book's scenes with a trunk trained on them, or a real dataset.

    ground = material.of(book, dataset)        # the profile's own dataset, unless one is named
    data, trunk = ground.data(), ground.trunk()
    ground = material.of(book, published=True) # heard through a published encoder: views "frozen", "upper", "whole"

Both kinds answer the same questions (see `Material`), so that a chapter reads the same on either.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from IPython.display import display

from pullpush.data.clips import World
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, load_labelled
from pullpush.data.recordings.registry import find
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import PullPushError
from pullpush.lab import common, gaps, shared_texts
from pullpush.lab.scenes import SCENES, Labelled, Material, PublishedScenes, Scenes
from pullpush.lab.session import Session
from pullpush.training.frozen import Base, encoded, splits_encoder

__all__ = ["Labelled", "Material", "PublishedScenes", "Real", "Scenes", "of"]


def of(book: Session, dataset: str = "", *, compute_long: bool = False, published: bool = False) -> Material:
    """The profile's material, or that of the dataset that is named; "scenes" are the book's own.

    compute_long: whether experiments that are long are computed where nothing was kept of them; published: whether
    clips are heard through the profile's published audio encoder (`Profile.listening`), as in chapters 4 and on,
    rather than through one that is trained here on scenes.

    Raises:
        UnknownNameError: no such dataset.
    """
    name = dataset or book.settings.dataset or SCENES
    if published:
        book = replace(book, settings=book.settings.listening)
    if name == SCENES:
        ground: Material = PublishedScenes(book, compute_long) if published else Scenes(book, compute_long)
    else:
        ground = Real(book, name, compute_long)
        gaps.allow(f"the dataset {' and '.join(ground.pair_names)}")
    if gaps.allowed():
        with suppress(PullPushError):  # where the data are used, it is told what they lack
            if (note := shared_texts.note(ground.data().test)).data:
                display(note)
    return ground


class Real(Material):
    """A real dataset; the trunk is the profile's audio encoder as it is published.

    An encoder without published weights is trained on the dataset first, with InfoNCE.
    """

    parts = ("data/decoding", "data/texts", "data/relevance", "data/labels")

    def __init__(self, book: Session, name: str, compute_long: bool = False) -> None:
        super().__init__(book, book, compute_long)
        self.name = name
        self._pair = {find(one).title: one for one in (name, book.settings.other) if one}
        self.pair_names = tuple(self._pair)
        self._published = AUDIO[book.settings.audio].pretrained
        rate = AUDIO[book.settings.audio].sample_rate  # kept in it, so that the encoder hears all that is in recordings
        self._rate: dict[str, Any] = {"sample_rate": rate} if rate else {}
        known = TEXT[book.settings.text].pretrained  # else there is no such architecture untrained
        self.random_text = {"encoder_options": {"text_pretrained": False}} if known else {"text": "hashed"}

    def data(self, n_train: int | None = None) -> World:
        return self._load(self.name, **({} if n_train is None else {"n_train": n_train}))

    def _load(self, name: str, **sizes: Any) -> World:
        return load_corpus(CorpusConfig(name, **{**self._rate, **self.book.settings.clips, **sizes}))

    def whole(self) -> World:
        return self.data()

    def trunk(self) -> Base:
        if self._published:
            return common.published_trunk(self.book)
        return common.train(self.book, self.data(), "infonce", diagnostics=None)

    def random_trunk(self) -> Base:
        if self._published:
            return common.published_trunk(self.book, pretrained=False)
        still = {"lr": 1e-12, "weight_decay": 0.0, "epochs": 1}
        return common.train(self.book, self.data(n_train=600), "infonce", diagnostics=None, **still)

    def pair(self, trunk: Base) -> dict[str, World]:
        """This dataset and the profile's other one; without one, this dataset alone."""
        return {title: encoded(self._load(name), trunk) for title, name in self._pair.items()}

    def sounds(self, data: World, trunk: Base) -> dict[str, Labelled]:
        """The profile's labelled datasets."""
        hear: Callable = splits_encoder(trunk)
        options = {"seconds": data.config.seconds, **self._rate}
        sets = {find(name).title: load_labelled(name, **options) for name in self.book.settings.zero_shot}
        return {title: Labelled(hear(split), split.prompts()) for title, split in sets.items()}
