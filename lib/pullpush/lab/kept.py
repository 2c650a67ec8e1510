"""Long experiments, kept: `book/measured/<chapter>/<experiment>.nc` holds what was found, `.json` where it comes from.

`pullpush sweep` trains, `keep` writes, a chapter reads. The arrays are labelled (arrays.py); the record beside them
says what was declared, which versions of which components it went through, and the SHA-256 of the arrays, and ends with
its own, so that a digit that was changed is told.

Writing ends with the record: before, what was kept stands; after, the new arrays, under their checksum's name until
they take the old ones' place. A process that is killed in between leaves one or the other, and both are read.
"""

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pullpush.cache import atomic_path
from pullpush.errors import PullPushError
from pullpush.golden import version
from pullpush.lab import arrays, profiles
from pullpush.lab.experiments import Experiment, summary
from pullpush.lab.provenance import Stamp, sealed, unsealed
from pullpush.lab.root import alone, find_root
from pullpush.lab.scores import Scores


class KeptError(PullPushError, RuntimeError):
    """A kept result that is damaged, or that another process is writing."""


@dataclass(frozen=True, kw_only=True)
class Record(Stamp):
    """What stands beside the arrays: the stamp of the runs, and what they are of.

    Attributes:
        chapter, experiment: where they are kept.
        declared: what was declared, to be read.
        content: a name for what was declared, `compute.content_of`.
        but_seeds: the same of the declaration without its seeds, see `experiments.without_seeds`.
        runs: how many there are.
        sha256: of the file of arrays.
    """

    chapter: str
    experiment: str
    declared: Mapping[str, Any]
    content: str
    but_seeds: str
    runs: int
    sha256: str

    @property
    def cost(self) -> float:
        """Seconds of one run, trained by itself; those that differ in what they are tested on were trained once."""
        tests = len(self.declared.get("tested on", ())) or 1
        return tests * self.seconds / max(self.runs, 1)

    def __str__(self) -> str:
        return f"{self.chapter}/{self.experiment}"

    def __hash__(self) -> int:
        return hash(str(self))  # its mappings have none

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the order in which they are kept, without the chapter, in whose folder they lie."""
        told = super().to_dict()
        head = {name: told.pop(name) for name in ("experiment", "declared", "content", "but_seeds", "runs")}
        tail = {"golden": told.pop("versions"), "sha256": told.pop("sha256")}
        del told["chapter"]
        return head | told | tail

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, with a chapter."""
        return super().from_dict({**data, "versions": dict(data["golden"])})


def folder_of(chapter: str, *, root: Path | None = None) -> Path:
    """Where a chapter's experiments are kept."""
    return (root or find_root()) / "book" / "measured" / chapter


def keep(scores: Scores, chapter: str, content: str, but_seeds: str, *, root: Path | None = None) -> Path:
    """Write what an experiment found, all of it or nothing, in place of what was kept before."""
    name = scores.experiment.name
    place = folder_of(chapter, root=root) / f"{name}.nc"
    held = arrays.to_bytes(arrays.dataset_of(scores, chapter))
    digest = hashlib.sha256(held).hexdigest()
    record = Record(
        **vars(scores.stamp),
        chapter=chapter,
        experiment=name,
        declared=summary(scores.experiment),
        content=content,
        but_seeds=but_seeds,
        runs=len(scores.clips),
        sha256=digest,
    )
    lock = place.parent / f".{name}.lock"
    refusal = KeptError(f"another process is keeping {name}: wait for it, nothing was changed")
    with alone(lock, refusal):
        with suppress(KeptError):
            if before := about(chapter, name, root=root):
                _settle(place, before.sha256)
        for left in place.parent.glob(f".{name}.*.nc"):  # of a process that was killed before its record
            left.unlink()
        with atomic_path(_waiting(place, digest)) as partial:
            partial.write_bytes(held)
        with atomic_path(place.with_suffix(".json")) as partial:
            partial.write_text(sealed(record.to_dict()), encoding="utf-8")
        _settle(place, digest)
        lock.unlink(missing_ok=True)
    return place


