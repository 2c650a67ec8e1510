"""Hashed character n-grams: a text encoder without weights."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from pullpush.encoders.cards import TextEncoderCard
from pullpush.encoders.frozen import FrozenText
from pullpush.encoders.store import FeatureStore


class HashedNGrams(FrozenText):
    """Hashed character n-grams: frozen, nothing to download, the same on every machine.

    It knows no meaning, only spelling: two captions are near when they share letters. Enough to see that the
    machinery runs, and a floor for every other text encoder.

    Args:
        features: size of the feature vector.
        orders: lengths of the n-grams.

    >>> one, other = HashedNGrams()(["A frog.", "a frog."])
    >>> bool((one == other).all())
    True
    """

    def __init__(self, *, features: int = 512, orders: Sequence[int] = (1, 2, 3, 4)) -> None:
        super().__init__(_hashed_store(features, tuple(orders)))


@cache
def _hashed_store(features: int, orders: tuple[int, ...]) -> FeatureStore:
    return FeatureStore(lambda texts: hash_ngrams(texts, features, orders), features)


def hash_ngrams(texts: Sequence[str], features: int, orders: Sequence[int]) -> np.ndarray:
    """Signed counts of character n-grams, square-rooted and L2-normalised: `(N, features)` float32.

    The text is NFKC-normalised, case-folded and put between spaces, so that n-grams see where words begin.

    >>> hash_ngrams(["aha"], 4, (1,)).round(2)
    array([[0.  , 0.63, 0.63, 0.45]], dtype=float32)
    """
    counts = np.zeros((len(texts), features), dtype=np.float32)
    for row, text in zip(counts, texts, strict=True):
        text = f" {unicodedata.normalize('NFKC', text).casefold()} "
        for order in orders:
            for start in range(len(text) - order + 1):
                # CRC-32, not hash(): Python salts hash() anew in each process.
                code = zlib.crc32(text[start : start + order].encode("utf-8", "surrogatepass"))
                row[(code >> 1) % features] += 1.0 if code & 1 else -1.0
    counts = np.sign(counts) * np.sqrt(np.abs(counts))
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-12)


CARD = TextEncoderCard(
    name="hashed",
    make=HashedNGrams,
    title="hashed n-grams",
    about="Signed counts of hashed character n-grams: spelling without meaning, the floor of all others.",
    source="ours; after Weinberger et al. 2009, feature hashing",
    licence="MIT",
    frozen=True,
    probe=lambda: {"features": 32},
)
