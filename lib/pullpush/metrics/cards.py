"""Cards of metrics, by which experiments find them.

The file of a metric ends in its card, and needs no other line anywhere:

    def loudness(embedded: Embeddings) -> Values:
        return {"norm": embedded.audio.norm(dim=1).numpy()}

    CARD = MetricCard(name="toy", make=loudness, title="…", about="…", needs=("audio",), scores=(Score("norm"),))

`evaluations=("retrieval", "toy")` then puts "norm" among the scores of an experiment.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from torch import Tensor

from pullpush.catalogue import Card, Catalogue

Values = dict[str, np.ndarray]  # by the name of the score: `(N,)` a clip, or `(N, K)` a clip and language


class Embeddings(Protocol):
    """What a model makes of its test data: each made when it is first asked for, and once for all metrics.

    >>> from types import SimpleNamespace
    >>> pairs = Tensor([[1, 0], [0, 1]])
    >>> embedded = SimpleNamespace(languages=("eng",), audio=pairs, texts=lambda language: pairs[:, None])
    >>> METRICS["retrieval"].make(embedded)["R@1"].tolist()
    [1.0, 1.0]
    """

    @property
    def languages(self) -> Sequence[str]:
        """ISO 639-3 codes; the first is what the others are compared with."""

    @property
    def audio(self) -> Tensor:
        """The test clips, `(N, d)` float32 of unit length."""

    def texts(self, language: str) -> Tensor:
        """All captions of each of them, `(N, C, d)`."""

    @property
    def relevance(self) -> Tensor:
        """How well the captions of each test clip fit each of them, `(N, N)` in [0, 1]."""

    @property
    def singles(self) -> Tensor:
        """Clips with one event each, `(M, d)`."""

    @property
    def labels(self) -> Tensor:
        """Their classes, `(M,)` int64."""

    def prompts(self, language: str, template: str | None = None) -> Tensor:
        """One prompt a class, `(classes, d)`; template: with "{label}" in it, default: the source's own."""

    @property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """What else is known of the test clips, by name, N values each."""


@dataclass(frozen=True)
class Score:
    """One number of a metric, by the name that tables write.

    unit: of its values, "" for fractions and plain numbers; better: which way, None where neither is; chance: what
    `items` in random order score when `relevant` of them are right, where that can be said.
    """

    name: str
    unit: str = ""
    better: Literal["higher", "lower"] | None = None
    chance: Callable[[int, int], float] | None = None


@dataclass(frozen=True, kw_only=True)
class MetricCard(Card):
    """A metric: `make` takes Embeddings and gives Values.

    needs: what it takes of the Embeddings, by name; scores: the numbers that it gives.
    """

    make: Callable[[Embeddings], Values]
    needs: tuple[str, ...]
    scores: tuple[Score, ...]


METRICS: Catalogue[MetricCard] = Catalogue("pullpush.metrics", MetricCard, "metric")


def by_language(columns: Sequence[dict[str, Any]]) -> Values:
    """Of each language's values `(N,)`: `(N,)` if it is one language, else `(N, K)`.

    >>> by_language([{"R@1": [1.0, 0.0]}, {"R@1": [1.0, 1.0]}])["R@1"].tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    names = columns[0]
    joined = {name: np.stack([np.asarray(column[name], float) for column in columns], axis=1) for name in names}
    return {name: values[:, 0] if len(columns) == 1 else values for name, values in joined.items()}
