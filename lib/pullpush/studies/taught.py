"""Scenes that bring soft labels and topics along: what teachers make of each clip, and what its captions are about.

Both are computed once, before any student is trained, and kept by what they hold; a world's configuration names them so
and its words with it, so that runs know what they learnt from, and other processes find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch.nn import functional as F

from pullpush.cache import cached_file, content_key, home
from pullpush.data.clips import Clips, Config, StoredClips, World, load_data
from pullpush.encoders import TEXT
from pullpush.encoders.interface import Model
from pullpush.errors import DataNotFoundError
from pullpush.golden import versions
from pullpush.topics import cluster
from pullpush.training.evaluate import embed_audio, embed_captions
from pullpush.training.recipes import Recipe
from pullpush.training.runs import Plan

KIND = "columns"
TEACHERS, APART = 3, 900  # runs, and where their seeds begin: no comparison uses them
PARTS = ("studies/teachers", "training/evaluate")  # what soft labels go through; what teachers are, their runs say


@dataclass(frozen=True)
class TaughtConfig:
    """A world whose training clips have further columns; columns: their names, and what they are kept by: the keys of
    what they hold.
    """

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
        words = content_key([world.words, [list(column) for column in self.columns]])
        return replace(world, config=self, splits={**world.splits, "train": train}, words=words)


def by_ensemble(scenes: World, data: World, base: Recipe, text: str) -> TaughtConfig:
    """Scenes with what an ensemble of runs makes of them, and with the topics of their first captions.

    data: the scenes as teachers learn from them; base: their recipe; text: the encoder whose space topics are of, ""
    for the first event of a scene in place of a topic.
    """
    plans = [Plan(data, base, APART + number) for number in range(TEACHERS)]
    if text:
        captions = [texts[0] for texts in scenes.train.captions("eng")]
        labels = cluster(TEXT[text].make()(captions).numpy(), captions).labels.tolist()
    else:
        labels = [scene.events[0] for scene in scenes.train.columns["scene"]]
    columns = {"teachers": teachers_column(plans, data.train), "clusters": labels_column(labels)}
    return TaughtConfig(scenes.config, tuple(columns.items()))


def _kept(name: str, key: str) -> np.ndarray:
    path = home() / KIND / f"{key}.npy"
    if not path.is_file():
        raise DataNotFoundError(f"no column {name!r} at {path}: the view that holds it makes it")
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
        sides = [both_sides(plan.train().model, clips) for plan in plans]
        _write(path, np.stack(sides, axis=1).astype(np.float16))

    parts = versions(*PARTS)
    key = content_key([parts, [plan.key for plan in plans], clips.key, clips.captions("eng")])
    return _keep(np.load(cached_file(KIND, f"by-{key}.npy", build)))


def both_sides(model: Model, clips: Clips) -> np.ndarray:
    """What a model makes of each clip and of its English captions, their mean direction, `(N, 2, d)` float32."""
    text = F.normalize(embed_captions(model, clips.captions("eng")).mean(dim=1), dim=1)
    return np.stack([embed_audio(model, clips).numpy(), text.numpy()], axis=1)


def truth_column(clips: Clips) -> str:
    """The relevance of every clip to every caption as that of one teacher, `(N, 1, 2, N)` float16; returns its key."""
    fits = clips.relevance().T.numpy()
    return _keep(np.stack([fits, np.eye(len(fits))], axis=1)[:, None].astype(np.float16))


def labels_column(labels: Sequence[int]) -> str:
    """Group numbers, one a clip, as a column; returns its key."""
    return _keep(np.asarray(labels, dtype=np.int64))


def _keep(values: np.ndarray) -> str:
    """Keep a column by what it holds; returns its key."""
    key = content_key([str(values.dtype), list(values.shape), values.tobytes()])
    cached_file(KIND, f"{key}.npy", lambda path: _write(path, values))
    return key


def _write(path: Path, values: np.ndarray) -> None:
    with open(path, "wb") as file:  # np.save gives a path another ending
        np.save(file, values)
