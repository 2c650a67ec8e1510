"""Probes of metrics that no card goes through: protocols, inference, geometry, languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen, sphere
from pullpush.metrics import (
    Difference,
    alignment,
    angle,
    audio_text,
    by_caption,
    by_clip,
    difference,
    direction_error,
    distance,
    gap,
    gap_pseudo_values,
    holm,
    language_ranks,
    mean_rank_variance,
    power,
    pseudo_values,
    rank_variance,
    ranks,
    retrieval,
    retrieval_per_query,
    uniformity,
    verdict,
    zero_shot,
)
from pullpush.metrics._prompts import spread
from pullpush.metrics._ragged import scores_by_chance
from pullpush.metrics._retrieval import precision_by_chance, recall_by_chance
from pullpush.metrics._space import space
from pullpush.metrics.protocols import scored

N, D = 12, 6


def queries() -> Values:
    """Retrieval of single queries, whose relevance is yes or no or has degrees; ties; ranks; chance."""
    similarity = torch.tensor([[4, 1, 1, 0, 2], [3, 3, 3, 3, 3], [0, 1, 2, 3, 4], [2, 2, 1, 4, 0]]).double() / 4
    graded = torch.tensor([[0, 4, 2, 1, 4], [4, 0, 0, 4, 1], [1, 2, 3, 4, 0], [4, 3, 2, 0, 1]]).double() / 4
    several, cuts = graded >= 0.75, {"ks": (1, 2, 9), "map_at": (2, 16)}
    values = dict(_named("degrees", retrieval_per_query(similarity, graded, **cuts)))
    values |= _named("several", retrieval_per_query(similarity, several, **cuts))
    values |= _named("of all", retrieval_per_query(similarity, several, **cuts, divisor="relevant"))
    values |= _named("lower", retrieval_per_query(similarity, graded, **cuts, threshold=0.5))
    values |= _named("mean", retrieval(similarity, several))
    values |= _named("the first two", retrieval_per_query(similarity, graded, ks=(1, 2), map_at=(2,)))
    values |= {"ranks": ranks(similarity, several), "lower ranks": ranks(similarity, graded, threshold=0.5)}
    audio, text = sphere(N, D, seed=1), sphere(2 * N, D, seed=2)
    clip = torch.tensor([0, 0, 0, *range(1, N), *[at % 5 for at in range(N - 2)]])
    values |= _named(
        "ragged", {name: seen(found) for name, found in by_caption(audio, text[: len(clip)], clip).items()}
    )
    values |= _named("one caption", _seen(by_clip(audio, text[:N])))
    table = audio_text(audio, text.view(N, 2, D), ks=(1,), map_at=(10,))
    values |= _named("table", table["T2A"]) | _named("table back", table["A2T"])
    chances = {f"R@{k} of {r}": recall_by_chance(k, r, 20) for k in (1, 5, 30) for r in (1, 3)}
    chances |= {f"mAP@{k} of {r}": precision_by_chance(k, r, 20) for k in (1, 10, 30) for r in (1, 3)}
    return values | _named("chance", chances | scores_by_chance([1, 1, 2, 5]))


def inference() -> Values:
    """Differences over seeds and clips, of all shapes; what they decide together, and what more seeds would."""
    made = _scores(5, 30), _scores(2, 30, 1), _scores(6, 1, 2), _scores(1, 30, 3), _scores(9, 4, 4)
    found = {f"{scores.shape}": difference(scores) for scores in made}
    found |= {
        "a pair": difference(made[0], made[0][::-1] * 0.5),
        "a number": difference(made[0], 0.3, level=0.9),
        "trunks": difference(numbers(3, 4, 10, seed=5).numpy() + 0.2),
        "equal seeds": difference(np.repeat(made[3], 3, axis=0)),
        "nothing varies": difference(np.zeros((3, 4))),
    }
    values: dict[str, Any] = {}
    for name, each in found.items():
        values |= _of_difference(name, each)
    corrected = holm([*found.values()])
    values["holm"] = [each.p_holm for each in corrected]
    values["holm by name"] = [each.p_holm for each in holm(found).values()]
    values["stands"] = [each.stands for each in (*found.values(), *corrected)]
    effects = ("higher", "lower", 0.2, -5.0, 5.0)
    values["verdicts"] = [verdict(each, effect) for each in corrected for effect in effects]
    values["verdicts of equal"] = [verdict(each, "equal", margin=m) for each in corrected for m in (0.01, 0.3, 9.0)]
    enough: tuple[tuple[str, float, dict[str, Any]], ...]
    enough = (("(5, 30)", 0.4, {}), ("(5, 30)", 0.3, {"clips": 500, "level": 0.9}), ("trunks", 0.9, {}))
    values["power"] = [power(found[name], half, **options) for name, half, options in enough]
    try:
        power(found["(5, 30)"], 0.3)
    except ValueError as error:
        values["no power"] = str(error)
    return values


def statistics() -> Values:
    """Pseudo-values, geometry, zero-shot accuracy, what prompts decide."""
    audio, text = sphere(N, D, seed=1), sphere(N, D, seed=2)
    labels = torch.arange(N) % 4
    three = sphere(4, 3, D, seed=3)
    same = audio[:1].expand(3, D)
    chosen = numbers(4, 5, seed=4).abs().clamp(max=1).numpy()
    values = {"alignment": [alignment(audio, text), alignment(audio, text, alpha=1.0)]}
    values |= {"uniformity": [uniformity(audio), uniformity(audio, t=0.5)]}
    values |= {"gap": gap_pseudo_values((audio - text).numpy())}
    values |= {"pseudo-values": pseudo_values(lambda rows: rows[:, 0].mean() / rows[:, 1].std(), audio.numpy())}
    values |= _named("zero-shot", zero_shot(audio, three[:, 0], labels))
    values |= _named("ensemble", zero_shot(audio, three, labels[[*range(11), 3]]))
    values |= _named("spread", spread(chosen)) | _named("no spread", spread(np.ones((3, 2))))
    values |= _named("two clips", _seen(space(audio[:2], text[:2])))
    return values | _named("one point", _seen(space(same, same)))


def languages() -> Values:
    """How far languages lie and rank apart, where all texts are there and where some are missing."""
    audio, texts = sphere(N, D, seed=1), sphere(N, 3, D, seed=2)
    present = torch.arange(N * 3).view(N, 3) % 5 > 0
    first = texts[:, 0]
    found = {way: language_ranks(audio, texts, direction=way) for way in ("t2a", "a2t")}
    many = language_ranks(audio[:6], texts, direction="a2t", clip=torch.arange(N) % 6)
    values = {f"ranks {way}": each for way, each in found.items()} | {"ranks of several captions": many}
    values |= {"variance": rank_variance(found["t2a"]), "of those present": rank_variance(many, present=present)}
    values |= {"mean": mean_rank_variance(found["t2a"]), "mean present": mean_rank_variance(many, present=present)}
    values |= {"gap": gap(first, texts), "gap of one": gap(first, texts[:, 1]), "way": gap(first, texts, vector=True)}
    values |= {"distance": distance(first, texts), "distance of one": distance(first, texts[:, 1])}
    values |= {"gap present": gap(first, texts, present=present), "own gap": gap(texts, texts.flip(1))}
    values |= {"distance present": distance(first, texts, present=present)}
    values |= {"angles": angle(audio, first), "no angle": angle(audio[0], torch.zeros(D, dtype=torch.float64))}
    return values | {"direction error": direction_error(audio, texts, present)}


def protocols() -> Values:
    """Every project's way to score, of one set of embeddings."""
    found = scored(sphere(N, D, seed=1), sphere(N, 5, D, seed=2))
    return {f"{title}: {name}": value for title, scores in found.items() for name, value in scores.items()}


