"""CED, Dasheng and PaSST: vision transformers over patches of a mel spectrogram.

CED, of ML-CLAP, SupCLAP and ATRI, was distilled on AudioSet (Dinkel et al. 2024, CED: consistent ensemble distillation
for audio tagging); Dasheng, of GLAP, is a masked autoencoder of 272,000 hours of audio (Dinkel et al. 2024, Scaling up
masked audio encoder learning for general audio classification). Both differ in the size of a patch alone, at 16 kHz.
PaSST, the audio encoder of the DCASE baselines, takes 32 kHz, and its patches overlap.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.compliance.kaldi import get_mel_banks
from torchaudio.functional import amplitude_to_DB, melscale_fbanks

from pullpush.encoders.attention import EPSILON, Block, Size, size_of
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained, WindowedEncoder
from pullpush.encoders.wheels import fill, read_tensors, weight_file
from pullpush.encoders.windows import length_mask, masked_mean, split_rows, stacked

MELS, HOP, WINDOW = 64, 160, 512
LOUDEST = 120.0  # dB below a clip's loudest place, where its spectrogram ends
CED_MODEL = "mispeech/ced-base@db3e14a8db4c21b56b165261c39649741a900e7f"
CED_SIZES = {
    "mispeech/ced-tiny": Size(192, 12, 3),
    "mispeech/ced-mini": Size(256, 12, 4),
    "mispeech/ced-small": Size(384, 12, 6),
    "mispeech/ced-base": Size(768, 12, 12),
}
DASHENG_MODEL = "mispeech/dasheng-base@d29a721c75b996ffa49e2a1f985349d191a4ae5e"
DASHENG_SIZES = {
    "mispeech/dasheng-base": Size(768, 12, 12),
    "mispeech/dasheng-0.6B": Size(1280, 32, 16),
    "mispeech/dasheng-1.2B": Size(1536, 40, 24),
}


class BandNorm(nn.Module):
    """Batch normalisation of each mel band by the statistics that were published, in training, too: those of a batch
    would hold its padding, and make a clip's features depend on the others of the batch.
    """

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(bands)), nn.Parameter(torch.zeros(bands))
        self.register_buffer("running_mean", torch.zeros(bands))
        self.register_buffer("running_var", torch.ones(bands))

    def forward(self, spectrogram: Tensor) -> Tensor:
        """`(bands, frames)` → the same."""
        return F.batch_norm(spectrogram.T, self.running_mean, self.running_var, self.weight, self.bias).T


class SpectrogramViT(nn.Module):
    """The network; its features are the mean over the clip's own patches, before any classifier.

    patch: bands and frames of a patch; patches do not overlap; columns: patches that the learnt positions in time
    reach.
    """

    def __init__(self, size: Size, *, patch: tuple[int, int], columns: int) -> None:
        super().__init__()
        self.patch, self.columns = patch, columns
        # Constants, not state: they follow the module to its device but stay out of checkpoints.
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        bank = melscale_fbanks(WINDOW // 2 + 1, 0.0, SAMPLE_RATE / 2, MELS, SAMPLE_RATE)
        self.register_buffer("bank", bank, persistent=False)
        self.init_bn = BandNorm(MELS)
        # (B, 1, bands, frames) → (B, width, rows, columns)
        self.patch_embed = nn.Sequential(OrderedDict(proj=nn.Conv2d(1, size.width, patch, patch)))
        self.time_pos_embed = nn.Parameter(torch.randn(1, size.width, 1, columns) * 0.02)
        self.freq_pos_embed = nn.Parameter(torch.randn(1, size.width, MELS // patch[0], 1) * 0.02)
        self.blocks = nn.ModuleList(Block(size.width, size.heads) for _ in range(size.depth))
        self.norm = nn.LayerNorm(size.width, EPSILON)

    def forward(self, audio: Tensor, lengths: Tensor | None) -> Tensor:
        """`(B, T)` 16 kHz, at most `columns` patches long; `(B,)` samples → `(B, width)`."""
        x, frames = stacked([self._spectrogram(clip) for clip in split_rows(audio, lengths)])
        x = self.patch_embed(x)
        rows, columns = x.shape[2:]
        x = x + self.time_pos_embed[..., :columns] + self.freq_pos_embed
        mask = length_mask(frames // self.patch[1], columns).repeat(1, rows)
        x = x.flatten(2).mT
        for block in self.blocks:
            x = block(x, mask)
        return masked_mean(self.norm(x).mT, mask)

    def _spectrogram(self, clip: Tensor) -> Tensor:
        """`(T,)` → `(MELS, frames)`, of each clip by itself, where the published code looks at the whole batch."""
        shortest = (self.patch[1] - 1) * HOP + WINDOW  # for one patch, and for the mirrored ends
        with torch.autocast(clip.device.type, enabled=False):  # half precision is too coarse for power spectra
            clip = F.pad(clip.float(), (0, max(0, shortest - len(clip))))
            spectrum = torch.stft(clip, WINDOW, HOP, window=self.window, return_complex=True)
            power = self.bank.T @ (spectrum.real.square() + spectrum.imag.square())
            return self.init_bn(amplitude_to_DB(power, 10.0, 1e-10, 0.0, LOUDEST))


class SpectrogramEncoder(WindowedEncoder):
    """A network on windows of 10 s, what all were trained on; nothing is dropped in training (no patchout).

    model: a name on the hub or of `addresses`, a folder, a file of the authors', or a `Size` for random weights; make:
    size → the network; sizes: published names, without commits → their sizes, which tell the heads of a width.

    >>> CED(model=Size(8, 1, 2))(torch.zeros(1, 16_000)).shape, PaSST(model=Size(8, 1, 2))(torch.zeros(1, 32_000)).shape
    (torch.Size([1, 8]), torch.Size([1, 8]))
    """

    def __init__(
        self,
        *,
        model: str | Size,
        frozen: bool = False,
        pretrained: bool = True,
        make: Callable[[Size], nn.Module],
        sizes: Mapping[str, Size],
        addresses: Mapping[str, str] | None = None,
        sample_rate: int = SAMPLE_RATE,
    ) -> None:
        super().__init__()
        tensors = {}
        if not isinstance(model, str):
            size = model
        elif pretrained or model.partition("@")[0] not in sizes:
            tensors = renamed(read_tensors(weight_file(model, addresses=addresses))[0])
            size = size_of(tensors, {size.width: size.heads for size in sizes.values()}, model)
        else:
            size = sizes[model.partition("@")[0]]
        network = make(size)
        if tensors and pretrained:
            fill(network, tensors, model)
        self.network, self.dim = Pretrained(network, frozen=frozen), size.width
        self.sample_rate, self.window = sample_rate, 10 * sample_rate


def renamed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Published names → those of the networks here, without classifiers and constants.

    On the hub the network lies below `encoder.`; in the authors' own files its first norm is the second layer of three.

    >>> list(renamed({"encoder.init_bn.1.weight": torch.ones(1), "outputlayer.0.weight": torch.ones(1)}))
    ['init_bn.weight']
    """
    left_out = ("outputlayer.", "front_end.", "init_bn.num_batches_tracked", "head.", "head_dist.")
    names = {name: name.removeprefix("encoder.").replace("init_bn.1.", "init_bn.") for name in tensors}
    return {new: tensors[name] for name, new in names.items() if not new.startswith(left_out)}


