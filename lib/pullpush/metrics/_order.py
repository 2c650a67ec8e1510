"""Items in the order in which a system ranks them, ties against the system."""

from __future__ import annotations

import torch
from torch import Tensor

from pullpush.checks import check_floats, check_number, check_relevance


def relevant_items(similarity: Tensor, relevance: Tensor, threshold: float) -> Tensor:
    """Which items are relevant, `(Q, M)` boolean, once all inputs are as they must be.

    >>> relevant_items(torch.zeros(1, 2), torch.tensor([[0.5, 1.0]]), 1.0)
    tensor([[False,  True]])
    """
    check_floats(similarity=similarity)
    check_relevance(relevance)
    check_number("threshold", threshold)
    if similarity.ndim != 2 or similarity.shape != relevance.shape:
        raise ValueError(
            f"similarity and relevance must have one shape (Q, M), got {tuple(similarity.shape)} "
            f"and {tuple(relevance.shape)}"
        )
    if torch.isnan(similarity).any():
        rows = torch.isnan(similarity).any(dim=1).nonzero().flatten().tolist()
        raise ValueError(f"similarity is NaN for queries {rows[:10]}: check the embeddings that it comes from")
    relevant = relevance if relevance.dtype == torch.bool else relevance >= threshold
    empty = (~relevant.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        raise ValueError(f"queries {empty[:10]} have no relevant item ({len(empty)} in all): leave them out and say so")
    return relevant


def first_items(similarity: Tensor, relevance: Tensor, k: int) -> Tensor:
    """The first k items (all, if there are fewer) of `sorted_items`, `(Q, k)`.

    Only queries with ties among their first k + 1 items need to be sorted; that is much of the time and memory.

    >>> first_items(torch.tensor([[0.1, 0.9, 0.5]]), torch.tensor([[True, False, False]]), 2)
    tensor([[1, 2]])
    """
    if similarity.shape[1] <= k:
        return sorted_items(similarity, relevance)
    values, order = similarity.topk(k + 1, dim=1)
    order = order[:, :k].contiguous()
    tied = (values[:, 1:] == values[:, :-1]).any(dim=1)
    if tied.any():
        order[tied] = sorted_items(similarity[tied], relevance[tied])[:, :k]
    return order


def sorted_items(similarity: Tensor, relevance: Tensor) -> Tensor:
    """The items `(Q, M)`, most similar first and ties by least relevance.

    >>> sorted_items(torch.tensor([[0.5, 0.5, 0.9]]), torch.tensor([[True, False, False]]))
    tensor([[2, 1, 0]])
    """
    # Two stable sorts: the second keeps the first's order among ties, the least relevant in front.
    by_relevance = relevance.double().argsort(dim=1, stable=True)
    by_similarity = similarity.gather(1, by_relevance).argsort(dim=1, descending=True, stable=True)
    return by_relevance.gather(1, by_similarity)
