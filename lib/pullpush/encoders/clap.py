"""The audio encoder of LAION's CLAP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from pullpush.encoders.cards import AudioEncoderCard
from pullpush.encoders.huggingface import Backbone, build, from_hub, split_rows
from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.windows import over_windows
from pullpush.errors import WeightsError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

MODEL = "laion/clap-htsat-unfused@8fa0f1c6d0433df6e97c127f64b2a1d6c0dcda8a"


class CLAP(AudioEncoder):
    """The audio tower of LAION's CLAP (HTSAT) at 48 kHz; clips shorter than its window (10 s) are repeated in it, of
    longer ones windows are averaged.

    Raises:
        WeightsError: the model is a fused one.
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
        self.extractor = clap_extractor(model)
        tower = refuse_fused(build(transformers.ClapAudioModel, model, pretrained=pretrained), model)
        self.backbone = Backbone(tower, frozen=frozen)
        self.dim, self.sample_rate = tower.config.hidden_size, self.extractor.sampling_rate

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """`(B, T)` 48 kHz, `(B,)` samples → `(B, dim)`."""
        return over_windows(self._encode, audio, lengths, self.extractor.nb_max_samples)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        return self.backbone(**clap_inputs(self.extractor, audio, lengths).to(self.backbone.device)).pooler_output


def clap_extractor(model: str | PretrainedConfig) -> Any:
    """The front end of a CLAP: that of a published model, or the usual one for an audio configuration."""
    import transformers

    extractor = transformers.ClapFeatureExtractor
    if isinstance(model, str):
        return from_hub(extractor, model)
    return extractor(feature_size=model.num_mel_bins, truncation="rand_trunc")


def clap_inputs(extractor: Any, audio: Tensor, lengths: Tensor) -> Any:
    """Windows `(M, W)` no longer than the extractor's → what the audio tower takes.

    Cutting is asked for, and never happens: the random crop of the extractor is for longer clips alone.
    """
    clips = [clip.cpu().numpy() for clip in split_rows(audio, lengths)]
    rate = extractor.sampling_rate
    return extractor(clips, truncation="rand_trunc", padding="repeatpad", sampling_rate=rate, return_tensors="pt")


def refuse_fused(tower: nn.Module, model: object) -> nn.Module:
    """The audio tower, if it is not a fused one."""
    if tower.config.enable_fusion:
        raise WeightsError(
            f"{model} is a fused CLAP: its front end crops long clips at random, and takes one at random where none is "
            "long, so that no number could be had twice; take an unfused one, such as laion/clap-htsat-unfused"
        )
    return tower


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    import transformers

    sizes = {"patch_embeds_hidden_size": 8, "depths": [1, 1], "num_attention_heads": [2, 2], "hidden_size": 16}
    return {"model": transformers.ClapAudioConfig(**sizes, num_mel_bins=64)}


CARD = AudioEncoderCard(
    name="clap",
    make=CLAP,
    title="CLAP (HTSAT)",
    about="The audio tower of LAION's CLAP, on windows of 10 s.",
    source="Wu et al. 2023, Large-scale contrastive language–audio pretraining",
    citation="laion_clap",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    pretrained=True,
    sample_rate=48_000,
    probe=tiny,
)
