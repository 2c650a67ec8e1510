"""Audio encoders trained from scratch: a small CNN and a small spectrogram transformer; and none for what is encoded.

Every audio encoder is a module with `dim`, the size of its features, and
`forward(audio (B, T), lengths (B,) | None) -> (B, dim)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.frontend import LogMel
from pullpush.errors import AudioError


class MaskedBatchNorm(nn.BatchNorm1d):
    """Batch normalisation of `(B, C, F, M)` whose statistics skip masked frames; masked frames come out as zero."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`(B, C, F, M)`, `(B, F)` bool → `(B, C, F, M)`."""
        x = x.permute(0, 2, 3, 1)  # with channels last in memory this copies nothing
        rows = x.reshape(mask.numel(), -1)  # a frame a row
        own = mask.flatten().nonzero().flatten()
        normal = super().forward(rows.index_select(0, own).view(-1, x.shape[-1])).view(len(own), -1)
        return normal.new_zeros(rows.shape).index_copy(0, own, normal).view(x.shape).permute(0, 3, 1, 2)


class ConvBlock(nn.Module):
    """3×3 convolution that halves frames and bands, masked batch normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.norm = MaskedBatchNorm(outputs)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`(B, inputs, F, M)`, `(B, F)` → `(B, outputs, ⌈F/2⌉, ⌈M/2⌉)`, `(B, ⌈F/2⌉)`."""
        # Output frame j is centred on input frame 2j, and masked input is zero just as the convolution's own
        # padding is: a clip's frames are the same however long its row.
        mask = mask[:, ::2]
        return F.relu(self.norm(self.conv(x), mask)), mask


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the true places: `(B, D, F)`, `(B, F)` → `(B, D)`."""
    weight = mask[:, None].to(x.dtype)
    return (x * weight).sum(-1) / weight.sum(-1).clamp(min=1)


def masked_max(x: Tensor, mask: Tensor) -> Tensor:
    """Maximum over the true places: `(B, D, F)`, `(B, F)` → `(B, D)`."""
    return x.masked_fill(~mask[:, None], -torch.inf).amax(-1)


class CNN(nn.Module):
    """Strided convolution blocks on a log-mel spectrogram; mean + max over the clip's own frames.

    The bands that remain after the last block are kept apart (frequency tells sounds apart); time is pooled.

    Args:
        channels: output channels of each block.
        hop: step between spectrogram frames in seconds.
        spec_augment: blank parts of the spectrogram in training mode.
    """

    def __init__(
        self, *, channels: Sequence[int] = (32, 64, 128, 256), hop: float = 0.020, spec_augment: bool = False
    ) -> None:
        super().__init__()
        self.frontend = LogMel(hop=hop, spec_augment=spec_augment)
        self.blocks = nn.ModuleList(
            ConvBlock(inputs, outputs) for inputs, outputs in zip((1, *channels), channels, strict=False)
        )
        bands = self.frontend.mels
        for _ in channels:
            bands = -(-bands // 2)
        self.dim = channels[-1] * bands

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)` features, not normalised."""
        mel, mask = self.frontend(audio, lengths)
        x = mel.mT[:, None].to(memory_format=torch.channels_last)  # (B, 1, F, M); twice as fast on a CPU
        for block in self.blocks:
            x, mask = block(x, mask)
        x = x.transpose(2, 3).flatten(1, 2)  # (B, channels · bands, F)
        return masked_mean(x, mask) + masked_max(x, mask)


class SpectrogramTransformer(nn.Module):
    """A small audio spectrogram transformer: square patches of the log-mel spectrogram, self-attention, mean.

    Args:
        width: size of a patch's vector, and of the features.
        layers: transformer layers.
        heads: attention heads; divides `width`.
        patch: bands and frames in a patch.
        dropout: in attention and feed-forward layers.
        spec_augment: blank parts of the spectrogram in training mode.
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
        self.layers = transformer(width, layers, heads, dropout)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)` features, not normalised."""
        mel, mask = self.frontend(audio, lengths)
        mel = F.pad(mel, (0, -mel.shape[2] % self.patch, 0, -mel.shape[1] % self.patch))
        x = self.embed(mel[:, None])  # (B, width, rows, columns)
        rows, columns = x.shape[2:]
        x = x + self.row.T[:, :, None] + sinusoids(columns, self.dim, x.device).T[:, None]
        own = mask[:, :: self.patch].repeat(1, rows)  # a patch is the clip's own if its first frame is
        x = self.layers(x.flatten(2).mT, src_key_padding_mask=~own)
        return masked_mean(x.mT, own)


class Features(nn.Module):
    """No encoder: clips that were encoded before pass through.

    Args:
        dim: size of a clip's features.
    """

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


def transformer(width: int, layers: int, heads: int, dropout: float) -> nn.TransformerEncoder:
    """Pre-norm transformer layers on `(B, S, width)` with a final layer norm; a true `src_key_padding_mask` hides."""
    if width % heads or width % 2:
        raise ValueError(f"width must be even and divisible by heads, got width={width}, heads={heads}")
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)


def sinusoids(positions: int, width: int, device: torch.device) -> Tensor:
    """`(positions, width)` sines and cosines of wavelengths 2π … 2π · 10⁴: any length, nothing learned."""
    rate = torch.exp(torch.linspace(0, -math.log(1e4), width // 2, device=device))
    angle = torch.arange(positions, device=device)[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], dim=1)
