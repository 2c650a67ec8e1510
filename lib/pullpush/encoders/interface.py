"""What a model and its encoders are: the contracts that training, evaluation and `DualEncoder` rely on.

A new encoder is one file: a class that keeps one of these contracts, and ends in its card, by which `create` finds it:

    CARD = AudioEncoderCard(name="cnn", make=CNN, title="CNN", about="…", source="…", licence="MIT")
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pullpush.catalogue import Card, Catalogue
from pullpush.encoders.wheels import Wheel
from pullpush.errors import check_known

SAMPLE_RATE = 16_000  # Hz, that an encoder takes unless it says otherwise
TRAINABLE = ("all", "upper")
KNOWN = 2**17  # texts whose tokens are held, so that a run reads each text once


class AudioEncoder(nn.Module):
    """Waveforms to features.

    dim: size of a clip's features, set by `__init__`.
    sample_rate: in Hz, of the audio that `forward` takes; None for what are no waveforms. Whoever reads clips asks for
    this rate (`Clips.audio(index, sample_rate=encoder.sample_rate)`), so that a recording is resampled once, from its
    source, and encoders do not resample.
    max_seconds: of the longest clip that `forward` takes; None for any.

    >>> class Loudness(AudioEncoder):
    ...     dim = 1
    ...     def forward(self, audio, lengths=None):
    ...         return audio.square().mean(dim=1, keepdim=True)
    >>> Loudness().dim, Loudness().sample_rate
    (1, 16000)
    """

    dim: int
    sample_rate: int | None = SAMPLE_RATE
    max_seconds: float | None = None

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` float32 in [-1, 1] at the encoder's rate, zero beyond each clip's end; `(B,)` int64 samples in each
        clip, None for all T → `(B, dim)` features, not normalised. A clip's features depend on its own samples alone.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method forward(audio, lengths)")


class SplitAudioEncoder(AudioEncoder):
    """An audio encoder in two parts, so that only the upper one need be trained, from activations kept of the lower.

    trainable: "all", or "upper": then the lower part has no gradient, stays in evaluation mode and is kept out of the
    optimiser and of checkpoints (its layers lie in a `Pretrained(…, frozen=True)`).

    >>> class Halves(SplitAudioEncoder):
    ...     lower = lambda self, audio, lengths=None: (audio.abs(), lengths)
    ...     upper = lambda self, activations, sizes: activations.sum(1, keepdim=True) / sizes[:, None]
    >>> Halves()(torch.tensor([[1.0, -3.0]]), torch.tensor([2]))
    tensor([[2.]])
    """

    def __init__(self, *, trainable: str = "all") -> None:
        super().__init__()
        check_known("trainable part", trainable, TRAINABLE)
        self.trainable = trainable

    @abstractmethod
    def lower(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As `forward` takes clips → `(B, S)` float32 activations, each clip's flattened into one row and zero beyond
        its end, and `(B,)` int64, how many of them are the clip's own. They depend on its own samples alone.
        """

    @abstractmethod
    def upper(self, activations: Tensor, sizes: Tensor) -> Tensor:
        """`(B, S)` and `(B,)` as `lower` gives them, in rows that may be longer → `(B, dim)` features."""

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.trainable == "all"):
            activations, sizes = self.lower(audio, lengths)
        return self.upper(activations, sizes)


class TextEncoder(nn.Module):
    """Texts to features.

    dim: size of a text's features, set by `__init__`.

    >>> class Length(TextEncoder):
    ...     dim = 1
    ...     def forward(self, texts, languages=None):
    ...         return Tensor([[len(text)] for text in texts])
    >>> Length()(["a frog"])
    tensor([[6.]])
    """

    dim: int

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """B texts and their ISO 639-3 codes (None: the encoder does not need them, or its default) → `(B, dim)`
        features, not normalised, on the module's device.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method forward(texts, languages)")

    def precompute(self, texts: Sequence[str]) -> None:
        """Encode at once what will be asked for later. Here: nothing; encoders whose features stay as they are do."""


class Model(nn.Module):
    """Clips and texts to one space: what training and evaluation ask of a model, a `DualEncoder` or a published one.

    sample_rate: in Hz, of the audio that `encode_audio` takes; None for what are no waveforms.
    """

    sample_rate: int | None = SAMPLE_RATE

    @abstractmethod
    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` clips at `sample_rate`, `(B,)` samples in each, on any device → `(B, d)` float32, of unit length."""

    @abstractmethod
    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """B texts and their ISO 639-3 codes → `(B, d)` float32, rows of unit length."""


@dataclass(frozen=True, kw_only=True)
class EncoderCard(Card):
    """What the cards of both kinds say; `make` takes options by keyword and gives a new encoder.

    licence: of the weights, or of the code where weights are drawn; weights: where published ones come from, empty
    where they are drawn; frozen: they never change; pretrained: published weights that training may change, so that
    `make` takes `pretrained` and `frozen`, and where they come from the hub `model` (a name there, a folder or a
    configuration); wheel: the package that they travel in, where they do (see wheels.py); probe: gives options of
    `make` for an encoder that is made and run in a moment, by which its golden file and tests know it.
    """

    licence: str
    weights: str = ""
    frozen: bool = False
    pretrained: bool = False
    wheel: Wheel | None = None
    probe: Callable[[], Mapping[str, Any]] = dict

    @property
    def small(self) -> dict[str, Any]:
        """What `probe` gives, with random weights where there is a choice.

        >>> AUDIO["sfx"].small
        {'pretrained': False, 'widths': (8, 8, 12, 16)}
        """
        drawn = {"pretrained": False} if "pretrained" in inspect.signature(self.make).parameters else {}
        return drawn | dict(self.probe())


@dataclass(frozen=True, kw_only=True)
class AudioEncoderCard(EncoderCard):
    """An audio encoder. sample_rate: in Hz, of the audio that it takes; None for what are no waveforms; split: it is a
    `SplitAudioEncoder`, whose `make` takes `trainable` ("all" or "upper").
    """

    sample_rate: int | None = SAMPLE_RATE
    split: bool = False


@dataclass(frozen=True, kw_only=True)
class TextEncoderCard(EncoderCard):
    """A text encoder. languages: those that it was made for, in words."""

    languages: str = "all"


AUDIO: Catalogue[AudioEncoderCard] = Catalogue("pullpush.encoders", AudioEncoderCard, "audio encoder")
TEXT: Catalogue[TextEncoderCard] = Catalogue("pullpush.encoders", TextEncoderCard, "text encoder")
