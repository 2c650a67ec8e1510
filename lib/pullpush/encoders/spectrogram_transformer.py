"""A small transformer on patches of log-mel spectrograms, trained from scratch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.attention import sinusoids, transformer_layers
from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.frontend import LogMel
from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.masks import masked_mean


class SpectrogramTransformer(AudioEncoder):
    """A small audio spectrogram transformer: square patches of the log-mel spectrogram, self-attention, mean.

    Args:
        width: size of a patch's vector, and of the features.
        layers: transformer layers.
        heads: attention heads; divides `width`.
        patch: bands and frames in a patch.
        dropout: in attention and feed-forward layers.
        spec_augment: blank parts of the spectrogram in training mode.

    >>> SpectrogramTransformer(width=16, layers=1, heads=2)(torch.zeros(2, 16_000)).shape
    torch.Size([2, 16])
    """

    def __init__(
        self,
        *,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        patch: int = 16,
        dropout: float = 0.0,
        spec_augment: bool = False,
    ) -> None:
        super().__init__()
        self.frontend = LogMel(spec_augment=spec_augment)
        self.patch, self.dim = patch, width
        self.embed = nn.Conv2d(1, width, patch, stride=patch)
        rows = -(-self.frontend.mels // patch)
        self.row = nn.Parameter(torch.randn(rows, width) * 0.02)  # where in frequency: learned
        self.layers = transformer_layers(width, layers, heads, dropout)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)` features, not normalised."""
        mel, mask = self.frontend(audio, lengths)
        mel = F.pad(mel, (0, -mel.shape[2] % self.patch, 0, -mel.shape[1] % self.patch))
        x = self.embed(mel[:, None])  # (B, width, rows, columns)
        rows, columns = x.shape[2:]
        x = x + self.row.T[:, :, None] + sinusoids(columns, self.dim, x.device).T[:, None]
        patches = mask[:, :: self.patch].repeat(1, rows)  # a patch is the clip's own if its first frame is
        x = self.layers(x.flatten(2).mT, src_key_padding_mask=~patches)
        return masked_mean(x.mT, patches)


CARD = AudioEncoderCard(
    name="ast",
    make=SpectrogramTransformer,
    title="AST",
    about="Self-attention over square patches of a log-mel spectrogram, averaged.",
    source="after Gong, Chung & Glass 2021, AST; trained from scratch",
    licence="MIT",
    probe=lambda: {"width": 16, "layers": 2, "heads": 2, "dropout": 0.1, "spec_augment": True},
)
