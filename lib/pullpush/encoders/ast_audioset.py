"""The Audio Spectrogram Transformer with its published weights; `ast` is a small one that is trained from nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, build, from_hub, split_rows
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder
from pullpush.encoders.tiny import SIZES
from pullpush.encoders.windows import over_windows

if TYPE_CHECKING:
    from transformers import PretrainedConfig

MODEL = "MIT/ast-finetuned-audioset-10-10-0.4593@f826b80d28226b62986cc218e5cec390b1096902"
FRAME, HOP = 400, 160  # samples


class AST(AudioEncoder):
    """AST on its window of 1,024 frames (10.24 s), filled up as in its training; of longer clips windows are averaged.

    Features are the mean of its two class tokens, before the classifier.
    """

    def __init__(self, *, model: str | PretrainedConfig = MODEL, frozen: bool = False, pretrained: bool = True) -> None:
        import transformers

        super().__init__()
        self.backbone = Backbone(build(transformers.ASTModel, model, pretrained=pretrained), frozen=frozen)
        config, extractor = self.backbone.model.config, transformers.ASTFeatureExtractor
        sizes = {"num_mel_bins": config.num_mel_bins, "max_length": config.max_length}
        self.extractor = from_hub(extractor, model) if isinstance(model, str) else extractor(**sizes)
        self.window = FRAME + (config.max_length - 1) * HOP
        self.dim = config.hidden_size

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 16 kHz, `(B,)` samples → `(B, dim)`."""
        return over_windows(self._encode, audio, lengths, self.window)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        clips = [F.pad(clip, (0, max(0, FRAME - len(clip)))).cpu().numpy() for clip in split_rows(audio, lengths)]
        with torch.autocast("cpu", enabled=False):  # its front end is torch's, on the CPU
            inputs = self.extractor(clips, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        return self.backbone(input_values=inputs.input_values.to(self.backbone.device)).pooler_output


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment, on windows of 1.3 s."""
    import transformers

    return {"model": transformers.ASTConfig(**SIZES, max_length=128)}


CARD = AudioEncoderCard(
    name="ast_audioset",
    make=AST,
    title="AST (AudioSet)",
    about="Self-attention over patches of a spectrogram, trained on ImageNet and AudioSet, on windows of 10 s.",
    source="Gong, Chung & Glass 2021, AST: audio spectrogram transformer",
    citation="ast",
    licence="BSD-3-Clause",
    weights=f"hub {MODEL}",
    pretrained=True,
    probe=tiny,
)
