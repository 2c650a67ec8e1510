"""Teachers: whatever embeds clips and captions, asked once, and stored as what it says of each clip (Eq. 5).

    teachers = (Run(plan.key, Published("yamnet")), Truth())
    labels = soft_labels(teachers, clips)         # (N, T, 2, D) float16, from the cache the second time

The similarity of any clip and any text of a batch is a product of what is stored, so that N clips take N·T·2·D numbers
and not N² of them. Eq. 5 takes the mean over teachers; where a clip has several captions its text is the mean of their
embeddings, which is the mean of Eq. 5 taken over captions, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pullpush.cache import cached_file, content_key, home
from pullpush.data.clips import Clips
from pullpush.encoders import create
from pullpush.encoders.interface import Model
from pullpush.errors import DataNotFoundError
from pullpush.golden import versions
from pullpush.training import checkpoints
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import splits_encoder
from pullpush.training.loop import RECIPE
from pullpush.training.recipes import from_json
from pullpush.training.runs import KIND as RUNS
from pullpush.training.trunk import Published

KIND = "teachers"
PARTS = ("studies/soft_labels", "training/evaluate")  # the components that all soft labels go through
BATCH = 512


class Teacher(Protocol):
    """A frozen dataclass whose fields name it in caches."""

    def embed(self, clips: Clips, language: str) -> Tensor:
        """What it makes of each clip's sound and of its captions, `(N, 2, D)` float32: the dot product of the sound of
        one clip and the text of another is its similarity of the two.
        """
        ...


@dataclass(frozen=True)
class Run(Teacher):
    """A model of ours.

    key: of a finished run, `Plan.key`, which holds what its encoders do and what they heard; ears: the frozen encoder
    that clips go through before, None for none.
    """

    key: str
    ears: Published | None = None

    @property
    def folder(self) -> Path:
        """Where the run is stored."""
        return home() / RUNS / self.key

    def model(self) -> Model:
        """Its weights of the best epoch.

        Raises:
            DataNotFoundError: it was not trained to its end.
        """
        if not (self.folder / RECIPE).is_file():
            raise DataNotFoundError(f"no finished run at {self.folder}: train the teacher before its students")
        recipe = from_json((self.folder / RECIPE).read_text(encoding="utf-8"))
        model = create(recipe.audio, recipe.text, dim=recipe.dim, **recipe.encoder_options)
        return checkpoints.load_model(model, self.folder).eval()  # pyrefly: ignore[bad-return]

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        return both_sides(self.model(), splits_encoder(self.ears)(clips) if self.ears else clips, language)


@dataclass(frozen=True)
class Truth(Teacher):
    """One that knows the relevance of every clip of the training set to every caption: as good as teachers get.

    Of a clip it stores its row of the relevance, of its caption a one-hot, D = N, whose products are the relevance.
    """

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        return torch.stack([clips.relevance().T, torch.eye(len(clips))], dim=1)


@dataclass(frozen=True)
class Blind(Teacher):
    """One that knows nothing: for each clip and each text a random direction; dim: as of a model; seed."""

    dim: int = 128
    seed: int = 0

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        drawn = torch.randn(len(clips), 2, self.dim, generator=torch.Generator().manual_seed(self.seed))
        return torch.nn.functional.normalize(drawn, dim=2)


def both_sides(model: Model, clips: Clips, language: str) -> Tensor:
    """What a model makes of each clip and of its captions (their mean), `(N, 2, D)` float32."""
    captions = clips.captions(language)
    text = embed_texts(model, [text for texts in captions for text in texts], language=language, batch_size=BATCH)
    means = [part.mean(dim=0) for part in text.split([len(texts) for texts in captions])]
    return torch.stack([embed_audio(model, clips, batch_size=BATCH), torch.stack(means)], dim=1)


def soft_labels(teachers: Sequence[Teacher], clips: Clips, *, language: str = "eng") -> NDArray[np.float16]:
    """What T teachers make of N clips and their captions, `(N, T, 2, D)` float16, padded with zeros to one D.

    Asked once and stored by content: of the teachers, the clips and the captions. What is shared by a batch is
    `similarities(labels[rows])`.

    Raises:
        ValueError: no teacher, or a clip without captions.
        DataNotFoundError: a teacher is not there.

    >>> from pullpush.data.scenes.world import WorldConfig, load_world
    >>> clips = load_world(WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)).train
    >>> soft_labels([Truth(), Blind(dim=3)], clips).shape
    (4, 2, 2, 4)
    """
    if not teachers:
        raise ValueError("soft labels need at least one teacher")
    captions = clips.captions(language)
    if silent := sum(not texts for texts in captions):
        raise ValueError(f"{silent} of {len(captions)} clips have no caption in {language!r}: leave them out")
    key = content_key([versions(*PARTS), list(teachers), clips.key, captions, language])

    def build(path: Path) -> None:
        with open(path, "wb") as file:
            np.save(file, side_by_side(teachers, clips, language))

    return np.load(cached_file(KIND, f"{key}.npy", build))


def side_by_side(teachers: Sequence[Teacher], clips: Clips, language: str) -> NDArray[np.float16]:
    """What `soft_labels` stores, computed anew."""
    sides = [teacher.embed(clips, language) for teacher in teachers]
    widest = max(each.shape[2] for each in sides)
    padded = [torch.nn.functional.pad(each, (0, widest - each.shape[2])) for each in sides]
    return torch.stack(padded, dim=1).half().numpy()


def similarities(labels: NDArray[np.float16]) -> Tensor:
    """Ĉ of Eq. 5, `(N, N)` float32: entry i, j is the mean over teachers of their similarity of clip i and text j.

    >>> similarities(np.float16([[[[1, 0], [1, 0]]], [[[0, 1], [1, 0]]]])).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    audio, text = torch.from_numpy(labels).float().unbind(dim=2)
    return torch.einsum("itd,jtd->ij", audio, text) / labels.shape[1]
