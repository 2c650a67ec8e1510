"""Probes of languages, scenes and music: how they are drawn, written in words, rendered, mixed, played and graded."""

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pullpush.data.audio import loudest
from pullpush.data.banks import MAX_SECONDS, Bank
from pullpush.data.banks.recorded import _phrases
from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.clips import identity
from pullpush.data.language.grammar import captions, dative_of, load_grammar, prompts
from pullpush.data.language.vocabulary import Event, load_events
from pullpush.data.languages import LANGUAGES, load_languages
from pullpush.data.music.instruments import Instrument, event_of, load_instruments, music_captions, sound
from pullpush.data.music.phrases import RATE, SHAPES, Note, Phrase, kinds, notes, play
from pullpush.data.music.soundfont import DEFAULTS, Sample, SoundFont, Zone
from pullpush.data.music.world import MusicConfig, _deal, likeness, never_named, owned
from pullpush.data.scenes.augmented import mix, partners, unite, unites
from pullpush.data.scenes.composer import SceneConfig, compose, pitch_bank, ratio, single
from pullpush.data.scenes.held_out import named_events, scenes_of, two_banks
from pullpush.data.scenes.renderer import layers, render
from pullpush.data.scenes.scene import Scene, Sound, from_json, relevance_matrix, to_json
from pullpush.data.scenes.world import WorldConfig, draw_scenes, draw_singles, split_of
from pullpush.data.speech import spoken, stamps as speech
from pullpush.data.store import to_int16
from pullpush.golden.compare import Values
from pullpush.golden.probes import Probes, looks, numbers
from pullpush.golden.recordings import DATA, write_soundfont

EACH = 3  # captions of a scene
RELATIONS = ("sequence", "overlap")  # of scenes of several events
SCENES = SceneConfig(max_semitones=2)
VIOLIN = Instrument("violin", "bowed", 40, (55, 96), sustained=True)
DRUM = Instrument("drum", "drums", drums=(36, 38))
TEXTS = Probes("languages", 0.0, cards=load_languages, of_card=lambda code: language(code))


@cache
def bank() -> Bank:
    """Twelve events in four categories; of each two noises of 0.1 to 1.5 s, louder and softer."""
    events = tuple(Event(name, "wxyz"[place % 4], (), {}) for place, name in enumerate("abcdefghijkl"))
    sizes = [(1600 + 1931 * place % 22_400, 2400 + 701 * place) for place in range(len(events))]
    clips = tuple(
        tuple((0.1 * numbers(size, seed=10 * place + number)).float() for number, size in enumerate(pair))
        for place, pair in enumerate(sizes)
    )
    return Bank("probe", events, clips, "probe")


def every_scene(count: int) -> list[Scene]:
    """Scenes of `count` events that hold every relation, with and without all that captions may mention."""
    plain = [(1, "single", 0), *((size, relation, 0) for size in (2, 3, 4) for relation in RELATIONS)]
    mentioned = [(size, relation, what) for size, relation, _ in plain[:5] for what in (1, 2, 3)]
    scenes = []
    for number, (size, relation, what) in enumerate(plain + mentioned):
        far, repeats = what in (1, 3), 3 if what in (2, 3) else 1
        events = [(5 * number + 7 * place) % count for place in range(size)]
        sounds = tuple(Sound(event, 0, float(at), far=far, repeats=repeats) for at, event in enumerate(events))
        noisy = what == 3 or number % 4 == 1
        scenes.append(Scene(sounds, relation, 6.0 if noisy else None, float(size + 1)))
    return scenes


def language(code: str) -> Values:
    """Captions of scenes that are far, repeated and noisy or not, sentences and titles; prompts; what is contracted. Of
    the synthetic events; of those of recordings, where a reader's language has words for these alone.
    """
    values: dict[str, Any] = {"prompt": load_grammar(code).prompt}
    banks = ([event for event in events if code in event.phrases] for events in (synthetic_events(), load_events()))
    events = next(filter(None, banks), [])
    if not events:  # a grammar alone
        return values
    scenes = every_scene(len(events))

    def texts(scene: Scene, n: int, seed: int, **options: Any) -> list[str]:
        return captions(scene, events, language=code, n=n, seed=seed, **options)

    return {
        **values,
        "prompts": prompts(events, code),
        "asked": prompts(events[:2], code, "{label}?"),
        **{f"scene {number:02d}": texts(scene, EACH, number) for number, scene in enumerate(scenes)},
        **{
            kind: [text for scene in scenes[::3] for text in texts(scene, 1, 7, kinds=(kind,))]
            for kind in ("sentences", "titles")
        },
    }


