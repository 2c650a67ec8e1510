"""A world of scenes rendered from a bank of recordings, in splits that share no combination of events.

Each split is rendered once, cached by the content of everything that shapes it, and memory-mapped from then on. Scenes
are known by the components that make and caption them, and by all that decides their captions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data import store
from pullpush.data.banks import Bank, create_bank
from pullpush.data.clips import Columns, StoredClips, World
from pullpush.data.draws import number
from pullpush.data.language.grammar import captions, prompts
from pullpush.data.language.vocabulary import Event
from pullpush.data.languages import load_languages, told_by
from pullpush.data.scenes.composer import SceneConfig, compose, pitch_bank, single
from pullpush.data.scenes.renderer import render
from pullpush.data.scenes.scene import Scene, from_json, relevance_matrix, to_json
from pullpush.golden import versions
from pullpush.settings import Count, check_fields

SCENES = ("data/scenes", "data/renderer", "data/pitch")  # the components whose work the cache holds
KNOWN = ("data/relevance", "data/labels")  # and those that clips of scenes ask
Tell = Callable[..., list[str]]

SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}  # of all combinations of two or more events
ATTEMPTS = 20  # draws until a scene of valid or test differs from those before it


def words_of(bank: Bank, *, each: int, seed: int) -> str:
    """A name for what decides the captions of a bank's scenes, `each` of them, drawn by `seed`."""
    events = [[event.name, event.category, event.phrases] for event in bank.events]
    return content_key([events, told_by(_languages(bank)), each, seed])


def parts_of(bank: Bank) -> tuple[str, ...]:
    """The components (see `pullpush.golden`) that make scenes of a bank, and tell them."""
    return *SCENES, *KNOWN, *(f"languages/{code}" for code in _languages(bank))


def _languages(bank: Bank) -> list[str]:
    """Those that the bank's events are told in."""
    return [code for code in load_languages() if any(code in event.phrases for event in bank.events)]


@dataclass(frozen=True)
class WorldConfig:
    """Everything that shapes a world; see SceneConfig for the sound of its scenes (a mapping is taken too).

    bank: name of a bank; seed: of all draws; n_train, n_valid, n_test: scenes per split; n_single_per_event:
    single-event clips per event for zero-shot classification; captions_per_scene: in each language.
    """

    bank: str = "tuxpaint"
    seed: int = 0
    n_train: Count = 4000
    n_valid: Count = 500
    n_test: Count = 500
    n_single_per_event: Count = 4
    scene: SceneConfig = field(default_factory=SceneConfig)
    captions_per_scene: Count = 5

    def __post_init__(self) -> None:
        check_fields(self.scene, of="scene", kind=SceneConfig)
        check_fields(self, of="world", but=("scene",))
        if isinstance(self.scene, Mapping):
            object.__setattr__(self, "scene", SceneConfig(**self.scene))

    def load(self) -> World:
        return load_world(self)


def load_world(config: WorldConfig) -> World:
    """Render a world, or read it from the cache.

    No combination of two or more events occurs in two of train, valid and test; within valid and within test,
    scenes differ in their graphs as far as the bank allows, so that a caption fits one clip best. The further split
    "singles" holds every event `n_single_per_event` times, with augmentation of its own.

    Returns:
        Clips with the column "scene" (see scene.py), and "label" where all hold one event; relevance is graded.

    Raises:
        UnknownNameError, DataNotFoundError: the bank is unknown, or cannot be fetched.
        PullPushError: the bank is too small for the splits.

    >>> world = load_world(WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1))
    >>> audio, lengths = world.train.audio([0, 1])
    >>> len(world.train), audio.shape[0], len(world.train.captions("deu")[0])
    (4, 2, 5)
    """
    bank = create_bank(config.bank)
    sizes = {"train": config.n_train, "valid": config.n_valid, "test": config.n_test}
    sizes["singles"] = config.n_single_per_event
    splits = {name: _load_split(name, size, bank, config) for name, size in sizes.items()}
    words = words_of(bank, each=config.captions_per_scene, seed=config.seed)
    return World(config, splits, words, bank, parts=parts_of(bank))


def split_of(events: Sequence[int], bank: Bank, *, seed: int) -> str:
    """The split that owns a combination of events, in any order, by a hash of their names."""
    names = sorted(bank.events[event].name for event in events)
    point = number(("combination", seed, *names)) / 2**64
    return "train" if point < SHARES["train"] else "valid" if point < 1 - SHARES["test"] else "test"


