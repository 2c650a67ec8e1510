"""The audio encoder of Meta's Perception Encoder Audio (PE-AV)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, build, by_length, from_hub, split_rows
from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.tiny import ENDS, SIZES, WORDS
from pullpush.errors import PullPushError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

MODEL = "facebook/pe-av-base@1c4c329b78d80a18d860ebfb05daebff4bc44518"
PE_RATE = 48_000


class PEAudio(AudioEncoder):
    """PE-Audio on whole clips at 48 kHz: the encoder of a codec, which stays as it is, below a transformer.

    Padding would leak through its convolutions, so clips go through it one length at a time, in steps of 40 ms.
    """

    sample_rate = PE_RATE

    def __init__(self, *, model: str | PretrainedConfig = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        super().__init__()
        whole = build(pe_classes().PeAudioModel, model, pretrained=pretrained)
        self.hop = pe_hop(model, whole)
        self.backbone = Backbone(without_codec_gradient(whole.audio_encoder), frozen=frozen)
        self.dim = whole.config.audio_config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 48 kHz, `(B,)` samples → `(B, dim)`."""
        clips = [mirrored(clip, self.hop) for clip in split_rows(audio.to(self.backbone.device), lengths)]
        return by_length(self._encode, clips)

    def _encode(self, clips: list[Tensor]) -> Tensor:
        return self.backbone(input_values=torch.stack(clips)[:, None]).pooler_output


def pe_classes() -> Any:
    """The library that has PE-Audio's classes.

    Raises:
        PullPushError: the installed release has them not yet.
    """
    import transformers

    if not all(hasattr(transformers, name) for name in ("PeAudioModel", "PeAudioFeatureExtractor")):
        raise PullPushError(f"PE-Audio needs transformers 5, got {transformers.__version__}: install a newer release")
    return transformers


def pe_hop(model: str | PretrainedConfig, whole: nn.Module) -> int:
    """Samples in one step of the codec, to whose multiples clips are filled up."""
    if isinstance(model, str):
        return from_hub(pe_classes().PeAudioFeatureExtractor, model).hop_length
    return whole.config.audio_config.dac_config.hop_length


def mirrored(clip: Tensor, hop: int) -> Tensor:
    """`(T,)` filled up to a multiple of `hop` samples by its mirrored end, as in PE-Audio's front end.

    >>> mirrored(torch.tensor([1.0, 2.0, 3.0]), 4)
    tensor([1., 2., 3., 2.])
    """
    missing = -len(clip) % hop
    padded = np.pad(clip.cpu().numpy(), (0, missing), "reflect") if missing else clip.cpu().numpy()
    return torch.from_numpy(padded).to(clip.device)


def without_codec_gradient(encoder: nn.Module) -> nn.Module:
    """The encoder, whose codec is out of the optimiser: its forward pass gives it no gradient."""
    encoder.embedder.dac_encoder.requires_grad_(False)
    encoder.embedder.bottleneck.requires_grad_(False)
    return encoder


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    steps = {"downsampling_ratios": [2, 8, 10, 12]}
    codec = {"encoder_hidden_size": 2, "codebook_dim": 4, "n_codebooks": 1, **steps}
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
    text = {**SIZES, **ends, "vocab_size": len((*ENDS, *WORDS)), "max_position_embeddings": 64}
    audio = {**SIZES, "head_dim": 8, "dac_config": codec}
    return {"model": pe_classes().PeAudioConfig(audio_config=audio, text_config=text)}


CARD = AudioEncoderCard(
    name="pe_audio",
    make=PEAudio,
    title="PE-Audio",
    about="The audio tower of Meta's Perception Encoder, on whole clips at 48 kHz.",
    source="Vyas et al. 2025, Pushing the frontier of audiovisual perception with large-scale multimodal "
    "correspondence learning",
    citation="pe_av",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    pretrained=True,
    sample_rate=PE_RATE,
    probe=tiny,
)
