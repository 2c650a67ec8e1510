"""What an encoder is: the two contracts that `DualEncoder` relies on.

A new encoder is one file: a class that keeps one of these contracts, and its card (see cards.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

SAMPLE_RATE = 16_000  # Hz, of the audio that every encoder takes


class AudioEncoder(nn.Module):
    """Waveforms to features.

    dim: size of a clip's features, set by `__init__`.

    >>> class Loudness(AudioEncoder):
    ...     dim = 1
    ...     def forward(self, audio, lengths=None):
    ...         return audio.square().mean(dim=1, keepdim=True)
    >>> Loudness().dim
    1
    """

    dim: int

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` float32 in [-1, 1] at 16 kHz, zero beyond each clip's end; `(B,)` int64 samples in each clip, None
        for all T → `(B, dim)` features, not normalised. A clip's features depend on its own samples alone. What needs
        another sample rate resamples here, as clap.py does.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method forward(audio, lengths)")


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
