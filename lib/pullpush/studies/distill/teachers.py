"""Teachers: whatever embeds clips and captions, asked once, and kept as what it says of each clip (Eq. 5).

    teachers = (Run(plan.key, Published("yamnet")), Whole("clap"))
    labels = soft_labels(teachers, clips)         # (N, T, 2, D) float16, from the cache the second time
    world = TaughtConfig(WorldConfig(), teachers).load()   # clips with the column "teachers"; see taught.py

The similarity of any clip and any text of a batch is a product of what is kept, so that N clips take N·T·2·D numbers
and not N² of them. Eq. 5 takes the mean over teachers; where a clip has several captions its text is the mean of their
embeddings, which is the mean of Eq. 5 taken over captions, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pullpush.cache import cached_file, content_key, home
from pullpush.data.clips import Clips
from pullpush.encoders import create
from pullpush.encoders.interface import Model
from pullpush.encoders.published import MODELS, open_model
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
PARTS = ("studies/soft_labels", "training/evaluate")  # what all soft labels go through; what teachers are, they say
BATCH = 512


class Teacher(Protocol):
    """A frozen dataclass whose fields, with what its parts do, name it in caches."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The components that it goes through and no field names, as `golden.versions` takes them."""
        return ()

    def embed(self, clips: Clips, language: str) -> Tensor:
        """What it makes of each clip's sound and of its captions, `(N, 2, D)` float32: the dot product of the sound of
        one clip and the text of another is its similarity of the two.
        """
        ...


@dataclass(frozen=True)
class Run(Teacher):
    """A model of ours; ears: what it hears clips through, None for itself.

    key: of a finished run, `Plan.key`, which holds what its encoders do and what they heard.
    """

    key: str
    ears: Published | None = None

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
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
        heard = splits_encoder(self.ears)(clips) if self.ears else clips
        return both_sides(self.model(), heard, language)


@dataclass(frozen=True)
class Whole(Teacher):
    """A whole published model, such as "clap" or "clap:/a/folder"; options: of `encoders.published.open_model`."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[str, ...]:
        """See Teacher."""
        name, _, _ = self.name.partition(":")
        return (f"audio/whole-{name}",) if name in MODELS and MODELS[name].probe else ()

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher; takes clips with waveforms."""
        return both_sides(open_model(self.name, **self.options), clips, language)


@dataclass(frozen=True)
class Truth(Teacher):
    """One that knows the relevance of every clip of the training set to every caption: as good as teachers get.

    Of a clip it keeps its row of the relevance, of its caption a one-hot, D = N, whose products are the relevance.
    """

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        return torch.stack([clips.relevance().T, torch.eye(len(clips))], dim=1)


@dataclass(frozen=True)
class Blind(Teacher):
    """One that knows nothing: for each clip and each text a random direction of its own; dim: as of a model; seed."""

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

    Asked once and kept by content: of the teachers, the clips and the captions. What is shared by a batch is
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
    key = content_key([versions(*parts_of(teachers)), list(teachers), clips.key, captions, language])

    def build(path: Path) -> None:
        with open(path, "wb") as file:
            np.save(file, said(teachers, clips, language))

    return np.load(cached_file(KIND, f"{key}.npy", build))


def parts_of(teachers: Sequence[Teacher]) -> list[str]:
    """The components that the soft labels of some teachers go through; none of no teachers."""
    return [*PARTS, *(part for teacher in teachers for part in teacher.parts)] if teachers else []


def said(teachers: Sequence[Teacher], clips: Clips, language: str) -> NDArray[np.float16]:
    """What `soft_labels` keeps, asked anew."""
    found = [teacher.embed(clips, language) for teacher in teachers]
    widest = max(each.shape[2] for each in found)
    padded = [torch.nn.functional.pad(each, (0, widest - each.shape[2])) for each in found]
    return torch.stack(padded, dim=1).half().numpy()


def similarities(labels: NDArray[np.float16]) -> Tensor:
    """Ĉ of Eq. 5, `(N, N)` float32: entry i, j is the mean over teachers of their similarity of clip i and text j.

    >>> similarities(np.float16([[[[1, 0], [1, 0]]], [[[0, 1], [1, 0]]]])).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    audio, text = torch.from_numpy(labels).float().unbind(dim=2)
    return torch.einsum("itd,jtd->ij", audio, text) / labels.shape[1]
