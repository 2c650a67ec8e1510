"""The book's scenes as a chapter's material: a trunk trained on single events, two worlds that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from pullpush.data.banks import BANKS
from pullpush.data.clips import World
from pullpush.data.languages import LANGUAGES
from pullpush.data.scenes.composer import SceneConfig
from pullpush.data.scenes.world import KNOWN, SCENES as RENDERED, WorldConfig, load_world
from pullpush.errors import PullPushError
from pullpush.lab import common, trunks
from pullpush.lab.session import Session
from pullpush.lab.views import Labelled, Material
from pullpush.training.frozen import Base, encoded
from pullpush.training.runs import Plan
from pullpush.training.trunk import Published

SCENES = "scenes"
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
    data = common.world(book, scene=SceneConfig(max_events=1))
    return common.plan(book, data, "infonce", diagnostics=None)


def untrained(book: Session) -> Plan:
    """A trunk of random weights, as a run that learns next to nothing; its batch statistics are those of real clips."""
    count = min(600, book.settings.world["n_train"])
    data = common.world(book, scene=SceneConfig(max_events=1), n_train=count)
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
    mixing = {"A": SceneConfig(), "B": SceneConfig(p_overlap=0.8, p_far=0.4, p_noise=1.0, snr_db=(0.0, 10.0))}
    bank = data.config.bank.partition(":")[0]
    return {
        name: load_world(WorldConfig(f"{bank}:{half}", scene=scene, n_single_per_event=1, **size))
        for half, (name, scene) in zip(categories(data), mixing.items(), strict=True)
    }


class Scenes(Material):
    """Rendered scenes; the trunk is trained on scenes of a single event."""

    name = SCENES
    parts = PARTS
    pair_names = ("A", "B")
    random_text: Mapping[str, Any] = {"text": "hashed"}

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(reduced(book), book, compute_long)

    def data(self, n_train: int | None = None) -> World:
        """See Material."""
        return common.world(self.book, **({} if n_train is None else {"n_train": n_train}))

    def whole(self) -> World:
        """See Material."""
        return common.world(self.full)

    def trunk(self) -> Base:
        """See Material."""
        return trunks.trained(pretrained(self.book))

    def random_trunk(self) -> Base:
        """See Material."""
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
        """See Material."""
        return common.published_trunk(self.book)

    def random_trunk(self) -> Published:
        """See Material."""
        return common.published_trunk(self.book, pretrained=False)
