"""Ensembles: weighted sums of similarity matrices, their weights sought on validation, and how much a weight matters.

The distillation paper (§4, Tables 2, 3) sums the matrices of systems 2–5 × three audio models. Its Table 3 prints
twelve weights an ensemble, and they come apart: in E1 and E2 the weights of the systems within a model are the same
(of PaSST 0.35, 0, 0.5, 0.15), multiples of 0.05 that sum to 1, times the weight of the model, which differs (0.65,
0.2, 0.15 and 0.65, 0.25, 0.1). In E3 and E4 it is models within a system, then systems. So there are two searches on
a grid of step 0.05, and what divides E1 from E2, and E3 from E4, is the second alone. Why there are two is not
printed; here E2 and E4 are the runners-up of E1 and E3 on validation, `Landscape.best(2)`.

Matrices are summed as they are: a member whose similarities are spread wider counts for more at the same weight.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from pullpush.errors import check_known, unknown
from pullpush.metrics._retrieval import relevant_items, retrieval_per_query

FIRST = ("systems", "models")
SHARPEST = 1e3  # the largest 1/τ that learned weights may ask for


class Landscape(NamedTuple):
    """The objective over a simplex: `points (G, M)` float64, the weights of M members, and `scores (G,)` of each."""

    points: Tensor
    scores: Tensor

    def best(self, place: int = 1) -> int:
        """The row of the best point, or of the one in that place; of equal scores the most even weights go first."""
        if not 1 <= place <= len(self.scores):
            raise ValueError(f"there are {len(self.scores)} points of weights, and no place {place}")
        unevenness = self.points.square().sum(dim=1).round(decimals=9)
        return int(np.lexsort((unevenness.numpy(), -self.scores.numpy()))[place - 1])

    def flat(self, within: float) -> float:
        """The share of the points whose score is at most `within` below the best."""
        return (self.scores >= self.scores.max() - within - 1e-12).double().mean().item()


class TwoStages(NamedTuple):
    """Weights of S systems × M models: `weights (S, M)` float64, their product form, and the score on validation.

    within: of the first stage, `(S, M)`: columns sum to 1 where systems go first, rows where models do; between: of
    the second, `(M,)` or `(S,)`; score: the objective of the whole; landscape: of the second stage.
    """

    weights: Tensor
    within: Tensor
    between: Tensor
    score: float
    landscape: Landscape


def combine(similarity: Tensor, weights: Tensor | Sequence[float]) -> Tensor:
    """The weighted sum of matrices: `(members, Q, N)` by `(members,)` gives `(Q, N)`.

    >>> combine(torch.eye(2).repeat(2, 1, 1), [0.25, 0.75])
    tensor([[1., 0.],
            [0., 1.]])
    """
    share = torch.as_tensor(weights, dtype=similarity.dtype, device=similarity.device)
    if similarity.ndim != 3 or share.shape != similarity.shape[:1]:
        shapes = f"{tuple(similarity.shape)} and {tuple(share.shape)}"
        raise ValueError(f"similarity must be (members, Q, N) with a weight a member: got {shapes}")
    if not torch.isfinite(share).all() or (share < 0).any() or not share.any():
        raise ValueError(f"weights must be 0 or more, and not all 0: got {share.tolist()}")
    return torch.einsum("m,mqn->qn", share, similarity)


def simplex(members: int, step: float = 0.05) -> Tensor:
    """Every vector of weights that are multiples of `step` and sum to 1, `(G, members)` float64.

    >>> simplex(2, 0.5).tolist()
    [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    parts = round(1 / step) if step > 0 else 0
    if members < 1 or not parts or abs(parts * step - 1) > 1e-9:
        raise ValueError(f"takes a member at least and a step that divides 1: got {members} and {step}")
    bars = combinations(range(parts + members - 1), members - 1)  # stars and bars
    rows = [np.diff([-1, *bar, parts + members - 1]) - 1 for bar in bars]
    return torch.from_numpy(np.array(rows, np.float64)) / parts


def landscape(
    similarity: Tensor, relevance: Tensor, *, step: float = 0.05, objective: str = "mAP@16", **protocol: Any
) -> Landscape:
    """The objective at every point of the simplex: what a search sees, and how flat its optimum is.

    Args:
        similarity: `(members, Q, N)`, queries in rows; of validation, never of the test.
        relevance: `(Q, N)` boolean or graded.
        step: of the grid.
        objective: "R@k" or "mAP@k".
        protocol: threshold and divisor of `retrieval_per_query`.

    >>> right, wrong = torch.eye(3), 1 - torch.eye(3)
    >>> landscape(torch.stack([right, wrong]), torch.eye(3).bool(), step=0.5, objective="R@1").scores.tolist()
    [0.0, 0.0, 1.0]
    """
    points = simplex(len(similarity), step)
    scores = [score(combine(similarity, point), relevance, objective, **protocol) for point in points]
    return Landscape(points, torch.tensor(scores, dtype=torch.float64))


def score(similarity: Tensor, relevance: Tensor, objective: str = "mAP@16", **protocol: Any) -> float:
    """One retrieval metric by its name, the mean over the queries.

    >>> score(torch.eye(3), torch.eye(3).bool(), "R@1")
    1.0
    """
    kind, _, k = objective.partition("@")
    if kind not in ("R", "mAP") or not k.isdigit():
        raise unknown("objective", objective, ("R@1", "R@5", "R@10", "mAP@10", "mAP@16"))
    cuts: dict[str, Any] = {"ks": (int(k),), "map_at": ()} if kind == "R" else {"ks": (), "map_at": (int(k),)}
    values = retrieval_per_query(similarity, relevance, **cuts, **protocol)
    return values[objective].mean().item()


def two_stages(
    similarity: Tensor,
    relevance: Tensor,
    *,
    first: str = "systems",
    step: float = 0.05,
    objective: str = "mAP@16",
    **protocol: Any,
) -> TwoStages:
    """E1–E4: weights of systems within each model, then of models (first="systems": E1, E2), or the reverse (E3, E4).

    Each is a search over the grid: the first weighs every model (or system) by itself, the second the sums that come
    of it, by the best point.

    Args:
        similarity: `(S, M, Q, N)`, S systems × M models, of validation.
        relevance, step, objective, protocol: see `landscape`.

    Raises:
        ValueError: another shape; UnknownNameError: another stage to begin with, or objective.
    """
    check_known("first stage", first, FIRST)
    if similarity.ndim != 4:
        raise ValueError(f"similarity must be (systems, models, Q, N), got {tuple(similarity.shape)}")
    how: dict[str, Any] = {"step": step, "objective": objective, **protocol}
    groups = similarity.transpose(0, 1) if first == "systems" else similarity  # (second stage, first stage, Q, N)
    within = []
    for group in groups:
        found = landscape(group, relevance, **how)
        within.append(found.points[found.best()])
    sums = torch.stack([combine(group, share) for group, share in zip(groups, within, strict=True)])
    found = landscape(sums, relevance, **how)
    at = found.best()
    inner, between = torch.stack(within), found.points[at]
    weights = inner * between[:, None]
    if first == "systems":
        inner, weights = inner.T, weights.T
    return TwoStages(weights, inner, between, found.scores[at].item(), found)


def learned(similarity: Tensor, relevance: Tensor, *, threshold: float = 1.0) -> Tensor:
    """Convex weights of any number of members, without a grid: `(members,)` float64 that sum to 1.

    They minimise the cross-entropy of validation's retrieval, the mean over queries q of

        −Σ_{i relevant} log softmax_i(Σ_m u_m C^m[q, i]) / relevant(q)    over u ≥ 0,    weights: u / Σ u.

    The sum of u is 1/τ, sought together with the weights, and the problem is convex in u: there is one answer.
    Members that say nothing (or the contrary) of what is relevant get 0; if all do, all weights are equal.

    Args:
        similarity: `(members, Q, N)`, of validation.
        relevance: `(Q, N)` boolean or graded.
        threshold: graded relevance at least this high counts as relevant.

    >>> learned(torch.stack([torch.eye(3), 1 - torch.eye(3)]), torch.eye(3).bool()).tolist()
    [1.0, 0.0]
    """
    relevant = relevant_items(combine(similarity, [1.0] * len(similarity)), relevance, threshold)
    target = (relevant / relevant.sum(dim=1, keepdim=True)).double()
    members = similarity.double()

    def loss(sharpness: np.ndarray) -> tuple[float, np.ndarray]:
        logits = torch.einsum("m,mqn->qn", torch.from_numpy(sharpness), members)
        value = -(target * logits.log_softmax(dim=1)).sum(dim=1).mean()
        slope = (logits.softmax(dim=1) - target) / len(target)
        return value.item(), torch.einsum("qn,mqn->m", slope, members).numpy()

    start = np.full(len(members), 1.0)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, SHARPEST)] * len(members)).x
    total = found.sum()
    return torch.from_numpy(found / total if total > 1e-9 else np.full(len(members), 1 / len(members)))