RELEASES = "https://github.com/kkoutini/PaSST/releases/download"
ADDRESSES = {
    "passt_s_swa_p16_128_ap476": f"{RELEASES}/v0.0.1-audioset/passt-s-f128-p16-s10-ap.476-swa.pt",
    "passt_s_kd_p16_128_ap486": f"{RELEASES}/v.0.0.9/passt-s-kd-ap.486.pt",
}
PASST_MODEL = "passt_s_swa_p16_128_ap476"
PASST_RATE = 32_000
PASST_MELS, FFT, PASST_WINDOW, PASST_HOP, HIGHEST = 128, 1024, 800, 320, 15_000  # bands, samples, samples, samples, Hz
PATCH, STRIDE = 16, 10  # bands and frames
ROWS, COLUMNS = 12, 99  # patches in frequency, and in 10 s
SHORTEST = PATCH * PASST_HOP  # samples of one patch


class PaSSTNetwork(nn.Module):
    """The network with its front end; module names are those of the published weights."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.patch_embed = nn.Sequential(OrderedDict(proj=nn.Conv2d(1, width, PATCH, STRIDE)))
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.dist_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.new_pos_embed = nn.Parameter(torch.randn(1, 2, width) * 0.02)  # of both tokens
        self.freq_new_pos_embed = nn.Parameter(torch.randn(1, width, ROWS, 1) * 0.02)
        self.time_new_pos_embed = nn.Parameter(torch.randn(1, width, 1, COLUMNS) * 0.02)
        self.blocks = nn.ModuleList(Block(width, size.heads) for _ in range(size.depth))
        self.norm = nn.LayerNorm(width, EPSILON)
        # Constants, not state: they follow the module to its device but stay out of checkpoints.
        self.register_buffer("window", torch.hann_window(PASST_WINDOW, periodic=False), persistent=False)
        bank, _ = get_mel_banks(PASST_MELS, FFT, PASST_RATE, 0.0, HIGHEST, 100.0, -500.0, 1.0)
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
        """`(T,)` → `(PASST_MELS, frames)`: pre-emphasis, log mel power, scaled as in PaSST's front end."""
        with torch.autocast(clip.device.type, enabled=False):  # half precision is too coarse for power spectra
            clip = F.pad(clip.float(), (0, max(0, SHORTEST + 1 - len(clip))))
            clip = clip[1:] - 0.97 * clip[:-1]
            spectrum = torch.stft(clip, FFT, PASST_HOP, PASST_WINDOW, self.window, return_complex=True)
            mel = self.bank @ (spectrum.real.square() + spectrum.imag.square())
            return ((mel + 1e-5).log() + 4.5) / 5


