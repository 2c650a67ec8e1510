"""What a chapter trains and tests on: the book's scenes with a trunk trained on them, or a real dataset.

    material = of(book, dataset)        # the profile's own dataset, unless one is named
    data, trunk = material.data(), material.trunk()

Both kinds answer the same questions, so that a chapter reads the same on either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import pandas as pd

from pullpush.data.banks import BANKS
from pullpush.data.clips import Clips, World
from pullpush.data.composer import SceneConfig
from pullpush.data.corpora import CorpusConfig, load_corpus, load_labelled
from pullpush.data.registry import find
from pullpush.data.world import WorldConfig, load_world
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.session import Session
from pullpush.training.frozen import Published, encoded, splits_encoder
from pullpush.training.loop import Result

SCENES = "scenes"
PARTS = {"frozen/half": 2, "frozen/quarter": 4}
Trunk = Result | Published


class Labelled(NamedTuple):
    """Clips with one label each, and a prompt for each label."""

    split: Clips
    prompts: list[str]


class Material(Protocol):
    """What chapter 2 asks of its data.

    book: the session at the size of a chapter of many runs, full: at the profile's; name: of the data; compute_long:
    whether to compute what is long; pair_names: the views that `pair` makes; random_text: what a recipe needs for a
    text encoder that has learnt nothing.
    """

    book: Session
    full: Session
    name: str
    compute_long: bool
    random_text: Mapping[str, Any]
    pair_names: tuple[str, ...]

    @property
    def code(self) -> Sequence[Any]:
        """The code that loads the data, as roots of `source.digest`."""

    def view(self, name: str) -> View:
        """See Views."""

    def data(self, n_train: int | None = None) -> World:
        """What systems are compared on; n_train: so many training clips."""

    def whole(self) -> World:
        """The same at the profile's whole size, for training end to end."""

    def trunk(self) -> Trunk:
        """The audio encoder that all systems share."""

    def random_trunk(self) -> Trunk:
        """One of the same architecture that has learnt nothing."""

    def pair(self, trunk: Trunk) -> dict[str, World]:
        """Two worlds that differ, encoded, to train on one and test on the other."""

    def sounds(self, data: World, trunk: Trunk) -> dict[str, Labelled]:
        """Sets for zero-shot classification, encoded; data: what `trunk` encoded."""


def of(book: Session, dataset: str = "", *, compute_long: bool = False) -> Material:
    """The profile's material, or that of the dataset that is named; "scenes" are the book's own.

    compute_long: whether experiments that are long are computed where nothing was kept of them.

    Raises:
        UnknownNameError: no such dataset.
    """
    name = dataset or book.settings.dataset or SCENES
    return Scenes(book, compute_long) if name == SCENES else Real(book, name, compute_long)


class Views:
    """The named views of a material, each made once."""

    def view(self, name: str) -> View:
        """Data by its name, with the session that gives the sizes.

        name: "scenes", the clips as they are; "frozen", their features of the shared trunk; "frozen/half" and
            "frozen/quarter", with so much of the training clips; "whole", all clips of the profile at its full size,
            for training end to end; "noise", features of a trunk that has learnt nothing, with texts likewise; or a
            name of `pair`.

        Raises:
            UnknownNameError: none of these.
        """
        if name not in self._views:
            self._views[name] = self._view(name)
        return self._views[name]

    def _view(self, name: str) -> View:
        if name == "frozen":
            return View(self.book, encoded(self.data(), self.trunk()))
        if name in PARTS:
            count = len(self.data().train) // PARTS[name]
            return View(self.book, encoded(self.data(count), self.trunk()))
        if name == "scenes":
            return View(self.book, self.data())
        if name == "whole":
            return View(self.full, self.whole())
        if name == "noise":
            return View(self.book, encoded(self.data(), self.random_trunk()), self.random_text)
        pair = self.pair(self.trunk())
        if name not in pair:
            raise unknown("view", name, ["scenes", "frozen", *PARTS, "whole", "noise", *pair])
        return View(self.book, pair[name])


# ---------------------------------------------------------------- scenes


