"""Probes of scenes: how they are drawn, rendered and mixed, from a bank of short noises."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullpush.data.clips import identity
from pullpush.data.language.vocabulary import Event
from pullpush.data.music.phrases import Phrase
from pullpush.data.music.world import likeness
from pullpush.data.scenes.bank import Bank
from pullpush.data.scenes.composer import SceneConfig, compose, ratio, shifted, single
from pullpush.data.scenes.held_out import _Part, named_events, two_banks
from pullpush.data.scenes.mixing import mix, partners, unite, unites
from pullpush.data.scenes.renderer import layers, render
from pullpush.data.scenes.scene import Scene, Sound, from_json, relevance as fits, relevance_matrix, to_json
from pullpush.data.scenes.synthetic import CATEGORIES, synthetic_clips, synthetic_events
from pullpush.data.scenes.world import WorldConfig, draw_scenes, draw_singles, split_of
from pullpush.data.speech import spoken, stamps as speech
from pullpush.data.store import to_int16
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen
from pullpush.golden.languages import scenes as told_scenes

PIECES = 6  # of a waveform, that are looked at
NAMES = tuple("abcdefghijkl")
CONFIG = SceneConfig(max_semitones=2)


@cache
def bank() -> Bank:
    """Twelve events in four categories; of each two noises of 0.1 to 1.5 s, louder and softer."""
    events = tuple(Event(name, "wxyz"[place % 4], (), {}) for place, name in enumerate(NAMES))
    sizes = [[1600 + 1931 * place % 22_400, 2400 + 701 * place] for place in range(len(NAMES))]
    clips = tuple(
        tuple((0.1 * numbers(size, seed=10 * place + number)).float() for number, size in enumerate(pair))
        for place, pair in enumerate(sizes)
    )
    return Bank("probe", events, clips, "probe")


def looks(wave: Tensor | np.ndarray) -> Tensor:
    """What a waveform is like in each of its parts; another length gives other numbers."""
    return torch.cat([seen(part) for part in torch.as_tensor(wave).tensor_split(PIECES)])


def scenes() -> Values:
    """Scenes of several kinds of worlds, their splits, and how they are written."""
    configs = {
        "plain": SceneConfig(),
        "long": SceneConfig(duration=9.0, min_events=2, max_events=4, p_repeat=1.0, p_far=1.0, gain_db=(-9, 3)),
        "short": SceneConfig(duration=1.5, min_duration=1.0, max_events=3, snr_db=None, p_overlap=0.0),
        "together": SceneConfig(p_overlap=1.0, p_noise=1.0, p_single=0.0, max_semitones=0),
    }
    found: dict[str, Any] = {
        name: [_plain(compose(bank(), config, seed=3, index=index)) for index in range(8)]
        for name, config in configs.items()
    }
    pairs = [compose(bank(), CONFIG, seed=0, index=index, events_allowed=_small) for index in range(4)]
    found["allowed"] = [_plain(scene) for scene in pairs]  # three events are drawn in vain
    found["single"] = [_plain(single(bank(), event, CONFIG, seed=1, index=2)) for event in (0, 5)]
    found["split"] = [split_of([first, last], bank(), seed=4) for first in range(4) for last in range(first)]
    world = WorldConfig("probe", seed=5, scene=CONFIG)
    for name in ("train", "valid", "test"):
        found[name] = [[scene.relation, scene.events] for scene in draw_scenes(name, 9, bank(), world)]
    found["singles"] = [_plain(scene) for scene in draw_singles(bank(), 2, world)[:6]]
    found["written"] = to_json(from_json(to_json(pairs[:1])))
    return found


def renderer() -> Values:
    """Scenes that are cut, repeated, distant, noisy and too loud, and the two layers of one."""
    near, far = Sound(0, 0, 0.05), Sound(5, 1, 0.1, semitones=2, gain_db=-3.0, far=True)
    told = {
        "single": Scene((near,), "single", None, 0.5),
        "repeated": Scene((Sound(0, 0, 0.0, semitones=-1, repeats=3),), "single", 12.5, 0.6),
        "cut": Scene((Sound(9, 1, 0.0), Sound(3, 0, 0.21, far=True), Sound(7, 0, 0.4)), "sequence", None, 0.7),
        "overlap": Scene((near, far), "overlap", 3.0, 0.8),
        "loud": Scene((Sound(2, 0, 0.0, gain_db=24.0), Sound(4, 1, 0.02, gain_db=20.0)), "overlap", 20.0, 0.4),
    }
    pitches = shifted(bank(), CONFIG.max_semitones)
    found: dict[str, Any] = {name: looks(render(scene, bank(), CONFIG, pitches)) for name, scene in told.items()}
    sounds, noise = layers(told["overlap"], bank(), CONFIG, pitches)
    found["sounds"], found["noise"] = looks(sounds), looks(noise)
    found["stored"] = to_int16(sounds[1000:1040])
    return found


def pitch() -> Values:
    """A bank at all shifts, and the factors of an octave."""
    found, asked = shifted(bank(), 2), ((0, -2), (5, 0), (8, 1))
    return {
        "ratios": [float(ratio(semitones)) for semitones in range(-12, 13)],
        "bounds": found.bounds.reshape(-1)[::7],
        "first": found.first,
        "clips": torch.stack([looks(found.clip(event, event % 2, shift)) for event, shift in asked]),
    }


def synthetic() -> Values:
    """The recordings that are made by formula, and their categories."""
    found: dict[str, Any] = {"categories": list(CATEGORIES.items())}
    for name, clips in zip(sorted(CATEGORIES), synthetic_clips(), strict=True):
        found[name] = torch.cat([looks(clip) for clip in clips])
    return found


def mixing() -> Values:
    """Sums of waveforms, unions of scenes, and who is mixed with whom."""
    first, second = (numbers(size, seed=size).float().numpy() for size in (900, 700))
    frog = Scene((Sound(4, 0, 0.25), Sound(2, 1, 0.5, far=True)), "overlap", 6.0, 3.0)
    rain, wind = (Scene((Sound(event, 0, 0.4),), "single", snr, 2.0) for event, snr in ((9, 12.0), (2, None)))
    turn = Scene((Sound(1, 0, 0.0), Sound(3, 0, 1.0)), "sequence", None, 2.0)
    scenes = [frog, rain, wind, turn, *(Scene((Sound(event, 0, 0.0),), "single", None, 1.0) for event in range(9))]
    return {
        "plain": looks(mix(0.1 * first, 0.4 * second, longest=2000)),
        "delayed": looks(mix(0.1 * first, 0.4 * second, delays=(0, 600), longest=1000, fade=50)),
        "loud": looks(mix(2 * first, second, delays=(30, 0), longest=2000)),
        "silence": looks(mix(0 * first, 0.1 * second, longest=2000)),
        "unions": [_plain(unite(frog, rain)), _plain(unite(rain, wind)), _plain(unite(scenes[4], scenes[5]))],
        "unites": [unites(one, other) for one, other in ((frog, rain), (frog, wind), (rain, turn))],
        "recordings": partners(None, 8, 20, seed=1),
        "scenes": partners(scenes, 8, len(scenes), seed=1, taken={frozenset((0, 1))}),
    }


def held_out() -> Values:
    """Which events are named, which recordings are heard, and scenes of some of a bank's events."""
    found: dict[str, Any] = {}
    for takes in ("", "synthetic:signal"):
        heard, unheard = two_banks("synthetic", takes)
        known = takes or "own"
        found[f"{known} heard"] = [len(clips) for clips in heard.clips]
        found[f"{known} unheard"] = [len(clips) for clips in unheard.clips]
        found[f"{known} named"] = [named_events(heard, unheard, share, seed=2) for share in (0.3, 0.5)]
    world = WorldConfig("probe", seed=6, scene=CONFIG)
    some = (1, 4, 6, 7, 11)
    found["scenes"] = [_plain(scene) for scene in _Part(bank(), some, "test", 5).scenes(world)]
    found["singles"] = [_plain(scene) for scene in _Part(bank(), some, "", 1).scenes(world)]
    return found


