"""What training clips bring beside their captions: teachers' soft labels (Eq. 5 of the distillation paper) and topics.

    teachers = (Run(plan.key, Published("yamnet")), Truth())
    TaughtConfig(WorldConfig(), teachers, Classes("event")).load()
    by_ensemble(config, data, base, trunk, FirstCaptions("use"))  # of chapters 7 and 8

The similarity of any clip and any text of a batch is a product of what is stored, so that N clips take N·T·2·D numbers
and not N² of them. Eq. 5 takes the mean over teachers; where a clip has several captions its text is the mean of their
embeddings, which is the mean of Eq. 5 over captions, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from pullpush.cache import cached_file, content_key, home
from pullpush.data.clips import Clips, Config, World
from pullpush.data.mixture import Mixed
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.encoders import TEXT
from pullpush.encoders.interface import Model
from pullpush.errors import PullPushError
from pullpush.golden import versions
from pullpush.topics import OUTLIER, cluster
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import splits_encoder
from pullpush.training.recipes import Recipe
from pullpush.training.runs import KIND as RUNS, Plan
from pullpush.training.trunk import FinishedRun, Published

PARTS = ("studies/soft_labels", "training/evaluate")  # the components that soft labels go through
OF_ENSEMBLE = ("studies/teachers", "training/evaluate")  # and those of `by_ensemble`
TEACHERS, APART = 3, 900  # of an ensemble, and where their seeds begin: no comparison uses them
BATCH = 512


# ---------------------------------------------------------------- teachers


class Teacher(Protocol):
    """A frozen dataclass whose fields name it in caches; parts: the components that its labels go through."""

    parts: ClassVar[Sequence[str]] = PARTS

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
        """Its weights of the best epoch; DataNotFoundError if it was not trained to its end."""
        return FinishedRun(home() / RUNS / self.key).model().eval()  # pyrefly: ignore[bad-return]

    def embed(self, clips: Clips, language: str) -> Tensor:
        return both_sides(self.model(), splits_encoder(self.ears)(clips) if self.ears else clips, language)


@dataclass(frozen=True)
class Directed(Run):
    """A model of ours for which the mean direction of a clip's captions counts, of unit length as its sound is."""

    parts: ClassVar[Sequence[str]] = OF_ENSEMBLE

    def embed(self, clips: Clips, language: str) -> Tensor:
        return F.normalize(super().embed(clips, language), dim=2)


@dataclass(frozen=True)
class Truth(Teacher):
    """One that knows the relevance of every clip of the training set to every caption: of a clip it stores its row of
    the relevance, of its caption a one-hot, D = N, whose products are the relevance.
    """

    def embed(self, clips: Clips, language: str) -> Tensor:
        return torch.stack([clips.relevance().T, torch.eye(len(clips))], dim=1)


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
    >>> soft_labels([Truth(), Truth()], clips).shape
    (4, 2, 2, 4)
    """
    content = [versions(*parts_of(teachers)), list(teachers), clips.key, clips.captions(language), language]
    return stored("teachers", content, partial(side_by_side, teachers, clips, language))


def stored(kind: str, content: Any, make: Callable[[], NDArray]) -> NDArray:
    """An array from the cache, made where it is not there; content: all that it depends on."""
    return np.load(cached_file(kind, f"{content_key(content)}.npy", lambda path: np.save(path, make())))


def parts_of(teachers: Sequence[Teacher]) -> list[str]:
    """The components that what teachers make goes through."""
    return [part for teacher in teachers for part in teacher.parts]


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
class Classes(Labels):
    """What scenes are in truth, kind: "category" or "event" of the first sound, or "events"."""

    kind: str = "event"
    categories: tuple[str, ...] = ()

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
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


@dataclass(frozen=True)
class FirstCaptions(Labels):
    """Topics of clips' first captions, as many as there are, by a text encoder as it is published; text: its name."""

    text: str

    @property
    def parts(self) -> Sequence[str]:  # pyrefly: ignore[bad-override]
        return "studies/regions", "studies/topics", f"text/{self.text}"

    def of(self, clips: Clips, language: str = "eng") -> NDArray[np.int64]:
        """See Labels; stored, for every process that trains takes the same."""
        captions = [texts[0] for texts in clips.captions(language)]
        content = [versions(*self.parts), self.text, captions]
        return stored("topics", content, lambda: cluster(TEXT[self.text].make()(captions).numpy(), captions).labels)


def flat(captions: Sequence[Sequence[str]]) -> list[str]:
    """The captions of all clips in one list."""
    return [text for texts in captions for text in texts]


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
        parts = [*parts_of(self.teachers), *(self.topics.parts if self.topics else ())]
        words = content_key([world.words, versions(*parts), list(self.teachers), self.topics, self.language])
        splits = {**world.splits, "train": with_columns(clips, columns)}
        return replace(world, config=self, splits=splits, words=words)

    def _clusters(self, topics: Labels, clips: Clips) -> NDArray[np.int64]:
        plain = loaded(self.data.data).train if isinstance(self.data, AugmentedConfig) else clips
        return np.concatenate([topics.of(plain, self.language), np.full(len(clips) - len(plain), OUTLIER)])


def by_ensemble(config: Config, data: World, base: Recipe, trunk: Published, topics: Labels) -> TaughtConfig:
    """Scenes with what an ensemble of runs makes of them, which are trained here if they were not, and with topics.

    data: the scenes as teachers learn from them, through a trunk; base: the recipe of all.
    """
    plans = [Plan(data, base, APART + number) for number in range(TEACHERS)]
    for plan in plans:
        plan.train()
    return TaughtConfig(config, tuple(Directed(plan.key, trunk) for plan in plans), topics)


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