def write_captions(
    events: Sequence[Event], each: int, seed: int, columns: Columns, language: str, *, tell: Tell = captions
) -> list[list[str]]:
    """`each` captions of every scene in one language; tell: see `grammar.captions`."""
    return [tell(scene, events, language=language, n=each, seed=seed) for scene in columns["scene"]]


def retold(config: Any, scenes: Any, tell: Tell, part: str, about: Callable[[str], list[Any]]) -> World:
    """The world of a configuration of scenes with other captions in all its splits: clips keep their names and audio.

    tell: in place of `grammar.captions`; part: its component; about: key of the world's words → what decides the new.
    """
    world = scenes.load()
    write = partial(write_captions, world.bank.events, scenes.captions_per_scene, scenes.seed, tell=tell)
    splits = {name: replace(clips, write=write, _captions={}) for name, clips in world.splits.items()}
    words = content_key([versions(part), *about(world.words)])
    return World(config, splits, words, world.bank, parts=(*world.parts, part))


def grade(events: Sequence[Event], columns: Columns, other: Columns) -> Tensor:
    return relevance_matrix(columns["scene"], other["scene"], events)


def scene_clips(
    name: str, key: str, draw: Callable[[], Sequence[Scene]], bank: Bank, config: WorldConfig
) -> StoredClips:
    """Scenes of a split as clips: drawn and rendered when first asked for, then read from the cache.

    key: of all that shapes its scenes and their sound; the clips' own is that of the bytes that come of it.
    """

    def build(folder: Path) -> None:
        scenes = draw()
        pitch_bank(bank, config.scene.max_semitones)  # before the threads start, so that one of them makes it
        store.write(folder, store.made(partial(_rendered, bank, config.scene), scenes, f"rendering {name}"))
        (folder / "scenes.jsonl").write_text(to_json(scenes), encoding="utf-8")

    folder = cached_dir("worlds", key, build)
    scenes = from_json((folder / "scenes.jsonl").read_text(encoding="utf-8"))
    columns: dict[str, Sequence] = {"scene": scenes}
    if all(scene.relation == "single" for scene in scenes):
        columns["label"] = [scene.events[0] for scene in scenes]
    return StoredClips(
        name,
        bytes_key(folder),
        store.read(folder),
        np.arange(len(scenes)),
        columns,
        partial(write_captions, bank.events, config.captions_per_scene, config.seed),
        partial(grade, bank.events),
        partial(prompts, bank.events),
        graded=True,
    )


def _load_split(name: str, size: int, bank: Bank, config: WorldConfig) -> StoredClips:
    """Read the split from the cache, rendering it first if it is not there."""
    key = content_key([versions(*SCENES), bank.key, name, size, config.seed, config.scene])
    draw = (
        partial(draw_singles, bank, size, config)
        if name == "singles"
        else partial(draw_scenes, name, size, bank, config)
    )
    return scene_clips(name, key, draw, bank, config)


def draw_scenes(name: str, size: int, bank: Bank, config: WorldConfig) -> list[Scene]:
    """`size` scenes of the split `name` ("train", "valid" or "test"), of combinations of events that it owns."""

    @cache  # where a bank is small, the same combinations are drawn a thousand times
    def allowed(events: tuple[int, ...]) -> bool:
        return len(events) == 1 or split_of(events, bank, seed=config.seed) == name

    seen: set[tuple] = set()
    scenes = []
    for index in range(size):
        for attempt in range(1 if name == "train" else ATTEMPTS):
            seed = number((name, config.seed, attempt))
            scene = compose(bank, config.scene, seed=seed, index=index, events_allowed=allowed)
            if scene.graph not in seen:
                break
        seen.add(scene.graph)
        scenes.append(scene)
    return scenes


def draw_singles(bank: Bank, each: int, config: WorldConfig) -> list[Scene]:
    """`each` scenes of every event alone, in the order of the events."""
    seed = number(("singles", config.seed))
    return [
        single(bank, event, config.scene, seed=seed, index=index)
        for event in range(len(bank.events))
        for index in range(each)
    ]


def _rendered(bank: Bank, config: SceneConfig, scene: Scene) -> np.ndarray:
    return store.to_int16(render(scene, bank, config).numpy())
