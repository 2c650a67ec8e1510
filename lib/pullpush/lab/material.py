"""What a chapter trains and tests on: the book's scenes with a trunk trained on them, or a real dataset.

    ground = material.of(book, dataset)        # the profile's own dataset, unless one is named
    data, trunk = ground.data(), ground.trunk()

All kinds answer the same questions (see `Material`), so that a chapter reads the same on either.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from IPython.display import display

from pullpush.data.clips import Clips, World
from pullpush.data.languages import LANGUAGES
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, load_labelled
from pullpush.data.recordings.registry import find
from pullpush.data.scenes.world import KNOWN, SCENES as RENDERED, WorldConfig, load_world
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import PullPushError, unknown
from pullpush.lab import common, gaps, trunks
from pullpush.lab.compute import WIDE as WIDE, Ground, View
from pullpush.lab.session import Session
from pullpush.training.frozen import Base, encoded, splits_encoder
from pullpush.training.runs import Plan

SCENES = "scenes"
SHARES = {"frozen": 1, "frozen/half": 0.5, "frozen/quarter": 0.25, "frozen/four times": 4}  # of the training clips
# How a random trunk is "trained": its weights stay, its batch statistics become those of real clips.
NOTHING: dict[str, Any] = {"lr": 1e-12, "weight_decay": 0.0, "epochs": 1}
# The components that make scenes of recordings and tell them: those of a loaded world without having to load one.
PARTS = ("data/decoding", *RENDERED, *KNOWN, *(f"languages/{code}" for code in LANGUAGES))


def of(book: Session, dataset: str = "", *, compute_long: bool = False) -> "Material":
    """The profile's material, or that of the dataset that is named; "scenes" are the book's own.

    compute_long: whether experiments that are long are computed where nothing was kept of them.

    Raises:
        UnknownNameError: no such dataset.
    """
    name = dataset or book.settings.dataset or SCENES
    if name == SCENES:
        ground = Material(book, compute_long)
    else:
        ground = Real(book, name, compute_long)
        gaps.allow(f"the dataset {' and '.join(ground.pair_names)}")
    if gaps.allowed():
        with suppress(PullPushError):  # where the data are used, it is told what they lack
            if (note := common.shared_captions(ground.data().test)).data:
                display(note)
    return ground


class Labelled(NamedTuple):
    """Clips with one label each, and a prompt for each label."""

    split: Clips
    prompts: list[str]


class Material(Ground):
    """What chapters 1 to 3 ask of their data: here rendered scenes, and a trunk that is trained on scenes of one event.

    Attributes:
        book: the session at the size of a chapter of many runs; full: at the profile's.
        pair_names: the views that `pair` makes.
        random_text: what a recipe needs for a text encoder that has learnt nothing.

    A view is "scenes", the clips as they are; "frozen", their features of the shared trunk; "frozen/half" and the like,
    with so many times the training clips; "whole", all clips of the profile at its full size, for training end to end;
    "noise", features of a trunk that has learnt nothing, with texts likewise; or a name of `pair`.
    """

    name = SCENES
    pair_names: tuple[str, ...] = ("A", "B")
    random_text: Mapping[str, Any] = {"text": "hashed"}

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(reduced(book), compute_long)
        self.full = book

    @property
    def parts(self) -> Sequence[str]:
        return PARTS

    def data(self, n_train: int | None = None) -> World:
        """What systems are compared on; n_train: so many training clips."""
        return common.world(self.book, **({} if n_train is None else {"n_train": n_train}))

    def whole(self) -> World:
        """The same at the profile's whole size, for training end to end."""
        return common.world(self.full)

    def trunk(self) -> Base:
        """The audio encoder that all systems share."""
        return trunks.trained(pretrained(self.book))

    def random_trunk(self) -> Base:
        """One of the same architecture that has learnt nothing."""
        return trunks.trained(untrained(self.book))

    def pair(self, trunk: Base) -> dict[str, World]:
        """Two worlds that differ, encoded, to train on one and test on the other; see `two_worlds`."""
        return {name: encoded(data, trunk) for name, data in two_worlds(self.book, self.data()).items()}

    def sounds(self, data: World, trunk: Base) -> dict[str, Labelled]:
        """Sets for zero-shot classification, encoded; data: what `trunk` encoded."""
        return {"single events": Labelled(data.singles, data.singles.prompts())}

    def _view(self, name: str) -> View:
        if name in SHARES:
            count = None if name == "frozen" else int(len(self.data().train) * SHARES[name])
            return View(self.book, encoded(self.data(count), self.trunk()))
        if name == "scenes":
            return View(self.book, self.data())
        if name == "whole":
            return View(self.full, self.whole())
        if name == "noise":
            return View(self.book, encoded(self.data(), self.random_trunk()), self.random_text)
        pair = self.pair(self.trunk())
        if name not in pair:
            raise unknown("view", name, ["scenes", *SHARES, "whole", "noise", *pair])
        return View(self.book, pair[name])


