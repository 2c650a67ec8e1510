"""What chapter 4 trains and tests on: the paper's systems, and worlds of captions over the same sounds.

    ground = Grounds(book)
    ground.view("audiocaps")      # few words, a handful of which are in nearly every caption
    ground.view("pictures/nli")   # the same clips, each with an NLI triple beside it
    ground.view("audiocaps/pretrained")  # read by MiniLM, not by an encoder that learns from nothing
    ground.view("freesound/known")  # through an encoder that was trained on these very recordings
    ground.view("others")         # to test on: single events by other people

The scenes have at most two events, so that captions are about as long as those of the published sets (ten words or so).
All worlds of sounds hold the same clips; only how many of them are learnt from, and in which words, differs: that is
the point of them, so that they are scenes in every profile.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from pullpush.lab.compute import Ground, View
from pullpush.lab.experiments import System, Trial
from pullpush.lab.material import PARTS, pretrained, reduced
from pullpush.lab.session import Session
from pullpush.show import galleries
from pullpush.show.markup import Markup
from pullpush.studies import own_data
from pullpush.training.frozen import Base, encoded
from pullpush.training.recipes import weighted
from pullpush.training.trunk import Published

# ---------------------------------------------------------------- systems

# Table 1: the last letter of a name → what it adds to InfoNCE with a learnt temperature.
ENDINGS: Mapping[str, str] = {
    "": "",
    "s": "+simcse-0.1",  # SimCSE on the captions
    "n": "+nli-0.1",  # NLI triples
    "e": "+sentence-simcse-0.1",  # SimCSE on the premises of NLI triples: the control of Appendix A.6
}
# Of what trains as a page runs: a text encoder from scratch with fewer layers, in the profile's epochs.
LIGHT: Mapping[str, Any] = {"lr": 2e-3, "encoder_options": {"text_layers": 1}}


def systems(
    name: str = "CLAP", endings: Sequence[str] = ("", "s"), *, overrides: Mapping[str, Any] | None = None
) -> dict[str, System]:
    """Label → recipe and overrides, without and with the cyclic terms; name: "CLAP" for sounds, "CLIP" for pictures.

    >>> systems("CLIP", ("", "n"))["CyCLIPn"]
    ('infonce-learnable+cyclic+nli-0.1', {})
    """
    return {
        f"{prefix}{name}{ending}": (f"infonce-learnable{cyclic}{ENDINGS[ending]}", dict(overrides or {}))
        for prefix, cyclic in (("", ""), ("Cy", "+cyclic"))
        for ending in endings
    }


def base_of(system: str) -> str:
    """The system without its last term, "" if it has none to lose.

    >>> [base_of(system) for system in ("CyCLAPs", "CyCLAP", "CLIPn", "CLAP")]
    ['CyCLAP', 'CLAP', 'CLIP', '']
    """
    plain = system.rstrip("sne")
    return plain if plain != system else system.removeprefix("Cy") if system.startswith("Cy") else ""


def in_worlds(worlds: Iterable[str], of: Mapping[str, System], *, kind: str = "", test: str = "") -> tuple[Trial, ...]:
    """A trial a world and system; kind: of the views; test: the view that is tested on, "" for the world itself."""
    return tuple(
        Trial(label, recipe, overrides, {"world": world}, f"{world}/{kind}".rstrip("/"), test)
        for world in worlds
        for label, (recipe, overrides) in of.items()
    )


def with_weights(of: Mapping[str, System], weights: Iterable[float], *terms: str, data: str = "") -> tuple[Trial, ...]:
    """A trial a weight and system: all of these terms have the weight."""
    return tuple(
        Trial(label, recipe, {**options, **weighted(recipe, **dict.fromkeys(terms, weight))}, {"weight": weight}, data)
        for weight in weights
        for label, (recipe, options) in of.items()
    )


# ---------------------------------------------------------------- worlds


class Telling(NamedTuple):
    """How much of the scenes a world learns from, and in which words; passes: over its clips, in epochs of the profile.
    The small world gets more of them, as in the paper's Table 9.
    """

    share: float = 1.0
    vocabulary: str = "rich"
    skew: float = 0.0
    passes: float = 2.5


SMALL, SKEW = 0.2, 2.0
WORLDS: Mapping[str, Telling] = {
    "freesound": Telling(),
    "clotho": Telling(share=SMALL, passes=10),
    "audiocaps": Telling(vocabulary="narrow", skew=SKEW),
    "narrow": Telling(vocabulary="narrow"),
    "skewed": Telling(skew=SKEW),
}
# Size, vocabulary and skew crossed; the five worlds above are among them under their own names.
CROSSED: Mapping[str, Telling] = {
    f"{share:.0%} {vocabulary}{' skewed' if skew else ''}": Telling(share, vocabulary, skew, passes)
    for share, passes in ((1.0, 2.5), (SMALL, 10.0))
    for vocabulary in ("rich", "narrow")
    for skew in (0.0, SKEW)
}
OTHER = {"pictures": Telling(passes=6.0), "music": Telling(passes=3.0)}
KNOWN = {**WORLDS, **CROSSED, **OTHER}
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
KINDS = ("", "nli", "known", "pretrained")
OTHERS = "others"
# Of a text encoder that was trained before: MiniLM's last layer learns, on what the lower ones make of a caption. It
# needs fewer passes, and a lower rate.
MINILM: Mapping[str, Any] = {
    "text": "minilm",
    "lr": 5e-4,
    "encoder_options": {"text_trainable": "upper", "text_upper": 1, "text_frozen": False},
}
FEWER = 0.4
PICTURES = "efficientnet-lite"
FEW = {"n_train": 8, "n_valid": 8, "n_test": 8}  # of a view that is about its single events
PART = 2 / 3  # of the profile's training scenes: a chapter of many runs


class Grounds(Ground):
    """The chapter's worlds by their names, through a frozen published encoder; see the top of this module."""

    name = "captions, pictures and music"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(replace(book, settings=book.settings.listening), compute_long)
        self._plain = book  # with the audio encoder that chapters 1 to 3 train themselves

    @property
    def parts(self) -> Sequence[str]:
        words = ("data/lexicon", "data/nli", "data/held_out", "data/pictures")
        audio = {self._plain.settings.audio, self.book.settings.audio, PICTURES}
        return *PARTS, *words, *MUSIC, *(f"audio/{name}" for name in sorted(audio))

    @property
    def has_stamps(self) -> bool:
        """Whether there are pictures and music; where not (the profile smoke fetches nothing), scenes stand in."""
        return self.book.settings.world["bank"] == "tuxpaint"

    def config(self, name: str) -> Config:
        """What describes a world."""
        if self.has_stamps and name in OTHER:
            return PictureConfig() if name == "pictures" else MusicConfig()
        return self._scenes(KNOWN.get(name, Telling()))

    def stamps(self, count: int) -> Markup:
        """The first test pictures to see; where there are none scenes stand in, to hear."""
        cards = galleries.pictures if self.has_stamps else galleries.scenes
        return cards(load_data(self.config("pictures")).test, range(count))

    def _scenes(self, telling: Telling) -> LexiconConfig:
        size: dict[str, Any] = {**self.book.settings.world}
        size["n_train"] = max(8, round(size["n_train"] * telling.share * PART))
        size["scene"] = common.scene(self.book, max_events=2)
        return LexiconConfig(WorldConfig(**size), telling.vocabulary, telling.skew)

    def _view(self, name: str) -> View:
        if name == OTHERS:
            return View(self.book, encoded(self._other_recordings(), common.published_trunk(self.book)))
        world, _, kind = name.partition("/")
        if world not in KNOWN or kind not in KINDS:
            raise unknown("view", name, [*(f"{each}/{kind}".rstrip("/") for each in KNOWN for kind in KINDS), OTHERS])
        settings, config, trunk = self.book.settings, self.config(world), common.published_trunk(self.book)
        if kind == "nli":
            config = NLIConfig(config, self._scenes(Telling()))
        passes = KNOWN[world].passes * settings.epochs if self.has_stamps else settings.epochs
        overrides: dict[str, Any] = {
            "text": "words",
            "dim": settings.dim // 2,
            "batch_size": min(BATCH, max(2, settings.world["n_train"] // 4)),
            "epochs": max(1, round(passes)),
        }
        if own_data.is_small(self._plain.settings):  # which fetches no weights
            overrides["encoder_options"] = {"text_width": 16, "text_slots": 256}
        elif kind == "pretrained":
            overrides |= {**MINILM, "epochs": max(1, round(FEWER * passes))}
        base: Base = Published(PICTURES) if world == "pictures" and self.has_stamps else trunk
        if kind == "known":
            base = trunks.trained(pretrained(reduced(self._plain)))
        return View(self.book, encoded(load_data(config), base), overrides)

    def _other_recordings(self) -> World:
        """Single events as other people recorded them, in place of the single events that scenes are mixed of."""
        size: dict[str, Any] = {**self.book.settings.world, **FEW}
        world = HeldOutConfig(WorldConfig(**size), *(("takes", 0.1) if self.has_stamps else ("", 0.5))).load()
        splits = {name: world.split(name) for name in ("train", "valid", "test")}
        return replace(world, splits={**splits, "singles": world.split("recording_singles")})
