"""What chapter 5 trains and tests on: sound, music and speech in one mixture, heard through frozen encoders.

    ground = Grounds(book)
    ground.view("all/yamnet")              # to learn from: all three domains, heard through an AudioSet tagger
    ground.view("silent/several")          # no speech; YAMNet and the speech embedding side by side
    ground.view("test/yamnet/speech fra")  # to test on: spoken captions in French, each in its own words
    ground.view("test/yamnet/keywords deu")  # single words in a language that no clip of training is spoken in

Sound is Tux Paint's scenes, music the soundfont's phrases, both told in eight languages. Speech is what people read
aloud: the stamps' captions in nine languages and telephone prompts in five, told in the words that are said. Keywords
are never learnt from: their speakers, and most of their languages, are new.

In a profile without pretrained encoders (smoke, which fetches nothing) scenes of the same bank, of another seed for
each domain, stand in. With a bank of one's own, sound is of it, in the languages that it speaks; music and speech stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pullpush.cache import content_key
from pullpush.data.clips import Config, World, load_data
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.mixture import SEVERAL, MixtureConfig, Part
from pullpush.data.music.world import PARTS as MUSIC, MusicConfig
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.data.speech.spoken import PARTS as SPOKEN, SpokenConfig
from pullpush.data.speech.stamps import PARTS as SPEECH, SpeechConfig
from pullpush.errors import unknown
from pullpush.lab.compute import View
from pullpush.lab.material import PARTS
from pullpush.lab.session import Session
from pullpush.studies.glap import test_sets
from pullpush.studies.glap.ears import EARS, heard
from pullpush.studies.own_data import is_own, is_small, languages_of, tell_scenes
from pullpush.training.trunk import Published, parts_of

# The groups of GLAP §3.1, with French in the place of Chinese.
ENGLISH, FRENCH, OTHER, QUIET = "English speech", "French speech", "other speech", "sound and music"
SPOKEN_IN = {"eng": ENGLISH, "fra": FRENCH}
DOMAINS = ("sound", "music", "speech")


class Mix(NamedTuple):
    """What is learnt from.

    domains: of sound, music and speech; share: of the training clips of sound and music; languages: of their captions;
    amount: of all training clips.
    """

    domains: tuple[str, ...] = DOMAINS
    share: float = 1.0
    languages: tuple[str, ...] = LANGUAGES
    amount: float = 1.0


MIXES: Mapping[str, Mix] = {
    "all": Mix(),
    "silent": Mix(("sound", "music")),
    "speech": Mix(("speech",)),
    "english": Mix(languages=("eng",)),
    "skewed": Mix(share=0.1),
    "quarter": Mix(amount=0.25),
}
EPOCHS = 3  # passes, as a multiple of the profile's
BATCH = 128  # of a step; the paper's share of one GPU
LEAST = 8  # of a step, however few clips there are
MUSIC_AND_SPEECH = "Music and speech are the book's own."
STAND_IN = (
    "Where it says music or speech, further scenes of that bank stand in: this size of a profile fetches neither."
)
PART = 2 / 3  # of the profile's training scenes: a chapter of many runs
FEW_EVENTS = 0.1  # of the events, that training never names


class Grounds:
    """The chapter's mixtures and tests by their names; see `compute.Ground`.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "sound, music and speech"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book = replace(book, settings=book.settings.listening)
        self.compute_long = compute_long
        tell_scenes(book.settings, MUSIC_AND_SPEECH if self.has_recordings else STAND_IN)
        self._views: dict[str, View] = {}
        self._worlds: dict[str, World] = {}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        return *PARTS, "data/held_out", "data/mixture", *MUSIC, *SPEECH, *SPOKEN, *parts_of(map(self._trunk, EARS))

    @property
    def has_recordings(self) -> bool:
        """Whether there are music and speech; where not (the profile smoke fetches nothing), scenes stand in."""
        return not is_small(self.book.settings)

    @property
    def is_own(self) -> bool:
        """Whether sounds are of a bank of the reader's own."""
        return is_own(self.book.settings.world["bank"])

    @property
    def languages(self) -> tuple[str, ...]:
        """In which scenes are told."""
        return languages_of(self.book.settings.world["bank"])

    @property
    def languages_of_music(self) -> tuple[str, ...]:
        """In which music is told, or the scenes that stand in."""
        return LANGUAGES if self.has_recordings else self.languages

    @property
    def tests(self) -> Mapping[str, Callable[[], World]]:
        """What can be tested on, by name."""
        return {**test_sets.sound(self), **test_sets.music(self), **test_sets.speech(self)}

    def view(self, name: str) -> View:
        """Data by its name: "<mix>/<ears>" to learn from, "test/<ears>/<test>"; see the top of this module.

        Raises:
            UnknownNameError: no such mix, ears or test.
        """
        if name not in self._views:
            mix, _, rest = name.partition("/")
            ears, _, test = rest.partition("/")
            if ears not in EARS:
                raise unknown("ears", ears, EARS)
            world = self.test(test) if mix == "test" else self.mixture(mix)
            self._views[name] = View(self.book, heard(world, self._trunk(ears)), self._overrides)
        return self._views[name]

    def mixture(self, name: str) -> World:
        """What is learnt from, as audio.

        Raises:
            UnknownNameError: no such mix.
        """
        if name not in MIXES:
            raise unknown("mix", name, MIXES)
        return self.load(MixtureConfig(tuple(self._parts(MIXES[name]))))

    def test(self, name: str) -> World:
        """Clips to test on, as audio: the split "test", told in "mul"; and "singles" for zero-shot classification.

        Raises:
            UnknownNameError: no such test.
        """
        if name not in self.tests:
            raise unknown("test", name, self.tests)
        return self.tests[name]()

    # ---------------------------------------------------------------- what is learnt from

    @property
    def _overrides(self) -> dict[str, Any]:
        settings = self.book.settings
        return {
            "languages": (SEVERAL,),
            "captions": "random",
            "epochs": EPOCHS * settings.epochs if self.has_recordings else 1,
            "batch_size": max(LEAST, min(BATCH, settings.world["n_train"] // 4)),
            "dim": settings.dim,
        }

    def _trunk(self, ears: str) -> Published:
        if self.has_recordings:
            return EARS[ears]
        return Published(self.book.settings.audio, {"pretrained": False}, seed=1)

    def _parts(self, mix: Mix) -> list[Part]:
        share = mix.share * mix.amount
        parts = []
        for domain, config, known in (
            ("sound", self.sound, self.languages),
            ("music", self.music, self.languages_of_music),
        ):
            if domain in mix.domains:
                told = tuple(each for each in mix.languages if each in known)
                parts.append(Part(config, domain, told, group=QUIET, limit=self._limit(config, share)))
        if "speech" in mix.domains:
            parts += [self._speech_part(config, mix.amount) for config in (self.stamps, self.prompts)]
        return parts

    def _speech_part(self, config: Config, amount: float) -> Part:
        limit = self._limit(config, amount)
        if not self.has_recordings:
            return Part(config, "speech", ("eng",), group=ENGLISH, limit=limit)
        own = "spoken" if config == self.stamps else "language"
        return Part(config, "speech", own=own, groups=SPOKEN_IN, group=OTHER, limit=limit)

    def _limit(self, config: Config, amount: float) -> int | None:
        return None if amount == 1 else max(8, round(amount * len(self.load(config).train)))

    @property
    def sound(self) -> Config:
        """Scenes; training names nine tenths of the events, and all of a bank of one's own."""
        size: dict[str, Any] = {**self.book.settings.world}
        size["n_train"] = max(8, round(size["n_train"] * PART))
        scenes = WorldConfig(**size, captions_per_scene=1)
        if self.is_own:
            return scenes
        return HeldOutConfig(scenes, "takes", FEW_EVENTS) if self.has_recordings else HeldOutConfig(scenes, "", 0.5)

    @property
    def music(self) -> Config:
        """Phrases of 47 instruments."""
        return MusicConfig(captions_per_phrase=1) if self.has_recordings else self._stand_in(1)

    @property
    def stamps(self) -> Config:
        """Captions, read aloud."""
        return SpeechConfig(test_sets.STAMPS) if self.has_recordings else self._stand_in(2)

    @property
    def prompts(self) -> Config:
        """Words, numbers and sentences of a telephone."""
        if self.has_recordings:
            return SpokenConfig(("prompts",), kinds=("word", "number", "sentence", "code word"))
        return self._stand_in(3)

    @property
    def keywords(self) -> Config:
        """Words that are only ever tested on."""
        return SpokenConfig(("keywords",))

    def _stand_in(self, seed: int) -> Config:
        return WorldConfig(**self.book.settings.world, captions_per_scene=1, seed=seed)

    @property
    def keyword_languages(self) -> tuple[str, ...]:
        """Languages in which single words are spoken."""
        return test_sets.languages_of_keywords(self) if self.has_recordings else ()

    def load(self, config: Config) -> World:
        """What a configuration describes, once."""
        key = content_key(config)
        if key not in self._worlds:
            self._worlds[key] = load_data(config)
        return self._worlds[key]
