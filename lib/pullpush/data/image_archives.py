"""Which pictures lie where in tar archives: an index of theirs, made once."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pullpush.cache import cached_file, content_key
from pullpush.data.decoding import fingerprint
from pullpush.data.image_files import ENDINGS, Members, PictureError


def in_archives(archives: Sequence[Path]) -> tuple[Members, list[str], list[str]]:
    """Pictures of tar archives whose members are called KEY.jpg and KEY.txt, as img2dataset writes them.

    Archives are read once, without their pictures; what was found is kept in the cache.

    Returns:
        The pictures that have a caption, their keys, and their captions.

    Raises:
        PictureError: a file is no tar archive.
    """

    def build(path: Path) -> None:
        rows = [row for number, archive in enumerate(archives) for row in _members(number, archive)]
        places = np.array([place for _, _, place in rows], np.int64).reshape(-1, 3)
        names, captions = (_bytes(row[:2][part] for row in rows) for part in (0, 1))
        np.savez(path, places=places, names=names, captions=captions)

    key = content_key(["archives", [[path.name, fingerprint(path)] for path in archives]])
    with np.load(cached_file("pictures", f"{key}.npz", build)) as kept:
        places = kept["places"]
        texts = [kept[part].tobytes().decode() for part in ("names", "captions")]
    names, captions = (text.split("\n") if len(places) else [] for text in texts)
    return Members(list(archives), places), names, captions


def _bytes(lines: Iterable[str]) -> np.ndarray:
    """Texts one a line; an array of texts would take four bytes for each letter."""
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def _members(number: int, archive: Path) -> list[tuple[str, str, tuple[int, int, int]]]:
    """Key, caption and place of each picture of an archive."""
    places: dict[str, tuple[int, int, int]] = {}
    captions: dict[str, str] = {}
    try:
        with tarfile.open(archive) as held:
            for member in held:
                stem, ending = os.path.splitext(member.name)
                if ending.lower() in ENDINGS:
                    places[stem] = (number, member.offset_data, member.size)
                elif ending == ".txt" and (file := held.extractfile(member)):
                    captions[stem] = " ".join(file.read().decode("utf-8", "replace").split())
    except (tarfile.TarError, EOFError) as error:
        raise PictureError(f"{archive} is no whole tar archive: {error}; fetch it again, or remove it") from error
    return [(stem, captions[stem], place) for stem, place in places.items() if captions.get(stem)]
