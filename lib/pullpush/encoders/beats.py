"""BEATs, Microsoft's audio pre-training with acoustic tokenisers (Chen et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.compliance.kaldi import fbank

from pullpush.encoders.beats_layers import BEATsLayer, BEATsSize, relative_buckets
from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, split_rows
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder
from pullpush.encoders.masks import length_mask, masked_mean
from pullpush.encoders.vit import stacked
from pullpush.encoders.weight_files import fill_from, read_tensors, weight_file
from pullpush.encoders.wheels import PLACE
from pullpush.encoders.windows import over_windows
from pullpush.errors import DataNotFoundError, WeightsError

MODEL = "BEATs_iter3_plus_AS2M.pt"
BANDS, FRAME, HOP = 128, 400, 160  # bands, samples, samples
CENTRE, SPREAD = 15.41663, 6.55582  # of the log mel power of 16-bit audio, as published


class BEATsNetwork(nn.Module):
    """The network with its front end; module names are those of the published weights.

    The convolution of positions is published as direction and length (weight norm), and is one matrix here.

    >>> BEATsNetwork(BEATsSize(width=8, depth=2, heads=2, patch_width=4))(torch.zeros(2, 16_000), None).shape
    torch.Size([2, 8])
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


class BEATs(AudioEncoder):
    """BEATs at 16 kHz, averaged over the clip's patches; of clips longer than 10 s windows are averaged.

    Microsoft's links to the weights have died again and again: no address is given here. Dropout is off in training.

    Args:
        model: one of the authors' files, or its name in the folder that `$PULLPUSH_WEIGHTS` names; or a `BEATsSize`
            for random weights.
        frozen: keep the weights.
        pretrained: take the published weights; else random ones in the same architecture.

    >>> BEATs(model=BEATsSize(width=8, depth=2, heads=2, patch_width=4))(torch.zeros(1, 16_000)).shape
    torch.Size([1, 8])
    """

    def __init__(self, *, model: str | BEATsSize = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        super().__init__()
        network = _network(model, pretrained)
        self.backbone = Backbone(network, frozen=frozen)
        self.dim = network.size.width

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        return over_windows(self._encode, audio.to(self.backbone.device), lengths, 10 * SAMPLE_RATE)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        return self.backbone(audio=audio, lengths=lengths)


def _network(model: str | BEATsSize, pretrained: bool) -> BEATsNetwork:
    if not isinstance(model, str):
        return BEATsNetwork(model)
    if not pretrained and model == MODEL:
        return BEATsNetwork(BEATsSize())
    tensors, rest = read_tensors(_file(model))
    if "cfg" not in rest or "encoder.pos_conv.0.weight_g" not in tensors:
        raise WeightsError(f"{model} is no checkpoint of BEATs: it has no configuration `cfg`, or no encoder of BEATs'")
    network = BEATsNetwork(_size(rest["cfg"], model))
    if pretrained:
        fill_from(network, renamed(tensors), model)
    return network


def _file(model: str) -> Path:
    try:
        return weight_file(model)
    except DataNotFoundError as error:
        raise DataNotFoundError(
            f"no weights of BEATs at {model!r}: get {MODEL} from its authors (microsoft/unilm, beats), and give its "
            f"path as the model, or put it into the folder that ${PLACE} names"
        ) from error


def _size(settings: Mapping[str, Any], model: str) -> BEATsSize:
    """The size that a checkpoint's configuration gives."""
    asked = {"deep_norm": True, "gru_rel_pos": True, "relative_position_embedding": True, "conv_bias": False}
    other = {name: settings.get(name) for name, value in asked.items() if bool(settings.get(name)) != value}
    if other:
        raise WeightsError(f"{model} is of a kind of BEATs that was never published: {other}, expected {asked}")
    return BEATsSize(
        width=settings["encoder_embed_dim"],
        depth=settings["encoder_layers"],
        heads=settings["encoder_attention_heads"],
        hidden=settings["encoder_ffn_embed_dim"],
        patch_width=settings["embed_dim"],
        patch=settings["input_patch_size"],
        conv_positions=settings["conv_pos"],
        conv_groups=settings["conv_pos_groups"],
        buckets=settings["num_buckets"],
        furthest=settings["max_distance"],
    )


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
