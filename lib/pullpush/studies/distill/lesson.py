"""What lesson 6 computes: how many clips a caption fits, what labels know of it, what they do to the forces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import rankdata
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.errors import SettingError
from pullpush.losses import epsilon_of_entropy
from pullpush.metrics.annotations import FITS
from pullpush.topics import Density, agreement, cluster

LEVELS = ("nothing in common", "something in common", "same events", "the same scene")  # of relevance
BOUNDS = (0.0, FITS, 1.0)  # the levels after the first begin above, at, at


def others_that_fit(clips: Clips, *, fits: float = FITS) -> Tensor:
    """How many clips beside its own the captions of each clip fit, `(N,)` int64; fits: least relevance."""
    return (clips.relevance() >= fits).fill_diagonal_(False).sum(dim=1)


def counted(sets: Mapping[str, Clips]) -> pd.DataFrame:
    """`others_that_fit` of several sets of clips: columns clips (the set) and others, a row a clip."""
    tables = [pd.DataFrame({"clips": name, "others": others_that_fit(clips).numpy()}) for name, clips in sets.items()]
    return pd.concat(tables, ignore_index=True)


def wrong_by_batch(others: Tensor, sizes: Iterable[int]) -> pd.DataFrame:
    """What binary labels get wrong in batches of several sizes, drawn from all clips without replacement.

    Args:
        others: `(N,)`, how many other clips each caption fits.
        sizes: pairs in a batch, N at most.

    Returns:
        Columns pairs, touched (the share of captions with one clip at least in their batch that is right and labelled
        wrong) and wrong (how many such clips a caption has in its batch, on average).

    >>> wrong_by_batch(torch.tensor([1, 1, 0]), [2, 3]).round(3).to_dict("list")
    {'pairs': [2, 3], 'touched': [0.333, 0.667], 'wrong': [0.333, 0.667]}
    """
    count, fitting = len(others), others.numpy().astype(float)
    rows = []
    for size in sizes:
        if not 1 <= size <= count:
            raise ValueError(f"a batch of {size} cannot be drawn from {count} clips")
        drawn, rest = size - 1, count - 1 - fitting  # of the clips beside its own; those of them that do not fit
        with np.errstate(invalid="ignore"):
            none = np.exp(_choose(rest, drawn) - _choose(np.full_like(rest, count - 1), drawn))
        none = np.where(drawn > rest, 0.0, none)
        rows.append((size, float((1 - none).mean()), float((fitting * drawn / (count - 1)).mean())))
    return pd.DataFrame(rows, columns=["pairs", "touched", "wrong"])


def _choose(total: NDArray, drawn: float) -> NDArray:
    """log of the binomial coefficients; of fewer than are drawn without a meaning."""
    return gammaln(total + 1) - gammaln(drawn + 1) - gammaln(np.maximum(total - drawn, 0) + 1)


def told_alike(clips: Clips, *, language: str = "eng") -> tuple[int, int]:
    """Two clips with one first caption and different sounds: the first such pair of clips by their numbers.

    Raises:
        SettingError: all captions differ.
    """
    seen: dict[str, int] = {}
    for row, texts in enumerate(clips.captions(language)):
        if texts[0] in seen:
            return seen[texts[0]], row
        seen[texts[0]] = row
    raise SettingError("no two clips have one caption: take more clips")


def against_truth(labels: Tensor, relevance: Tensor) -> NDArray[np.float64]:
    """Rank correlation (Spearman) of each query's label with the true relevance of all candidates, `(Q,)`.

    Equal values share a rank; a label that says the same of all knows nothing, which is a correlation of 0.

    Args:
        labels, relevance: `(Q, N)`, of the same queries and candidates.

    >>> truth = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]])
    >>> against_truth(truth, truth).tolist(), against_truth(torch.eye(3)[:2], truth).round(2).tolist()
    ([1.0, 1.0], [0.87, 0.87])
    """
    ranks = [rankdata(values.double().numpy(), axis=1) for values in (labels, relevance)]
    ours, truth = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
    scale = np.sqrt((ours**2).sum(axis=1) * (truth**2).sum(axis=1))
    return np.divide((ours * truth).sum(axis=1), scale, out=np.zeros(len(ours)), where=scale > 0)


def label_quality(similarities: Sequence[Tensor], relevance: Tensor) -> tuple[NDArray, NDArray]:
    """`against_truth` of soft labels, by the similarities `(N, N)` of each seed's teachers, texts in rows, and of
    binary labels: `(seeds, N)` each.
    """
    soft = np.stack([against_truth(each, relevance) for each in similarities])
    return soft, np.broadcast_to(against_truth(torch.eye(len(relevance)), relevance), soft.shape)


def softness(similarity: Tensor, relevance: Tensor, taus: Iterable[float], *, fits: float = FITS) -> pd.DataFrame:
    """What a teacher's temperature does to its labels of the clips for each text.

    Args:
        similarity: `(N, N)`, texts in rows; relevance: `(N, N)`, of the same.
        taus: temperatures.

    Returns:
        Columns tau; candidates, e to the entropy of the label: as many clips share it; right, its share on clips that
        fit; own, its share on the caption's own clip. Means over texts (of candidates the geometric one).
    """
    right = relevance >= fits
    rows = []
    for tau in taus:
        label = (similarity.double() / tau).softmax(dim=1)
        entropy = torch.special.entr(label).sum(dim=1)
        shares = ((label * right).sum(dim=1).mean(), label.diagonal().mean())
        rows.append((tau, float(entropy.mean().exp()), *map(float, shares)))
    return pd.DataFrame(rows, columns=["tau", "candidates", "right", "own"])


def level_of(relevance: Tensor) -> Tensor:
    """Which of LEVELS a relevance is, `(…)` int64.

    >>> level_of(torch.tensor([0.0, 0.25, 0.75, 1.0])).tolist()
    [0, 1, 2, 3]
    """
    return (relevance > BOUNDS[0]).long() + (relevance >= BOUNDS[1]) + (relevance >= BOUNDS[2])


def push_by_truth(
    student: Tensor, teacher: Tensor, relevance: Tensor, tau: float, *, size: int, seed: int = 0
) -> pd.DataFrame:
    """How labels have a text pushed by the clips of other pairs of its batch, by how well these fit in truth.

    The weight of clip j on text i is q_ij − label_ij: positive pushes, negative pulls. Binary labels are those of
    InfoNCE, soft ones the teachers', and smoothed ones say the same of all other clips, with the entropy of the soft.
    "binary and soft" is the sum of these two losses, which is what trains (λ₁ = 1).

    Args:
        student, teacher: `(N, N)` similarities, texts in rows; tau: of both.
        relevance: `(N, N)`.
        size: pairs in a batch, seed: of the batches, into which the pairs are dealt once.

    Returns:
        Columns label, level (of LEVELS, those that occur), weight: the mean over such pairs, in units of 1/τ; pairs.
    """
    order = torch.randperm(len(student), generator=torch.Generator().manual_seed(seed))
    sums: dict[tuple[str, int], list[float]] = {}
    for rows in order[: len(order) - len(order) % size].view(-1, size):
        q, soft = ((each[rows][:, rows].double() / tau).softmax(dim=1) for each in (student, teacher))
        level = level_of(relevance[rows][:, rows])
        binary = torch.eye(size, dtype=q.dtype)
        weights = {"binary": q - binary, "soft": q - soft, "smoothed": q - smoothed(soft)}
        weights["binary and soft"] = weights["binary"] + weights["soft"]
        for name, weight in weights.items():
            for number in level.unique().tolist():
                chosen = weight[(level == number) & (binary == 0)]
                sums.setdefault((name, number), []).extend(chosen.tolist())
    rows = [
        (name, LEVELS[number], float(np.mean(found)), len(found)) for (name, number), found in sums.items() if found
    ]
    return pd.DataFrame(rows, columns=["label", "level", "weight", "pairs"])


def smoothed(soft: Tensor) -> Tensor:
    """Labels `(N, N)` of the same entropy, row by row, that say the same of all clips but the own one.

    >>> smoothed(torch.tensor([[0.8, 0.2], [0.5, 0.5]]))
    tensor([[0.8000, 0.2000],
            [0.5000, 0.5000]])
    """
    epsilon = epsilon_of_entropy(torch.special.entr(soft).sum(dim=1), len(soft)).to(soft.dtype)[:, None]
    label = (epsilon / max(1, len(soft) - 1)).repeat(1, len(soft))
    return label.diagonal_scatter(1 - epsilon[:, 0])


# ---------------------------------------------------------------- topics


def kinds_of(clips: Clips, events: Sequence[Any]) -> dict[str, list[str]]:
    """What topics may agree with: the event of clips with one ("" for others), and the categories of all events."""
    scenes = clips.columns["scene"]
    return {
        "event, of single sounds": [events[s.events[0]].name if len(s.events) == 1 else "" for s in scenes],
        "categories": [" + ".join(sorted({events[event].category for event in s.events})) for s in scenes],
    }


def agreements(labels: NDArray[np.int64], kinds: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """`topics.agreement` of labels with each kind of class: columns "agreement with", AMI, NMI, V-measure."""
    found = {name: agreement(labels, classes) for name, classes in kinds.items()}
    return pd.DataFrame(
        [
            {"agreement with": name, **{key: row[key] for key in ("AMI", "NMI", "V-measure")}}
            for name, row in found.items()
        ]
    )


def plane(embeddings: NDArray[np.float32], texts: Sequence[str], *, seed: int = 0) -> NDArray[np.float32]:
    """Where UMAP puts captions in two dimensions, `(N, 2)`, to be looked at."""
    return cluster(embeddings, texts, seed=seed, how=Density(dimensions=2)).points
