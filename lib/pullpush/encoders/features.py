"""No audio encoder: clips that were encoded before pass through."""

from __future__ import annotations

from torch import Tensor

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.interface import AudioEncoder
from pullpush.errors import AudioError


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


CARD = AudioEncoderCard(
    name="features",
    make=Features,
    title="features",
    about="Clips come as features of a frozen encoder and pass through unchanged.",
    source="ours",
    licence="MIT",
    frozen=True,
    sample_rate=None,
    probe=lambda: {"dim": 6912},
)
