"""PaSST, the audio encoder of the DCASE baselines: a spectrogram transformer at 32 kHz with overlapping patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.compliance.kaldi import get_mel_banks

from pullpush.encoders.attention import EPSILON, Block, Patches, Size, size_of
from pullpush.encoders.interface import AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained, WindowedEncoder
from pullpush.encoders.weight_files import read_tensors, weight_file
from pullpush.encoders.wheels import fill
from pullpush.encoders.windows import length_mask, split_rows, stacked

RELEASES = "https://github.com/kkoutini/PaSST/releases/download"
ADDRESSES = {
    "passt_s_swa_p16_128_ap476": f"{RELEASES}/v0.0.1-audioset/passt-s-f128-p16-s10-ap.476-swa.pt",
    "passt_s_kd_p16_128_ap486": f"{RELEASES}/v.0.0.9/passt-s-kd-ap.486.pt",
}
MODEL = "passt_s_swa_p16_128_ap476"
PUBLISHED = Size(768, 12, 12)
PASST_RATE = 32_000
MELS, FFT, WINDOW, HOP, HIGHEST = 128, 1024, 800, 320, 15_000  # bands, samples, samples, samples, Hz
PATCH, STRIDE = 16, 10  # bands and frames
ROWS, COLUMNS = 12, 99  # patches in frequency, and in 10 s
SHORTEST = PATCH * HOP  # samples of one patch


class PaSSTNetwork(nn.Module):
    """The network with its front end; module names are those of the published weights.

    >>> PaSSTNetwork(Size(8, 1, 2))(torch.zeros(2, 32_000), None).shape
    torch.Size([2, 8])
    """

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.patch_embed = Patches(width, (PATCH, PATCH), (STRIDE, STRIDE))
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.dist_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.new_pos_embed = nn.Parameter(torch.randn(1, 2, width) * 0.02)  # of both tokens
        self.freq_new_pos_embed = nn.Parameter(torch.randn(1, width, ROWS, 1) * 0.02)
        self.time_new_pos_embed = nn.Parameter(torch.randn(1, width, 1, COLUMNS) * 0.02)
        self.blocks = nn.ModuleList(Block(width, size.heads) for _ in range(size.depth))
        self.norm = nn.LayerNorm(width, EPSILON)
        # Constants, not state: they follow the module to its device but stay out of checkpoints.
        self.register_buffer("window", torch.hann_window(WINDOW, periodic=False), persistent=False)
        bank, _ = get_mel_banks(MELS, FFT, PASST_RATE, 0.0, HIGHEST, 100.0, -500.0, 1.0)
        self.register_buffer("bank", F.pad(bank, (0, 1)), persistent=False)

    def forward(self, audio: Tensor, lengths: Tensor | None) -> Tensor:
        """`(B, T)` 32 kHz, at most 10 s; `(B,)` samples → `(B, width)`, the mean of both tokens."""
        x, frames = stacked([self._spectrogram(clip) for clip in split_rows(audio, lengths)])
        x = self.patch_embed(x)[..., :COLUMNS]
        rows, columns = x.shape[2:]
        x = x + self.time_new_pos_embed[..., :columns] + self.freq_new_pos_embed
        patches = length_mask((frames - PATCH) // STRIDE + 1, columns).repeat(1, rows)
        tokens = torch.cat([self.cls_token, self.dist_token], dim=1) + self.new_pos_embed
        x = torch.cat([tokens.expand(len(x), -1, -1), x.flatten(2).mT], dim=1)
        mask = torch.cat([patches.new_ones(len(x), 2), patches], dim=1)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)[:, :2].mean(dim=1)

    def _spectrogram(self, clip: Tensor) -> Tensor:
        """`(T,)` → `(MELS, frames)`: pre-emphasis, log mel power, scaled as in PaSST's front end."""
        with torch.autocast(clip.device.type, enabled=False):  # half precision is too coarse for power spectra
            clip = F.pad(clip.float(), (0, max(0, SHORTEST + 1 - len(clip))))
            clip = clip[1:] - 0.97 * clip[:-1]
            spectrum = torch.stft(clip, FFT, HOP, WINDOW, self.window, return_complex=True)
            mel = self.bank @ (spectrum.real.square() + spectrum.imag.square())
            return ((mel + 1e-5).log() + 4.5) / 5


class PaSST(WindowedEncoder):
    """PaSST at 32 kHz; of clips longer than 10 s windows are averaged. Nothing is dropped in training (no patchout).

    Args:
        model: a name of `ADDRESSES`, a file of the authors', or a `Size` for random weights.
        frozen: keep the weights.
        pretrained: take the published weights; else random ones in the same architecture.

    >>> PaSST(model=Size(8, 1, 2))(torch.zeros(1, 32_000)).shape
    torch.Size([1, 8])
    """

    sample_rate = PASST_RATE
    window = 10 * PASST_RATE

    def __init__(self, *, model: str | Size = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        super().__init__()
        tensors, size = {}, PUBLISHED if isinstance(model, str) else model
        if isinstance(model, str) and (pretrained or model not in ADDRESSES):
            tensors = read_tensors(weight_file(model, addresses=ADDRESSES))[0]
            tensors = {name: value for name, value in tensors.items() if not name.startswith(("head.", "head_dist."))}
            size = size_of(tensors, {PUBLISHED.width: PUBLISHED.heads}, model)
        network = PaSSTNetwork(size)
        if tensors and pretrained:
            fill(network, tensors, model)
        self.network, self.dim = Pretrained(network, frozen=frozen), size.width


CARD = AudioEncoderCard(
    name="passt",
    make=PaSST,
    title="PaSST",
    about="A spectrogram transformer with overlapping patches, trained on AudioSet at 32 kHz, on windows of 10 s.",
    source="Koutini et al. 2022, Efficient training of audio transformers with patchout",
    citation="passt",
    licence="Apache-2.0",
    weights=ADDRESSES[MODEL],
    pretrained=True,
    sample_rate=PASST_RATE,
    probe=lambda: {"model": Size(16, 2, 2)},
)
