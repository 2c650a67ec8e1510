"""Meta's PE-Audio as a whole, both towers with their heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pullpush.encoders.huggingface import build, by_length, from_hub, split_rows
from pullpush.encoders.pe_audio import MODEL, PE_RATE, mirrored, pe_classes, pe_hop, tiny
from pullpush.encoders.published import ModelCard, PublishedModel
from pullpush.encoders.tiny import tokenizer

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MAX_TOKENS = 512


class WholePEAudio(PublishedModel):
    """PE-Audio with ModernBERT for texts, whole clips at 48 kHz; its loss is SigLIP's, with scale and bias.

    Its own score is the dot product of embeddings of nearly equal length. Here they are of unit length, as all are that
    forces and metrics compare.

    Args:
        model: a name on the hub, a folder, or a configuration for random weights.
        tokenizer: needed with a configuration; otherwise the model's own.
    """

    def __init__(
        self, *, model: str | PretrainedConfig = MODEL, tokenizer: PreTrainedTokenizerBase | None = None
    ) -> None:
        import transformers

        if tokenizer is None and not isinstance(model, str):
            raise ValueError("a model made from a configuration has no tokenizer: give one as tokenizer=")
        network = build(pe_classes().PeAudioModel, model)
        scale = float(network.text_audio_logit_scale.detach())
        tau = 1 / scale if scale > 0 else 1.0  # a model with random weights has scale 0
        super().__init__(network, tau=tau, bias=float(network.text_audio_logit_bias.detach()), sample_rate=PE_RATE)
        self.hop = pe_hop(model, network)
        self.tokenizer = from_hub(transformers.AutoTokenizer, model) if tokenizer is None else tokenizer

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        return by_length(self._encode, [mirrored(clip, self.hop) for clip in split_rows(audio, lengths)])

    def _encode(self, clips: list[Tensor]) -> Tensor:
        heard = self.network.audio_encoder(input_values=torch.stack(clips)[:, None]).pooler_output
        return self.network.audio_head(heard)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        batch = self.tokenizer(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        batch = batch.to(self.device)
        read = self.network.text_model(
            input_ids=batch.input_ids, attention_mask=batch.attention_mask, output_hidden_states=True
        )
        return self.network.text_audio_head(read.hidden_states[-1][:, 0])


CARD = ModelCard(
    name="pe_audio",
    make=WholePEAudio,
    title="PE-Audio",
    about="Meta's Perception Encoder for audio and text, trained with a sigmoid loss.",
    source="Vyas et al. 2025, Pushing the frontier of audiovisual perception with large-scale multimodal "
    "correspondence learning",
    citation="pe_av",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    sample_rate=PE_RATE,
    probe=lambda: {**tiny(), "tokenizer": tokenizer()},
)