def reduced(book: Session) -> Session:
    """The session with two thirds of the training scenes and half the dimensions: for a chapter of many runs."""
    size = book.settings
    scenes = {**size.world, "n_train": 2 * size.world["n_train"] // 3}
    return replace(book, settings=replace(size, world=scenes, dim=size.dim // 2))


def pretrained(book: Session) -> Plan:
    """The trunk that all systems of the chapter share: InfoNCE on scenes of a single event, like CED's tagging.

    It never meets a combination of events, so it cannot leak those of the test scenes.
    """
    data = common.world(book, scene=common.scene(book, max_events=1))
    return common.plan(book, data, "infonce", diagnostics=None)


def untrained(book: Session) -> Plan:
    """A trunk of random weights, as a run that learns next to nothing; its batch statistics are those of real clips."""
    count = min(600, book.settings.world["n_train"])
    data = common.world(book, scene=common.scene(book, max_events=1), n_train=count)
    return common.plan(book, data, "infonce", diagnostics=None, **NOTHING)


# Those that travel with the book, see trunks.py.
TRUNKS: Mapping[str, Callable[[Session], Plan]] = {"single-events": pretrained, "random": untrained}


def two_worlds(book: Session, data: World) -> dict[str, World]:
    """Two worlds of the same events, as AudioCaps and Clotho share most of theirs, that differ in mixing and noise.

    A is mixed as the book's world; B overlaps more, is farther away, and always noisy. Combinations of events that one
    tests on are in no training scene of the other.
    """
    counts = {f"n_{split}" for split in ("train", "valid", "test")}
    size = {key: max(24, value // 2) for key, value in book.settings.world.items() if key in counts}
    noisy = {"p_overlap": 0.8, "p_far": 0.4, "p_noise": 1.0, "snr_db": (0.0, 10.0)}
    mixing = {"A": common.scene(book), "B": common.scene(book, **noisy)}
    return {
        name: load_world(WorldConfig(data.config.bank, scene=scene, n_single_per_event=1, **size))
        for name, scene in mixing.items()
    }


# ---------------------------------------------------------------- a real dataset


class Real(Material):
    """A real dataset; the trunk is the profile's audio encoder as it is published.

    An encoder without published weights is trained on the dataset first, with InfoNCE.
    """

    galleries = 1  # a dataset has no more clips

    def __init__(self, book: Session, name: str, compute_long: bool = False) -> None:
        super().__init__(book, compute_long)
        self.book, self.name = book, name
        self._pair = {find(one).title: one for one in (name, book.settings.other) if one}
        self.pair_names = tuple(self._pair)
        card = AUDIO[book.settings.audio]
        self._published = card.pretrained
        # kept in it, so that the encoder gets all that is in recordings
        self._rate: dict[str, Any] = {"sample_rate": card.sample_rate} if card.sample_rate else {}
        known = TEXT[book.settings.text].pretrained  # else there is no such architecture untrained
        self.random_text = {"encoder_options": {"text_pretrained": False}} if known else {"text": "hashed"}

    @property
    def parts(self) -> Sequence[str]:
        return "data/decoding", "data/relevance", "data/labels"

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
        return common.train(self.book, self.data(n_train=600), "infonce", diagnostics=None, **NOTHING)

    def pair(self, trunk: Base) -> dict[str, World]:
        """This dataset and the profile's other one; without one, this dataset alone."""
        return {title: encoded(self._load(name), trunk) for title, name in self._pair.items()}

    def sounds(self, data: World, trunk: Base) -> dict[str, Labelled]:
        """The profile's labelled datasets."""
        encode: Callable = splits_encoder(trunk)
        options = {"seconds": data.config.seconds, **self._rate}
        sets = {find(name).title: load_labelled(name, **options) for name in self.book.settings.zero_shot}
        return {title: Labelled(encode(split), split.prompts()) for title, split in sets.items()}
