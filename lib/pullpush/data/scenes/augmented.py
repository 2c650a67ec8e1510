"""More to learn from: training clips with further captions, and further clips that are two clips at once.

A configuration is wrapped; validation and test stay as they are:

    back = create("grammar")                                          # see pullpush.rewriting
    load_data(AugmentedConfig(WorldConfig(), (back, create("deletion")), merger=back, mixes=2000))

Further captions are drawn from by `captions="random"`. Mixed clips are a source of their own, so that features of the
clips that were there are not computed again. A scene knows three relations, so that only clips whose sounds all come
together have a union that is true: their sounds are started together, and the union is an overlap.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data import store
from pullpush.data.clips import Clips, Columns, Config, StoredClips, World
from pullpush.data.draws import number as draw_number
from pullpush.data.language.vocabulary import Event
from pullpush.data.mixture import Mixed, Write
from pullpush.data.scenes.renderer import FADE, PEAK
from pullpush.data.scenes.scene import Scene
from pullpush.errors import PullPushError
from pullpush.golden import versions
from pullpush.settings import Count, Whole, check_fields

KIND = "mixes"
TRIES = 200  # draws of a partner before another clip is taken
BOTH = ("first", "second")  # columns of mixed clips: what is known of each of the two


class RewritingError(PullPushError, ValueError):
    """A caption cannot be rewritten; the message names it and says what to do."""


class Rewriter(Protocol):
    """Captions in other words. A frozen dataclass whose fields name it in caches; a subclass writes `rewrite`.

    What a caption becomes depends on the fields, the caption and the number: neither on the other captions nor on
    their order.
    """

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        """One caption for each, in their order; number: of the copy, other numbers bring other words. `RewritingError`
        where a caption cannot be rewritten.
        """
        ...

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Self:
        """The same for the captions of these clips in one language, where it has to know what they say; events: of the
        bank, where clips are scenes. `RewritingError` where it cannot rewrite such captions.
        """
        return self


class Merger(Protocol):
    """Two captions as one, for two clips that are mixed; the same holds as for `Rewriter`."""

    def merge(self, first: Sequence[str], second: Sequence[str], *, number: int = 0) -> list[str]:
        """One caption for each pair of captions; `RewritingError` where two cannot be merged."""
        ...

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Self:
        return self


def check_pairs(first: Sequence[str], second: Sequence[str]) -> None:
    if len(first) != len(second):
        raise ValueError(f"merge takes captions in pairs, got {len(first)} first and {len(second)} second ones")


@dataclass(frozen=True)
class AugmentedConfig:
    """Any data, with more captions and more clips in its training split.

    Attributes:
        data: the world; its training clips are `StoredClips`.
        rewriters: each gives `copies` further versions of every caption, mixed clips' own included.
        copies: of each rewriter, numbered from 0.
        merger: writes the captions of mixed clips, one for each pair of captions of the two.
        mixes: further clips, the sum of two training clips at equal levels; of scenes the union is the truth, so that
            clips with sounds one after the other are not mixed, nor to a set of events that another split holds.
        language: of the captions that are rewritten, ISO 639-3; those in others stay as they are, and mixed clips have
            captions in this one alone.
        seed: of the pairs that are mixed; rewriters have their own.
    """

    data: Config
    rewriters: tuple[Rewriter, ...] = ()
    copies: Count = 1
    merger: Merger | None = None
    mixes: Whole = 0
    language: str = "eng"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rewriters", tuple(self.rewriters))
        check_fields(self, of="augmented", but=("data", "rewriters", "merger"))
        if self.mixes and self.merger is None:
            raise ValueError(f"{self.mixes} mixes need a merger to write their captions, such as create('grammar')")

    def load(self) -> World:
        """The world with its training clips augmented; all captions are written now, so that runs are named by them.

        Raises:
            TypeError: clips of another kind, such as features or a mixture: augment what they are made of.
            RewritingError: a rewriter cannot rewrite the captions of these clips.
            PullPushError: there are not as many pairs of clips to mix.

        """
        world = self.data.load()
        clips = world.train
        if not isinstance(clips, StoredClips):
            raise TypeError(f"clips with waveforms are augmented, got {type(clips).__name__}: augment their parts")
        events = world.bank.events if world.bank else ()
        retold = self._retold(clips, events)
        train: Clips = retold
        if self.mixes:
            pairs = _pairs(world, clips, self.mixes, self.seed)
            merger = self.merger.of(clips, self.language, events)  # pyrefly: ignore[missing-attribute]
            mixed = self._retold(mixed_clips(clips, pairs, merger, self.language), events)
            train = Augmented.of(clips.name, [retold, mixed], compare=clips.compare)
        words = content_key([world.words, train.captions(self.language)])
        parts = (*world.parts, "data/augmented", *(["data/mixing"] if self.mixes else []))
        return World(self, {**world.splits, "train": train}, words, world.bank, parts=parts)

    def _retold(self, clips: StoredClips, events: Sequence[Any]) -> StoredClips:
        known = tuple(rewriter.of(clips, self.language, events) for rewriter in self.rewriters)
        write = partial(write_further, clips.write, known, self.copies, self.language)
        return replace(clips, write=write, _captions={})


def write_further(
    write: Write, rewriters: Sequence[Rewriter], copies: int, main: str, columns: Columns, language: str
) -> list[list[str]]:
    """A clip's captions as `write` gives them, and in the main language each once more by every rewriter and copy."""
    captions = write(columns, language)
    if language != main:
        return captions
    flat = [text for texts in captions for text in texts]
    versions = [rewriter.rewrite(flat, number=number) for number in range(copies) for rewriter in rewriters]
    starts = np.cumsum([0, *map(len, captions)])
    return [
        [*texts, *(text for version in versions for text in version[start : start + len(texts)])]
        for start, texts in zip(starts, captions, strict=False)  # starts ends with the number of captions
    ]


