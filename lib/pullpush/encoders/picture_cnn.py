"""Pictures as encoders take them: clips hold a row of numbers each, a picture is a square of three channels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.interface import AudioEncoder, AudioEncoderCard
from pullpush.errors import AudioError


def as_images(rows: Tensor) -> Tensor:
    """`(B, 3 S²)`, red, green and blue one after the other, → `(B, 3, S, S)`.

    >>> import torch
    >>> as_images(torch.zeros(2, 12)).shape
    torch.Size([2, 3, 2, 2])

    Raises:
        AudioError: a row is no square of three channels, such as that of a waveform.
    """
    side = round((rows.shape[1] / 3) ** 0.5)
    if 3 * side * side != rows.shape[1]:
        raise AudioError(f"expected pictures as 3 S² pixels in a row, got {rows.shape[1]} numbers")
    return rows.view(-1, 3, side, side)


SCALE, SHIFT = 0.2, 0.1  # how much a picture is scaled at most, and shifted, in parts of its size
WHITE = 1.0


class Residual(nn.Module):
    """Two 3×3 convolutions with batch normalisation, of which the first halves the picture, beside a shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """`(B, inputs, H, W)` → `(B, outputs, ⌈H/2⌉, ⌈W/2⌉)`."""
        inside = self.norms[1](self.second(F.relu(self.norms[0](self.first(x)))))
        return F.relu(inside + self.shortcut(F.avg_pool2d(x, 2, ceil_mode=True)))


class PictureCNN(AudioEncoder):
    """A convolution that halves the picture, then residual blocks that halve it each; mean + max over the picture.

    What is trained on few pictures learns them by heart: in training mode each is mirrored, scaled and shifted.

    Args:
        channels: of the first convolution and of each block.
        augment: by up to 20 % in scale and 10 % in place, in training mode.

    >>> PictureCNN(channels=(4, 8))(torch.zeros(2, 3 * 16 * 16)).shape
    torch.Size([2, 8])
    """

    sample_rate = None

    def __init__(self, *, channels: Sequence[int] = (24, 48, 96, 192), augment: bool = True) -> None:
        super().__init__()
        self.augment = augment
        self.first = nn.Conv2d(3, channels[0], 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels[0])
        self.blocks = nn.Sequential(*(Residual(inputs, outputs) for inputs, outputs in pairwise(channels)))
        self.dim = channels[-1]

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, 3 S²)` pixels in [-1, 1] → `(B, dim)` features, not normalised; lengths do not matter.

        Raises:
            AudioError: rows that are no squares of three channels.
        """
        images = as_images(audio)
        if self.training and self.augment:
            images = varied(images)
        x = images.contiguous(memory_format=torch.channels_last)
        x = self.blocks(F.relu(self.norm(self.first(x)))).flatten(2)
        return (x.mean(dim=2) + x.amax(dim=2)).float()


def varied(images: Tensor) -> Tensor:
    """`(B, 3, S, S)` → the same, each mirrored, scaled and shifted by a draw of its own, on white."""
    count, like = len(images), {"device": images.device, "dtype": images.dtype}
    scale = 1 + SCALE * (2 * torch.rand(count, **like) - 1)
    mirror = torch.randint(0, 2, (count,), device=images.device) * 2 - 1
    moved = torch.zeros(count, 2, 3, **like)
    moved[:, 0, 0], moved[:, 1, 1] = mirror * scale, scale
    moved[:, :, 2] = 2 * SHIFT * (2 * torch.rand(count, 2, **like) - 1)  # the picture reaches from -1 to 1
    grid = F.affine_grid(moved, list(images.shape), align_corners=False)
    return F.grid_sample(images - WHITE, grid, align_corners=False) + WHITE


CARD = AudioEncoderCard(
    name="picture-cnn",
    make=PictureCNN,
    title="Picture CNN",
    about="Encodes pictures in the place of audio: three residual blocks on their pixels; mean + max.",
    source="ours; trained from scratch",
    licence="MIT",
    sample_rate=None,
    probe=lambda: {"channels": (4, 8)},
)