CED = partial(
    SpectrogramEncoder,
    model=CED_MODEL,
    make=partial(SpectrogramViT, patch=(16, 16), columns=63),
    sizes=CED_SIZES,
)
Dasheng = partial(
    SpectrogramEncoder,
    model=DASHENG_MODEL,
    make=partial(SpectrogramViT, patch=(64, 4), columns=252),
    sizes=DASHENG_SIZES,
)
PaSST = partial(
    SpectrogramEncoder,
    model=PASST_MODEL,
    make=PaSSTNetwork,
    sizes=dict.fromkeys(ADDRESSES, Size(768, 12, 12)),
    addresses=ADDRESSES,
    sample_rate=PASST_RATE,
)

CARDS = (
    AudioEncoderCard(
        name="ced",
        make=CED,
        title="CED",
        about="A vision transformer distilled on AudioSet, on windows of 10 s.",
        source="Dinkel et al. 2024, CED: consistent ensemble distillation for audio tagging",
        citation="ced",
        licence="Apache-2.0",
        weights=f"hub {CED_MODEL}",
        pretrained=True,
        probe=lambda: {"model": Size(16, 2, 2)},
    ),
    AudioEncoderCard(
        name="dasheng",
        make=Dasheng,
        title="Dasheng",
        about="A masked autoencoder of general audio, on windows of 10 s.",
        source="Dinkel et al. 2024, Scaling up masked audio encoder learning for general audio classification",
        citation="dasheng",
        licence="Apache-2.0",
        weights=f"hub {DASHENG_MODEL}",
        pretrained=True,
        probe=lambda: {"model": Size(16, 2, 2)},
    ),
    AudioEncoderCard(
        name="passt",
        make=PaSST,
        title="PaSST",
        about="A spectrogram transformer with overlapping patches, trained on AudioSet at 32 kHz, on windows of 10 s.",
        source="Koutini et al. 2022, Efficient training of audio transformers with patchout",
        citation="passt",
        licence="Apache-2.0",
        weights=ADDRESSES[PASST_MODEL],
        pretrained=True,
        sample_rate=PASST_RATE,
        probe=lambda: {"model": Size(16, 2, 2)},
    ),
)
