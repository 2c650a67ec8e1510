"""LAION's CLAP: its audio encoder, and the whole of it, both towers with their projections."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from pullpush.encoders.interface import AudioEncoderCard
from pullpush.encoders.pretrained import (
    SIZES,
    ModelCard,
    Pretrained,
    PublishedModel,
    WindowedEncoder,
    build,
    front_end,
    tiny_tokenizer,
    tokenizer_of,
)
from pullpush.encoders.windows import split_rows
from pullpush.errors import WeightsError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MODEL = "laion/clap-htsat-unfused@8fa0f1c6d0433df6e97c127f64b2a1d6c0dcda8a"
MAX_TOKENS = 77  # as LAION's code cuts texts


class CLAP(WindowedEncoder):
    """The audio tower of LAION's CLAP (HTSAT) at 48 kHz; clips shorter than its window (10 s) are repeated in it, of
    longer ones windows are averaged. A fused one is refused."""

    def __init__(
        self, *, model: "str | PretrainedConfig" = MODEL, frozen: bool = False, pretrained: bool = True
    ) -> None:
        import transformers

        super().__init__()
        tower = refuse_fused(build(transformers.ClapAudioModel, model, pretrained=pretrained), model)
        self.extractor = clap_extractor(model, tower)
        self.network, self.window = Pretrained(tower, frozen=frozen), self.extractor.nb_max_samples
        self.dim, self.sample_rate = tower.config.hidden_size, self.extractor.sampling_rate

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        return self.network(**clap_inputs(self.extractor, audio, lengths)).pooler_output


class WholeCLAP(PublishedModel):
    """LAION's CLAP (HTSAT and RoBERTa) at 48 kHz, embeddings of windows of 10 s averaged; a fused one is refused."""

    def __init__(
        self, *, model: "str | PretrainedConfig" = MODEL, tokenizer: "PreTrainedTokenizerBase | None" = None
    ) -> None:
        import transformers

        network = build(transformers.ClapModel, model)
        extractor = clap_extractor(model, refuse_fused(network.audio_model, model))
        scale = float(network.logit_scale_t.detach().exp())
        super().__init__(network, tau=1 / scale, sample_rate=extractor.sampling_rate, longest=extractor.nb_max_samples)
        self.extractor, self.tokenizer = extractor, tokenizer_of(model, tokenizer)

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        states = self.network.audio_model(**clap_inputs(self.extractor, audio, lengths)).pooler_output
        features = self.network.audio_projection(states)
        return features / features.norm(dim=1, keepdim=True)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        return self.network.text_projection(self.network.text_model(**self._tokens(texts, MAX_TOKENS)).pooler_output)


def clap_extractor(model: "str | PretrainedConfig", tower: Any) -> Any:
    """The front end of a CLAP: that of a published model, or the usual one for an audio tower."""
    import transformers

    settings = {"feature_size": tower.config.num_mel_bins, "truncation": "rand_trunc"}
    return front_end(transformers.ClapFeatureExtractor, model, **settings)


def clap_inputs(extractor: Any, audio: Tensor, lengths: Tensor) -> Any:
    """Windows `(M, W)` no longer than the extractor's → what the audio tower takes.

    Cutting is asked for, and never happens: the random crop of the extractor is for longer clips alone.
    """
    clips = [clip.cpu().numpy() for clip in split_rows(audio, lengths)]
    settings = {"truncation": "rand_trunc", "padding": "repeatpad", "sampling_rate": extractor.sampling_rate}
    return extractor(clips, return_tensors="pt", **settings).to(audio.device)


def refuse_fused(tower: Any, model: object) -> Any:
    """The audio tower, if it is not a fused one."""
    if tower.config.enable_fusion:
        raise WeightsError(
            f"{model} is a fused CLAP: its front end crops long clips at random, and takes one at random where none is "
            "long, so that no number could be had twice; take an unfused one, such as laion/clap-htsat-unfused"
        )
    return tower


def tiny() -> dict[str, Any]:
    """Options of an audio tower that is made in a moment."""
    import transformers

    sizes = {"patch_embeds_hidden_size": 8, "depths": [1, 1], "num_attention_heads": [2, 2], "hidden_size": 16}
    return {"model": transformers.ClapAudioConfig(**sizes, num_mel_bins=64)}


def tiny_whole() -> dict[str, Any]:
    """Options of a whole one that is made in a moment."""
    import transformers

    words, audio = tiny_tokenizer(), tiny()["model"]
    text = {**SIZES, "vocab_size": len(words), "pad_token_id": 1, "max_position_embeddings": 40}
    config = transformers.ClapConfig(audio_config=audio.to_dict(), text_config=text, projection_dim=8)
    return {"model": config, "tokenizer": words}


PUBLISHED: dict[str, Any] = {
    "source": "Wu et al. 2023, Large-scale contrastive language–audio pretraining",
    "citation": "laion_clap",
    "licence": "Apache-2.0",
    "weights": f"hub {MODEL}",
    "sample_rate": 48_000,
}
CARDS = (
    AudioEncoderCard(
        name="clap",
        make=CLAP,
        title="CLAP (HTSAT)",
        about="The audio tower of LAION's CLAP, on windows of 10 s.",
        pretrained=True,
        probe=tiny,
        **PUBLISHED,
    ),
    ModelCard(
        name="clap",
        make=WholeCLAP,
        title="LAION-CLAP",
        about="LAION's CLAP with both towers, trained on 633,526 pairs and AudioSet.",
        probe=tiny_whole,
        **PUBLISHED,
    ),
)