# ---------------------------------------------------------------- scenes


def _plain(scene: Scene) -> list[Any]:
    sounds = [[s.event, s.clip, s.onset, s.semitones, s.gain_db, s.far, s.repeats] for s in scene.sounds]
    return [scene.relation, scene.snr_db, scene.duration, sounds]


def _alone(event: int, onset: float, snr: float | None, duration: float) -> Scene:
    return Scene((Sound(event, 0, onset),), "single", snr, duration)


@DATA("scenes")
def scenes() -> Values:
    """Scenes of several kinds of worlds, their splits, and how they are written."""
    configs = {
        "plain": SceneConfig(),
        "long": SceneConfig(duration=9.0, min_events=2, max_events=4, p_repeat=1.0, p_far=1.0, gain_db=(-9, 3)),
        "short": SceneConfig(duration=1.5, min_duration=1.0, max_events=3, snr_db=None, p_overlap=0.0),
        "together": SceneConfig(p_overlap=1.0, p_noise=1.0, p_single=0.0, max_semitones=0),
    }

    def small(events: Sequence[int]) -> bool:
        return len(events) < 3 and events[0] in (2, 3)

    pairs = [compose(bank(), SCENES, seed=0, index=index, events_allowed=small) for index in range(4)]
    world = WorldConfig("probe", seed=5, scene=SCENES)
    drawn = {name: draw_scenes(name, 9, bank(), world) for name in ("train", "valid", "test")}
    return {
        **{
            name: [_plain(compose(bank(), config, seed=3, index=index)) for index in range(8)]
            for name, config in configs.items()
        },
        "allowed": [_plain(scene) for scene in pairs],  # three events are drawn in vain
        "single": [_plain(single(bank(), event, SCENES, seed=1, index=2)) for event in (0, 5)],
        "split": [split_of([first, last], bank(), seed=4) for first in range(4) for last in range(first)],
        **{name: [[scene.relation, scene.events] for scene in several] for name, several in drawn.items()},
        "singles": [_plain(scene) for scene in draw_singles(bank(), 2, world)[:6]],
        "written": to_json(from_json(to_json(pairs[:1]))),
    }


@DATA("renderer")
def renderer() -> Values:
    """Scenes that are cut, repeated, distant, noisy and too loud, and the two layers of one."""
    near, far = Sound(0, 0, 0.05), Sound(5, 1, 0.1, semitones=2, gain_db=-3.0, far=True)
    various = {
        "single": Scene((near,), "single", None, 0.5),
        "repeated": Scene((Sound(0, 0, 0.0, semitones=-1, repeats=3),), "single", 12.5, 0.6),
        "cut": Scene((Sound(9, 1, 0.0), Sound(3, 0, 0.21, far=True), Sound(7, 0, 0.4)), "sequence", None, 0.7),
        "overlap": Scene((near, far), "overlap", 3.0, 0.8),
        "loud": Scene((Sound(2, 0, 0.0, gain_db=24.0), Sound(4, 1, 0.02, gain_db=20.0)), "overlap", 20.0, 0.4),
    }
    sounds, noise = layers(various["overlap"], bank(), SCENES)
    rendered = {name: looks(render(scene, bank(), SCENES)) for name, scene in various.items()}
    return rendered | {"sounds": looks(sounds), "noise": looks(noise), "stored": to_int16(sounds[1000:1040])}


@DATA("pitch")
def pitch() -> Values:
    """A bank at all shifts, and the factors of an octave."""
    shifts, some = pitch_bank(bank(), 2), ((0, -2), (5, 0), (8, 1))
    return {
        "ratios": [float(ratio(semitones)) for semitones in range(-12, 13)],
        "bounds": shifts.bounds.reshape(-1)[::7],
        "first": shifts.first,
        "clips": torch.stack([looks(shifts.clip(event, event % 2, shift)) for event, shift in some]),
    }


