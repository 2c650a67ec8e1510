"""The audio encoder of LAION's CLAP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, build, fetch, split_rows
from pullpush.encoders.interface import AudioEncoder

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class CLAP(AudioEncoder):
    """The audio tower of LAION's CLAP (HTSAT); clips beyond its length (10 s) are cut, shorter ones repeated."""

    def __init__(
        self,
        *,
        model: str | PretrainedConfig = "laion/clap-htsat-unfused",
        frozen: bool = False,
        pretrained: bool = True,
    ) -> None:
        import transformers

        super().__init__()
        self.backbone = Backbone(build(transformers.ClapAudioModel, model, pretrained=pretrained), frozen=frozen)
        extractor = transformers.ClapFeatureExtractor
        if isinstance(model, str):
            self.extractor = fetch(lambda: extractor.from_pretrained(model), model)
        else:
            self.extractor = extractor(feature_size=model.num_mel_bins, truncation="rand_trunc")
        self.dim, self.sample_rate = self.backbone.model.config.hidden_size, self.extractor.sampling_rate

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 48 kHz, `(B,)` samples → `(B, dim)`."""
        longest = self.extractor.nb_max_samples
        clips = [clip[:longest].cpu().numpy() for clip in split_rows(audio, lengths)]
        inputs = self.extractor(clips, sampling_rate=self.sample_rate, return_tensors="pt").to(self.backbone.device)
        return self.backbone(**inputs).pooler_output


CARD = AudioEncoderCard(
    name="clap",
    make=CLAP,
    title="CLAP (HTSAT)",
    about="The audio tower of LAION's CLAP, on windows of 10 s.",
    source="Wu et al. 2023, Large-scale contrastive language–audio pretraining",
    citation="laion_clap",
    licence="Apache-2.0",
    weights="hub laion/clap-htsat-unfused",
    pretrained=True,
    sample_rate=48_000,
)
