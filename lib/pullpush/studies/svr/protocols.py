"""Four protocols, between which one thing changes at a time: same scenes, captions, dimensions and batches.

    ground = Protocols(book)
    ground.view("frozen/cnn")     # new projections on features of our trunk, which heard single events
    ground.view("random/cnn")     # the same architecture in training, from random weights
    ground.view("frozen/yamnet")  # new projections on features of a published encoder
    ground.view("tuned/yamnet")   # its upper layers in training, too

Texts are those of a frozen sentence encoder, with new projections, everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pullpush.errors import unknown
from pullpush.lab import common, trunks
from pullpush.lab.compute import View
from pullpush.lab.material import PARTS, pretrained, reduced
from pullpush.lab.session import Session
from pullpush.training.frozen import encoded

TITLES: Mapping[str, str] = {
    "frozen/cnn": "our CNN, frozen",
    "random/cnn": "our CNN from random weights",
    "frozen/yamnet": "YAMNet, frozen",
    "tuned/yamnet": "YAMNet, fine-tuned",
}
# Passes, as a multiple of the profile's: the last quarter of a run then gains about a point.
PASSES: Mapping[str, int] = {"frozen/cnn": 4, "random/cnn": 4, "frozen/yamnet": 4, "tuned/yamnet": 2}
RATE = 1e-3  # of new weights
FINE = 0.3  # where a trained encoder goes on learning, as a share of it


class Protocols:
    """The page's views by their names; see `compute.Ground`.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "scenes, four protocols"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book = reduced(book)
        self.compute_long = compute_long
        self._listening = replace(self.book, settings=self.book.settings.listening)
        self._views: dict[str, View] = {}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        return *PARTS, f"audio/{self._listening.settings.audio}", "audio/upper"

    def epochs(self, protocol: str) -> int:
        """Passes over the clips."""
        return PASSES[protocol] * self.book.settings.epochs

    def rate(self, protocol: str) -> float:
        """The learning rate that a search goes out from."""
        return FINE * RATE if protocol.startswith("tuned") else RATE

    def view(self, name: str) -> View:
        """Data by the protocol's name.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self._views:
            if name not in TITLES:
                raise unknown("protocol", name, TITLES)
            self._views[name] = self._view(*name.split("/"))
        return self._views[name]

    def _view(self, start: str, trunk: str) -> View:
        session = self.book if trunk == "cnn" else self._listening
        data, size = common.world(self.book), {"epochs": self.epochs(f"{start}/{trunk}")}
        if start == "random":
            return View(session, data, {**size, "lr": RATE})
        base = trunks.trained(pretrained(self.book)) if trunk == "cnn" else common.published_trunk(session)
        if start == "tuned":
            return View(session, encoded(data, base, level="lower"), {**size, "lr": FINE * RATE})
        return View(session, encoded(data, base), size)