def read(experiment: Experiment, chapter: str, content: str, *, root: Path | None = None) -> Scores | None:
    """What was kept of an experiment as it is declared; None if nothing was, or of another declaration."""
    record = about(chapter, experiment.name, root=root)
    if record is None or record.content != content:
        return None
    return _scores(experiment, chapter, record, root)


def part(experiment: Experiment, chapter: str, but_seeds: str, *, root: Path | None = None) -> Scores | None:
    """The runs that were kept of an experiment when it was declared with other seeds, of those that it has now.

    None if there are none, or all, if a component does something else since, or if a file is damaged.
    """
    with suppress(KeptError):
        record = about(chapter, experiment.name, root=root)
        if record and record.but_seeds == but_seeds and not changed(record):
            found = _scores(experiment, chapter, record, root, whole=False)
            return found if 0 < len(found.clips) < len(list(experiment.cells)) else None
    return None


def about(chapter: str, name: str, *, root: Path | None = None) -> Record | None:
    """What is noted of what was kept of an experiment; None if nothing was kept."""
    path = folder_of(chapter, root=root) / f"{name}.json"
    if not path.exists() and not path.with_suffix(".nc").exists():
        return None
    with _whole(path, chapter, name):
        held = unsealed(path.read_text(encoding="utf-8"))
        return Record.from_dict({**held, "chapter": chapter, "experiment": name})


def changed(made: Stamp) -> tuple[str, ...]:
    """The components that do something else now than when a result was made, or are gone: "losses/svr"; or none."""
    return tuple(name for name, then in made.versions.items() if _now(name) != then)


def command(
    verb: str, chapter: str, name: str, *, profile: str = profiles.DEFAULT, parameters: Mapping[str, Any] | None = None
) -> str:
    """What to type to `sweep` or `keep` one experiment: "pullpush sweep 02-svr --only radius"."""
    words = ["pullpush", verb, chapter, *(["--only"] if verb == "sweep" else []), name]
    words += ["--profile", profile] if profile != profiles.DEFAULT else []
    words += [word for key, value in (parameters or {}).items() for word in ("-p", key, str(value))]
    return shlex.join(words)


def _scores(experiment: Experiment, chapter: str, record: Record, root: Path | None, *, whole: bool = True) -> Scores:
    """The runs of the declaration that are kept; if `whole`, all of them."""
    place = folder_of(chapter, root=root) / f"{experiment.name}.nc"
    with _whole(place, chapter, experiment.name):
        _settle(place, record.sha256)
        held = place.read_bytes()
        if hashlib.sha256(held).hexdigest() != record.sha256:
            raise ValueError(f"its bytes are not those that {experiment.name}.json tells of")
        found = arrays.scores_of(arrays.from_bytes(held), experiment, Stamp.from_dict(vars(record)))
        if whole and len(found.clips) < len(list(experiment.cells)):
            raise ValueError("runs are missing")
        return found


def _now(name: str) -> str:
    try:
        return version(name)
    except PullPushError:  # there is no such component any more, or its golden file is damaged
        return ""


def _waiting(place: Path, digest: str) -> Path:
    """Where arrays wait for the record that names them."""
    return place.with_name(f".{place.stem}.{digest[:12]}.nc")


def _settle(place: Path, digest: str) -> None:
    """Let the arrays that a record names take their place; a reader does it, too, for a process that was killed."""
    with suppress(OSError):
        os.replace(_waiting(place, digest), place)


@contextmanager
def _whole(path: Path, chapter: str, name: str) -> Iterator[None]:
    """Say what to do where a file is damaged."""
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        again = " && ".join(command(verb, chapter, name) for verb in ("sweep", "keep"))
        raise KeptError(
            f"{path} is damaged ({type(error).__name__}: {error}): take it from the repository again with its "
            f"neighbour, or `{again}` makes it again"
        ) from error
