"""Meta's Perception Encoder Audio (PE-AV): its audio encoder, and the whole of it, both towers with their heads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pullpush.encoders.interface import AudioEncoder, AudioEncoderCard
from pullpush.encoders.pretrained import (
    SIZES,
    ModelCard,
    Pretrained,
    PublishedModel,
    build,
    tiny_tokenizer,
    tokenizer_of,
)
from pullpush.encoders.windows import by_length, split_rows
from pullpush.errors import PullPushError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MODEL = "facebook/pe-av-base@1c4c329b78d80a18d860ebfb05daebff4bc44518"
PE_RATE = 48_000
MAX_TOKENS = 512


class PEAudio(AudioEncoder):
    """PE-Audio on whole clips at 48 kHz: the encoder of a codec, which stays as it is, below a transformer.

    Padding would leak through its convolutions, so clips go through it one length at a time, in steps of 40 ms.
    """

    sample_rate = PE_RATE

    def __init__(
        self, *, model: "str | PretrainedConfig" = MODEL, frozen: bool = False, pretrained: bool = True
    ) -> None:
        super().__init__()
        whole = build(pe_classes().PeAudioModel, model, pretrained=pretrained)
        for codec in (whole.audio_encoder.embedder.dac_encoder, whole.audio_encoder.embedder.bottleneck):
            codec.requires_grad_(False)  # out of the optimiser: its forward pass gives it no gradient
        self.network = Pretrained(whole.audio_encoder, frozen=frozen)
        self.hop, self.dim = whole.config.audio_config.dac_config.hop_length, whole.config.audio_config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        clips = [mirrored(clip, self.hop) for clip in split_rows(audio.to(self.network.device), lengths)]
        return by_length(lambda same: self.network(input_values=torch.stack(same)[:, None]).pooler_output, clips)


class WholePEAudio(PublishedModel):
    """PE-Audio with ModernBERT for texts, whole clips at 48 kHz; its loss is SigLIP's, with scale and bias.

    Its own score is the dot product of embeddings of nearly equal length. Here they are of unit length, as all are that
    forces and metrics compare.
    """

    def __init__(
        self, *, model: "str | PretrainedConfig" = MODEL, tokenizer: "PreTrainedTokenizerBase | None" = None
    ) -> None:
        network = build(pe_classes().PeAudioModel, model)
        scale = float(network.text_audio_logit_scale.detach())
        tau = 1 / scale if scale > 0 else 1.0  # a model with random weights has scale 0
        super().__init__(network, tau=tau, bias=float(network.text_audio_logit_bias.detach()), sample_rate=PE_RATE)
        self.hop = network.config.audio_config.dac_config.hop_length
        self.tokenizer = tokenizer_of(model, tokenizer)

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        return by_length(self._encode, [mirrored(clip, self.hop) for clip in split_rows(audio, lengths)])

    def _encode(self, clips: list[Tensor]) -> Tensor:
        states = self.network.audio_encoder(input_values=torch.stack(clips)[:, None]).pooler_output
        return self.network.audio_head(states)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        states = self.network.text_model(**self._tokens(texts, MAX_TOKENS), output_hidden_states=True).hidden_states
        return self.network.text_audio_head(states[-1][:, 0])


def pe_classes() -> Any:
    """The library that has PE-Audio's classes; `PullPushError` where the installed release has them not yet."""
    import transformers

    if not hasattr(transformers, "PeAudioModel"):
        raise PullPushError(f"PE-Audio needs transformers 5, got {transformers.__version__}: install a newer release")
    return transformers


def mirrored(clip: Tensor, hop: int) -> Tensor:
    """`(T,)` filled up to a multiple of `hop` samples by its mirrored end, as in PE-Audio's front end.

    >>> mirrored(torch.tensor([1.0, 2.0, 3.0]), 4)
    tensor([1., 2., 3., 2.])
    """
    return torch.from_numpy(np.pad(clip.cpu().numpy(), (0, -len(clip) % hop), "reflect")).to(clip.device)


def tiny() -> dict[str, Any]:
    """Options of an audio tower, and but for the tokenizer of a whole one, that is made in a moment."""
    steps = {"downsampling_ratios": [2, 8, 10, 12]}
    codec = {"encoder_hidden_size": 2, "codebook_dim": 4, "n_codebooks": 1, **steps}
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
    text = {**SIZES, **ends, "vocab_size": len(tiny_tokenizer()), "max_position_embeddings": 64}
    audio = {**SIZES, "head_dim": 8, "dac_config": codec}
    return {"model": pe_classes().PeAudioConfig(audio_config=audio, text_config=text)}


PUBLISHED: dict[str, Any] = {
    "source": "Vyas et al. 2025, Pushing the frontier of audiovisual perception with large-scale multimodal "
    "correspondence learning",
    "citation": "pe_av",
    "licence": "Apache-2.0",
    "weights": f"hub {MODEL}",
    "sample_rate": PE_RATE,
    "title": "PE-Audio",
    "name": "pe_audio",
}
CARDS = (
    AudioEncoderCard(
        make=PEAudio,
        about="The audio tower of Meta's Perception Encoder, on whole clips at 48 kHz.",
        pretrained=True,
        probe=tiny,
        **PUBLISHED,
    ),
    ModelCard(
        make=WholePEAudio,
        about="Meta's Perception Encoder for audio and text, trained with a sigmoid loss.",
        probe=lambda: {**tiny(), "tokenizer": tiny_tokenizer()},
        **PUBLISHED,
    ),
)
