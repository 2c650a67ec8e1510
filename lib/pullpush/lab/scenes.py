"""What a chapter asks of its data, and the book's scenes as such: a trunk trained on single events, two worlds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from pullpush.data.banks import BANKS
from pullpush.data.clips import Clips, World
from pullpush.data.languages import LANGUAGES
from pullpush.data.scenes.world import KNOWN, SCENES as RENDERED, WorldConfig, load_world
from pullpush.errors import PullPushError, unknown
from pullpush.lab import common, trunks
from pullpush.lab.compute import View
from pullpush.lab.session import Session
from pullpush.training.frozen import Base, encoded
from pullpush.training.runs import Plan
from pullpush.training.trunk import Published, as_trunk

SCENES = "scenes"
SHARES = {"frozen": 1, "frozen/half": 2, "frozen/quarter": 4}  # of the training clips
# The components that make scenes of recordings and tell them: those of a loaded world without having to load one.
PARTS = ("data/decoding", *RENDERED, *KNOWN, *(f"languages/{code}" for code in LANGUAGES))


def reduced(book: Session) -> Session:
    """The session with two thirds of the training scenes and half the dimensions: for a chapter of many runs."""
    size = book.settings
    scenes = {**size.world, "n_train": 2 * size.world["n_train"] // 3}
    return replace(book, settings=replace(size, world=scenes, dim=size.dim // 2))


def pretrained(book: Session) -> Plan:
    """The trunk that all systems of the chapter share: InfoNCE on scenes of a single event, like CED's tagging.

    It never hears a combination of events, so it cannot leak those of the test scenes.
    """
    data = common.world(book, scene=common.scene(book, max_events=1))
    return common.plan(book, data, "infonce", diagnostics=None)


def untrained(book: Session) -> Plan:
    """A trunk of random weights, as a run that learns next to nothing; its batch statistics are those of real clips."""
    count = min(600, book.settings.world["n_train"])
    data = common.world(book, scene=common.scene(book, max_events=1), n_train=count)
    return common.plan(book, data, "infonce", diagnostics=None, lr=1e-12, weight_decay=0.0, epochs=1)


# Those that travel with the book, see trunks.py.
TRUNKS: Mapping[str, Callable[[Session], Plan]] = {"single-events": pretrained, "random": untrained}


def categories(data: World) -> tuple[str, str]:
    """Two halves of the bank's events, by category: arguments of `create_bank`, of about equal numbers of events."""
    counts = pd.Series([event.category for event in data.bank.events]).value_counts()
    halves: list[list[str]] = [[], []]
    sizes = [0, 0]
    for category, count in counts.items():
        smaller = sizes.index(min(sizes))
        halves[smaller].append(str(category))
        sizes[smaller] += count
    first, second = (",".join(sorted(half)) for half in halves)
    return first, second


