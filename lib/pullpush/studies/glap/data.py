"""What chapter 5 trains and tests on: sound, music and speech in one mixture, through frozen encoders.

    ground = Grounds(book)
    ground.view("all/yamnet")              # to learn from: all three domains, through an AudioSet tagger
    ground.view("silent/several")          # no speech; YAMNet and the speech embedding side by side
    ground.view("test/yamnet/speech fra")  # to test on: spoken captions in French, each in its own words
    ground.view("test/yamnet/keywords deu")  # single words in a language that no clip of training is spoken in
    ground.view("test/yamnet/commands")    # spoken words of Speech Commands, where the set is there
    ground.view("test/yamnet/sound@first 0.5")  # half a second of each test clip

Sound is Tux Paint's scenes, music the soundfont's phrases, both with captions in eight languages. Speech is what people
read aloud: the stamps' captions in nine languages and telephone prompts in five; its captions are the words. Keywords
are never learnt from: their speakers, and most of their languages, are new.

In a profile without pretrained encoders (smoke, which fetches nothing) scenes of the same bank, of another seed for
each domain, stand in. With a bank of one's own, sound is of it, in the languages that it speaks; music and speech stay.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pullpush.cache import content_key
from pullpush.data.clips import Clips, Config, StoredClips, World, load_data
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.mixture import SEVERAL, Mixed, MixtureConfig, Part, asked_in, captioned
from pullpush.data.music.world import PARTS as MUSIC, MusicConfig
from pullpush.data.recordings.corpora import load_labelled
from pullpush.data.scenes.altered import Alteration, First, Gain, Loudest, WhiteNoise, altered
from pullpush.data.scenes.held_out import HeldOutConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.data.speech import normalised
from pullpush.data.speech.spoken import PARTS as SPOKEN, SpokenConfig, spotting, utterances
from pullpush.data.speech.stamps import PARTS as SPEECH, SpeechConfig
from pullpush.errors import check_known, looked_up
from pullpush.lab.compute import Ground, View, widened
from pullpush.lab.material import PARTS
from pullpush.lab.session import Session
from pullpush.studies.own_data import is_own, is_small, languages_of, tell_scenes
from pullpush.training.frozen import encoded, splits_encoder
from pullpush.training.trunk import Published, parts_of

# The groups of GLAP §3.1, with French in the place of Chinese.
ENGLISH, FRENCH, OTHER, QUIET = "English speech", "French speech", "other speech", "sound and music"
SPOKEN_IN = {"eng": ENGLISH, "fra": FRENCH}
DOMAINS = ("sound", "music", "speech")
OBJECTIVES = ("tagging", "transcription", "masked-prediction", "masked-reconstruction", "untrained")
ENCODERS: Mapping[str, Published] = {
    "yamnet": Published("yamnet"),
    "yamnet upper": Published("yamnet", level="lower"),
    "speech_embedding": Published("speech_embedding"),
    "sfx": Published("sfx"),
    "voice": Published("voice"),
    "pitch": Published("pitch"),
    "random": Published("yamnet", {"pretrained": False}, seed=1),
    "several": Published("several", {"members": ("yamnet", "speech_embedding")}),
    **{name: Published("audio_transformer", {"weights": None if name == "untrained" else name}) for name in OBJECTIVES},
}


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


class Test(NamedTuple):
    """What is tested on: clips of a source, with captions in one language, or of speech ("") each in its own."""

    source: str
    language: str = ""
    split: str = "test"


# In the stamps' codes, 320 to 930 recordings each; the codes that tests bear where those are others.
STAMPS = ("fra", "ro", "ru", "cat", "bg", "spa", "be", "el", "da")
ISO = {"ro": "ron", "ru": "rus", "bg": "bul", "be": "bel", "el": "ell", "da": "dan"}
PROMPTS = ("eng", "spa", "fra", "ita", "rus")
OWN = {"stamps": "spoken", "prompts": "language", "keywords": "language"}  # columns: in which language a clip is spoken
ALTERATIONS: Mapping[str, Callable[[float], Alteration]] = {
    "first": First,
    "loudest": Loudest,
    "gain": Gain,
    "noise": WhiteNoise,
}
COMMANDS = "speech_commands:v1-sample"  # recordings that others made, 300 of 64,727
EPOCHS = 3  # passes, as a multiple of the profile's
BATCH = 128  # of a step; the paper's share of one GPU
LEAST = 8  # of a step, however few clips there are
PART = 2 / 3  # of the profile's training scenes: a chapter of many runs
FEW_EVENTS = 0.1  # of the events, that training never names
MUSIC_AND_SPEECH = "Music and speech are the book's own."
STAND_IN = (
    "Where it says music or speech, further scenes of that bank stand in: this size of a profile fetches neither."
)
Either = TypeVar("Either", StoredClips, Mixed)


class Grounds(Ground):
    """The chapter's mixtures and tests by their names, see the top of this module: "<mix>/<encoder>" to learn from,
    "test/<encoder>/<test>" to test on, with "@<alteration> <level>" for altered clips.
    """

    name = "sound, music and speech"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(replace(book, settings=book.settings.listening), compute_long)
        tell_scenes(book.settings, MUSIC_AND_SPEECH if self.has_recordings else STAND_IN)
        self._load = cache(load_data)

    @property
    def parts(self) -> Sequence[str]:
        further = ("data/held_out", "data/mixture", "data/altered")
        return *PARTS, *further, *MUSIC, *SPEECH, *SPOKEN, *parts_of(map(self._trunk, ENCODERS))

    @property
    def has_recordings(self) -> bool:
        """Whether there are music and speech; where not (the profile smoke fetches nothing), scenes stand in."""
        return not is_small(self.book.settings)

    @property
    def is_own(self) -> bool:
        """Whether sounds are of a bank of the reader's own."""
        return is_own(self.book.settings.world["bank"])

    def languages(self, domain: str) -> tuple[str, ...]:
        """In which sounds or music have captions."""
        if domain == "music" and self.has_recordings:
            return LANGUAGES
        return languages_of(self.book.settings.world["bank"])

    @cached_property
    def tests(self) -> Mapping[str, Test]:
        """What can be tested on, by name."""
        found = {domain: Test(domain, "eng") for domain in ("sound", "music")}
        found |= {f"{domain} {each}": Test(domain, each) for domain in list(found) for each in self.languages(domain)}
        if not self.is_own:
            found["sound recordings"] = Test("sound", "eng", "recordings")
        if not self.has_recordings:
            return found | {"speech": Test("stamps", "eng")}
        found |= {"music recordings": Test("music", "eng", "recordings")}
        found |= {"speech": Test("stamps"), "prompts": Test("prompts"), "commands": Test("commands", "eng")}
        found |= {f"speech {ISO.get(each, each)}": Test("stamps", each) for each in STAMPS}
        found |= {f"prompts {each}": Test("prompts", each) for each in PROMPTS}
        spoken = sorted(set(utterances(SpokenConfig(("keywords",)))["language"]))
        return found | {f"keywords {each}": Test("keywords", each) for each in spoken}

    def _view(self, name: str) -> View:
        plain, _, condition = name.partition("@")
        mix, _, rest = plain.partition("/")
        encoder, _, test = rest.partition("/")
        check_known("encoder", encoder, ENCODERS)
        if condition:
            return alter(self.view(plain), condition)
        world = self.test(test) if mix == "test" else self.mixture(mix)
        return View(self.book, encoded(world, self._trunk(encoder)), self._overrides)

    def _wide(self, name: str, galleries: int) -> View:
        _, encoder, test = name.split("/")
        data = encoded(self.test(test, galleries), self._trunk(encoder))
        return View(self.book, data, self._overrides, galleries=galleries)

    def mixture(self, name: str) -> World:
        """What is learnt from, as audio.

        Raises:
            UnknownNameError: no such mix.
        """
        return self._load(MixtureConfig(tuple(self._parts(looked_up("mix", name, MIXES)))))

    def test(self, name: str, galleries: int = 1) -> World:
        """Clips to test on, as audio: the split "test", with captions in "mul"; and "singles" for zero-shot
        classification.

        galleries: of sound and music so many times the clips.

        Raises:
            UnknownNameError: no such test.
            DataNotFoundError: recordings of others that are not there.
        """
        source, language, split = looked_up("test", name, self.tests)
        if source == "commands":
            words = asked_in(language, load_labelled(COMMANDS))
            return tested([COMMANDS], words, "", singles=words)
        check_known("source of galleries", source, DOMAINS if galleries > 1 else self.configs)
        config = widened(self.configs[source], galleries) if galleries > 1 else self.configs[source]
        world = self._load(config)
        if source in DOMAINS or not self.has_recordings:
            clips = Part(config, source if source in DOMAINS else "speech", (language,)).told(world.split(split))
            events: Any = world.split("singles" if split == "test" else "recording_singles")
            return tested([config, split, language], clips, world.words, singles=asked_in(language, events))
        part = Part(config, "speech", own=OWN[source])
        if source == "keywords":
            words = spotting(self._keywords, language)
            return tested([config, language], one_a_text(part.told(words)), "", singles=asked_in(language, words))
        clips, classes = captioned(part.told(world.test)), {}
        rows = [row for row, spoken in enumerate(clips.columns[OWN[source]]) if language in ("", spoken)]
        # A mixture of one source: all languages are encoded at once, whichever of them is asked for.
        chosen = one_a_text(Mixed.of("test", [clips]).select(rows))
        if source == "prompts" and language:  # their whole sentences are classes
            stored: Any = world.test
            sentences = [row for row, kind in enumerate(stored.columns["kind"]) if kind == "sentence"]
            classes["singles"] = asked_in(language, spotting(stored.select(sentences), language))
        return tested([config, language], chosen, world.words, **classes)

    @cached_property
    def configs(self) -> Mapping[str, Config]:
        """What describes each source. Training names nine tenths of the events, and all of a bank of one's own; only
        tested on are keywords.
        """
        size: dict[str, Any] = {**self.book.settings.world, "captions_per_scene": 1}
        scenes = WorldConfig(**size | {"n_train": max(8, round(size["n_train"] * PART))})
        held_out = HeldOutConfig(scenes, *(("takes", FEW_EVENTS) if self.has_recordings else ("", 0.5)))
        sound = scenes if self.is_own else held_out
        if not self.has_recordings:
            return {"sound": sound} | {
                name: WorldConfig(**size, seed=seed) for seed, name in enumerate(("music", "stamps", "prompts"), 1)
            }
        return {
            "sound": sound,
            "music": MusicConfig(captions_per_phrase=1),
            "stamps": SpeechConfig(STAMPS),
            "prompts": SpokenConfig(("prompts",), kinds=("word", "number", "sentence", "code word")),
            "keywords": SpokenConfig(("keywords",)),
        }

    def load(self, source: str) -> World:
        """One of `configs`, once."""
        return self._load(self.configs[source])

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

    def _trunk(self, encoder: str) -> Published:
        if self.has_recordings:
            return ENCODERS[encoder]
        return Published(self.book.settings.audio, {"pretrained": False}, seed=1)

    def _parts(self, mix: Mix) -> list[Part]:
        parts = []
        for domain in (each for each in ("sound", "music") if each in mix.domains):
            known = tuple(each for each in mix.languages if each in self.languages(domain))
            limit = self._limit(domain, mix.share * mix.amount)
            parts.append(Part(self.configs[domain], domain, known, group=QUIET, limit=limit))
        for source in ("stamps", "prompts") if "speech" in mix.domains else ():
            config, limit = self.configs[source], self._limit(source, mix.amount)
            if self.has_recordings:
                parts.append(Part(config, "speech", own=OWN[source], groups=SPOKEN_IN, group=OTHER, limit=limit))
            else:
                parts.append(Part(config, "speech", ("eng",), group=ENGLISH, limit=limit))
        return parts

    def _limit(self, source: str, amount: float) -> int | None:
        return None if amount == 1 else max(8, round(amount * len(self.load(source).train)))

    @cached_property
    def _keywords(self) -> StoredClips:
        """Keywords of all splits, one after the other: none of them is learnt from."""
        clips: list[Any] = [*self.load("keywords").splits.values()]
        columns = {column: [value for each in clips for value in each.columns[column]] for column in clips[0].columns}
        rows, key = np.concatenate([each.rows for each in clips]), content_key([each.key for each in clips])
        return replace(clips[0], name="keywords", key=key, rows=rows, columns=columns, _captions={})