def reduced(book: Session) -> Session:
    """The session with two thirds of the training scenes and half the dimensions: for a chapter of many runs."""
    size = book.settings
    scenes = {**size.world, "n_train": 2 * size.world["n_train"] // 3}
    return replace(book, settings=replace(size, world=scenes, dim=size.dim // 2))


def pretrained(book: Session) -> Result:
    """The trunk that all systems of the chapter share: InfoNCE on scenes of a single event, like CED's tagging.

    It never hears a combination of events, so it cannot leak those of the test scenes.
    """
    data = common.world(book, scene=SceneConfig(max_events=1))
    return common.train(book, data, "infonce", diagnostics=None)


def untrained_trunk(book: Session) -> Result:
    """A trunk of random weights, as a run that learns next to nothing; its batch statistics are those of real clips."""
    count = min(600, book.settings.world["n_train"])
    data = common.world(book, scene=SceneConfig(max_events=1), n_train=count)
    return common.train(book, data, "infonce", diagnostics=None, lr=1e-12, weight_decay=0.0, epochs=1)


def categories(data: World) -> tuple[str, str]:
    """Two halves of the bank's events, by category: arguments of `create_bank`, of about equal numbers of events."""
    counts = pd.Series([event.category for event in data.bank.events]).value_counts()
    halves: list[list[str]] = [[], []]
    sizes = [0, 0]
    for category, count in counts.items():
        smaller = sizes.index(min(sizes))
        halves[smaller].append(str(category))
        sizes[smaller] += count
    return tuple(",".join(sorted(half)) for half in halves)


def two_worlds(book: Session, data: World) -> dict[str, World]:
    """Two worlds with other events, other mixing and other noise.

    A is mixed as the book's world; B overlaps more, is farther away, and always noisy.
    """
    size = {key: max(24, value // 2) for key, value in book.settings.world.items() if key.startswith("n_")}
    mixing = {"A": SceneConfig(), "B": SceneConfig(p_overlap=0.8, p_far=0.4, p_noise=1.0, snr_db=(0.0, 10.0))}
    bank = data.config.bank.partition(":")[0]
    return {
        name: load_world(WorldConfig(f"{bank}:{half}", scene=scene, n_single_per_event=1, **size))
        for half, (name, scene) in zip(categories(data), mixing.items(), strict=True)
    }


class Scenes(Views):
    """Rendered scenes; the trunk is trained on scenes of a single event."""

    name = SCENES
    pair_names = ("A", "B")
    random_text: Mapping[str, Any] = {"text": "hashed"}

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.full, self.book, self.compute_long = book, reduced(book), compute_long
        self._views: dict[str, View] = {}

    @property
    def code(self) -> Sequence[Any]:
        """See Material."""
        bank, _, _ = self.book.settings.world["bank"].partition(":")
        return load_world, BANKS[bank].make

    def data(self, n_train: int | None = None) -> World:
        """See Material."""
        return common.world(self.book, **({} if n_train is None else {"n_train": n_train}))

    def whole(self) -> World:
        """See Material."""
        return common.world(self.full)

    def trunk(self) -> Result:
        """See Material."""
        return pretrained(self.book)

    def random_trunk(self) -> Result:
        """See Material."""
        return untrained_trunk(self.book)

    def pair(self, trunk: Result) -> dict[str, World]:
        """See `two_worlds`."""
        return {name: encoded(data, trunk) for name, data in two_worlds(self.book, self.data()).items()}

    def sounds(self, data: World, trunk: Result) -> dict[str, Labelled]:
        """The world's own single-event clips."""
        return {"single events": Labelled(data.singles, data.singles.prompts())}


# ---------------------------------------------------------------- real datasets


class Real(Views):
    """A real dataset; the trunk is the profile's audio encoder as it is published.

    An encoder without published weights is trained on the dataset first, with InfoNCE.
    """

    def __init__(self, book: Session, name: str, compute_long: bool = False) -> None:
        self.full, self.book, self.name, self.compute_long = book, book, name, compute_long
        self._views: dict[str, View] = {}

    @property
    def code(self) -> Sequence[Any]:
        """See Material."""
        names = (*self._pair, *self.book.settings.zero_shot)
        return load_corpus, load_labelled, *(find(name).make for name in names)

    @property
    def pair_names(self) -> tuple[str, ...]:
        """See Material."""
        return tuple(find(name).title for name in self._pair)

    @property
    def _pair(self) -> list[str]:
        return list(dict.fromkeys(name for name in (self.name, self.book.settings.other) if name))

    @property
    def random_text(self) -> Mapping[str, Any]:
        """The same architecture untrained, where there is another."""
        pretrained = TEXT[self.book.settings.text].pretrained
        return {"encoder_options": {"text_pretrained": False}} if pretrained else {"text": "hashed"}

    def data(self, n_train: int | None = None) -> World:
        """See Material."""
        return self._load(self.name, **({} if n_train is None else {"n_train": n_train}))

    def _load(self, name: str, **sizes: Any) -> World:
        return load_corpus(CorpusConfig(name, **{**self.book.settings.clips, **sizes}))

    def whole(self) -> World:
        """See Material."""
        return self.data()

    def trunk(self) -> Trunk:
        """See Material."""
        if self._published:
            return Published(self.book.settings.audio, self._audio_options)
        return common.train(self.book, self.data(), "infonce", diagnostics=None)

    def random_trunk(self) -> Trunk:
        """See Material."""
        if self._published:
            return Published(self.book.settings.audio, self._audio_options | {"pretrained": False}, self.book.seed)
        still = {"lr": 1e-12, "weight_decay": 0.0, "epochs": 1}
        return common.train(self.book, self.data(n_train=600), "infonce", diagnostics=None, **still)

    @property
    def _published(self) -> bool:
        return AUDIO[self.book.settings.audio].pretrained

    @property
    def _audio_options(self) -> dict[str, Any]:
        options = self.book.settings.encoder_options.items()
        return {name.removeprefix("audio_"): value for name, value in options if name.startswith("audio_")}

    def pair(self, trunk: Trunk) -> dict[str, World]:
        """This dataset and the profile's other one; without one, this dataset alone."""
        return {find(name).title: encoded(self._load(name), trunk) for name in self._pair}

    def sounds(self, data: World, trunk: Trunk) -> dict[str, Labelled]:
        """The profile's labelled datasets."""
        hear: Callable = splits_encoder(trunk)
        seconds = {"seconds": data.config.seconds}
        sets = {find(name).title: load_labelled(name, **seconds) for name in self.book.settings.zero_shot}
        return {title: Labelled(hear(split), split.prompts()) for title, split in sets.items()}