def _named(case: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{case}: {name}": value for name, value in values.items()}


def _seen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: seen(found) for name, found in values.items()}


def _scores(seeds: int, clips: int, seed: int = 0) -> np.ndarray:
    """With effects of seed and of clip, about 0.3."""
    of_seed, of_clip = numbers(seeds, 1, seed=seed) / 2, numbers(1, clips, seed=seed + 10)
    return (0.3 + of_seed + of_clip + numbers(seeds, clips, seed=seed + 20)).numpy()


def _of_difference(name: str, found: Difference) -> dict[str, Any]:
    parts = found.variance
    return {
        f"{name}: interval": [found.value, found.low, found.high, found.half_width],
        f"{name}: p": found.p,
        f"{name}: df": found.df,
        f"{name}: sizes": [found.seeds, found.clips, found.trunks, found.level],
        f"{name}: parts": [parts.seed, parts.clip, parts.interaction, parts.trunk, parts.trunk_clip],
        f"{name}: shares": [*parts.shares.values()],
        f"{name}: shares of": [*parts.shares],
        f"{name}: said": [f"{found}", f"{found:.3f}"],
    }


FUNCTIONS: Mapping[str, Callable[[], Values]] = {
    "inference": inference,
    "languages": languages,
    "protocols": protocols,
    "queries": queries,
    "statistics": statistics,
}
