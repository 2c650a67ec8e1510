"""What is kept, by the records beside it: `book/measured/<chapter>/<experiment>.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pullpush.lab import kept
from pullpush.lab.kept import KeptError
from pullpush.site.draw import Kept


class Note(NamedTuple):
    """A kept experiment, the seconds of training behind it, and the components that it went through, with their
    versions then.
    """

    kept: Kept
    seconds: float
    versions: Mapping[str, str]

    def __str__(self) -> str:
        return str(self.kept)


def notes(root: Path) -> tuple[list[Note], dict[str, str]]:
    """What is said of all kept experiments of a book; and, by name, what is wrong with records that say nothing."""
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
            # Runs that differ in what they are tested on alone were trained once.
            tests = len(record.declared.get("tested on", ())) or 1
            one = Kept(chapter, experiment, record.runs, tests * record.stamp.seconds)
            found.append(Note(one, record.stamp.seconds, record.stamp.versions))
    return found, faults
