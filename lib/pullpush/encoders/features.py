"""Clips that were encoded before: whole, or by the lower part of an encoder, whose upper part a laptop trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from pullpush.encoders.interface import AUDIO, AudioEncoder, AudioEncoderCard
from pullpush.errors import AudioError, unknown


class Features(AudioEncoder):
    """No encoder: clips that were encoded before pass through.

    Args:
        dim: size of a clip's features.

    >>> import torch
    >>> Features(2)(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """

    sample_rate = None

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, dim)` features → the same; lengths do not matter.

        Raises:
            AudioError: another size, such as that of waveforms.
        """
        if audio.shape[1] != self.dim:
            raise AudioError(f"expected clips as {self.dim} features each, got {audio.shape[1]} samples or features")
        return audio


class Upper(AudioEncoder):
    """The upper part of an encoder made in two parts; clips come as activations of the lower one.

    `frozen.encoded(world, Published("yamnet", level="lower"))` makes them, `frozen.on_features` gives the options. It
    learns what the whole encoder with trainable="upper" does, but for the activations' rounding to float16.

    Args:
        of: name of the encoder.
        options: its keyword arguments.

    Raises:
        UnknownNameError: no such encoder, or one that is not made in two parts.
    """

    sample_rate = None

    def __init__(self, *, of: str = "yamnet", options: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        require_split(of)
        self.encoder = AUDIO[of].make(**{**(options or {}), "trainable": "upper"})
        self.dim = self.encoder.dim

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, S)` activations of the lower part and `(B,)` how many are each clip's → `(B, dim)`.

        Raises:
            AudioError: no lengths: rows of activations are padded to the longest.
        """
        if lengths is None:
            raise AudioError("activations need lengths (B,), how many of each row are the clip's")
        return self.encoder.upper(audio, lengths)


def require_split(name: str) -> None:
    """Require an audio encoder that is made in two parts, see `SplitAudioEncoder`.

    Raises:
        UnknownNameError: no such encoder, or one in a single part; those in two are named.
    """
    if not AUDIO[name].split:
        raise unknown("audio encoder in two parts", name, (card.name for card in AUDIO.values() if card.split))


CARDS = (
    AudioEncoderCard(
        name="features",
        make=Features,
        title="features",
        about="Clips come as features of a frozen encoder and pass through unchanged.",
        source="ours",
        licence="MIT",
        frozen=True,
        sample_rate=None,
        probe=lambda: {"dim": 6912},
    ),
    AudioEncoderCard(
        name="upper",
        make=Upper,
        title="upper part",
        about="The upper part of an encoder on kept activations of its lower one.",
        source="ours",
        licence="that of the encoder",
        pretrained=True,
        sample_rate=None,
        probe=lambda: {"of": "sfx", "options": AUDIO["sfx"].small},
    ),
)
