"""Worlds whose training clips bring what was found out about them: their teachers' soft labels, their topics.

    world = TaughtConfig(WorldConfig(), (Run(plan.key, trunk),), ByText(count=24)).load()
    Plan(encoded(world, trunk), recipe("infonce+distillation+clusters", …))

Audio, captions and truth are the world's own, so that its features are not computed again; runs are named apart by the
configuration, in which teachers stand by the names of their runs. Columns are made when they are first looked at: a
run can be planned before its teachers are trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullpush.cache import content_key, home
from pullpush.data.clips import Clips, Config, World
from pullpush.data.mixture import Mixed
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.golden import versions
from pullpush.studies.distill.teachers import PARTS, Teacher, soft_labels
from pullpush.studies.distill.topics import Labels
from pullpush.topics import OUTLIER

TEACHERS, CLUSTERS = "teachers", "clusters"  # columns, see losses.offer


class Later(Sequence[Any]):
    """Values, one a clip, that are made when the first is asked for.

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
    """Any data, with soft labels and topics of its training clips.

    data: the world, of clips with waveforms; teachers: of the column "teachers"; topics: of "clusters", None for none;
    language: of the captions that are looked at, ISO 639-3. Of augmented data teachers look at all captions, and topics
    are those of the captions and clips that were there before: a mixed clip has none, for it would have two.
    """

    data: Config
    teachers: tuple[Teacher, ...] = ()
    topics: Labels | None = None
    language: str = "eng"

    def load(self) -> World:
        """The world with the columns of its training clips.

        >>> from pullpush.data.scenes.world import WorldConfig
        >>> from pullpush.studies.distill.teachers import Truth
        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> TaughtConfig(small, (Truth(),)).load().train.columns["teachers"][0].shape
        (1, 2, 4)
        """
        world = loaded(self.data)
        clips, columns = world.train, {}
        if self.teachers:
            columns[TEACHERS] = Later(len(clips), partial(soft_labels, self.teachers, clips, language=self.language))
        if self.topics is not None:
            columns[CLUSTERS] = Later(len(clips), partial(self._clusters, self.topics, clips))
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


@lru_cache(maxsize=4)
def _once(config: Config, cache: Path) -> World:
    """Data of one cache: rewriting its captions takes seconds."""
    return config.load()


def with_columns(clips: Clips, columns: Mapping[str, Sequence[Any]]) -> Clips:
    """The same clips, with waveforms, with further columns; of clips of several sources each gets its own.

    Raises:
        ValueError: other numbers of values than clips.
    """
    if wrong := {name: len(values) for name, values in columns.items() if len(values) != len(clips)}:
        raise ValueError(f"{len(clips)} clips need as many values in each column, got {wrong}")
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
