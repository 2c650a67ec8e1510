"""Microsoft's WavLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, build, by_length, from_hub, split_rows
from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.masks import length_mask, masked_mean
from pullpush.encoders.tiny import SIZES

if TYPE_CHECKING:
    from transformers import PretrainedConfig

MODEL = "microsoft/wavlm-base-plus@4c66d4806a428f2e922ccfa1a962776e232d487b"
WAVLM_SHORTEST = 400  # samples: what its convolutions need for one frame


class WavLM(AudioEncoder):
    """WavLM on the waveform, averaged over the clip's own frames.

    The base models normalise over the whole row, padding included; so clips of different lengths go through them one
    length at a time. The large one masks its padding and takes the batch at once.
    """

    def __init__(
        self,
        *,
        model: str | PretrainedConfig = MODEL,
        frozen: bool = False,
        pretrained: bool = True,
    ) -> None:
        import transformers

        super().__init__()
        # Its own augmentation and layer drop draw from other random states than the training loop restores.
        overrides = {"apply_spec_augment": False, "layerdrop": 0.0, "pretrained": pretrained}
        self.backbone = Backbone(build(transformers.WavLMModel, model, **overrides), frozen=frozen)
        self.backbone.model.masked_spec_embed.requires_grad_(False)  # for its augmentation only
        config = self.backbone.model.config
        extractor = transformers.Wav2Vec2FeatureExtractor
        self.standardise = from_hub(extractor, model).do_normalize if isinstance(model, str) else True
        self.by_length = config.feat_extract_norm == "group"
        self.dim = config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        clips = [self._prepare(clip) for clip in split_rows(audio.to(self.backbone.device), lengths)]
        return by_length(self._encode, clips) if self.by_length else self._encode(clips)

    def _prepare(self, clip: Tensor) -> Tensor:
        if self.standardise:  # zero mean, unit variance, as its feature extractor does; silence stays zero
            clip = (clip - clip.mean()) / torch.sqrt(clip.var(correction=0) + 1e-7)
        return F.pad(clip, (0, max(0, WAVLM_SHORTEST - len(clip))))

    def _encode(self, clips: list[Tensor]) -> Tensor:
        sizes = torch.tensor([len(clip) for clip in clips], device=self.backbone.device)
        audio = pad_sequence(clips, batch_first=True)
        mask = length_mask(sizes, audio.shape[1]).long()
        states = self.backbone(input_values=audio, attention_mask=mask).last_hidden_state
        frames = self.backbone.model._get_feat_extract_output_lengths(sizes)
        return masked_mean(states.mT, length_mask(frames, states.shape[1]))


def tiny(norm: str = "group") -> dict[str, Any]:
    """Options of one that is made in a moment; "group" norm as in the base models, "layer" as in the large one."""
    import transformers

    waves = {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2}
    norms = {"feat_extract_norm": norm, "do_stable_layer_norm": norm == "layer"}
    return {"model": transformers.WavLMConfig(**SIZES, **waves, **norms)}


CARD = AudioEncoderCard(
    name="wavlm",
    make=WavLM,
    title="WavLM",
    about="WavLM on the waveform, averaged over the clip's own frames.",
    source="Chen et al. 2022, WavLM: large-scale self-supervised pre-training for full stack speech processing",
    citation="wavlm",
    licence="CC BY-SA 3.0",
    weights=f"hub {MODEL}",
    pretrained=True,
    probe=tiny,
)