@DATA("mixing")
def mixing() -> Values:
    """Sums of waveforms, unions of scenes, and who is mixed with whom."""
    first, second = (numbers(size, seed=size).float().numpy() for size in (900, 700))
    frog = Scene((Sound(4, 0, 0.25), Sound(2, 1, 0.5, far=True)), "overlap", 6.0, 3.0)
    rain, wind = _alone(9, 0.4, 12.0, 2.0), _alone(2, 0.4, None, 2.0)
    turn = Scene((Sound(1, 0, 0.0), Sound(3, 0, 1.0)), "sequence", None, 2.0)
    several = [frog, rain, wind, turn, *(_alone(event, 0.0, None, 1.0) for event in range(9))]
    united = ((frog, rain), (rain, wind), (several[4], several[5]))
    return {
        "plain": looks(mix(0.1 * first, 0.4 * second, longest=2000)),
        "delayed": looks(mix(0.1 * first, 0.4 * second, delays=(0, 600), longest=1000, fade=50)),
        "loud": looks(mix(2 * first, second, delays=(30, 0), longest=2000)),
        "silence": looks(mix(0 * first, 0.1 * second, longest=2000)),
        "unions": [_plain(unite(*pair)) for pair in united],
        "unites": [unites(*pair) for pair in ((frog, rain), (frog, wind), (rain, turn))],
        "recordings": partners(None, 8, 20, seed=1),
        "scenes": partners(several, 8, len(several), seed=1, taken={frozenset((0, 1))}),
    }


@DATA("held_out")
def held_out() -> Values:
    """Which events are named, which recordings are trained on, and scenes of some of a bank's events."""
    values: dict[str, Any] = {}
    for takes in ("", "synthetic:signal"):
        heard, unheard = two_banks("synthetic", takes)
        source = takes or "own"
        values[f"{source} heard"] = [len(clips) for clips in heard.clips]
        values[f"{source} unheard"] = [len(clips) for clips in unheard.clips]
        values[f"{source} named"] = [named_events(heard, unheard, share, seed=2) for share in (0.3, 0.5)]
    world, some = WorldConfig("probe", seed=6, scene=SCENES), (1, 4, 6, 7, 11)
    for name, split, count in (("scenes", "test", 5), ("singles", "", 1)):
        values[name] = [_plain(scene) for scene in scenes_of(bank(), some, split, count, world)]
    return values


@DATA("relevance")
def relevance() -> Values:
    """How well clips fit each other: scenes, phrases of music, what is spoken, files."""
    events = synthetic_events()
    some = every_scene(len(events))[::2]
    phrases = [
        Phrase("violin", "rising", "slow", "minor", "high", "legato"),
        Phrase("viola", "rising", "slow", "major", "high"),
        Phrase("violin", "music"),
        Phrase("claves", "rhythm", "slow"),
        Phrase("violin", "rising", "slow", "minor", "high", "legato", melody=4),
    ]
    spoken_words = {"key": list("aabc"), "text": ["Ohr", "ear", "ohr", "eye"], "language": ["deu", "eng", "deu", "eng"]}
    return {
        "scenes": relevance_matrix(some, some[::2], events),
        "pair": float(relevance_matrix(some[:1], some[1:2], events)[0, 0]),
        "phrases": likeness({"phrase": phrases}, {"phrase": phrases}),
        "spoken": spoken.same_meaning(spoken_words, spoken_words),
        "groups": speech.same_group({"group": ["a", "b"]}, {"group": ["b", "c", "a"]}),
        "files": identity({"file": ["a", "b"]}, {"file": ["b", "c"]}),
    }


# ---------------------------------------------------------------- music