# ------------------------------------------------------------------------------------------------------- mixed clips


@dataclass(frozen=True, eq=False)
class Augmented(Mixed):
    """Clips and mixes of them, with relevance among all; compare: (columns, other columns) → relevance `(N, M)`."""

    compare: Callable[[Columns, Columns], Tensor] = field(kw_only=True, repr=False)

    @property
    def graded(self) -> bool:  # pyrefly: ignore[bad-override]
        return self.sources[0].graded

    def relevance(self, other: Clips | None = None) -> Tensor:
        return self.compare(self.columns, self.columns if other is None else other.columns)


def mixed_clips(clips: StoredClips, pairs: Sequence[tuple[int, int]], merger: Merger, language: str) -> StoredClips:
    """Each pair of clips as one clip: summed once and kept, captioned by a merger that knows the captions of `clips`.

    Columns are "scene", "file" (as far as the clips have them), and "first" and "second", all that is known of the two.
    """
    rate, scenes = clips.waveforms.sample_rate, clips.columns.get("scene")
    numbers = [list(pair) for pair in pairs]
    key = content_key([versions("data/augmented", "data/mixing"), clips.key, numbers])
    waveforms, content = store.cached(KIND, key, lambda: mixed_waves(clips, pairs), rate)
    rows = [tuple({name: held[row] for name, held in clips.columns.items()} for row in pair) for pair in pairs]
    columns: dict[str, Sequence[Any]] = {side: [pair[at] for pair in rows] for at, side in enumerate(BOTH)}
    if scenes is not None:
        united = (unite(scenes[a], scenes[b]) for a, b in pairs)
        longest = int(clips.lengths.max()) / rate
        columns["scene"] = [replace(scene, duration=min(scene.duration, longest)) for scene in united]
    if "file" in clips.columns:
        columns["file"] = [f"{first['file']} + {second['file']}" for first, second in rows]
    return replace(
        clips,
        key=content_key([content, clips.key, numbers]),
        waveforms=waveforms,
        rows=np.arange(len(pairs)),
        columns=columns,
        write=partial(write_merged, clips.write, merger, language),
        _captions={},
    )


