"""A small convolutional network on log-mel spectrograms, trained from scratch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.frontend import LogMel
from pullpush.encoders.interface import AudioEncoder, AudioEncoderCard
from pullpush.encoders.windows import masked_max, masked_mean


class MaskedBatchNorm(nn.BatchNorm1d):
    """Batch normalisation of `(B, C, F, M)` whose statistics skip masked frames; masked frames come out as zero."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """`(B, C, F, M)`, `(B, F)` bool → `(B, C, F, M)`."""
        x = x.permute(0, 2, 3, 1)  # with channels last in memory this copies nothing
        rows = x.reshape(mask.numel(), -1)  # a frame a row
        kept = mask.flatten().nonzero().flatten()
        normal = super().forward(rows.index_select(0, kept).view(-1, x.shape[-1])).view(len(kept), -1)
        return normal.new_zeros(rows.shape).index_copy(0, kept, normal).view(x.shape).permute(0, 3, 1, 2)


class ConvBlock(nn.Module):
    """3×3 convolution that halves frames and bands, masked batch normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.norm = MaskedBatchNorm(outputs)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`(B, inputs, F, M)`, `(B, F)` → `(B, outputs, ⌈F/2⌉, ⌈M/2⌉)`, `(B, ⌈F/2⌉)`."""
        # Output frame j is centred on input frame 2j, and masked input is zero just as the convolution's kept
        # padding is: a clip's frames are the same however long its row.
        mask = mask[:, ::2]
        return F.relu(self.norm(self.conv(x), mask)), mask


class CNN(AudioEncoder):
    """Strided convolution blocks on a log-mel spectrogram; mean + max over the clip's own frames.

    The bands that remain after the last block are kept apart (frequency tells sounds apart); time is pooled. channels:
    of each block; hop: seconds between frames; spec_augment: blank parts of the spectrogram in training mode.
    """

    def __init__(
        self, *, channels: Sequence[int] = (32, 64, 128, 256), hop: float = 0.020, spec_augment: bool = False
    ) -> None:
        super().__init__()
        if not channels or min(channels) < 1:
            raise ValueError(f"channels must be whole numbers from 1, one a block, got {list(channels)}")
        self.frontend = LogMel(hop=hop, spec_augment=spec_augment)
        self.blocks = nn.ModuleList(
            ConvBlock(inputs, outputs) for inputs, outputs in zip((1, *channels), channels, strict=False)
        )
        self.dim = channels[-1] * -(-self.frontend.mels // 2 ** len(channels))

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        mel, mask = self.frontend(audio, lengths)
        x = mel.mT[:, None].to(memory_format=torch.channels_last)  # (B, 1, F, M); twice as fast on a CPU
        for block in self.blocks:
            x, mask = block(x, mask)
        x = x.transpose(2, 3).flatten(1, 2)  # (B, channels · bands, F)
        return masked_mean(x, mask) + masked_max(x, mask)


CARD = AudioEncoderCard(
    name="cnn",
    make=CNN,
    title="CNN",
    about="Four strided convolution blocks on a log-mel spectrogram; mean + max over time.",
    source="ours; trained from scratch",
    licence="MIT",
    probe=lambda: {"channels": (4, 4, 8, 8), "spec_augment": True},
)
