"""Errors that a user can act on: every message says what was wrong and what to do."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

T = TypeVar("T")


class PullPushError(Exception):
    """Base of every error that pullpush raises on purpose; the command line prints it without a traceback."""


class DataNotFoundError(PullPushError, FileNotFoundError):
    """Data that should be on disk is not, or could not be fetched."""


class AudioError(PullPushError, ValueError):
    """A recording cannot be used: missing, corrupt, empty, silent or not finite."""


class CacheError(PullPushError, OSError):
    """The cache cannot be written or read: read-only, full, or damaged."""


class WeightsError(PullPushError, ValueError):
    """Published weights are not those that the code was written for: another checksum, or other tensors."""


class TrainingError(PullPushError, RuntimeError):
    """Training cannot go on, for example because the loss is not finite."""


class SettingError(PullPushError, ValueError):
    """A setting of a profile, recipe, world or sweep that has the wrong type or is out of range."""


class UnknownNameError(PullPushError, ValueError):
    """A name (recipe, encoder, language, chapter …) that is not registered."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Build the error for an unregistered name, with the nearest valid names first.

    `raise unknown("language", "english", LANGUAGES)` says which names are near and which exist.
    """
    names = sorted(known)
    near = get_close_matches(str(name), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UnknownNameError(f"unknown {kind} {name!r}: {hint}known: {', '.join(names) or 'none'}")


def check_known(kind: str, name: Any, known: Collection[Any]) -> None:
    """Require one of the names that are known; else `unknown` of them."""
    if name not in known:
        raise unknown(kind, name, known)


def check_all_known(kind: str, names: Iterable[Any], known: Collection[Any]) -> None:
    """Require names that are known; else `unknown` of the first that is not."""
    for name in names:
        check_known(kind, name, known)


def looked_up(kind: str, name: Any, known: Mapping[Any, T]) -> T:
    """What goes by one of the names that are known; else `unknown` of them."""
    check_known(kind, name, known)
    return known[name]


def few(names: Sequence[str], mark: str = ", ", *, most: int = 5) -> str:
    """The first names of a list for a message, with "…" where there are more: `few(["a", "b"], most=1)` is "a …"."""
    return f"{mark.join(names[:most])}{' …' if names[most:] else ''}"
