"""Probes of metrics: every card on one small set of embeddings, so that a new metric has one; and protocols, inference,
geometry and searches that no card goes through.
"""

from __future__ import annotations

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
from pullpush.metrics import METRICS, Difference, difference, ensembles, power
from pullpush.metrics._language import extrinsic, intrinsic, probe_accuracies
from pullpush.metrics._retrieval import precision_by_chance, recall_by_chance, scores_by_chance
from pullpush.metrics._zero_shot import spread
from pullpush.metrics.cards import MetricCard
from pullpush.metrics.geometry import space
from pullpush.metrics.protocols import scored

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


@PROBES("queries")
def queries() -> Values:
    """Retrieval of single queries, whose relevance is yes or no or has degrees; ties; ranks; chance."""
    similarity = torch.tensor([[4, 1, 1, 0, 2], [3, 3, 3, 3, 3], [0, 1, 2, 3, 4], [2, 2, 1, 4, 0]]).double() / 4
    graded = torch.tensor([[0, 4, 2, 1, 4], [4, 0, 0, 4, 1], [1, 2, 3, 4, 0], [4, 3, 2, 0, 1]]).double() / 4
    several, cuts = graded >= 0.75, {"ks": (1, 2, 9), "map_at": (2, 16)}
    each = metrics.retrieval_per_query
    audio, text = sphere(N, D, seed=1), sphere(2 * N, D, seed=2)
    clip = torch.tensor([0, 0, 0, *range(1, N), *[at % 5 for at in range(N - 2)]])
    table = metrics.audio_text(audio, text.view(N, 2, D), ks=(1,), map_at=(10,))
    chances = {f"R@{k} of {r}": recall_by_chance(k, r, 20) for k in (1, 5, 30) for r in (1, 3)}
    chances |= {f"mAP@{k} of {r}": precision_by_chance(k, r, 20) for k in (1, 10, 30) for r in (1, 3)}
    return {
        "degrees": each(similarity, graded, **cuts),
        "several": each(similarity, several, **cuts),
        "of all": each(similarity, several, **cuts, divisor="relevant"),
        "lower": each(similarity, graded, **cuts, threshold=0.5),
        "mean": metrics.retrieval(similarity, several),
        "the first two": each(similarity, graded, ks=(1, 2), map_at=(2,)),
        "ranks": metrics.ranks(similarity, several),
        "lower ranks": metrics.ranks(similarity, graded, threshold=0.5),
        "ragged": metrics.by_caption(audio, text[: len(clip)], clip),
        "one caption": metrics.by_clip(audio, text[:N]),
        "table": table["T2A"],
        "table back": table["A2T"],
        "chance": chances | scores_by_chance([1, 1, 2, 5]),
    }


@PROBES("inference")
def inference() -> Values:
    """Differences over seeds and clips, of all shapes; what they decide together, and what more seeds would."""

    def scores(seeds: int, clips: int, seed: int = 0) -> np.ndarray:
        """With effects of seed and of clip, about 0.3."""
        of_seed, of_clip = numbers(seeds, 1, seed=seed) / 2, numbers(1, clips, seed=seed + 10)
        return (0.3 + of_seed + of_clip + numbers(seeds, clips, seed=seed + 20)).numpy()

    made = scores(5, 30), scores(2, 30, 1), scores(6, 1, 2), scores(1, 30, 3), scores(9, 4, 4)
    given: dict[str, Any] = {f"{each.shape}": (each,) for each in made} | {
        "a pair": (made[0], made[0][::-1] * 0.5),
        "a number": (made[0], 0.3),
        "trunks": (numbers(3, 4, 10, seed=5).numpy() + 0.2,),
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
        "holm by name": [each.p_holm for each in metrics.holm(found).values()],
        "stands": [each.stands for each in (*found.values(), *corrected)],
        "verdicts": [metrics.verdict(each, effect) for each in corrected for effect in effects],
        "verdicts of equal": [metrics.verdict(each, "equal", margin=m) for each in corrected for m in margins],
        "power": [
            power(found["(5, 30)"], 0.4),
            power(found["(5, 30)"], 0.3, clips=500, level=0.9),
            power(found["trunks"], 0.9),
        ],
    }
    try:
        power(found["(5, 30)"], 0.3)
    except ValueError as error:
        values["no power"] = str(error)
    return values


def _of_difference(found: Difference) -> Values:
    parts = found.variance
    return {
        "interval": [found.value, found.low, found.high, found.half_width],
        "p": found.p,
        "df": found.df,
        "sizes": [found.seeds, found.clips, found.trunks, found.level],
        "parts": [parts.seed, parts.clip, parts.interaction, parts.trunk, parts.trunk_clip],
        "shares": [*parts.shares.values()],
        "shares of": [*parts.shares],
        "said": [f"{found}", f"{found:.3f}"],
    }


