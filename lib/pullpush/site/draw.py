"""Which of the kept runs are trained again: drawn over all chapters, so that a time budget holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SHARE = 3.0  # times a run's fair share of the time is the longest that is drawn


class Kept(NamedTuple):
    """A kept experiment: how many runs it has, and the seconds that they take, each trained by itself."""

    chapter: str
    experiment: str
    runs: int
    seconds: float

    @property
    def cost(self) -> float:
        """Seconds of one run."""
        return self.seconds / max(self.runs, 1)

    def __str__(self) -> str:
        return f"{self.chapter}/{self.experiment}"


def draw(there: Sequence[Kept], *, runs: int, minutes: float, seed: int) -> list[tuple[Kept, int]]:
    """Runs of kept experiments, each with its number in the experiment, from 0.

    Chapters take turns, and within a chapter its experiments, both in an order that the seed shuffles; of the
    experiment whose turn it is any run is as likely as any other. Passed over is what does not fit into the minutes
    that are left, and at once what takes three times its share of them: fifteen runs of twenty minutes take at most
    four minutes each. Training counts as if nothing were trained side by side, which leaves time for data and scores.

    >>> there = [Kept("01", "a", 10, 600.0), Kept("02", "b", 4, 240.0), Kept("02", "long", 1, 9000.0)]
    >>> [str(kept) for kept, _ in sorted(draw(there, runs=3, minutes=4, seed=0))]
    ['01/a', '01/a', '02/b']
    """
    generator = np.random.default_rng(seed)
    left, most = 60 * minutes, SHARE * 60 * minutes / max(runs, 1)
    chapters = sorted({kept.chapter for kept in there})
    queues = {
        chapter: [kept for kept in sorted(there) if kept.chapter == chapter and kept.cost <= most]
        for chapter in chapters
    }
    for queue in queues.values():
        queue[:] = [queue[at] for at in generator.permutation(len(queue))]
    open_runs = {kept: list(generator.permutation(kept.runs)) for queue in queues.values() for kept in queue}
    order = [chapters[at] for at in generator.permutation(len(chapters))]
    found: list[tuple[Kept, int]] = []
    while len(found) < runs:
        before = len(found)
        for chapter in order[: runs - before]:
            fits = [kept for kept in queues[chapter] if open_runs[kept] and kept.cost <= left]
            if fits:
                kept = fits[0]
                queues[chapter].remove(kept)
                queues[chapter].append(kept)
                found.append((kept, int(open_runs[kept].pop())))
                left -= kept.cost
        if len(found) == before:
            break
    return found


def passed_over(there: Sequence[Kept], *, runs: int, minutes: float) -> list[Kept]:
    """The experiments of which a run takes too long to be drawn in these minutes."""
    return [kept for kept in there if kept.cost > SHARE * 60 * minutes / max(runs, 1)]
