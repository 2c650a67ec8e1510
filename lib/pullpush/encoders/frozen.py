"""Text encoders that are not trained: features that are looked up, of hashed letters or behind dropout."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from pullpush.encoders.interface import TEXT, TextEncoder, TextEncoderCard
from pullpush.encoders.store import FeatureStore
from pullpush.errors import unknown


class FrozenText(TextEncoder):
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


class DropoutText(TextEncoder):
    """The features of a frozen text encoder, some of them set to zero while a model is trained.

    SimCSE needs two views of a text. An encoder whose features are looked up gives one; behind dropout they are two,
    and what learns to bear the difference is the projection that follows. Within an encoder that is trained itself,
    dropout falls on every layer, and every layer learns.

    Args:
        of: name of the text encoder, one whose card says that it is frozen.
        rate: share of a text's features that is left out, 0.1 as in SimCSE; the others grow by 1/(1 − rate).

    Raises:
        UnknownNameError: no such encoder, or one that is not frozen; those that are are named.

    >>> text = DropoutText(of="hashed", rate=0.5)
    >>> bool((text(["a frog"]) == text(["a frog"])).all())  # in training
    False
    >>> text = text.eval()
    >>> bool((text(["a frog"]) == text(["a frog"])).all())
    True
    """

    def __init__(self, *, of: str = "use", rate: float = 0.1) -> None:
        super().__init__()
        if not TEXT[of].frozen:
            raise unknown("frozen text encoder", of, (card.name for card in TEXT.values() if card.frozen))
        self.features = TEXT[of].make()
        self.dim = self.features.dim
        self.dropout = nn.Dropout(rate)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts → `(B, dim)`."""
        return self.dropout(self.features(texts, languages))

    def precompute(self, texts: Sequence[str]) -> None:
        """See `TextEncoder`."""
        self.features.precompute(texts)


CARDS = (
    TextEncoderCard(
        name="hashed",
        make=HashedNGrams,
        title="hashed n-grams",
        about="Signed counts of hashed character n-grams: spelling without meaning, the floor of all others.",
        source="ours; after Weinberger et al. 2009, feature hashing",
        licence="MIT",
        frozen=True,
        probe=lambda: {"features": 32},
    ),
    TextEncoderCard(
        name="dropout",
        make=DropoutText,
        title="frozen features behind dropout",
        about="Another frozen text encoder, some of whose features are left out while a model is trained, as SimCSE "
        "asks.",
        source="ours; after SimCSE",
        licence="that of the encoder",
        weights="those of the encoder",
        languages="those of the encoder",
        probe=lambda: {"of": "hashed"},
    ),
)
