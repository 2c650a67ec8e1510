"""Probes of metrics: every card on one small set of embeddings, so that a new metric has one, and what no card uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.errors import UnknownNameError
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen, sphere
from pullpush.golden.metric_functions import FUNCTIONS
from pullpush.golden.metric_searches import SEARCHES
from pullpush.metrics import METRICS
from pullpush.metrics.cards import MetricCard

TOLERANCE = 1e-6
N, C, D = 12, 3, 6  # clips, captions of each, dimensions
CLASSES = 4  # of clips with one event each
OF_PHRASES = ("shape", "tempo", "mode", "register", "articulation")
MANY = 20  # scores, which are looked at together but in one case
SPREAD = 0.7  # of captions about their clips, so that some are found and others not


class Known:
    """Embeddings of a few clips, float64, and all that is known of them; see `metrics.Embeddings`.

    languages: of their captions; captions: of each clip.

    >>> Known(("eng", "deu")).texts("deu").shape
    torch.Size([12, 3, 6])
    """

    def __init__(self, languages: Sequence[str] = ("eng",), captions: int = C) -> None:
        self.languages, self._captions = tuple(languages), captions
        self.audio = sphere(N, D, seed=1)
        self.labels = torch.arange(N) % CLASSES
        self.singles = F.normalize(sphere(CLASSES, D, seed=2)[self.labels] + SPREAD * numbers(N, D, seed=3), dim=1)
        steps = (numbers(N, N, seed=4).abs() * 2).clamp(max=4).floor() / 4
        self.relevance = torch.maximum(steps, steps.T).fill_diagonal_(1)

    def texts(self, language: str) -> Tensor:
        """Around the clips, a little elsewhere in each language, `(N, C, d)`."""
        noise = numbers(N, C, D, seed=_number(language)) + numbers(1, 1, D, seed=_number(language) + 1)
        return F.normalize(self.audio[:, None] + SPREAD * noise, dim=2)[:, : self._captions]

    def prompts(self, language: str, template: str | None = None) -> Tensor:
        """Around the classes, a little elsewhere for each sentence, `(classes, d)`; none in Turkish."""
        if language == "tur":
            raise UnknownNameError("nothing says what the classes are called in Turkish")
        noise = numbers(CLASSES, D, seed=_number(f"{language} {template}"))
        return F.normalize(sphere(CLASSES, D, seed=2) + SPREAD * noise, dim=1)

    @property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Things of some kinds; in one language also scenes and music, as if clips could be all of these."""
        categories = [("animals/birds", "animals/cows", "food", f"only {at}")[at % 4] for at in range(N)]
        columns = {"category": categories, "file": [f"{at}.wav" for at in range(N)]}
        if len(self.languages) > 1:
            return columns
        relations, instruments = ("single", "sequence", "overlap"), ("violin", "piano", "violin", "of no family")
        scenes = [SimpleNamespace(relation=relations[at % 3], sounds=(None,) * (1 + at % 2)) for at in range(N)]
        phrases = [
            SimpleNamespace(
                instrument=instruments[at % 4],
                **{name: ("a", "b", "")[(at + place) // 3 % 3] for place, name in enumerate(OF_PHRASES)},
            )
            for at in range(N)
        ]
        return {**columns, "scene": scenes, "phrase": phrases}


def names() -> Collection[str]:
    """The cards of `pullpush.metrics`, and the functions that no card goes through."""
    return (*METRICS, *FUNCTIONS, *SEARCHES)


def probe(name: str) -> Values:
    """What a card's metric gives, see `numbers_of`, or a group of functions."""
    return numbers_of(METRICS[name]) if name in METRICS else {**FUNCTIONS, **SEARCHES}[name]()


def numbers_of(card: MetricCard) -> Values:
    """A metric's scores by clip: in one language, in three, of one caption a clip; what chance gives.

    >>> numbers_of(METRICS["recall-at-1"])["one language: R@1"].shape
    torch.Size([12])
    """
    cases = {
        "one language": Known(),
        "three languages": Known(("eng", "deu", "fra")),
        "one caption": Known(("eng", "deu"), captions=1),
    }
    values: dict[str, Any] = {f"chance: {score.name}": score.chance(3, 40) for score in card.scores if score.chance}
    for case, known in cases.items():
        scores = {name: torch.as_tensor(found).double() for name, found in card.make(known).items()}
        if case != "one language" and len(scores) > MANY:
            scores = {"all": torch.cat([found.flatten() for found in scores.values()])}
        values |= {
            f"{case}: {name}": found if case == "one language" else seen(found) for name, found in scores.items()
        }
    return values


def _number(text: str) -> int:
    return crc32(text.encode("utf-8"))