def tested(config: Any, clips: Clips, words: str, **further: Clips) -> World:
    """A world to test on: nothing is learnt from it or chosen by it, and its splits are all the same clips.

    config: how they are described, which the same clips may be in several ways; words: of the world that they are of;
    further: clips of classes, whose labels and prompts are part of the words.
    """
    classes = {name: [each.labels.tolist(), each.prompts(SEVERAL)] for name, each in further.items()}
    splits = {**dict.fromkeys(("train", "valid", "test"), clips), **further}
    return World(config, splits, content_key([words, config, classes]))


def one_a_text(clips: Either) -> Either:
    """The first clip of each text, so that one is right for a query; capitals and signs do not tell texts apart."""
    first: dict[str, int] = {}
    for row, texts in enumerate(clips.captions(SEVERAL)):
        first.setdefault(normalised(texts[0]), row)
    return clips.select(list(first.values()))


def alter(view: View, condition: str) -> View:
    """The same view with its test clips altered, such as "first 0.5", before they are encoded; singles stay.

    Raises:
        UnknownNameError: no such alteration.
        ValueError: a level that is no number.
    """
    trunk: Any = view.data.trunk
    way, _, level = condition.partition(" ")
    alteration = looked_up("alteration", way, ALTERATIONS)(float(level))

    def again(clips: Any) -> Any:
        if isinstance(clips, Mixed):
            return clips.each(again)
        return splits_encoder(trunk)(altered(clips.clips, alteration))

    return view._replace(data=replace(view.data, splits={**view.data.splits, "test": again(view.data.test)}))
