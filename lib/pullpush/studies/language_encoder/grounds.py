"""What chapter 4 trains and tests on: three worlds of captions over the same sounds, two in between, pictures, music.

    ground = Grounds(book)
    ground.view("audiocaps")      # few words, a handful of which are nearly always said
    ground.view("pictures/nli")   # the same clips, each with an NLI triple beside it
    ground.view("audiocaps/pretrained")  # read by MiniLM, not by an encoder that learns from nothing
    ground.view("freesound/known")  # heard through an encoder that was trained on these very recordings
    ground.view("others")         # to test on: single events by other people

The scenes have at most two events, so that captions are about as long as those of the published sets (ten words or so).
All worlds of sounds hold the same clips; only how many of them are learnt from, and how they are told, differs: that is
the point of them, so that they are scenes in every profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pullpush.data.clips import Config, World, load_data
from pullpush.data.language.nli import NLIConfig
from pullpush.data.language.wording import LexiconConfig
from pullpush.data.music.world import PARTS as MUSIC, MusicConfig
from pullpush.data.recordings.pictures import PictureConfig
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import unknown
from pullpush.lab import common, trunks
from pullpush.lab.compute import View
from pullpush.lab.material import PARTS, pretrained, reduced
from pullpush.lab.session import Session
from pullpush.show import galleries
from pullpush.show.markup import Markup
from pullpush.training.frozen import Base, encoded
from pullpush.training.trunk import Published


class Told(NamedTuple):
    """How much of the scenes a world learns from, and in which words they are told; passes: over its clips, in epochs
    of the profile. The small world gets more of them, as in the paper's Table 9.
    """

    share: float = 1.0
    vocabulary: str = "rich"
    skew: float = 0.0
    passes: float = 2.5


SMALL, SKEW = 0.2, 2.0
WORLDS: Mapping[str, Told] = {
    "freesound": Told(),
    "clotho": Told(share=SMALL, passes=10),
    "audiocaps": Told(vocabulary="narrow", skew=SKEW),
    "narrow": Told(vocabulary="narrow"),
    "skewed": Told(skew=SKEW),
}
# Size, vocabulary and skew crossed; the five worlds above are among them under their own names.
CROSSED: Mapping[str, Told] = {
    f"{share:.0%} {vocabulary}{' skewed' if skew else ''}": Told(share, vocabulary, skew, passes)
    for share, passes in ((1.0, 2.5), (SMALL, 10.0))
    for vocabulary in ("rich", "narrow")
    for skew in (0.0, SKEW)
}
SCENES = {**WORLDS, **CROSSED}
PASSES = {"pictures": 6.0, "music": 3.0}
TITLES = {
    "freesound": "FreeSound's mirror: many clips, many words",
    "clotho": "Clotho's mirror: few clips, many words",
    "audiocaps": "AudioCaps' mirror: many clips, few words, skewed",
    "narrow": "many clips, few words",
    "skewed": "many clips, many words, skewed",
    "pictures": "pictures",
    "music": "music",
}
BATCH = 80  # On the Language Encoder, Tables 8 and 9
EVENTS = 2  # of a scene, at most
NLI, KNOWN, PRETRAINED, OTHERS = "nli", "known", "pretrained", "others"  # kinds of views
# Of a text encoder that was trained before: MiniLM's last layer learns, on what the lower ones make of a caption. It
# needs fewer passes, and a lower rate.
MINILM: Mapping[str, Any] = {
    "text": "minilm",
    "lr": 5e-4,
    "encoder_options": {"text_trainable": "upper", "text_upper": 1, "text_frozen": False},
}
FEWER = 0.4
PICTURES = "efficientnet-lite"  # what they are seen by
KINDS = (NLI, KNOWN, PRETRAINED)
FEW, LITTLE, HALF = 8, 0.1, 0.5  # of what a view of single events does not need; the synthetic bank is small
PART = 2 / 3  # of the profile's training scenes: a chapter of many runs


class Grounds:
    """The chapter's worlds by their names, heard (or seen) through a frozen published encoder; see `compute.Ground`.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "captions, pictures and music"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book = replace(book, settings=book.settings.listening)
        self._plain = book  # with the audio encoder that chapters 1 to 3 train themselves
        self.compute_long = compute_long
        self._views: dict[str, View] = {}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        told = ("data/lexicon", "data/nli", "data/held_out", "data/pictures")
        audio = {self._plain.settings.audio, self.book.settings.audio, PICTURES}
        return *PARTS, *told, *MUSIC, *(f"audio/{name}" for name in sorted(audio))

    @property
    def has_stamps(self) -> bool:
        """Whether there are pictures and music; where not (the profile smoke fetches nothing), scenes stand in."""
        return self.book.settings.world["bank"] == "tuxpaint"

    def view(self, name: str) -> View:
        """A world by its name; see the top of this module.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self._views:
            self._views[name] = self._view(name)
        return self._views[name]

    def config(self, name: str) -> Config:
        """What describes a world."""
        if name == "pictures" and self.has_stamps:
            return PictureConfig()
        if name == "music" and self.has_stamps:
            return MusicConfig()
        return self._scenes(SCENES.get(name, Told()))

    def stamps(self, count: int) -> Markup:
        """The first test pictures to see; where there are none scenes stand in, to hear."""
        cards = galleries.pictures if self.has_stamps else galleries.scenes
        return cards(load_data(self.config("pictures")).test, range(count))

    def _scenes(self, told: Told) -> LexiconConfig:
        size: dict[str, Any] = {**self.book.settings.world}
        size["n_train"] = max(8, round(size["n_train"] * told.share * PART))
        size["scene"] = common.scene(self.book, max_events=EVENTS)
        return LexiconConfig(WorldConfig(**size), told.vocabulary, told.skew)

    def _view(self, name: str) -> View:
        if name == OTHERS:
            return View(self.book, encoded(self._other_recordings(), common.published_trunk(self.book)))
        world, _, kind = name.partition("/")
        known = [*SCENES, *PASSES]
        if world not in known or kind not in ("", *KINDS):
            raise unknown("view", name, [*known, *(f"{each}/{kind}" for each in known for kind in KINDS), OTHERS])
        settings, config = self.book.settings, self.config(world)
        if kind == NLI:
            config = NLIConfig(config, self._scenes(Told()))
        passes = PASSES.get(world, SCENES.get(world, Told()).passes) if self.has_stamps else 1.0
        overrides = {
            "text": "words",
            "dim": settings.dim // 2,
            "batch_size": min(BATCH, max(2, settings.world["n_train"] // 4)),
            "epochs": max(1, round(passes * settings.epochs)),
        }
        if kind == PRETRAINED:
            overrides |= {**MINILM, "epochs": max(1, round(FEWER * passes * settings.epochs))}
        return View(self.book, encoded(load_data(config), self._trunk(world, kind)), overrides)

    def _trunk(self, world: str, kind: str) -> Base:
        if kind == KNOWN:
            return trunks.trained(pretrained(reduced(self._plain)))
        if world == "pictures" and self.has_stamps:
            return Published(PICTURES)
        return common.published_trunk(self.book)

    def _other_recordings(self) -> World:
        """Single events as other people recorded them, in place of the single events that scenes are mixed of."""
        size: dict[str, Any] = {**self.book.settings.world, "n_train": FEW, "n_valid": FEW, "n_test": FEW}
        takes, share = ("takes", LITTLE) if self.has_stamps else ("", HALF)
        world = HeldOutConfig(WorldConfig(**size), takes, share).load()
        splits = {name: world.split(name) for name in ("train", "valid", "test")}
        return replace(world, splits={**splits, "singles": world.split("recording_singles")})
