"""Text encoders whose features are looked up: nothing in them is trained."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pullpush.encoders.interface import TextEncoder
from pullpush.encoders.store import FeatureStore


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
