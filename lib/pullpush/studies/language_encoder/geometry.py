"""Both spaces of one model: the matrix that Figure 1 draws, and where the encoders start from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.encoders.dual import normalise
from pullpush.metrics.geometry import uniformity
from pullpush.metrics.inference import Array
from pullpush.training.evaluate import embed_audio, embed_texts


def pairs(model: nn.Module, split: Clips, count: int = 40, *, language: str = "eng") -> tuple[Tensor, Tensor]:
    """The first clips of a split and the first caption of each as the model places them, `(n, d)` each."""
    chosen = split.head(count)
    texts = [captions[0] for captions in chosen.captions(language)]
    return embed_audio(model, chosen), embed_texts(model, texts, language=language)


def similarity(audio: Tensor, text: Tensor, order: Sequence[int] | None = None) -> Array:
    """Cosines of captions (rows) and clips (columns), `(n, n)` float64, the pairs in `order`.

    >>> similarity(torch.eye(2), torch.eye(2).flip(0))
    array([[0., 1.],
           [1., 0.]])
    """
    cosines = (text.double() @ audio.double().T).numpy()
    return cosines if order is None else cosines[np.ix_(order, order)]


def neighbours_first(text: Tensor) -> list[int]:
    """An order of `(n, d)` captions in which those that are alike stand side by side: the leaves of their dendrogram.

    Average linkage, optimally ordered. Taken from one model it serves for the matrices of all.

    >>> neighbours_first(torch.eye(2)[[0, 1, 0, 1]])
    [0, 2, 3, 1]
    """
    if len(text) < 3:
        return list(range(len(text)))
    return leaves_list(linkage(text.double().numpy(), "average", optimal_ordering=True)).tolist()


def asymmetry(matrix: ArrayLike) -> float:
    """Mean of (S − Sᵀ)² off the diagonal as a share of the variance of S there; 0 where S varies by nothing.

    It is 2 (1 − r) with the correlation r of sᵢₖ and sₖᵢ: that of the metric "space", of one matrix.

    >>> asymmetry([[1.0, 0.4], [0.0, 1.0]])
    4.0
    """
    values = np.asarray(matrix, float)
    off = ~np.eye(len(values), dtype=bool)
    variance = values[off].var()
    return float(((values - values.T)[off] ** 2).mean() / variance) if variance > 0 else 0.0


def encoder_uniformity(
    model: nn.Module, texts: Sequence[str], *, language: str = "eng", batch_size: int = 256
) -> float:
    """Uniformity loss of what the text encoder makes of texts before the projection, in nats: of unit-length features.

    Equal texts count once, for what says the same lies in the same place in any space.
    """
    different = sorted(set(texts))
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            blocks = [different[start : start + batch_size] for start in range(0, len(different), batch_size)]
            features = torch.cat([model.text(block, [language] * len(block)).float().cpu() for block in blocks])
    finally:
        model.train(was)
    return uniformity(normalise(features)).item()
