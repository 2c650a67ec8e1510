"""What is kept, by the records beside it: what stands on a component, and which runs `pullpush verify` draws."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from pullpush import golden
from pullpush.lab import kept
from pullpush.lab.kept import KeptError, Record
from pullpush.lab.root import find_root

SHARE = 3.0  # times a run's fair share of the time is the longest that is drawn


def notes(root: Path) -> tuple[list[Record], dict[str, str]]:
    """What is noted of all kept experiments of a book; and, by name, what is wrong with records that say nothing."""
    found: list[Record] = []
    faults: dict[str, str] = {}
    for path in sorted(kept.folder_of("", root=root).glob("*/*.json")):
        chapter, experiment = path.parent.name, path.stem
        try:
            if record := kept.about(chapter, experiment, root=root):
                found.append(record)
        except KeptError as error:
            faults[f"{chapter}/{experiment}"] = str(error)
    return found, faults


# ---------------------------------------------------------------- on what they stand


def check(names: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """The components, all or those that are named, that disagree with their golden files: how, and what stands on them;
    and kept results whose records are damaged.
    """
    known, faults = notes(find_root())
    for name, how in golden.check(names):
        stands = [note for note in known if name in note.versions]
        yield name, f"{how}\n    {listed(stands, 'stand on it')}"
    yield from faults.items()


def accept(names: Sequence[str]) -> Iterator[str]:
    """Let the golden files of components say what these do today; a line for each, with what is stale by it."""
    known, _ = notes(find_root())
    for name in names:
        if not golden.accept(name):
            yield f"{name}: does what its golden file says"
            continue
        now = golden.version(name)
        stale = [note for note in known if note.versions.get(name, now) != now]
        yield f"{name}: its golden file is written\n    {listed(stale, 'are stale by it')}"


def listed(found: Sequence[Record], what: str) -> str:
    """Names of kept results, and the hours of training that are behind them."""
    if not found:
        return f"no kept results {what}"
    hours = sum(note.seconds for note in found) / 3600
    return f"{len(found)} kept results {what}, {hours:.1f} hours of training: {', '.join(map(str, found))}"


# ---------------------------------------------------------------- which are trained again


def draw(there: Sequence[Record], *, runs: int, minutes: float, seed: int) -> list[tuple[Record, int]]:
    """Runs of kept experiments, each with its number in the experiment, from 0, in an order that the seed shuffles.

    Chapters take turns, and within a chapter its experiments. Passed over is what does not fit into the minutes that
    are left, and at once what takes three times its share of them. Training counts as if nothing were trained side by
    side, which leaves time for data and scores.

    >>> from functools import partial
    >>> of = partial(Record, "now", "", (0,), declared={}, content="", but_seeds="", sha256="")
    >>> there = [of(600.0, chapter="01", experiment="a", runs=10), of(240.0, chapter="02", experiment="b", runs=4)]
    >>> there += [of(9000.0, chapter="02", experiment="long", runs=1)]
    >>> sorted(str(note) for note, _ in draw(there, runs=4, minutes=5, seed=0))
    ['01/a', '01/a', '02/b', '02/b']
    """
    long = passed_over(there, runs=runs, minutes=minutes)
    chosen = [note for note in sorted(there, key=lambda note: (note.chapter, note.experiment)) if note not in long]
    every = [(note.chapter, str(note), note, number) for note in chosen for number in range(note.runs)]
    rows = pd.DataFrame(every, columns=["chapter", "experiment", "note", "number"]).sample(frac=1, random_state=seed)
    for name in ("experiment", "chapter"):  # the first of each, then the second of each …
        rows = rows.loc[rows.groupby(name).cumcount().sort_values(kind="stable").index]
    drawn: list[tuple[Record, int]] = []
    left = 60 * minutes
    for note, number in zip(rows["note"], rows["number"], strict=True):
        if len(drawn) < runs and note.cost <= left:
            drawn.append((note, number))
            left -= note.cost
    return drawn


def passed_over(there: Sequence[Record], *, runs: int, minutes: float) -> list[Record]:
    """The experiments of which a run takes too long to be drawn in these minutes."""
    return [note for note in there if note.cost > SHARE * 60 * minutes / max(runs, 1)]
