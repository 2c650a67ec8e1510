"""What chapter 5 is tested on, by name: each a world whose split "test" is told in "mul", and "singles" to classify."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pullpush.cache import content_key
from pullpush.data.clips import Clips, Config, StoredClips, World
from pullpush.data.mixture import SEVERAL, Mixed, Part, asked_in, captioned
from pullpush.data.speech import normalised
from pullpush.data.speech.spoken import spotting

if TYPE_CHECKING:
    from pullpush.studies.glap.grounds import Grounds

Tests = Mapping[str, Callable[[], World]]
Told = TypeVar("Told", StoredClips, Mixed)
STAMPS = ("fra", "ro", "ru", "cat", "bg", "spa", "be", "el", "da")  # in the stamps' codes; 320 to 930 recordings each
ISO = {"ro": "ron", "ru": "rus", "bg": "bul", "be": "bel", "el": "ell", "da": "dan"}
PROMPTS = ("eng", "spa", "fra", "ita", "rus")


def sound(ground: Grounds) -> Tests:
    """Scenes: new combinations of sounds, told in English or another language; and recordings by other people."""
    told = partial(_told, ground, "sound", ground.sound)
    tests: dict[str, Callable[[], World]] = {"sound": told}
    if not ground.is_own:
        tests["sound recordings"] = partial(told, split="recordings", singles="recording_singles")
    return tests | {f"sound {each}": partial(told, language=each) for each in ground.languages}


def music(ground: Grounds) -> Tests:
    """Phrases, likewise; recordings of a soundfont that training never heard."""
    told = partial(_told, ground, "music", ground.music)
    tests: dict[str, Callable[[], World]] = {"music": told}
    if ground.has_recordings:
        tests["music recordings"] = partial(told, split="recordings", singles="recording_singles")
    return tests | {f"music {each}": partial(told, language=each) for each in ground.languages_of_music}


def speech(ground: Grounds) -> Tests:
    """What people say: captions and telephone prompts that training does not hold; and single words."""
    if not ground.has_recordings:
        return {"speech": partial(_told, ground, "speech", ground.stamps)}
    stamps, prompts = partial(_spoken, ground, ground.stamps, "spoken"), partial(_prompts, ground)
    tests: dict[str, Callable[[], World]] = {"speech": stamps, "prompts": prompts}
    tests |= {f"speech {ISO.get(each, each)}": partial(stamps, each) for each in STAMPS}
    tests |= {f"prompts {each}": partial(prompts, each) for each in PROMPTS}
    return tests | {f"keywords {each}": partial(_keywords, ground, each) for each in languages_of_keywords(ground)}


def languages_of_keywords(ground: Grounds) -> tuple[str, ...]:
    """Languages in which single words are spoken, sorted."""
    return tuple(sorted(set(_all_keywords(ground).columns["language"])))


def _told(
    ground: Grounds,
    domain: str,
    config: Config,
    *,
    language: str = "eng",
    split: str = "test",
    singles: str = "singles",
) -> World:
    """A split with its captions in one language, and single events."""
    world = ground.load(config)
    clips = Part(config, domain, (language,)).told(world.split(split))
    events = asked_in(language, _stored(world.split(singles)))
    return tested([config, split, language], clips, world.words, singles=events)


def _spoken(ground: Grounds, config: Config, own: str, language: str = "", **further: Clips) -> World:
    """What is said in one language, or in all, a clip a text; further: see `tested`."""
    clips = captioned(Part(config, "speech", own=own).told(ground.load(config).test))
    rows = [row for row, spoken in enumerate(clips.columns[own]) if language in ("", spoken)]
    # A mixture of one source: all languages are heard at once, whichever of them is asked for.
    chosen = one_a_text(Mixed.of("test", [clips]).select(rows))
    return tested([config, language], chosen, ground.load(config).words, **further)


def _prompts(ground: Grounds, language: str = "") -> World:
    """Telephone prompts; those of one language have their whole sentences as classes."""
    if not language:
        return _spoken(ground, ground.prompts, "language")
    clips = _stored(ground.load(ground.prompts).test)
    rows = [row for row, kind in enumerate(clips.columns["kind"]) if kind == "sentence"]
    sentences = asked_in(language, spotting(clips.select(rows), language))
    return _spoken(ground, ground.prompts, "language", language, singles=sentences)


def _keywords(ground: Grounds, language: str) -> World:
    """All words of a language: to retrieve, and with one label a word."""
    words = spotting(_all_keywords(ground), language)
    told = one_a_text(Part(ground.keywords, "speech", own="language").told(words))
    return tested([ground.keywords, language], told, "", singles=asked_in(language, words))


def _all_keywords(ground: Grounds) -> StoredClips:
    """Keywords of all splits: none of them is learnt from."""
    return _joined("keywords", tuple(map(_stored, ground.load(ground.keywords).splits.values())))


@lru_cache(maxsize=1)
def _joined(name: str, clips: Sequence[StoredClips]) -> StoredClips:
    """Clips of one store, one after the other."""
    columns = {column: [value for each in clips for value in each.columns[column]] for column in clips[0].columns}
    rows = np.concatenate([each.rows for each in clips])
    key = content_key([each.key for each in clips])
    return replace(clips[0], name=name, key=key, rows=rows, columns=columns, _captions={})


def tested(config: Any, clips: Clips, words: str, **further: Clips) -> World:
    """A world to test on: nothing is learnt from it or chosen by it, and its splits are all the same clips.

    config: how they are told, which the same clips may be in several ways; words: of the world that they are of;
    further: clips of classes, whose labels and prompts are part of the words.
    """
    classes = {name: [each.labels.tolist(), each.prompts(SEVERAL)] for name, each in further.items()}
    splits = {**dict.fromkeys(("train", "valid", "test"), clips), **further}
    return World(config, splits, content_key([words, config, classes]))


def one_a_text(clips: Told) -> Told:
    """The first clip of each text, so that one is right for a query; capitals and signs do not tell texts apart."""
    first: dict[str, int] = {}
    for row, texts in enumerate(clips.captions(SEVERAL)):
        first.setdefault(normalised(texts[0]), row)
    return clips.select(list(first.values()))


def _stored(clips: Clips) -> StoredClips:
    if not isinstance(clips, StoredClips):
        raise TypeError(f"a test is made of clips with waveforms, got {type(clips).__name__}")
    return clips
