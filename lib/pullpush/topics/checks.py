"""What captions must be like before topics can be sought among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from pullpush.errors import PullPushError


class TopicsError(PullPushError, ValueError):
    """Captions in which no topics can be found, or embeddings that cannot be clustered."""


def check_captions(embeddings: ArrayLike, texts: Sequence[str]) -> NDArray[np.float32]:
    """The embeddings `(N, d)` as float32, once there is one of finite numbers for each text.

    Raises:
        TopicsError: another shape, another number of texts, a text that is none, or embeddings with NaN or infinity
            (the first rows are named).
    """
    if isinstance(embeddings, torch.Tensor):
        embeddings = embeddings.detach().float().cpu()
    values = np.asarray(embeddings, np.float32)
    if values.ndim != 2 or not values.shape[1]:
        raise TopicsError(f"embeddings must be (N, d), a row a caption: got {values.shape}")
    if isinstance(texts, str) or len(values) != len(texts):
        given = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
        raise TopicsError(f"every caption needs its embedding: got {given} and {len(values)} embeddings")
    if not all(isinstance(text, str) for text in texts):
        raise TopicsError("captions must be texts: give one caption a row, not a list of captions")
    broken = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(broken):
        raise TopicsError(f"NaN or infinity in the embeddings of captions {broken[:5].tolist()} ({len(broken)} in all)")
    return values


def check_enough(captions: int, min_size: int, dimensions: int) -> None:
    """Whether so many different captions could make two topics.

    Raises:
        TopicsError: a topic is to have fewer than two captions, the space less than no dimensions, or there are too few
            captions for two topics or for the reduced space.
    """
    if dimensions < 0:
        raise TopicsError(f"dimensions of the reduced space must be 0 (none) or more, got {dimensions}")
    if min_size < 2:
        raise TopicsError(f"one caption is no topic: min_size must be 2 or more, got {min_size}")
    least = max(2 * min_size, dimensions + 3)  # UMAP's spectral start takes more points than dimensions
    if captions < least:
        raise TopicsError(
            f"{captions} different captions are too few for topics of min_size={min_size} in {dimensions} dimensions: "
            f"give {least} or more, or lower min_size"
        )