def by_number(
    similarity: Tensor,
    relevance: Tensor,
    numbers: Sequence[int] | None = None,
    *,
    objective: str = "mAP@16",
    most: int = 1000,
    **protocol: Any,
) -> dict[int, Tensor]:
    """The control for every weight: so many members of equal weight, over all subsets.

    Args:
        similarity: `(members, Q, N)`.
        relevance, objective, protocol: see `landscape`.
        numbers: sizes of subsets; None: 1 to all.
        most: subsets of one size at most; of more, so many are drawn, the same on every call.

    Returns:
        Size → the objective of each subset, `(subsets,)` float64.

    >>> two = torch.stack([torch.eye(3), 1 - torch.eye(3)])
    >>> {size: scores.mean().item() for size, scores in by_number(two, torch.eye(3).bool(), objective="R@1").items()}
    {1: 0.5, 2: 0.0}
    """
    count = len(similarity)
    found = {}
    for size in numbers or range(1, count + 1):
        if not 1 <= size <= count:
            raise ValueError(f"{count} members have no subset of {size}")
        subsets = (
            list(combinations(range(count), size)) if math.comb(count, size) <= most else _drawn(count, size, most)
        )
        sums = (similarity[list(subset)].mean(dim=0) for subset in subsets)
        scores = [score(each, relevance, objective, **protocol) for each in sums]
        found[size] = torch.tensor(scores, dtype=torch.float64)
    return found


def _drawn(count: int, size: int, most: int) -> list[tuple[int, ...]]:
    """So many different subsets, drawn at random with a fixed seed."""
    random, subsets = np.random.default_rng(0), set()
    while len(subsets) < most:
        subsets.add(tuple(sorted(random.permutation(count)[:size].tolist())))
    return sorted(subsets)
