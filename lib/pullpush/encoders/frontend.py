"""Waveform to log-mel spectrogram, with masks, so that padding can never leak into an embedding; and in patches."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.functional import mask_along_axis_iid, melscale_fbanks

from pullpush.encoders.interface import SAMPLE_RATE
from pullpush.encoders.windows import length_mask, zero_padding

DB_CENTRE, DB_SPREAD = -16.0, 26.0  # mean and spread of a mel band in dB, measured on scenes of real recordings
POWER_FLOOR = 1e-10  # -100 dB: keeps the logarithm of silence finite
WINDOW, FFT = 400, 512  # samples of both front ends: 25 ms
# Of YAMNet's front end:
HOP = 160  # samples: 10 ms
BANDS, LOWEST, HIGHEST = 64, 125.0, 7500.0  # Hz
OFFSET = 0.001  # keeps the logarithm of silence finite
FRAMES = 96  # in a patch


class LogMel(nn.Module):
    """Log-mel spectrogram of 16 kHz audio, scaled to about zero mean and unit spread by fixed constants.

    A clip of L samples has ceil((L − window) / hop) + 1 frames and at least one: the last frame is completed with
    zeros, so every sample is seen (by a hop of at most 25 ms), and frames do not depend on how far the batch is padded.

    Args:
        mels: mel bands between 50 Hz and 8 kHz.
        hop: step between frames in seconds.
        spec_augment: in training mode, blank one band of at most `mels // 8` bands and one stretch of at most
            an eighth of the clip's own frames, drawn separately for each clip (SpecAugment).

    >>> mel, mask = LogMel(mels=8)(torch.zeros(1, 16_000), torch.tensor([8000]))
    >>> mel.shape, int(mask.sum())
    (torch.Size([1, 8, 99]), 49)
    """

    def __init__(self, *, mels: int = 64, hop: float = 0.010, spec_augment: bool = False) -> None:
        super().__init__()
        if mels < 1 or round(hop * SAMPLE_RATE) < 1:
            raise ValueError(f"mels must be positive and hop a sample or more, got {mels}, {hop}")
        self.mels, self.hop_length, self.spec_augment = mels, round(hop * SAMPLE_RATE), spec_augment
        bank = melscale_fbanks(FFT // 2 + 1, 50.0, SAMPLE_RATE / 2, mels, SAMPLE_RATE)
        # Constants, not state: they follow the module to its device but stay out of checkpoints.
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("bank", bank, persistent=False)

    def frames(self, lengths: Tensor) -> Tensor:
        """`(B,)` samples → `(B,)` frames."""
        beyond = (lengths - WINDOW).clamp(min=0)
        return (beyond + self.hop_length - 1) // self.hop_length + 1

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`(B, T)` at 16 kHz → `(B, mels, F)` float32, zero where masked, and `(B, F)` bool, true on the clip's own
        frames."""
        audio, lengths = zero_padding(audio, lengths)
        frames = self.frames(lengths)
        count = int(self.frames(torch.tensor(audio.shape[1])))
        with torch.autocast(audio.device.type, enabled=False):  # half precision is too coarse for power spectra
            spectrum = spectra(audio.float(), self.window, FFT, self.hop_length, count)
            power = self.bank.T @ (spectrum.real.square() + spectrum.imag.square())  # (B, mels, count)
            decibel = 10 * torch.log10(power.clamp(min=POWER_FLOOR))
            mel = (decibel - DB_CENTRE) / DB_SPREAD
        if self.training and self.spec_augment:  # one band and one stretch of each clip become the average level
            mel = mask_along_axis_iid(mel[:, None], max(1, self.mels // 8), 0.0, axis=2)[:, 0]
            # torchaudio would draw the stretch over the padded row, of which a short clip can be the whole of it.
            size, start = torch.rand(2, len(mel), device=mel.device)
            size = (size * (frames // 8)).long()
            start = (start * (frames - size)).long()
            mel = mel.masked_fill((length_mask(start + size, count) & ~length_mask(start, count))[:, None], 0.0)
        mask = length_mask(frames, count)
        return mel.masked_fill(~mask[:, None], 0.0), mask


def spectra(audio: Tensor, window: Tensor, size: int, hop: int, count: int, before: int | None = None) -> Tensor:
    """`(B, T)` → `(B, size / 2 + 1, count)` complex, with as many zeros behind the clip as the last frame needs.

    before: zeros that go before it; None: so many that the first frame begins with the clip, since torch.stft centres a
    short window in the FFT's samples.
    """
    before = (size - len(window)) // 2 if before is None else before
    audio = F.pad(audio, (before, max(0, (count - 1) * hop + size - before - audio.shape[1])))
    return torch.stft(audio, size, hop, len(window), window, center=False, return_complex=True)[..., :count]


def mel_power(
    audio: Tensor, window: Tensor, bank: Tensor, size: int, hop: int, count: int, before: int | None = None
) -> Tensor:
    """`(B, T)` → `(B, count, mels)` float32, the power of `spectra` in the bands of `bank`, `(size / 2 + 1, mels)`."""
    with torch.autocast(audio.device.type, enabled=False):  # half precision is too coarse for power spectra
        spectrum = spectra(audio.float(), window, size, hop, count, before)
        return (spectrum.real.square() + spectrum.imag.square()).mT @ bank


class LogMelPatches(nn.Module):
    """64 mel bands of HTK's scale from 125 to 7,500 Hz, log(magnitude + 0.001), in patches of 96 frames of 10 ms.

    A clip has as many patches as cover it, at most `hop` (0.96 or less) seconds apart, spread evenly from its first
    frame to its last; the last frame is completed with zeros, and so is the patch of a clip that is shorter than one.
    """

    def __init__(self, *, hop: float = 0.96) -> None:
        super().__init__()
        self.step = round(hop * SAMPLE_RATE / HOP)
        if not 1 <= self.step <= FRAMES:
            raise ValueError(f"hop must lie in 0.01 … 0.96 s, got {hop}")
        bank = melscale_fbanks(FFT // 2 + 1, LOWEST, HIGHEST, BANDS, SAMPLE_RATE)  # HTK's scale, no norm
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("bank", bank, persistent=False)

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, P, 96, 64)` float32 and `(B,)` int64, how many are the clip's own.

        What stands in patches that are not is the clip's last one again.
        """
        audio, lengths = zero_padding(audio, lengths)
        frames = -(-(lengths - WINDOW).clamp(min=0) // HOP) + 1
        frames = frames.clamp(min=FRAMES)
        counts = -(-(frames - FRAMES) // self.step) + 1
        with torch.autocast(audio.device.type, enabled=False):  # half precision is too coarse for spectra
            magnitude = spectra(audio.float(), self.window, FFT, HOP, int(frames.max())).abs()
            mel = torch.log(magnitude.mT @ self.bank + OFFSET)  # (B, frames, bands)
        order = torch.arange(int(counts.max()), device=audio.device)
        # Starts of patches, from 0 to the last at which one fits, in whole frames.
        last, gaps = (frames - FRAMES)[:, None], (counts - 1).clamp(min=1)[:, None]
        starts = (order.clamp(max=gaps) * last + gaps // 2) // gaps
        places = starts[:, :, None] + torch.arange(FRAMES, device=audio.device)
        rows = torch.arange(len(audio), device=audio.device)[:, None, None]
        return mel[rows, places], counts