@DATA("music")
def music() -> Values:
    """Kinds of phrases, how they are dealt out, their notes, and their captions in eight languages."""
    phrases = [Phrase("violin", shape, "slow", "minor", "high", "legato", at) for at, shape in enumerate(SHAPES)]
    beat = Phrase("claves", "rhythm", "fast", melody=4)
    deck, beats = kinds("violin", pitched=True, sustained=True), kinds("claves", pitched=False, sustained=False)
    known = load_instruments()[:6]
    asked = [event_of(item) for item in known]
    named = asked[2].phrases
    played = {phrase.shape: notes(phrase, 3.0, keys=(55, 96)) for phrase in phrases}
    played["rhythm"] = notes(beat, 1.5, keys=(0, 127), drums=(75, 76))
    values: dict[str, Any] = {
        "kinds": [deck[7].kind, deck[-1].kind, *(kind.kind for kind in beats)],
        "owned": [[owned(kind, split, 1) for kind in deck[::9]] for split in ("train", "valid", "test")],
        "drums": owned(beat, "valid", 1),
        "dealt": [[*phrase.kind, phrase.melody] for phrase in _deal("test", [0, 7, 44], 8, 3, split="test")],
        "never named": sorted(never_named(MusicConfig(seed=2))),
        "bank": [[phrase.kind for phrase in _phrases(item)] for item in load_instruments()[::15]],
        "dative": [dative_of(noun) for noun in ("eine große Trommel", "ein Horn", "a horn")],
        "event": [[named[code].clauses[0].verb, named[code].nouns[0], named[code].label] for code in LANGUAGES],
        "asked": [*prompts(asked, "eng", "{label}?"), *prompts(asked[:2], "ita")],
    }
    for shape, line in played.items():
        values[f"notes {shape}"] = [[note.onset, note.length, note.key, note.velocity] for note in line]
    for code in LANGUAGES:
        values[f"captions {code}"] = music_captions(phrases[1], language=code, n=3, seed=5)
        values[f"aligned {code}"] = music_captions(phrases[3], language=code, n=2, seed=5, aligned=True)
        values[f"prompts {code}"] = prompts(asked[:2], code)
    return values


ZONES: dict[str, dict[str, int]] = {
    "plain": {},
    "looped": {"modes": 1, "sustain": 100, "decay": -4000, "attack": -6000},
    "released": {"modes": 3, "release": -3000, "hold": -5000, "delay": -7000},
    "tuned": {"root": 60, "cents": -30, "semitones": 2, "scale": 50, "attenuation": 60},
    "swept": {"filter": 8000, "filter_sweep": 2400, "sweep_attack": -5000, "sweep_decay": -4000, "sweep_sustain": 400},
    "moved": {"modes": 1, "start": 40, "end": -300, "loop_start": 20, "loop_end": -35},
}


class OneZone:
    """A soundfont of one zone."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values = {name: default for name, (_, default) in DEFAULTS.items()} | values

    def zones(self, bank: int, program: int, key: int, velocity: int) -> list[Zone]:
        return [Zone((0, 127), (0, 127), 0, self.values)]

    def sample(self, number: int) -> Sample:
        wave = np.sin(np.arange(4000) * 2 * np.pi / 50).astype(np.float32)
        return Sample(wave, RATE // 2, (1000, 1500), 69, -4)


@DATA("soundfont")
def soundfont() -> Values:
    """Notes of a soundfont of one sine, with what its zones may ask for, and phrases as it plays them."""
    with tempfile.TemporaryDirectory() as folder:
        font = SoundFont(write_soundfont(Path(folder) / "sine.sf2", partials=(1.0, 0.5), programs=41))
    zone, sample = font.zones(0, 40, 60, 100)[0], font.sample(0)
    phrase, beat = Phrase("violin", "arpeggio", "fast", "major", "low", "legato", 3), Phrase("drum", "rhythm", "fast")
    waves, note = numbers(900, seed=5), [Note(0.01, 0.06, 64, 90)]
    return {
        "zone": [zone.keys, zone.velocities, zone.sample, list(zone.values.items())],
        "sample": looks(sample.wave),
        "facts": [sample.rate, sample.loop, sample.key, sample.cents],
        "played": looks(play(font, [Note(0.0, 0.1, 60), Note(0.05, 0.1, 81, 40)], 0.3, program=40)),
        "drums": looks(play(font, [Note(0.0, 0.1, 38)], 0.2, drums=True)),
        **{f"zone {name}": looks(play(OneZone(each), note, 0.15)) for name, each in ZONES.items()},  # pyrefly: ignore
        "phrase": looks(sound(phrase, VIOLIN, font, seconds=0.8, sample_rate=16_000)),
        "rhythm": looks(sound(beat, DRUM, font, seconds=0.5, sample_rate=22_050)),
        "loudest": looks(loudest(waves, 300)),
        "whole": len(loudest(waves, 1000)),
        "seconds": MAX_SECONDS,
    }
