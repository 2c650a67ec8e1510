"""Probes of text encoders, and of the store in which features of frozen ones are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullpush.encoders import TEXT
from pullpush.encoders.store import FeatureStore
from pullpush.encoders.use import USE_DIM, UseEncoder
from pullpush.golden import GoldenError, Values
from pullpush.golden.networks import probed, thinned

TOLERANCE = 1e-3  # float32 on other processors
TEXTS = ["A frog croaks, then a bell rings.", "Une grenouille coasse.", "青蛙呱呱叫。", ""]
LANGUAGES = ["eng", "fra", "zho", "eng"]


def names() -> frozenset[str]:
    """Every text encoder, the reader's own included, and the parts."""
    return frozenset({*TEXT, *PARTS})


def probe(name: str) -> Values:
    """What a text encoder gives, or a part.

    Raises:
        GoldenError: an encoder cannot be probed; the message says what to do.
    """
    if name in PARTS and name in TEXT and name != "use":
        raise GoldenError(f"a text encoder is called {name!r}, as a part of the library is: give it another name")
    return PARTS[name]() if name in PARTS else probed(TEXT[name], _drawn, _read)


def _drawn(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    return TEXT[name].make(**options)


def _read(encoder: Any) -> Tensor:
    return encoder(TEXTS, LANGUAGES)


class Letters:
    """In the place of USE's tokenizer: the code of each letter, between those of begin and end."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""
        return [[1, *(3 + ord(letter) % 5000 for letter in text), 2] for text in texts]


class Sums:
    """In the place of USE's network: a sum over tokens that knows their places."""

    def encode(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """`(N, USE_DIM)`."""
        waves = np.arange(1, USE_DIM + 1) / USE_DIM
        return np.stack([np.cos(np.outer(waves, row) + np.arange(len(row))).mean(axis=1) for row in rows])


class Drawn(UseEncoder):
    """`UseEncoder` without the weights that travel in its package."""

    _tokenizer = Letters()
    _backend = Sums()


def _use() -> Values:
    texts = [*TEXTS, "frog " * 90, *TEXTS[::-1]]  # one that is too long for a batch
    features = torch.from_numpy(Drawn()(texts))
    rows = {f"features.{place}": thinned(row) for place, row in enumerate(features[:5])}
    return rows | {"alike": torch.equal(features[:4], features[5:].flip(0)), "dim": USE_DIM}


def _store() -> Values:
    asked = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(list(texts))
        return np.array([[len(text) / 3, 1000.3] for text in texts])

    store = FeatureStore(encode, 2)
    first = store(["ab", "c", "ab"])
    store.add(["c", "d"])
    several = FeatureStore(lambda texts: [np.full((len(text), 2), 1 / 3) for text in texts], 2, ragged=True)
    return {"features": first, "asked": asked, "rows": [row.tolist() for row in several.rows(["ab", "c"])]}


PARTS: dict[str, Callable[[], Values]] = {"store": _store, "use": _use}
