"""A model's embeddings of its test data, which the metrics of an experiment score clip by clip.

Values are per clip `(N,)`, or `(N, K)` where there are K languages, so that seeds and clips can be resampled: one array
a score, which every difference in the book is taken from. To add a metric, write one file (see metrics/cards.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.training.evaluate import embed_audio, embed_captions, embed_texts

BATCH = 512


class Embedded:
    """Embeddings of test data, each made when a metric first asks for it; see `metrics.Embeddings`.

    Args:
        load: gives the trained model; called when the first embeddings are made.
        data: has the clips `test`; for zero-shot classification also `singles`, with labels and prompts.
        languages: of the captions; the first is the reference.
    """

    def __init__(self, load: Callable[[], nn.Module], data: Any, languages: Sequence[str]) -> None:
        self.languages = tuple(languages)
        self._load, self._data = load, data
        self._texts: dict[str, Tensor] = {}

    @cached_property
    def audio(self) -> Tensor:
        """The test clips, `(N, d)`."""
        return embed_audio(self._model, self._data.test, batch_size=BATCH)

    def texts(self, language: str) -> Tensor:
        """All captions of each of them, `(N, C, d)`."""
        if language not in self._texts:
            self._texts[language] = embedded_captions(self._model, self._data.test, language)
        return self._texts[language]

    @property
    def relevance(self) -> Tensor:
        """How well the captions of each test clip fit each of them, `(N, N)` in [0, 1]."""
        return self._data.test.relevance()

    @cached_property
    def singles(self) -> Tensor:
        """Clips with one event each, `(M, d)`."""
        return embed_audio(self._model, self._data.singles, batch_size=BATCH)

    @property
    def labels(self) -> Tensor:
        """Their classes, `(M,)` int64."""
        return self._data.singles.labels

    def prompts(self, language: str, template: str | None = None) -> Tensor:
        """One prompt a class, `(classes, d)`; template: with "{label}" in it, default: the source's own."""
        return embed_texts(self._model, self._data.singles.prompts(language, template), language=language)

    @property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """What else is known of the test clips, by name."""
        return self._data.test.columns

    @cached_property
    def _model(self) -> nn.Module:
        return self._load()


def embedded_captions(model: nn.Module, split: Clips, language: str) -> Tensor:
    """Embeddings of all C captions of each clip in one language, `(N, C, d)`."""
    return embed_captions(model, split.captions(language), language=language, batch_size=BATCH)
