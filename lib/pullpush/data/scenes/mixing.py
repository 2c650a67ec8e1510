"""Two clips as one: their audio is added at equal levels, their scenes are united.

A scene knows three relations, so that only clips whose sounds all come together (one sound, or several at once) have a
union that tells the truth: their sounds are started together, and the union is an overlap.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from pullpush.data.draws import number
from pullpush.data.scenes.renderer import PEAK
from pullpush.data.scenes.scene import Scene
from pullpush.errors import PullPushError

TRIES = 200  # draws of a partner before another clip is taken


def unite(first: Scene, second: Scene) -> Scene:
    """The scene of both, whose sounds begin together: an overlap.

    The noise of both is heard under the sounds of both, which are as strong: snr_db follows from the two ratios.
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

    Args:
        scenes: of the clips, which then have a union; None where clips are recordings, any two of which may be mixed.
        count: of pairs.
        clips: how many there are.
        seed: of the draws.
        taken: sets of events that no union may have, those of other splits.

    >>> partners(None, 3, 10, seed=0)
    [(0, 1), (0, 3), (1, 9)]
    """
    usable = [row for row in range(clips) if scenes is None or scenes[row].relation != "sequence"]
    found: dict[tuple[int, int], None] = {}  # a set that keeps its order
    for at in range(count):
        drawn = (_draw(usable, (seed, at, attempt)) for attempt in range(TRIES if len(usable) > 1 else 0))
        fitting = (pair for pair in drawn if pair not in found and (scenes is None or _fits(*pair, scenes, taken)))
        if (pair := next(fitting, None)) is None:
            raise PullPushError(
                f"only {at} of {count} pairs of clips that can be mixed were found among {clips} clips: ask for fewer "
                "mixes (clips with sounds one after the other are not mixed, nor two with the same event)"
            )
        found[pair] = None
    return list(found)


def _draw(rows: Sequence[int], asked: tuple[int, ...]) -> tuple[int, int]:
    """Two different rows, the smaller first."""
    first = number(("first", *asked)) % len(rows)
    second = (first + 1 + number(("second", *asked)) % (len(rows) - 1)) % len(rows)
    return min(rows[first], rows[second]), max(rows[first], rows[second])


def _fits(first: int, second: int, scenes: Sequence[Scene], taken: Collection[frozenset[int]]) -> bool:
    """Whether two scenes have a union that is free."""
    one, other = scenes[first], scenes[second]
    return unites(one, other) and frozenset(one.events + other.events) not in taken


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
