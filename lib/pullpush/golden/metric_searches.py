"""Probes of metrics that search for weights: ensembles, what captions tell of their clips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen, sphere
from pullpush.metrics._language import extrinsic, intrinsic, probe_accuracies
from pullpush.metrics.ensembles import by_number, combine, landscape, learned, score, two_stages

D = 6


def ensembles() -> Values:
    """Sums of matrices, the searches for their weights, and how flat the optimum is."""
    truth = torch.eye(16, dtype=torch.float64)
    members = torch.stack([truth + 0.3 * (at + 1) * numbers(16, 16, seed=at) for at in range(6)])
    relevant, cube = truth.bool(), members.view(3, 2, 16, 16)
    found = landscape(members[:3], relevant, step=0.25, objective="mAP@10")
    values: dict[str, Any] = {"sum": seen(combine(members, [0.1, 0.2, 0.3, 0.0, 0.3, 0.1]))}
    values |= {"points": found.points, "scores": found.scores, "best": [found.best(), found.best(2)]}
    values |= {"flat": found.flat(0.05), "graded": score(members[0], (truth + 0.5).clamp(max=1), "R@5", threshold=0.9)}
    for first in ("systems", "models"):
        for place in (1, 2):
            each = two_stages(cube, relevant, first=first, place=place, step=0.25)
            values |= {f"{first}, place {place}": each.weights, f"{first}, place {place}: within": each.within}
            values |= {f"{first}, place {place}: between": each.between}
            values |= {f"{first}, place {place}: score": each.score}
    values["learned"] = [learned(members, relevant).round(decimals=2), learned(-members, relevant)]
    values |= {f"of {size}": seen(scores) for size, scores in by_number(members, relevant, objective="R@1").items()}
    return values | {"drawn": by_number(members, relevant, (3,), objective="R@1", most=5)[3]}


def captions() -> Values:
    """Of clips of which nothing is known, of one clip, and task by task."""
    text = sphere(10, D, seed=1)[:, None]
    known = SimpleNamespace(languages=("eng",), columns={"category": ["bird", "cow"] * 5}, texts=lambda code: text)
    unknown = SimpleNamespace(languages=("eng",), columns={}, texts=known.texts)
    values = {f"probes: {name}": accuracy for name, accuracy in probe_accuracies(known).items()}
    return values | {"nothing known": str(extrinsic(unknown)), "one clip": intrinsic(text[:1], torch.ones(1, 1))}


SEARCHES: Mapping[str, Callable[[], Values]] = {
    "captions": captions,
    "ensembles": ensembles,
}
