"""YAMNet's front end: log-mel spectrograms in patches of 0.96 s."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.functional import melscale_fbanks

from pullpush.encoders.interface import SAMPLE_RATE
from pullpush.encoders.masks import zero_padding

WINDOW, HOP, FFT = 400, 160, 512  # samples: 25 ms, 10 ms
BANDS, LOWEST, HIGHEST = 64, 125.0, 7500.0  # Hz
OFFSET = 0.001  # keeps the logarithm of silence finite
FRAMES = 96  # in a patch


class LogMelPatches(nn.Module):
    """64 mel bands of HTK's scale from 125 to 7,500 Hz, log(magnitude + 0.001), in patches of 96 frames of 10 ms.

    A clip has as many patches as cover it, spread evenly from its first frame to its last; the last frame is completed
    with zeros, and so is the patch of a clip that is shorter than one.

    Args:
        hop: at most so many seconds from patch to patch, 0.96 or less.

    >>> patches, counts = LogMelPatches()(torch.zeros(2, 32_000), torch.tensor([32_000, 100]))
    >>> patches.shape, counts
    (torch.Size([2, 3, 96, 64]), tensor([3, 1]))
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
            mel = self._log_mel(audio.float(), int(frames.max()))
        order = torch.arange(int(counts.max()), device=audio.device)
        # Starts of patches, from 0 to the last at which one fits, in whole frames.
        last, gaps = (frames - FRAMES)[:, None], (counts - 1).clamp(min=1)[:, None]
        starts = (order.clamp(max=gaps) * last + gaps // 2) // gaps
        places = starts[:, :, None] + torch.arange(FRAMES, device=audio.device)
        rows = torch.arange(len(audio), device=audio.device)[:, None, None]
        return mel[rows, places], counts

    def _log_mel(self, audio: Tensor, count: int) -> Tensor:
        """`(B, T)` → `(B, count, 64)`."""
        before = (FFT - WINDOW) // 2  # torch.stft centres the window in the FFT's samples; the first begins at 0
        audio = F.pad(audio, (before, max(0, (count - 1) * HOP + FFT - before - audio.shape[1])))
        spectrum = torch.stft(audio, FFT, HOP, WINDOW, self.window, center=False, return_complex=True)[..., :count]
        return torch.log(spectrum.abs().mT @ self.bank + OFFSET)