def two_worlds(book: Session, data: World) -> dict[str, World]:
    """Two worlds with other events, other mixing and other noise.

    A is mixed as the book's world; B overlaps more, is farther away, and always noisy.
    """
    if not BANKS[data.config.bank.partition(":")[0]].categories:
        raise PullPushError(
            f"{data.config.bank} has no categories to make two worlds of, which share no event: name two datasets, as "
            "`dataset` and `other` of a profile"
        )
    size = {key: max(24, value // 2) for key, value in book.settings.world.items() if key.startswith("n_")}
    noisy = {"p_overlap": 0.8, "p_far": 0.4, "p_noise": 1.0, "snr_db": (0.0, 10.0)}
    mixing = {"A": common.scene(book), "B": common.scene(book, **noisy)}
    bank = data.config.bank.partition(":")[0]
    return {
        name: load_world(WorldConfig(f"{bank}:{half}", scene=scene, n_single_per_event=1, **size))
        for half, (name, scene) in zip(categories(data), mixing.items(), strict=True)
    }


class Labelled(NamedTuple):
    """Clips with one label each, and a prompt for each label."""

    split: Clips
    prompts: list[str]


class Material(ABC):
    """What chapter 2 asks of its data.

    Attributes:
        book: the session at the size of a chapter of many runs; full: at the profile's.
        compute_long: whether experiments that are long are computed where nothing was kept of them.
        name: of the data.
        parts: the components that make the data, as `golden.versions` takes them; see `compute.Ground`.
        pair_names: the views that `pair` makes.
        random_text: what a recipe needs for a text encoder that has learnt nothing.
    """

    name: str
    parts: Sequence[str]
    pair_names: tuple[str, ...]
    random_text: Mapping[str, Any]

    def __init__(self, book: Session, full: Session, compute_long: bool) -> None:
        self.book, self.full, self.compute_long = book, full, compute_long
        self._views: dict[str, View] = {}

    @abstractmethod
    def data(self, n_train: int | None = None) -> World:
        """What systems are compared on; n_train: so many training clips."""

    @abstractmethod
    def whole(self) -> World:
        """The same at the profile's whole size, for training end to end."""

    @abstractmethod
    def trunk(self) -> Base:
        """The audio encoder that all systems share."""

    @abstractmethod
    def random_trunk(self) -> Base:
        """One of the same architecture that has learnt nothing."""

    @abstractmethod
    def pair(self, trunk: Base) -> dict[str, World]:
        """Two worlds that differ, encoded, to train on one and test on the other."""

    @abstractmethod
    def sounds(self, data: World, trunk: Base) -> dict[str, Labelled]:
        """Sets for zero-shot classification, encoded; data: what `trunk` encoded."""

    def view(self, name: str) -> View:
        """Data by its name, with the session that gives the sizes; each is made once.

        name: "scenes", the clips as they are; "frozen", their features of the shared trunk; "frozen/half" and
            "frozen/quarter", with so much of the training clips; "upper", kept activations of its lower part, for
            training its upper one (the clips as they are, where it is no published encoder made in two parts);
            "whole", all clips of the profile at its full size, for training end to end; "noise", features of a trunk
            that has learnt nothing, with texts likewise; or a name of `pair`.

        Raises:
            UnknownNameError: none of these.
        """
        if name not in self._views:
            self._views[name] = self._view(name)
        return self._views[name]

    def _view(self, name: str) -> View:
        if name in SHARES:
            count = None if name == "frozen" else len(self.data().train) // SHARES[name]
            return View(self.book, encoded(self.data(count), self.trunk()))
        if name == "upper":
            trunk = as_trunk(self.trunk())
            return View(self.book, encoded(self.data(), trunk, level="lower") if trunk.split else self.data())
        if name == "scenes":
            return View(self.book, self.data())
        if name == "whole":
            return View(self.full, self.whole())
        if name == "noise":
            return View(self.book, encoded(self.data(), self.random_trunk()), self.random_text)
        pair = self.pair(self.trunk())
        if name not in pair:
            raise unknown("view", name, ["scenes", *SHARES, "upper", "whole", "noise", *pair])
        return View(self.book, pair[name])


class Scenes(Material):
    """Rendered scenes; the trunk is trained on scenes of a single event."""

    name = SCENES
    parts = PARTS
    pair_names = ("A", "B")
    random_text: Mapping[str, Any] = {"text": "hashed"}

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(reduced(book), book, compute_long)

    def data(self, n_train: int | None = None) -> World:
        return common.world(self.book, **({} if n_train is None else {"n_train": n_train}))

    def whole(self) -> World:
        return common.world(self.full)

    def trunk(self) -> Base:
        return trunks.trained(pretrained(self.book))

    def random_trunk(self) -> Base:
        return trunks.trained(untrained(self.book))

    def pair(self, trunk: Base) -> dict[str, World]:
        """See `two_worlds`."""
        return {name: encoded(data, trunk) for name, data in two_worlds(self.book, self.data()).items()}

    def sounds(self, data: World, trunk: Base) -> dict[str, Labelled]:
        """The world's own single-event clips."""
        return {"single events": Labelled(data.singles, data.singles.prompts())}


class PublishedScenes(Scenes):
    """Rendered scenes; the trunk is the profile's audio encoder as it is published, and nothing is trained for it."""

    name = "scenes, published encoder"  # so that results do not pass for those with a trunk trained here

    def trunk(self) -> Published:
        return common.published_trunk(self.book)

    def random_trunk(self) -> Published:
        return common.published_trunk(self.book, pretrained=False)
