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