def relevance() -> Values:
    """How well clips fit each other: scenes, phrases of music, what is spoken, files."""
    events = synthetic_events()
    some = told_scenes(len(events))[::2]
    phrases = [
        Phrase("violin", "rising", "slow", "minor", "high", "legato"),
        Phrase("viola", "rising", "slow", "major", "high"),
        Phrase("violin", "music"),
        Phrase("claves", "rhythm", "slow"),
        Phrase("violin", "rising", "slow", "minor", "high", "legato", melody=4),
    ]
    said = {"key": list("aabc"), "text": ["Ohr", "ear", "ohr", "eye"], "language": ["deu", "eng", "deu", "eng"]}
    return {
        "scenes": relevance_matrix(some, some[::2], events),
        "pair": fits(some[0], some[1], events),
        "phrases": likeness({"phrase": phrases}, {"phrase": phrases}),
        "spoken": spoken.same_meaning(said, said),
        "groups": speech.same_group({"group": ["a", "b"]}, {"group": ["b", "c", "a"]}),
        "files": identity({"file": ["a", "b"]}, {"file": ["b", "c"]}),
    }


def _small(events: Sequence[int]) -> bool:
    return len(events) < 3 and events[0] in (2, 3)


def _plain(scene: Scene) -> list[Any]:
    sounds = [[s.event, s.clip, s.onset, s.semitones, s.gain_db, s.far, s.repeats] for s in scene.sounds]
    return [scene.relation, scene.snr_db, scene.duration, sounds]
