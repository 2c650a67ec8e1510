"""The named views that a chapter asks of its data, each made once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pullpush.data.clips import Clips, World
from pullpush.errors import unknown
from pullpush.lab.compute import View
from pullpush.lab.session import Session
from pullpush.training.frozen import Base, encoded
from pullpush.training.trunk import as_trunk

PARTS = {"frozen/half": 2, "frozen/quarter": 4}


class Labelled(NamedTuple):
    """Clips with one label each, and a prompt for each label."""

    split: Clips
    prompts: list[str]


class Material(ABC):
    """What chapter 2 asks of its data.

    book: the session at the size of a chapter of many runs; full: at the profile's; compute_long: whether experiments
    that are long are computed where nothing was kept of them.
    """

    def __init__(self, book: Session, full: Session, compute_long: bool) -> None:
        self.book, self.full, self.compute_long = book, full, compute_long
        self._views: dict[str, View] = {}

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the data."""

    @property
    @abstractmethod
    def parts(self) -> Sequence[str]:
        """The components that make the data, as `golden.versions` takes them; see `compute.Ground`."""

    @property
    @abstractmethod
    def pair_names(self) -> tuple[str, ...]:
        """The views that `pair` makes."""

    @property
    @abstractmethod
    def random_text(self) -> Mapping[str, Any]:
        """What a recipe needs for a text encoder that has learnt nothing."""

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
        if name == "frozen":
            return View(self.book, encoded(self.data(), self.trunk()))
        if name in PARTS:
            count = len(self.data().train) // PARTS[name]
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
            raise unknown("view", name, ["scenes", "frozen", *PARTS, "upper", "whole", "noise", *pair])
        return View(self.book, pair[name])
