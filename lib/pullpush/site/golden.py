"""Whether components do what their golden files say, and which kept results stand on those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pullpush import golden
from pullpush.lab.root import find_root
from pullpush.site.there import Note, notes


class Checked(NamedTuple):
    """A component that does something else than its golden file says, how, and the kept results that stand on it; or
    a kept result whose note is damaged.
    """

    name: str
    how: str
    standing: tuple[Note, ...] | None = None

    def __str__(self) -> str:
        further = "" if self.standing is None else f"\n    {standing_text(self.standing)}"
        return f"{self.name}: {self.how}{further}"


def check(names: Sequence[str] = (), *, root: Path | None = None) -> Iterator[Checked]:
    """The components, all or those that are named, that disagree with their golden files.

    Raises:
        UnknownNameError: no such component.
        GoldenError: a golden file is damaged.
    """
    known, faults = notes(root or find_root())
    for name, how in golden.check(names):
        yield Checked(name, how, on(name, known))
    yield from (Checked(name, fault) for name, fault in faults.items())


def accept(names: Sequence[str], *, root: Path | None = None) -> Iterator[str]:
    """Let the golden files of components say what these do today; a line for each, with what is stale by it."""
    known, _ = notes(root or find_root())
    for name in names:
        if not golden.accept(name):
            yield f"{name}: does what its golden file says"
            continue
        now = golden.version(name)
        stale = [note for note in on(name, known) if note.versions[name] != now]
        yield f"{name}: its golden file is written\n    {standing_text(stale, 'are stale by it')}"


def on(name: str, known: Iterable[Note]) -> tuple[Note, ...]:
    """The kept results that went through a component."""
    return tuple(note for note in known if name in note.versions)


def standing_text(found: Sequence[Note], what: str = "stand on it") -> str:
    """Names of kept results, and the hours of training that are behind them."""
    if not found:
        return f"no kept results {what}"
    hours = sum(note.seconds for note in found) / 3600
    return f"{len(found)} kept results {what}, {hours:.1f} hours of training: {', '.join(map(str, found))}"