def mixed_waves(clips: StoredClips, pairs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
    """Each pair as one recording `(T,)` int16, no longer than the longest clip; sounds of scenes begin together."""
    longest, rate, scenes = int(clips.lengths.max()), clips.waveforms.sample_rate, clips.columns.get("scene")
    for pair in pairs:
        first, second = (clips.audio(row)[0][0].numpy() for row in pair)
        starts = [0.0, 0.0] if scenes is None else [scenes[row].sounds[0].onset for row in pair]
        delays = round((max(starts) - starts[0]) * rate), round((max(starts) - starts[1]) * rate)
        yield store.to_int16(mix(first, second, delays=delays, longest=longest, fade=round(FADE * rate)))


def write_merged(write: Write, merger: Merger, main: str, columns: Columns, language: str) -> list[list[str]]:
    """One caption for each pair of captions of the two clips, as many as the one with fewer has; none in others."""
    if language != main:
        return [[] for _ in columns[BOTH[0]]]
    captions = [write({name: [row[name] for row in columns[side]] for name in columns[side][0]}, main) for side in BOTH]
    pairs = [list(zip(*texts, strict=False)) for texts in zip(*captions, strict=True)]  # as many as both have
    merged = iter(merger.merge(*([pair[at] for several in pairs for pair in several] for at in (0, 1))))
    return [[next(merged) for _ in several] for several in pairs]


def _pairs(world: World, clips: StoredClips, count: int, seed: int) -> list[tuple[int, int]]:
    """Pairs of training clips to mix; of scenes no union holds the events of a clip that is chosen by or tested on."""
    others = [held for name, held in world.splits.items() if name != "train" and "scene" in held.columns]
    taken = {frozenset(scene.events) for held in others for scene in held.columns["scene"]}
    return partners(clips.columns.get("scene"), count, len(clips), seed=seed, taken=taken)


# -------------------------------------------------------------------------------------------------- two clips as one


def unite(first: Scene, second: Scene) -> Scene:
    """The scene of both, whose sounds begin together: an overlap. The noise of both is under the sounds of both, which
    are as strong: snr_db follows from the two ratios. `ValueError` where one is a sequence, or both hold one event.
    """
    if not unites(first, second):
        raise ValueError(f"only scenes of different events that sound together have a union, got {first}, {second}")
    starts = [scene.sounds[0].onset for scene in (first, second)]
    sounds = [
        replace(sound, onset=round(sound.onset + max(starts) - start, 3))
        for scene, start in zip((first, second), starts, strict=True)
        for sound in scene.sounds
    ]
    duration = max(scene.duration + max(starts) - start for scene, start in zip((first, second), starts, strict=True))
    ordered = tuple(sorted(sounds, key=lambda sound: (sound.onset, sound.event)))
    return Scene(ordered, "overlap", _ratio(first.snr_db, second.snr_db), round(duration, 3))


def unites(first: Scene, second: Scene) -> bool:
    """Whether two scenes have a union: no sequence, and no event twice."""
    return "sequence" not in (first.relation, second.relation) and not set(first.events) & set(second.events)


def _ratio(*ratios: float | None) -> float | None:
    """Sounds over noise in decibels, of clips of equal power; None where none has noise."""
    noise = [0.0 if ratio is None else 1 / (1 + 10 ** (ratio / 10)) for ratio in ratios]
    return round(10 * math.log10(len(noise) / sum(noise) - 1), 1) if sum(noise) else None


def partners(
    scenes: Sequence[Scene] | None, count: int, clips: int, *, seed: int, taken: Collection[frozenset[int]] = ()
) -> list[tuple[int, int]]:
    """`count` pairs of clips by their numbers, first < second, all different: pair k is a draw of (seed, k).

    scenes: of the clips, which then have a union; None where clips are recordings, any two of which may be mixed;
    clips: how many there are; taken: sets of events that no union may have, those of other splits.

    >>> partners(None, 3, 10, seed=0)
    [(0, 1), (0, 3), (1, 9)]
    """

    def fits(first: int, second: int) -> bool:
        """Whether two clips have a union that is free."""
        if scenes is None:
            return True
        one, other = scenes[first], scenes[second]
        return unites(one, other) and frozenset(one.events + other.events) not in taken

    usable = [row for row in range(clips) if scenes is None or scenes[row].relation != "sequence"]
    found: dict[tuple[int, int], None] = {}  # a set that keeps its order
    for at in range(count):
        drawn = (_draw(usable, (seed, at, attempt)) for attempt in range(TRIES if len(usable) > 1 else 0))
        fitting = (pair for pair in drawn if pair not in found and fits(*pair))
        if (pair := next(fitting, None)) is None:
            raise PullPushError(
                f"only {at} of {count} pairs of clips that can be mixed were found among {clips} clips: ask for fewer "
                "mixes (clips with sounds one after the other are not mixed, nor two with the same event)"
            )
        found[pair] = None
    return list(found)


def _draw(rows: Sequence[int], asked: tuple[int, ...]) -> tuple[int, int]:
    """Two different rows, the smaller first."""
    first = draw_number(("first", *asked)) % len(rows)
    second = (first + 1 + draw_number(("second", *asked)) % (len(rows) - 1)) % len(rows)
    return min(rows[first], rows[second]), max(rows[first], rows[second])


def mix(
    first: np.ndarray, second: np.ndarray, *, delays: tuple[int, int] = (0, 0), longest: int, fade: int = 1
) -> np.ndarray:
    """The sum of two waveforms at equal power, `(T,)` float32, scaled down where it would be louder than `PEAK`.

    first, second: `(T1,)`, `(T2,)` float32 in [-1, 1]; their powers become the geometric mean of both. delays: samples
    of silence before each; longest: samples that are kept, the last `fade` of them fading out where there were more.

    >>> mix(np.array([0.1, -0.1], np.float32), np.array([0.4, 0.4], np.float32), longest=2)
    array([0.4, 0. ], dtype=float32)
    """
    powers = [float(np.mean(wave.astype(np.float64) ** 2)) for wave in (first, second)]
    aims = [math.sqrt(powers[0] * powers[1])] * 2 if all(powers) else powers  # silence has no level to be equal to
    total = np.zeros(max(len(wave) + delay for wave, delay in zip((first, second), delays, strict=True)), np.float32)
    for wave, delay, power, aim in zip((first, second), delays, powers, aims, strict=True):
        total[delay : delay + len(wave)] += wave * np.float32(math.sqrt(aim / power) if power else 0.0)
    if len(total) > longest:
        total, fade = total[:longest], min(longest, fade)
        total[longest - fade :] *= np.linspace(1, 0, fade, dtype=np.float32)
    peak = float(np.abs(total).max(initial=0.0))
    return total * np.float32(PEAK / peak) if peak > PEAK else total
