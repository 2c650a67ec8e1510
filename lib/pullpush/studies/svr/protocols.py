"""Three protocols on two trunks, between which one thing changes at a time: same scenes, captions, dimensions, batches.

    ground = Protocols(book)
    ground.view("frozen/cnn")     # new projections on features of a trunk that heard single events
    ground.view("tuned/cnn")      # the same trunk, fine-tuned whole
    ground.view("random/cnn")     # the same architecture from random weights
    ground.view("frozen/yamnet")  # a published encoder in place of ours: frozen, fine-tuned whole, random

Texts are those of a frozen sentence encoder, with new projections, everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pullpush.data.banks import BANKS
from pullpush.data.composer import SceneConfig
from pullpush.data.world import load_world
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.scenes import reduced
from pullpush.lab.session import Session
from pullpush.training.frozen import encoded
from pullpush.training.runs import Plan

STARTS, TRUNKS = ("frozen", "tuned", "random"), ("cnn", "yamnet")
PROTOCOLS = tuple(f"{start}/{trunk}" for trunk in TRUNKS for start in STARTS)
TITLES: Mapping[str, str] = {
    "frozen/cnn": "our CNN, frozen",
    "tuned/cnn": "our CNN, fine-tuned",
    "random/cnn": "our CNN from random weights",
    "frozen/yamnet": "YAMNet, frozen",
    "tuned/yamnet": "YAMNet, fine-tuned",
    "random/yamnet": "YAMNet from random weights",
}
LONGER = 4  # passes, as a multiple of the profile's: the last quarter then gains about a point
RATE = 1e-3  # of new weights
FINE = 0.3  # where a trained encoder goes on learning, as a share of it


class Protocols:
    """The page's views by their names; see `compute.Ground`.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "scenes, three protocols on two trunks"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book = reduced(book)
        self.compute_long = compute_long
        self._listening = replace(self.book, settings=self.book.settings.listening)
        self._views: dict[str, View] = {}

    @property
    def code(self) -> Sequence[Any]:
        """The code that loads the data, as roots of `source.digest`."""
        bank, _, _ = self.book.settings.world["bank"].partition(":")
        return load_world, BANKS[bank].make

    @property
    def epochs(self) -> int:
        """Passes over the clips in every protocol."""
        return LONGER * self.book.settings.epochs

    def view(self, name: str) -> View:
        """Data by the protocol's name.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self._views:
            if name not in PROTOCOLS:
                raise unknown("protocol", name, PROTOCOLS)
            self._views[name] = self._view(*name.split("/"))
        return self._views[name]

    def _view(self, start: str, trunk: str) -> View:
        session = self.book if trunk == "cnn" else self._listening
        data, size = common.world(self.book), {"epochs": self.epochs}
        if start == "frozen":
            base = self._trunk.train() if trunk == "cnn" else common.published_trunk(session)
            return View(session, encoded(data, base), size)
        if start == "random":
            untrained = {} if trunk == "cnn" else {"encoder_options": {"audio_pretrained": False}}
            return View(session, data, {**size, **untrained, "lr": RATE})
        if trunk == "cnn":
            before = {"base": lambda seed: self._trunk, "before": lambda seed: [[self._trunk]]}
            return View(session, data, {**size, "lr": FINE * RATE}, **before)
        return View(session, data, {**size, "lr": FINE * RATE})

    @property
    def _trunk(self) -> Plan:
        """The run that gives our own trunk: InfoNCE on scenes of a single event, which no test scene is made of."""
        singles = common.world(self.book, scene=SceneConfig(max_events=1))
        return Plan(singles, common.sized(self.book, "infonce"), self.book.seed)
