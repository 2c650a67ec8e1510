"""LAION's CLAP as a whole, both towers with their projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from pullpush.encoders import clap
from pullpush.encoders.clap import MODEL, clap_extractor, clap_inputs, refuse_fused
from pullpush.encoders.huggingface import build, from_hub
from pullpush.encoders.published import ModelCard, PublishedModel
from pullpush.encoders.tiny import SIZES, tokenizer

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

MAX_TOKENS = 77  # as LAION's code cuts texts


class WholeCLAP(PublishedModel):
    """LAION's CLAP (HTSAT and RoBERTa), at 48 kHz on windows of 10 s, whose embeddings are averaged.

    Args:
        model: a name on the hub, a folder, or a configuration for random weights.
        tokenizer: needed with a configuration; otherwise the model's own.

    Raises:
        WeightsError: the model is a fused one.
    """

    def __init__(
        self, *, model: str | PretrainedConfig = MODEL, tokenizer: PreTrainedTokenizerBase | None = None
    ) -> None:
        import transformers

        if tokenizer is None and not isinstance(model, str):
            raise ValueError("a model made from a configuration has no tokenizer: give one as tokenizer=")
        network = build(transformers.ClapModel, model)
        refuse_fused(network.audio_model, model)
        extractor: Any = clap_extractor(model if isinstance(model, str) else model.audio_config)
        scale = float(network.logit_scale_t.detach().exp())
        super().__init__(network, tau=1 / scale, sample_rate=extractor.sampling_rate, longest=extractor.nb_max_samples)
        self.extractor = extractor
        self.tokenizer = from_hub(transformers.AutoTokenizer, model) if tokenizer is None else tokenizer

    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        inputs = clap_inputs(self.extractor, audio, lengths).to(self.device)
        heard = self.network.audio_model(**inputs).pooler_output
        features = self.network.audio_projection(heard)
        return features / features.norm(dim=1, keepdim=True)

    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        batch = self.tokenizer(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        batch = batch.to(self.device)
        read = self.network.text_model(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        return self.network.text_projection(read.pooler_output)


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    import transformers

    words, audio = tokenizer(), clap.tiny()["model"]
    text = {**SIZES, "vocab_size": len(words), "pad_token_id": 1, "max_position_embeddings": 40}
    config = transformers.ClapConfig(audio_config=audio.to_dict(), text_config=text, projection_dim=8)
    return {"model": config, "tokenizer": words}


CARD = ModelCard(
    name="clap",
    make=WholeCLAP,
    title="LAION-CLAP",
    about="LAION's CLAP with both towers, trained on 633,526 pairs and AudioSet.",
    source="Wu et al. 2023, Large-scale contrastive language–audio pretraining",
    citation="laion_clap",
    licence="Apache-2.0",
    weights=f"hub {MODEL}",
    sample_rate=48_000,
    probe=tiny,
)
