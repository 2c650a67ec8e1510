"""What is kept, by the records beside it, `book/measured/<chapter>/<experiment>.json`, and which of it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from pullpush.lab import kept
from pullpush.lab.kept import KeptError

SHARE = 3.0  # times a run's fair share of the time is the longest that is drawn


@dataclass(frozen=True, order=True)
class Note:
    """A kept experiment.

    Attributes:
        runs: how many it has; those that differ in what they are tested on alone were trained once.
        seconds: of the training behind it.
        tests: on how many each was tested.
        versions: of the components that it went through, then.
    """

    chapter: str
    experiment: str
    runs: int
    seconds: float
    tests: int = 1
    versions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def cost(self) -> float:
        """Seconds of one run, trained by itself."""
        return self.tests * self.seconds / max(self.runs, 1)

    def __str__(self) -> str:
        return f"{self.chapter}/{self.experiment}"


def notes(root: Path) -> tuple[list[Note], dict[str, str]]:
    """What is noted of all kept experiments of a book; and, by name, what is wrong with records that say nothing."""
    found: list[Note] = []
    faults: dict[str, str] = {}
    for path in sorted(kept.folder_of("", root=root).glob("*/*.json")):
        chapter, experiment = path.parent.name, path.stem
        try:
            record = kept.about(chapter, experiment, root=root)
        except KeptError as error:
            faults[f"{chapter}/{experiment}"] = str(error)
            continue
        if record:
            tests = len(record.declared.get("tested on", ())) or 1
            made = record.stamp
            found.append(Note(chapter, experiment, record.runs, made.seconds, tests, made.versions))
    return found, faults


def draw(there: Sequence[Note], *, runs: int, minutes: float, seed: int) -> list[tuple[Note, int]]:
    """Runs of kept experiments, each with its number in the experiment, from 0, in an order that the seed shuffles.

    Chapters take turns, and within a chapter its experiments. Passed over is what does not fit into the minutes that
    are left, and at once what takes three times its share of them: fifteen runs of twenty minutes take at most four
    minutes each. Training counts as if nothing were trained side by side, which leaves time for data and scores.

    >>> there = [Note("01", "a", 10, 600.0), Note("02", "b", 4, 240.0), Note("02", "long", 1, 9000.0)]
    >>> sorted(str(note) for note, _ in draw(there, runs=4, minutes=5, seed=0))
    ['01/a', '01/a', '02/b', '02/b']
    """
    long = passed_over(there, runs=runs, minutes=minutes)
    every = [
        (note.chapter, str(note), note, number)
        for note in sorted(there)
        if note not in long
        for number in range(note.runs)
    ]
    rows = pd.DataFrame(every, columns=["chapter", "experiment", "note", "number"]).sample(frac=1, random_state=seed)
    for name in ("experiment", "chapter"):  # the first of each, then the second of each …
        rows = rows.loc[rows.groupby(name).cumcount().sort_values(kind="stable").index]
    drawn: list[tuple[Note, int]] = []
    left = 60 * minutes
    for note, number in zip(rows["note"], rows["number"], strict=True):
        if len(drawn) < runs and note.cost <= left:
            drawn.append((note, number))
            left -= note.cost
    return drawn


def passed_over(there: Sequence[Note], *, runs: int, minutes: float) -> list[Note]:
    """The experiments of which a run takes too long to be drawn in these minutes."""
    return [note for note in there if note.cost > SHARE * 60 * minutes / max(runs, 1)]