@PROBES("statistics")
def statistics() -> Values:
    """Pseudo-values, geometry, zero-shot accuracy, what prompts decide."""
    audio, text = sphere(N, D, seed=1), sphere(N, D, seed=2)
    labels = torch.arange(N) % 4
    three = sphere(4, 3, D, seed=3)
    same = audio[:1].expand(3, D)
    chosen = numbers(4, 5, seed=4).abs().clamp(max=1).numpy()
    return {
        "alignment": [metrics.alignment(audio, text), metrics.alignment(audio, text, alpha=1.0)],
        "uniformity": [metrics.uniformity(audio), metrics.uniformity(audio, t=0.5)],
        "gap": metrics.gap_pseudo_values((audio - text).numpy()),
        "pseudo-values": metrics.pseudo_values(lambda rows: rows[:, 0].mean() / rows[:, 1].std(), audio.numpy()),
        "zero-shot": metrics.zero_shot(audio, three[:, 0], labels),
        "ensemble": metrics.zero_shot(audio, three, labels[[*range(11), 3]]),
        "spread": spread(chosen),
        "no spread": spread(np.ones((3, 2))),
        "two clips": space(audio[:2], text[:2]),
        "one point": space(same, same),
    }


@PROBES("languages")
def languages() -> Values:
    """How far languages lie and rank apart, where all texts are there and where some are missing."""
    audio, texts = sphere(N, D, seed=1), sphere(N, 3, D, seed=2)
    present = torch.arange(N * 3).view(N, 3) % 5 > 0
    first = texts[:, 0]
    forth, back = (metrics.language_ranks(audio, texts, direction=way) for way in ("t2a", "a2t"))
    many = metrics.language_ranks(audio[:6], texts, direction="a2t", clip=torch.arange(N) % 6)
    values = {
        "ranks t2a": forth,
        "ranks a2t": back,
        "ranks of several captions": many,
        "variance": metrics.rank_variance(forth),
        "of those present": metrics.rank_variance(many, present=present),
        "mean": metrics.mean_rank_variance(forth),
        "mean present": metrics.mean_rank_variance(many, present=present),
        "gap": metrics.gap(first, texts),
        "gap of one": metrics.gap(first, texts[:, 1]),
        "way": metrics.gap(first, texts, vector=True),
        "distance": metrics.distance(first, texts),
        "distance of one": metrics.distance(first, texts[:, 1]),
        "gap present": metrics.gap(first, texts, present=present),
        "own gap": metrics.gap(texts, texts.flip(1)),
        "distance present": metrics.distance(first, texts, present=present),
        "angles": metrics.angle(audio, first),
        "no angle": metrics.angle(audio[0], torch.zeros(D, dtype=torch.float64)),
        "direction error": metrics.direction_error(audio, texts, present),
    }
    return {name: value.numpy() if torch.is_tensor(value) else value for name, value in values.items()}


@PROBES("protocols")
def protocols() -> Values:
    """Every project's way to score, of one set of embeddings."""
    return scored(sphere(N, D, seed=1), sphere(N, 5, D, seed=2))


@PROBES("ensembles")
def of_ensembles() -> Values:
    """Sums of matrices, the searches for their weights, and how flat the optimum is."""
    truth = torch.eye(16, dtype=torch.float64)
    members = torch.stack([truth + 0.3 * (at + 1) * numbers(16, 16, seed=at) for at in range(6)])
    relevant, cube, learned = truth.bool(), members.view(3, 2, 16, 16), ensembles.learned
    found = ensembles.landscape(members[:3], relevant, step=0.25, objective="mAP@10")
    values: dict[str, Any] = {
        "sum": ensembles.combine(members, [0.1, 0.2, 0.3, 0.0, 0.3, 0.1]),
        "points": found.points.numpy(),
        "scores": found.scores.numpy(),
        "best": [found.best(), found.best(2)],
        "flat": found.flat(0.05),
        "graded": ensembles.score(members[0], (truth + 0.5).clamp(max=1), "R@5", threshold=0.9),
        "learned": [learned(members, relevant).round(decimals=2), learned(-members, relevant)],
        "drawn": ensembles.by_number(members, relevant, (3,), objective="R@1", most=5)[3],
    }
    for first in ("systems", "models"):
        for place in (1, 2):
            each = ensembles.two_stages(cube, relevant, first=first, place=place, step=0.25)
            values[f"{first}, place {place}"] = {"": each.weights}
            values[f"{first}, place {place}"] |= {name: getattr(each, name) for name in ("within", "between", "score")}
    of_size = ensembles.by_number(members, relevant, objective="R@1")
    return values | {f"of {size}": scores for size, scores in of_size.items()}


@PROBES("captions")
def captions() -> Values:
    """Of clips of which nothing is known, of one clip, and task by task."""
    text = sphere(10, D, seed=1)[:, None]
    known = SimpleNamespace(languages=("eng",), columns={"category": ["bird", "cow"] * 5}, texts=lambda code: text)
    unknown = SimpleNamespace(languages=("eng",), columns={}, texts=known.texts)
    one = intrinsic(text[:1], torch.ones(1, 1))
    return {"probes": probe_accuracies(known), "nothing known": str(extrinsic(unknown)), "one clip": one}
