"""Which notes are played: the transcription network Basic Pitch, its posteriors summed up over a clip.

The published graph is rebuilt here and not run by onnxruntime: that knows no random weights, which the encoder is
compared with, and no gradients, with which it may be trained further; and its wheel takes 78 MB.
"""

from pathlib import Path

import numpy as np
import torch
from scipy.signal import firwin2, get_window
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.encoders.interface import AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained
from pullpush.encoders.wheels import Wheel, filled, onnx_layers
from pullpush.encoders.windows import length_mask, masked_max, masked_mean, placed, zero_padding

WHEEL = Wheel(
    package="basic-pitch",
    version="0.4.0",
    sha256="738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
    members=("basic_pitch/saved_models/icassp_2022/nmp.onnx",),
    tensors="7bb9337f37e01a82",
    licence="Apache-2.0",
    megabytes=0.8,
)
PITCH_RATE, HOP = 22_050, 256  # Hz; samples between frames, 86 a second
FRAMES, SAMPLES = 172, 43_844  # of a window, 1.99 s
KEYS, LOWEST = 88, 27.5  # of a piano; Hz of the first
OCTAVE, BINS, KERNEL = 36, 309, 256  # bins of the constant-Q transform, three a semitone; samples of its filters
OCTAVES = -(-BINS // OCTAVE)
HARMONICS = (-36, 0, 36, 57, 72, 84, 93, 101)  # bins to half, once … seven times a frequency
STANDARD = 2.480741, -0.8769183  # scale and shift of its first normalisation, which is not trained here


class ConstantQ(nn.Module):
    """Magnitude of the constant-Q transform in dB, from 0 (the quietest of a window) to 1 (the loudest).

    The top octave is filtered, the signal halved in rate, and so on (Schörkhuber & Klapuri 2010).
    """

    def __init__(self) -> None:
        super().__init__()
        quality = 1 / (2 ** (1 / OCTAVE) - 1)
        sizes = np.ceil(quality * PITCH_RATE / (LOWEST * 2 ** (np.arange(BINS) / OCTAVE)))
        filters = np.zeros((OCTAVE, KERNEL), dtype=np.complex128)
        for row, (size, place) in enumerate(zip(sizes[-OCTAVE:].astype(int), range(BINS - OCTAVE, BINS), strict=True)):
            time = np.arange(size) + -size // 2
            wave = get_window("hann", size) * np.exp(2j * np.pi * time * LOWEST * 2 ** (place / OCTAVE) / PITCH_RATE)
            start = int(np.ceil(KERNEL / 2 - size / 2)) - size % 2
            filters[row, start : start + size] = wave / np.abs(wave).sum()
        half = firwin2(KERNEL, [0.0, 0.5 / 1.001, 0.5 * 1.001, 1.0], [1.0, 1.0, 0.0, 0.0])
        for name, value in {
            "filters": np.concatenate([filters.real, filters.imag])[:, None],
            "lowpass": half[None, None],
            "scale": np.sqrt(sizes)[:, None],
        }.items():
            self.register_buffer(name, torch.from_numpy(value).float(), persistent=False)

    def forward(self, windows: Tensor) -> Tensor:
        """`(P, SAMPLES)` → `(P, FRAMES, BINS)`."""
        signal, hop, octaves = windows[:, None].float(), HOP, []
        with torch.autocast(windows.device.type, enabled=False):  # half precision is too coarse for spectra
            for _ in range(OCTAVES):
                padded = F.pad(signal, (KERNEL // 2, KERNEL // 2), mode="reflect")
                real, imaginary = F.conv1d(padded, self.filters, stride=hop).chunk(2, dim=1)
                octaves.append(real.square() + imaginary.square())
                signal, hop = F.conv1d(F.pad(signal, (KERNEL // 2 - 1,) * 2), self.lowpass, stride=2), hop // 2
            power = torch.cat(octaves[::-1], dim=1)[:, -BINS:] * self.scale.square()
            decibel = 10 * torch.log10(power.mT + 1e-10)
            above = decibel - decibel.amin((1, 2), keepdim=True)
            return above / above.amax((1, 2), keepdim=True).clamp(min=1e-3)  # silence spans nothing but rounding


class PitchNet(nn.Module):
    """Posteriors of contours, notes and onsets from a harmonic constant-Q transform (Bittner et al. 2022, Figure 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.onsets1 = nn.Conv2d(8, 32, 5, stride=(1, 3), padding=(2, 1))
        self.contours1 = nn.Conv2d(8, 8, (3, 39), padding=(1, 19))
        self.contours2 = nn.Conv2d(8, 1, 5, padding=2)
        self.notes1 = nn.Conv2d(1, 32, 7, stride=(1, 3), padding=(3, 2))
        self.notes2 = nn.Conv2d(32, 1, (7, 3), padding=(3, 1))
        self.onsets2 = nn.Conv2d(33, 1, 3, padding=1)

    def forward(self, spectrum: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`(P, FRAMES, BINS)` → contours `(P, FRAMES, 264)`, notes and onsets `(P, FRAMES, 88)`, in [0, 1]."""
        scale, shift = STANDARD
        spectrum = scale * spectrum + shift
        moved = [F.pad(spectrum, (-bins, bins)) for bins in HARMONICS]
        x = torch.stack(moved, dim=1)[..., : 3 * KEYS]
        if not torch.is_grad_enabled():  # on a CPU three times as fast, but backwards twenty times slower
            x = x.contiguous(memory_format=torch.channels_last)
        contours = self.contours2(F.relu(self.contours1(x))).sigmoid()
        notes = self.notes2(F.relu(self.notes1(contours))).sigmoid()
        onsets = self.onsets2(torch.cat([notes, F.relu(self.onsets1(x))], dim=1)).sigmoid()
        return contours[:, 0], notes[:, 0], onsets[:, 0]


class PitchFeatures(AudioEncoder):
    """Basic Pitch: mean and maximum over a clip of its posteriors of 88 notes, and mean of those of their onsets.

    It tells which keys are struck, how many at once and how often, whatever plays them: registers, modes and tempi,
    hardly timbre. Its posteriors are its features, for the layers before them have eight channels at each place of the
    spectrogram. Of windows of 2 s that follow each other; the last one is completed with silence.
    """

    dim = 3 * KEYS
    sample_rate = PITCH_RATE

    def __init__(self, *, pretrained: bool = True, frozen: bool = False) -> None:
        super().__init__()
        self.frontend = ConstantQ()
        self.network = Pretrained(filled(PitchNet(), WHEEL, read, pretrained=pretrained), frozen=frozen)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        audio, lengths = zero_padding(audio, lengths)
        counts = (lengths + SAMPLES - 1) // SAMPLES
        most = int(counts.max())
        windows = F.pad(audio, (0, max(0, most * SAMPLES - audio.shape[1])))[:, : most * SAMPLES]
        mask_windows = length_mask(counts, most)
        _, notes, onsets = self.network(self.frontend(windows.view(len(audio), most, SAMPLES)[mask_windows]))
        both = placed(torch.cat([notes, onsets], dim=2), mask_windows)  # (B, windows, FRAMES, 2 KEYS)
        notes, onsets = both.flatten(1, 2).mT.split(KEYS, dim=1)  # (B, KEYS, frames)
        # Of the windows' frames those that are centred in the clip.
        mask = length_mask(lengths // SAMPLES * FRAMES + (lengths % SAMPLES + HOP - 1) // HOP, notes.shape[2])
        return torch.cat([masked_mean(notes, mask), masked_max(notes, mask), masked_mean(onsets, mask)], dim=1)


def read(folder: Path) -> dict[str, Tensor]:
    """The network's tensors out of the wheel: after the constant-Q transform's there are six convolutions."""
    found = onnx_layers(folder / WHEEL.members[0], "Conv")[-6:]
    names = ("onsets1", "contours1", "contours2", "notes1", "notes2", "onsets2")
    pairs = zip(names, found, strict=True)
    return {f"{name}.{part}": x for name, row in pairs for part, x in zip(("weight", "bias"), row, strict=True)}


CARD = AudioEncoderCard(
    name="pitch",
    make=PitchFeatures,
    title="Basic Pitch",
    about="Which notes are played, by the transcription network Basic Pitch: posteriors of 88 keys over a clip.",
    source="Bittner et al. 2022, A lightweight instrument-agnostic model for polyphonic note transcription",
    citation="basic_pitch",
    authors="Rachel Bittner and others, Spotify",
    sample_rate=PITCH_RATE,
    **WHEEL.card,
)
