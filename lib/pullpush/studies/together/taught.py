"""Scenes that bring soft labels and topics along: what teachers make of each clip, and what its captions are about.

Both are computed once, before any student is trained, and kept by content; a world's configuration names them, so that
runs know what they learnt from, and other processes find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch.nn import functional as F

from pullpush.cache import cached_file, content_key, home
from pullpush.data.clips import Clips, Config, StoredClips, World, load_data
from pullpush.errors import DataNotFoundError
from pullpush.source import digest
from pullpush.training.evaluate import embed_audio, embed_captions
from pullpush.training.runs import Plan

KIND = "columns"


@dataclass(frozen=True)
class TaughtConfig:
    """A world whose training clips have further columns; columns: their names, and the keys that they are kept by."""

    scenes: Config
    columns: tuple[tuple[str, str], ...]

    def load(self) -> World:
        """See `load_data`.

        Raises:
            DataNotFoundError: a column is not in the cache; the message says what makes it.
        """
        world = load_data(self.scenes)
        train = world.train
        if not isinstance(train, StoredClips):
            raise TypeError(f"columns are given to stored clips, these are {type(train).__name__}")
        further = {name: _kept(name, key) for name, key in self.columns}
        # pyrefly: ignore[bad-argument-type]
        train = replace(train, columns={**train.columns, **further})
        return replace(world, config=self, splits={**world.splits, "train": train})


def _kept(name: str, key: str) -> np.ndarray:
    path = home() / KIND / f"{key}.npy"
    if not path.is_file():
        raise DataNotFoundError(f"no column {name!r} at {path}: the view of chapter 7 that holds it makes it")
    return np.load(path)


def teachers_column(plans: Sequence[Plan], clips: Clips) -> str:
    """What T teachers make of each clip and of its English captions, `(N, T, 2, d)` float16 of unit length.

    Of several captions the mean direction counts, so that a teacher judges the clip and not one wording of it.

    Args:
        plans: of the teachers' runs; they are trained here if they were not.
        clips: as the teachers hear them.

    Returns:
        The key that the column is kept by.
    """

    def build(path: Path) -> None:
        sides = []
        for plan in plans:
            model = plan.train().model
            text = F.normalize(embed_captions(model, clips.captions("eng")).mean(dim=1), dim=1)
            sides.append(np.stack([embed_audio(model, clips).numpy(), text.numpy()], axis=1))
        _write(path, np.stack(sides, axis=1).astype(np.float16))

    key = content_key([[plan.key for plan in plans], clips.key, digest(teachers_column)])
    cached_file(KIND, f"{key}.npy", build)
    return key


def labels_column(labels: Sequence[int]) -> str:
    """Group numbers, one a clip, as a column; returns its key."""
    values = np.asarray(labels, dtype=np.int64)
    key = content_key(values.tolist())
    cached_file(KIND, f"{key}.npy", lambda path: _write(path, values))
    return key


def _write(path: Path, values: np.ndarray) -> None:
    with open(path, "wb") as file:  # np.save gives a path another ending
        np.save(file, values)
