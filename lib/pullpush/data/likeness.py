"""How well the caption of one phrase of music fits another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.data.clips import Columns
from pullpush.data.instruments import load_instruments
from pullpush.data.phrases import ATTRIBUTES, Phrase

NEAR = 0.75  # the most that a phrase of another kind is relevant


def likeness(columns: Columns, other: Columns) -> Tensor:
    """Relevance of phrases, `(N, M)` float32 in [0, 1]: 1 for the same kind, else up to 0.75.

    0.75 (2 I + S + A) / (3 + |A|) with I = 1 for the same instrument and 1/2 for one of its family, S = 1 for the same
    shape, and A attributes that both have in common of |A| that either has.

    columns, other: their "phrase" is read.

    >>> phrases = [Phrase("violin", "rising", "slow"), Phrase("viola", "rising", "slow")]
    >>> likeness({"phrase": phrases[:1]}, {"phrase": phrases}).tolist()
    [[1.0, 0.5625]]
    """
    family = {item.name: item.family for item in load_instruments()}

    def coded(values: Callable[[Phrase], str]) -> tuple[np.ndarray, np.ndarray]:
        rows, cols = ([values(phrase) for phrase in side["phrase"]] for side in (columns, other))
        codes, _ = pd.factorize(np.array(rows + cols, dtype=object))
        there = np.array([bool(value) for value in rows + cols])
        codes = np.where(there, codes, -1)
        return codes[: len(rows), None], codes[None, len(rows) :]

    def same(values: Callable[[Phrase], str]) -> np.ndarray:
        a, b = coded(values)
        return ((a == b) & (a >= 0)).astype(np.float32)

    instrument, shape = same(lambda phrase: phrase.instrument), same(lambda phrase: phrase.shape)
    shared = instrument + same(lambda phrase: family[phrase.instrument]) + shape
    total = np.full(shared.shape, 3.0)
    for name in ATTRIBUTES:
        a, b = coded(lambda phrase, name=name: getattr(phrase, name))
        shared = shared + ((a == b) & (a >= 0))
        total += (a >= 0) | (b >= 0)
    alike = same(lambda phrase: repr(phrase.kind))
    return torch.from_numpy(np.where(alike, 1.0, NEAR * shared / total).astype(np.float32))
