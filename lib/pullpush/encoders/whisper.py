"""The encoder of OpenAI's Whisper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, build, from_hub, split_rows
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder
from pullpush.encoders.masks import length_mask, masked_mean
from pullpush.encoders.windows import over_windows

if TYPE_CHECKING:
    from transformers import PretrainedConfig

MODEL = "openai/whisper-small@973afd24965f72e36ca33b3055d56a652f456b4d"
WHISPER_STRIDE = 2 * 160  # samples in one frame of Whisper's encoder


class Whisper(AudioEncoder):
    """Whisper's encoder on its window of 30 s, averaged over the clip's own frames; of longer clips windows are
    averaged."""

    def __init__(self, *, model: str | PretrainedConfig = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        import transformers

        super().__init__()
        extractor = transformers.WhisperFeatureExtractor
        whole = build(transformers.WhisperModel, model, pretrained=pretrained)
        if isinstance(model, str):
            self.extractor = from_hub(extractor, model)
        else:
            seconds = model.max_source_positions * WHISPER_STRIDE // SAMPLE_RATE
            self.extractor = extractor(feature_size=model.num_mel_bins, chunk_length=seconds)
        self.backbone = Backbone(whole.encoder, frozen=frozen)
        self.dim = whole.config.d_model

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        return over_windows(self._encode, audio, lengths, self.extractor.n_samples)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        clips = split_rows(audio, lengths)
        frames = torch.tensor([-(-len(clip) // WHISPER_STRIDE) for clip in clips], device=self.backbone.device)
        arrays = [clip.cpu().numpy() for clip in clips]
        inputs = self.extractor(arrays, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        states = self.backbone(input_features=inputs.input_features.to(self.backbone.device)).last_hidden_state
        return masked_mean(states.mT, length_mask(frames, states.shape[1]))


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment, on windows of 2 s."""
    import transformers

    sizes = {"d_model": 16, "vocab_size": 20, "max_source_positions": 100}
    towers = {
        f"{tower}_{part}": size
        for tower in ("encoder", "decoder")
        for part, size in {"layers": 1, "attention_heads": 2, "ffn_dim": 32}.items()
    }
    ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    return {"model": transformers.WhisperConfig(**sizes, **towers, **ends)}


CARD = AudioEncoderCard(
    name="whisper",
    make=Whisper,
    title="Whisper",
    about="The encoder of Whisper, averaged over the clip's own frames.",
    source="Radford et al. 2023, Robust speech recognition via large-scale weak supervision",
    citation="whisper",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    pretrained=True,
    probe=tiny,
)
