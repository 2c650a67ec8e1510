"""Music as a world: short phrases on 47 instruments, captioned by what is played and how, in eight languages.

    world = load_data(MusicConfig())

| split | instruments | recordings of them | kinds of phrases |
|---|---|---|---|
| train, valid | named | heard fonts | their own |
| test | named | heard fonts | new |
| recordings | the phrases of test, note by note | fonts never heard | new |
| instruments | never named | heard fonts | all |
| singles, recording_singles | all | heard fonts; fonts never heard | all |
| real | those that have them | people who play | unknown |

A kind of phrase is an instrument with a shape, tempo, mode, register and articulation; what a caption tells of it is
true of the notes. `singles`, `recording_singles` and `real` have the instrument as their label. Relevance is how
well the caption of one phrase fits another.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data import store
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import Columns, Splits, StoredClips, World, same
from pullpush.data.draws import number, share
from pullpush.data.language.grammar import prompts
from pullpush.data.language.wording import FORMS
from pullpush.data.languages import LANGUAGES, told_by
from pullpush.data.music.instruments import (
    REAL,
    event_of,
    font_path,
    load_font,
    load_instruments,
    load_words,
    real_sounds,
    sound,
    write_captions,
)
from pullpush.data.music.phrases import ATTRIBUTES, UNKNOWN, Phrase, kinds
from pullpush.errors import check_all_known, check_known
from pullpush.golden import versions
from pullpush.settings import Count, Positive, check_fields

NEAR = 0.75  # the most that a phrase of another kind is relevant
SOUNDS = ("data/music", "data/soundfont")  # the components whose work the cache holds
PARTS = (*SOUNDS, "data/decoding", "data/relevance", "data/labels", *(f"languages/{code}" for code in LANGUAGES))
SHARES = (0.8, 0.9)  # of the kinds of phrases: below the first train, below the second valid, the rest test


def likeness(columns: Columns, other: Columns) -> Tensor:
    """Relevance of phrases, `(N, M)` float32 in [0, 1]: 1 for the same kind, else up to 0.75.

    0.75 (2 I + S + A) / (3 + |A|) with I = 1 for the same instrument and 1/2 for one of its family, S = 1 for the same
    shape, and A attributes that both have in common of |A| that either has.

    columns, other: their "phrase" is read.
    """
    family = {item.name: item.family for item in load_instruments()}

    def alike(value: Callable[[Phrase], Any]) -> Tensor:
        """Where both have the same, `(N, M)` bool."""
        return same(*([value(phrase) for phrase in side["phrase"]] for side in (columns, other)))

    shared = alike(attrgetter("instrument")).double() + alike(lambda phrase: family[phrase.instrument])
    shared, total = shared + alike(attrgetter("shape")), 3
    for name in ATTRIBUTES:
        mine, theirs = ([getattr(phrase, name) for phrase in side["phrase"]] for side in (columns, other))
        neither = (same(mine, [""]) & same([""], theirs)).double()
        shared, total = shared + same(mine, theirs) - neither, total + 1 - neither
    return torch.where(alike(attrgetter("kind")), 1.0, NEAR * shared / total).float()


@dataclass(frozen=True)
class MusicConfig:
    """What is played, and what is kept for the tests.

    fonts, new_fonts: names of soundfonts (see instruments.py) or paths, heard in training and never heard; real:
    packages of real recordings; share: of each family's instruments, how many training never
    names; n_train, n_valid, n_test: phrases (`n_test` in each of test, recordings and instruments);
    n_single_per_instrument: in singles; captions_per_phrase, form: "retold" or "aligned"; seconds: of a phrase;
    sample_rate: in Hz, that phrases are kept in; seed: of all draws.
    """

    fonts: tuple[str, ...] = ("fluid",)
    new_fonts: tuple[str, ...] = ("timgm",)
    real: tuple[str, ...] = ("gcompris",)
    share: float = 0.25
    n_train: Count = 1500
    n_valid: Count = 250
    n_test: Count = 250
    n_single_per_instrument: Count = 4
    captions_per_phrase: Count = 5
    form: str = "retold"
    seconds: Positive = 4.0
    sample_rate: Count = SAMPLE_RATE
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, of="music")
        for name in ("fonts", "new_fonts", "real"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.fonts:
            raise ValueError("fonts must name at least one soundfont")
        if both := set(self.fonts) & set(self.new_fonts):
            raise ValueError(f"{sorted(both)} cannot be heard in training and never heard")
        check_all_known("package of real recordings", sorted(self.real), REAL)
        check_known("form of captions", self.form, FORMS)
        if not 0 <= self.share < 1:
            raise ValueError(f"share must lie in [0, 1), got {self.share}")

    def load(self) -> World:
        """Render the splits, or read them from the cache."""
        table, seed, size = load_instruments(), self.seed, self.n_test
        never = never_named(self)
        named = [row for row in range(len(table)) if row not in never]
        test = _deal("test", named, size, seed, split="test")
        singles = _deal("singles", range(len(table)), self.n_single_per_instrument * len(table), seed)
        phrases = {
            "train": (_deal("train", named, self.n_train, seed, split="train"), self.fonts),
            "valid": (_deal("valid", named, self.n_valid, seed, split="valid"), self.fonts),
            "test": (test, self.fonts),
            "recordings": (test, self.new_fonts),
            "instruments": (_deal("instruments", sorted(never), size, seed), self.fonts),
            "singles": (singles, self.fonts),
            "recording_singles": (singles, self.new_fonts),
        }
        wanted = {name: part for name, part in phrases.items() if part[0] and part[1]}
        splits = Splits({name: partial(_rendered, name, *part, self) for name, part in wanted.items()})
        if self.real:
            splits["real"] = partial(_real, self)
        about = [self.form, self.captions_per_phrase, self.seed]
        known = [[item.name, item.family, item.names] for item in table]
        words = content_key([*about, known, load_words(), versions("data/music"), told_by(LANGUAGES)])
        return World(self, splits, words, parts=PARTS)


def never_named(config: MusicConfig) -> set[int]:
    """The instruments that training does not name: a share of each family, drawn by a hash of the names."""
    table = load_instruments()
    held = set()
    for family in {item.family for item in table}:
        rows = [row for row, item in enumerate(table) if item.family == family]
        order = sorted(rows, key=lambda row: share(("named", config.seed, table[row].name)))
        held |= set(order[: int(config.share * len(rows))])
    return held


def owned(kind: Phrase, split: str, seed: int) -> bool:
    """Whether a split may hold a kind of phrase, by a hash; drums have three kinds, which are in every split."""
    if not kind.mode:
        return True
    point = share(("kind", seed, kind.kind))
    return split == ("train" if point < SHARES[0] else "valid" if point < SHARES[1] else "test")


def _deal(name: str, rows: Sequence[int], size: int, seed: int, *, split: str = "") -> list[Phrase]:
    """`size` phrases of the kinds that `split` owns (all, if ""): instruments in turn, kinds each once in a round."""
    table, decks = load_instruments(), []
    for row in rows:
        item = table[row]
        deck = kinds(item.name, pitched=not item.drums, sustained=item.sustained)
        deck = [kind for kind in deck if not split or owned(kind, split, seed)]
        decks.append(sorted(deck, key=lambda kind: number((name, seed, kind.kind))))
    decks = [deck for deck in decks if deck]
    found = []
    for index in range(size if decks else 0):
        turn, place = divmod(index, len(decks))
        kind = decks[place][turn % len(decks[place])]
        found.append(replace(kind, melody=number((name, seed, index), size=4)))
    return found


def _rendered(name: str, phrases: Sequence[Phrase], fonts: Sequence[str], config: MusicConfig) -> StoredClips:
    """Phrases as clips, each in a font drawn by its hash."""
    chosen = [fonts[number(("font", phrase)) % len(fonts)] for phrase in phrases]
    shaped = [[list(asdict(phrase).values()) for phrase in phrases], chosen, config.seconds, config.sample_rate]
    paths = {font: font_path(font) for font in fonts}
    key = content_key([versions(*SOUNDS), [path.stat().st_size for path in paths.values()], shaped])
    by_name = {item.name: item for item in load_instruments()}

    def play(row: int) -> np.ndarray:
        phrase, font = phrases[row], load_font(paths[chosen[row]])
        item = by_name[phrase.instrument]
        return store.to_int16(sound(phrase, item, font, seconds=config.seconds, sample_rate=config.sample_rate))

    waves = partial(store.made, play, range(len(phrases)), f"rendering {name}")
    columns: dict[str, Sequence[Any]] = {"phrase": list(phrases), "font": chosen}
    return _clips(name, key, waves, columns, config)


def _real(config: MusicConfig) -> StoredClips:
    """Recordings of people who play, of which the instrument alone is known."""
    pairs = [
        (item.name, take)
        for item in load_instruments()
        for take in item.recordings
        if take.partition("/")[0] in config.real
    ]
    takes = [take for _, take in pairs]
    key = content_key([versions("data/decoding", "data/soundfont"), takes, config.seconds, config.sample_rate])

    def waves() -> Iterator[np.ndarray]:
        found = real_sounds(takes, seconds=config.seconds, sample_rate=config.sample_rate)
        return (store.to_int16(wave) for wave in found)

    columns: dict[str, Sequence[Any]] = {
        "phrase": [Phrase(name, UNKNOWN) for name, _ in pairs],
        "font": [take.partition("/")[0] for take in takes],
    }
    return _clips("real", key, waves, columns, config)


def _clips(
    name: str,
    key: str,
    waves: Callable[[], Iterable[np.ndarray]],
    columns: dict[str, Sequence[Any]],
    config: MusicConfig,
) -> StoredClips:
    """Clips from the cache, or from what `waves` renders."""
    waveforms, content = store.cached("music", key, waves, config.sample_rate)
    rows = {item.name: row for row, item in enumerate(load_instruments())}
    columns["label"] = [rows[phrase.instrument] for phrase in columns["phrase"]]
    return StoredClips(
        name,
        content_key([content, config.sample_rate, columns]),
        waveforms,
        np.arange(len(columns["phrase"])),
        columns,
        partial(write_captions, config.captions_per_phrase, config.seed, config.form == "aligned"),
        likeness,
        partial(prompts, [event_of(item) for item in load_instruments()]),
        graded=True,
    )
