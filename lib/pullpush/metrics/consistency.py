"""Consistency across languages (ATRI §3.2 and §5.4).

What a model ends with: `gap`, `distance` and `mean_rank_variance` measure how far the texts of one clip lie, and rank,
apart. Why: `direction_error` is the angle of Figure 2; `studies.consistency.bound` has that on the weights.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import check_alike, check_embeddings, check_numbers_of, check_one_dtype, check_shapes
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values, by_language
from pullpush.metrics.inference import gap_pseudo_values, pseudo_values
from pullpush.precision import in_single

Direction = Literal["t2a", "a2t"]


@in_single
def gap(english: Tensor, other: Tensor) -> Tensor:
    """Distance between the centroids of two languages (ATRI Eq. 14).

    Eq. 14 is a vector and Table 2 a number: the number here is the vector's Euclidean norm.

    Args:
        english: `(N, d)` text embeddings.
        other: `(N, d)` embeddings of the same texts in another language, or `(N, K, d)` in K of them.

    Returns:
        0-d, or `(K,)`. Never more than `distance`.

    >>> gap(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor(0.)

    Raises:
        ValueError: shapes that do not match, or no text.
    """
    return _differences(english, other).mean(dim=0).norm(dim=-1)


@in_single
def distance(english: Tensor, other: Tensor) -> Tensor:
    """Mean distance between each text and its translation (ATRI Eq. 15).

    Args:
        english: `(N, d)` text embeddings.
        other: `(N, d)`, or `(N, K, d)` for K languages.

    Returns:
        0-d, or `(K,)`.

    >>> distance(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor(1.4142)

    Raises:
        ValueError: shapes that do not match, or no text.
    """
    return _differences(english, other).norm(dim=-1).mean(dim=0)


@in_single
def language_ranks(audio: Tensor, texts: Tensor, *, direction: Direction = "t2a", clip: Tensor | None = None) -> Tensor:
    """Rank of the right item for each text in each language, from 1, ties against the system.

    `"t2a"`: text i in language k is the query, the M clips are the items. `"a2t"`: the clip is the query, the texts of
    language k are the items; other captions of the same clip are not counted before it.

    Args:
        audio: `(M, d)` L2-normalised.
        texts: `(N, K, d)` L2-normalised.
        direction: which side asks.
        clip: `(N,)` int64, the clip that each text belongs to; None: text i belongs to clip i.

    Returns:
        `(N, K)` int64.

    >>> english, french = torch.eye(2), torch.eye(2).flip(0)
    >>> language_ranks(torch.eye(2), torch.stack([english, french], dim=1)).tolist()
    [[1, 2], [1, 2]]

    Raises:
        ValueError: wrong shapes, a clip number out of range, NaN, an unknown direction.
    """
    check_embeddings(audio=audio, texts=texts)
    if direction not in ("t2a", "a2t"):
        raise ValueError(f"direction must be 't2a' or 'a2t', got {direction!r}")
    if texts.ndim != 3 or audio.ndim != 2 or audio.shape[1] != texts.shape[2] or 0 in texts.shape:
        raise ValueError(
            f"need audio (M, d) and texts (N, K, d), K ≥ 1, got {tuple(audio.shape)} and {tuple(texts.shape)}"
        )
    if clip is None:
        if len(audio) != len(texts):
            raise ValueError(f"{len(texts)} texts for {len(audio)} clips: say which clip each belongs to by `clip`")
        clip = torch.arange(len(texts), device=texts.device)
    check_numbers_of("clip", clip, len(texts), len(audio))
    return torch.stack([_ranks(audio, texts[:, k], clip, direction) for k in range(texts.shape[1])], dim=1)


def rank_variance(ranks: Tensor) -> Tensor:
    """Variance of each item's rank over the languages, the inner mean of ATRI Eq. 16.

    Args:
        ranks: `(N, K)` ranks, counted from 0 or 1 alike.

    Returns:
        `(N,)` float64, to bootstrap over items. An item with one language has variance 0.

    >>> rank_variance(torch.tensor([[1, 3], [2, 2]])).tolist()
    [1.0, 0.0]

    Raises:
        ValueError: wrong shapes.
    """
    if ranks.ndim != 2 or 0 in ranks.shape:
        raise ValueError(f"ranks must have shape (N, K) with N, K ≥ 1, got {tuple(ranks.shape)}")
    if ranks.min() < 0:
        raise ValueError(f"ranks are counted from 0 or 1, got {ranks.min():g}")
    values = ranks.double()
    return (values - values.mean(dim=1, keepdim=True)).square().mean(dim=1)


def mean_rank_variance(ranks: Tensor) -> Tensor:
    """Mean rank variance, MRV (ATRI Eq. 16); 0 when every item has one rank in all languages.

    Eq. 16 subtracts a mean rank with index j from item i's ranks; the text below it defines the mean of item i, which
    is what is subtracted here.

    Args:
        ranks: `(N, K)`, see `language_ranks`.

    Returns:
        0-d float64.

    >>> mean_rank_variance(torch.tensor([[1, 3], [2, 2]]))
    tensor(0.5000, dtype=torch.float64)
    """
    return rank_variance(ranks).mean()


@in_single
def angle(one: Tensor, other: Tensor) -> Tensor:
    """Angle between vectors along the last dimension, in degrees in [0, 180]; NaN where one of them is zero.

    By the arc tangent of the half angle, which keeps small angles that the arc cosine rounds away.

    >>> angle(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]))
    tensor(90.)
    """
    check_alike(one=one, other=other)
    u, v = F.normalize(one, dim=-1, eps=0), F.normalize(other, dim=-1, eps=0)  # 0/0: a zero vector has no direction
    return torch.rad2deg(2 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1)))


@in_single
def direction_error(audio: Tensor, texts: Tensor, taken: Tensor) -> Tensor:
    """Modality alignment direction error (ATRI §3.2, Figure 2), in degrees.

    The angle at the clip between the way to the mean of the texts taken and the way to the mean of all K. As in the
    paper the mean is not normalised again.

    Args:
        audio: `(N, d)` embeddings.
        texts: `(N, K, d)` embeddings.
        taken: `(N, K)` boolean, the languages that training takes of each clip: at least one.

    Returns:
        `(N,)`; 0 where all are taken, NaN where a clip lies on one of the means.

    >>> direction_error(torch.zeros(1, 2), torch.eye(2)[None], torch.tensor([[True, False]]))
    tensor([45.])

    Raises:
        ValueError: shapes that do not match, or a clip of which nothing is taken.
    """
    check_shapes(audio=audio, texts=texts, taken=taken)
    if not taken.any(dim=1).all():
        raise ValueError("every clip needs at least one language that is taken")
    weight = taken.to(texts.dtype) / taken.sum(dim=1, keepdim=True)
    return angle((texts * weight[..., None]).sum(dim=1) - audio, texts.mean(dim=1) - audio)


def _differences(english: Tensor, other: Tensor) -> Tensor:
    """english − other, `(N, d)` or `(N, K, d)`."""
    check_one_dtype(english=english, other=other)
    if other.ndim == 3 and english.ndim == 2:
        english = english[:, None].expand_as(other) if english.shape == other.shape[::2] else english
    if english.shape != other.shape or english.ndim not in (2, 3) or 0 in english.shape:
        raise ValueError(
            f"need english (N, d) and other (N, d) or (N, K, d), got {tuple(english.shape)} and {tuple(other.shape)}"
        )
    return english - other


def _ranks(audio: Tensor, text: Tensor, clip: Tensor, direction: Direction) -> Tensor:
    """Ranks for one language: audio `(M, d)`, text `(N, d)` → `(N,)`."""
    similarity = text @ audio.T  # (N, M)
    if torch.isnan(similarity).any():
        raise ValueError("similarity is NaN: check the embeddings that it comes from")
    right = similarity.gather(1, clip[:, None])  # (N, 1)
    if direction == "t2a":
        return (similarity >= right).sum(dim=1)  # the right clip counts itself: ranks start at 1
    others = similarity[:, clip].T.masked_fill(clip[:, None] == clip[None], -torch.inf)  # (N, N): of other clips
    return (others >= right).sum(dim=1) + 1


# ---------------------------------------------------------------- by clip, of experiments


def consistency_by_clip(embedded: Embeddings) -> Values:
    """How far languages lie and rank apart on the test clips (ATRI Eq. 14–16); the first language is the reference.

    "Gap", "Dis" and "relative distance" `(N, K)` compare a clip's first captions. The reference's own column holds the
    mean of the others, so that a mean over all columns is one over the languages that are compared with it.
    "Gap within eng" and so on `(N,)`, by the reference's name, compare its second caption with its first: a yardstick.
    Gap and the relative distance (Dis over the mean distance of the reference captions of different clips) are no means
    over clips: theirs are pseudo-values. "MRV", "log rank variance", "mean rank" `(N,)` are means over a clip's
    captions, text to audio.
    """
    languages = embedded.languages
    spaces = torch.stack([embedded.texts(language) for language in languages], dim=2)  # (N, C, K, d)
    captions, count = spaces.shape[1:3]
    values: Values = {}
    if count > 1:
        columns = [_apart(spaces[:, 0, 0], spaces[:, 0, k]) for k in range(1, count)]
        mean = {name: np.mean([column[name] for column in columns], axis=0) for name in columns[0]}
        values |= by_language([mean, *columns])
    if captions > 1:
        within = _apart(spaces[:, 0, 0], spaces[:, 1, 0])
        values |= {f"{name} within {languages[0]}": value for name, value in within.items()}
    return values | _spread_of_ranks(embedded.audio, spaces)


def rank_agreement_by_clip(embedded: Embeddings) -> Values:
    """Variance over languages of the log rank of each test clip, text to audio, a mean over its captions: `(N,)`. The
    same number as "consistency" gives (ATRI Eq. 16 of log ranks, so that a place at the top counts more than one at the
    bottom), without what that one says of each language."""
    spaces = torch.stack([embedded.texts(language) for language in embedded.languages], dim=2)  # (N, C, K, d)
    return {"log rank variance": _spread_of_ranks(embedded.audio, spaces)["log rank variance"]}


def _apart(reference: Tensor, other: Tensor) -> Values:
    """Gap, Dis and relative distance `(N,)` of captions `(N, d)` from those of the reference."""
    apart = (reference - other).norm(dim=1).numpy()
    stranger = (reference - reference.roll(1, 0)).norm(dim=1).numpy()
    both = np.stack([apart, stranger], axis=1)
    relative = pseudo_values(lambda rows: rows[:, 0].mean() / rows[:, 1].mean(), both)
    return {"Gap": gap_pseudo_values((reference - other).numpy()), "Dis": apart, "relative distance": relative}


def _spread_of_ranks(audio: Tensor, spaces: Tensor) -> Values:
    """Of audio `(N, d)` and texts `(N, C, K, d)`, text to audio, the mean over a clip's captions: `(N,)` each."""
    clips, captions = spaces.shape[:2]
    clip = torch.arange(clips).repeat_interleave(captions)
    ranks = language_ranks(audio, spaces.flatten(0, 1), direction="t2a", clip=clip).double()
    spread = {"MRV": rank_variance(ranks), "log rank variance": rank_variance(ranks.log()), "mean rank": ranks.mean(1)}
    return {name: value.view(clips, captions).mean(dim=1).numpy() for name, value in spread.items()}


CARDS = (
    MetricCard(
        name="consistency",
        make=consistency_by_clip,
        title="Consistency across languages",
        about="How far the texts of one clip lie, and rank, apart in several languages.",
        source="ATRI Eq. 14–16",
        citation="atri",
        needs=("audio", "texts"),
        scores=(
            Score("Gap", better="lower"),
            Score("Dis", better="lower"),
            Score("relative distance", better="lower"),
            Score("MRV", unit="ranks²", better="lower"),
            Score("log rank variance", better="lower"),
            Score("mean rank", unit="ranks", better="lower"),
        ),
    ),
    MetricCard(
        name="rank-agreement",
        make=rank_agreement_by_clip,
        title="Agreement of ranks across languages",
        about="How far a clip's texts in several languages rank apart.",
        source="ATRI Eq. 16",
        citation="atri",
        needs=("audio", "texts"),
        scores=(Score("log rank variance", better="lower"),),
    ),
)
