"""Probes of metrics: every card on one small set of embeddings, so that a new metric has one; and the inference that
decides every verdict. It stands in no key, since pages apply it to what is kept.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush import metrics
from pullpush.errors import UnknownNameError
from pullpush.golden.compare import Values
from pullpush.golden.probes import Probes, numbers, seen, sphere
from pullpush.metrics import METRICS, Difference, difference
from pullpush.metrics.cards import MetricCard

N, C, D = 12, 3, 6  # clips, captions of each, dimensions
CLASSES = 4  # of clips with one event each
OF_PHRASES = ("shape", "tempo", "mode", "register", "articulation")
MANY = 20  # scores, which are looked at together but in one case
SPREAD = 0.7  # of captions about their clips, so that some are found and others not
PROBES = Probes("metrics", 1e-6, cards=lambda: METRICS, of_card=lambda name: numbers_of(METRICS[name]), look=seen)


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
        seed = crc32(language.encode())
        noise = numbers(N, C, D, seed=seed) + numbers(1, 1, D, seed=seed + 1)
        return F.normalize(self.audio[:, None] + SPREAD * noise, dim=2)[:, : self._captions]

    def prompts(self, language: str, template: str | None = None) -> Tensor:
        """Around the classes, a little elsewhere for each sentence, `(classes, d)`; none in Turkish."""
        if language == "tur":
            raise UnknownNameError("nothing says what the classes are called in Turkish")
        noise = numbers(CLASSES, D, seed=crc32(f"{language} {template}".encode()))
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
        kinds = [
            {name: ("a", "b", "")[(at + place) // 3 % 3] for place, name in enumerate(OF_PHRASES)} for at in range(N)
        ]
        phrases = [SimpleNamespace(instrument=instruments[at % 4], **kind) for at, kind in enumerate(kinds)]
        return {**columns, "scene": scenes, "phrase": phrases}


def numbers_of(card: MetricCard) -> Values:
    """A metric's scores by clip: in one language, in three, of one caption a clip; what chance gives.

    >>> numbers_of(METRICS["recall-at-1"])["one language"]["R@1"].shape
    (12,)
    """
    cases = {
        "one language": Known(),
        "three languages": Known(("eng", "deu", "fra")),
        "one caption": Known(("eng", "deu"), captions=1),
    }
    values: dict[str, Any] = {f"chance: {score.name}": score.chance(3, 40) for score in card.scores if score.chance}
    for case, known in cases.items():
        scores = {name: torch.as_tensor(score).double() for name, score in card.make(known).items()}
        if case == "one language":
            scores = {name: score.numpy() for name, score in scores.items()}  # each clip's
        elif len(scores) > MANY:
            scores = {"all": torch.cat([score.flatten() for score in scores.values()])}
        values[case] = scores
    return values


@PROBES("inference")
def inference() -> Values:
    """Differences over seeds and clips, of all shapes; what they decide together."""

    def scores(seeds: int, clips: int, seed: int = 0) -> np.ndarray:
        """With effects of seed and of clip, about 0.3."""
        of_seed, of_clip = numbers(seeds, 1, seed=seed) / 2, numbers(1, clips, seed=seed + 10)
        return (0.3 + of_seed + of_clip + numbers(seeds, clips, seed=seed + 20)).numpy()

    made = scores(5, 30), scores(2, 30, 1), scores(6, 1, 2), scores(1, 30, 3), scores(9, 4, 4)
    given: dict[str, Any] = {f"{each.shape}": (each,) for each in made} | {
        "a pair": (made[0], made[0][::-1] * 0.5),
        "a number": (made[0], 0.3),
        "equal seeds": (np.repeat(made[3], 3, axis=0),),
        "nothing varies": (np.zeros((3, 4)),),
    }
    found = {name: difference(*each, level=0.9 if name == "a number" else 0.95) for name, each in given.items()}
    corrected = metrics.holm([*found.values()])
    effects = ("higher", "lower", 0.2, -5.0, 5.0)
    margins = (0.01, 0.3, 9.0)
    values: dict[str, Any] = {
        **{name: _of_difference(each) for name, each in found.items()},
        "holm": [each.p_holm for each in corrected],
        "stands": [each.stands for each in (*found.values(), *corrected)],
        "verdicts": [metrics.verdict(each, effect) for each in corrected for effect in effects],
        "verdicts of equal": [metrics.verdict(each, "equal", margin=m) for each in corrected for m in margins],
    }
    cells: dict[frozenset[str], Any] = {
        frozenset(cell): scores(4, 12, place) for place, cell in enumerate(("", "A", "B", "AB"))
    }
    of_cells = {
        "main effect": metrics.main_effect(cells, "A"),
        "interaction": metrics.main_effect(cells, "A × B"),
        "conditional effect": metrics.conditional_effect(cells, "A", beside="B"),
    }
    values |= {name: _of_difference(each) for name, each in of_cells.items()}
    return values


def _of_difference(found: Difference) -> Values:
    parts = found.variance
    return {
        "interval": [found.value, found.low, found.high, found.half_width],
        "p": found.p,
        "df": found.df,
        "sizes": [found.seeds, found.clips, found.level],
        "parts": [parts.seed, parts.clip, parts.interaction],
        "shares": [*parts.shares.values()],
        "shares of": [*parts.shares],
        "said": [f"{found}", f"{found:.3f}"],
    }
