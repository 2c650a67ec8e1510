"""Recordings that were edited since they were decoded: stores are named by size, beginning and end of a file alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pullpush.cache import atomic_path, cached_file
from pullpush.errors import AudioError, CacheError

KIND = "edits"


def check_unedited(paths: Sequence[Path], key: str) -> None:
    """Refuse recordings that are not what they were when the store `key` was first read, though they look like it.

    Each is read as a whole once, and again when its time has changed.

    Raises:
        AudioError: one was edited in its middle; it is named.
        CacheError: the cache cannot be written.
    """

    def build(place: Path) -> None:
        place.write_text(json.dumps([[path.stat().st_mtime_ns, _sum(path)] for path in paths]), encoding="utf-8")

    ledger = cached_file(KIND, f"{key}.json", build)
    known = json.loads(ledger.read_text(encoding="utf-8"))
    changed = False
    for number, (path, (time, before)) in enumerate(zip(paths, known, strict=True)):
        now = path.stat().st_mtime_ns
        if now == time:
            continue
        if _sum(path) != before:
            raise AudioError(
                f"{path} was edited, and has the size, beginning and end that it had: what was computed from it is "
                "kept under these. Save it under another name, and write that into its rows"
            )
        known[number][0], changed = now, True
    if changed:
        with suppress(CacheError), atomic_path(ledger) as place:  # on a read-only disk it is read again next time
            place.write_text(json.dumps(known), encoding="utf-8")


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
