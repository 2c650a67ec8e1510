"""Whole published models, both towers with their own projections, so that they are scored as models of ours are.

    model = open_model("clap")                                  # or "clap:laion/larger_clap_general", "clap:/a/folder"
    retrieval_table(model, clips)                               # with our metrics, forces and intervals

`pullpush evaluate clap clotho` does it from a shell. A model is one file that ends in a `ModelCard`.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pullpush.catalogue import Card, Catalogue
from pullpush.encoders.checks import check_audio, check_texts
from pullpush.encoders.interface import SAMPLE_RATE, Model
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.projection import normalise
from pullpush.encoders.windows import over_windows
from pullpush.errors import unknown


class PublishedModel(Model):
    """A published model; a file of a model gives `_windows` and `_texts`.

    Args:
        network: what holds all weights; it stays in evaluation mode, without gradients.
        tau: τ of its softmax or sigmoid, 1 over the scale of its logits.
        bias: added to its logits, which are s/τ + bias.
        sample_rate: in Hz, of the audio that it takes.
        longest: samples in its window, None for whole clips. Of a longer clip the embeddings of windows are averaged.
    """

    tokenizer: Any

    def __init__(
        self,
        network: nn.Module,
        *,
        tau: float,
        bias: float = 0.0,
        sample_rate: int = SAMPLE_RATE,
        longest: int | None = None,
    ) -> None:
        super().__init__()
        self.pretrained = Pretrained(network, frozen=True)
        self.tau, self.bias, self.longest = tau, bias, longest
        self._sample_rate = sample_rate

    @property
    def network(self) -> Any:
        """What holds all weights."""
        return self.pretrained.model

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.pretrained.device

    @property
    def sample_rate(self) -> int:
        """See `Model`."""
        return self._sample_rate

    @torch.no_grad()
    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Clips to embeddings; see `Model`.

        Raises:
            AudioError: wrong shape or dtype, lengths outside 1 … T, or samples that are not finite.
        """
        audio, lengths = check_audio(audio, lengths)
        longest = audio.shape[1] if self.longest is None else self.longest
        return normalise(over_windows(self._windows, audio.to(self.device), lengths.to(self.device), longest))

    @torch.no_grad()
    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts to embeddings; see `Model`.

        Raises:
            TypeError, ValueError: not a list of at least one string.
        """
        return normalise(self._texts(check_texts(texts), languages))

    def _tokens(self, texts: list[str], longest: int) -> dict[str, Tensor]:
        """Texts cut to so many tokens, as `transformers` takes them; where `tokenizer` is set."""
        batch = self.tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        return {name: batch[name].to(self.device) for name in ("input_ids", "attention_mask")}

    @abstractmethod
    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        """`(M, W)` windows and `(M,)` samples in each → `(M, d)`."""

    @abstractmethod
    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        """Texts → `(B, d)`."""


@dataclass(frozen=True, kw_only=True)
class ModelCard(Card):
    """A whole published model. `make` takes `model` and gives a `PublishedModel`.

    licence, weights: as for encoders; remote: its code is the publisher's, and runs only where the reader asks for it
    by `trust_remote_code=True`; sample_rate: in Hz; languages: of its texts, in words; probe: gives options of `make`
    for a model with random weights that is made in a moment, by which its golden file knows it, where there are such.
    """

    licence: str
    weights: str
    remote: bool = False
    sample_rate: int = SAMPLE_RATE
    languages: str = "eng"
    probe: Callable[[], Mapping[str, Any]] | None = None


MODELS: Catalogue[ModelCard] = Catalogue("pullpush.encoders", ModelCard, "published model")


def open_model(name: str, **options: Any) -> PublishedModel:
    """A whole published model, "name" or "name:weights".

    Args:
        name: of a card in `MODELS`; after a colon a name on the hub or a folder, to take instead of the card's.
        options: of the model, such as `trust_remote_code`.

    Raises:
        UnknownNameError: no such model or option.
        DataNotFoundError: its weights are not to be had.
    """
    kind, _, weights = name.partition(":")
    make = MODELS[kind].make
    possible = inspect.signature(make).parameters
    for option in options:
        if option not in possible:
            raise unknown(f"option of {kind}", option, possible)
    return make(**({"model": weights} if weights else {}), **options)
