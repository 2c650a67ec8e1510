"""What is kept, by the records beside it: what stands on a component, and which runs `pullpush verify` draws."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pullpush import golden
from pullpush.lab import kept
from pullpush.lab.kept import KeptError
from pullpush.lab.root import find_root

SHARE = 3.0  # times a run's fair share of the time is the longest that is drawn


@dataclass(frozen=True, order=True)
class Note:
    """A kept experiment: how many runs it has, the seconds of the training behind it, on how many worlds each run was
    tested, and the versions of the components that it went through, then.
    """

    chapter: str
    experiment: str
    runs: int
    seconds: float
    tests: int = 1
    versions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def cost(self) -> float:
        """Seconds of one run, trained by itself; those that differ in what they are tested on were trained once."""
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


# ---------------------------------------------------------------- on what they stand


class Checked(NamedTuple):
    """A component that does something else than its golden file says, how, and the kept results that stand on it; or
    a kept result whose note is damaged.
    """

    name: str
    how: str
    standing: Sequence[Note] | None = None

    def __str__(self) -> str:
        further = "" if self.standing is None else f"\n    {listed(self.standing, 'stand on it')}"
        return f"{self.name}: {self.how}{further}"


def check(names: Sequence[str] = ()) -> Iterator[Checked]:
    """The components, all or those that are named, that disagree with their golden files."""
    known, faults = notes(find_root())
    for name, how in golden.check(names):
        yield Checked(name, how, on(name, known))
    yield from (Checked(name, fault) for name, fault in faults.items())


def accept(names: Sequence[str]) -> Iterator[str]:
    """Let the golden files of components say what these do today; a line for each, with what is stale by it."""
    known, _ = notes(find_root())
    for name in names:
        if not golden.accept(name):
            yield f"{name}: does what its golden file says"
            continue
        now = golden.version(name)
        stale = [note for note in on(name, known) if note.versions[name] != now]
        yield f"{name}: its golden file is written\n    {listed(stale, 'are stale by it')}"


def on(name: str, known: Iterable[Note]) -> list[Note]:
    """The kept results that went through a component."""
    return [note for note in known if name in note.versions]


def listed(found: Sequence[Note], what: str) -> str:
    """Names of kept results, and the hours of training that are behind them."""
    if not found:
        return f"no kept results {what}"
    hours = sum(note.seconds for note in found) / 3600
    return f"{len(found)} kept results {what}, {hours:.1f} hours of training: {', '.join(map(str, found))}"


# ---------------------------------------------------------------- which are trained again


def draw(there: Sequence[Note], *, runs: int, minutes: float, seed: int) -> list[tuple[Note, int]]:
    """Runs of kept experiments, each with its number in the experiment, from 0, in an order that the seed shuffles.

    Chapters take turns, and within a chapter its experiments. Passed over is what does not fit into the minutes that
    are left, and at once what takes three times its share of them. Training counts as if nothing were trained side by
    side, which leaves time for data and scores.

    >>> there = [Note("01", "a", 10, 600.0), Note("02", "b", 4, 240.0), Note("02", "long", 1, 9000.0)]
    >>> sorted(str(note) for note, _ in draw(there, runs=4, minutes=5, seed=0))
    ['01/a', '01/a', '02/b', '02/b']
    """
    long = passed_over(there, runs=runs, minutes=minutes)
    chosen = [note for note in sorted(there) if note not in long]
    every = [(note.chapter, str(note), note, number) for note in chosen for number in range(note.runs)]
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
