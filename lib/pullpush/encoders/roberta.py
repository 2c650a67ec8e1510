"""RoBERTa, English, or a model of the same architecture."""

from __future__ import annotations

from functools import partial
from typing import Any

from pullpush.encoders.cards import TextEncoderCard
from pullpush.encoders.pretrained_text import PretrainedText
from pullpush.encoders.tiny import SIZES, tokenizer

MODEL = "FacebookAI/roberta-base@e2da8e2f811d1448a5b465c236feacd80ffbac7b"
RoBERTa = partial(
    PretrainedText,
    "transformers:RobertaModel",
    model=MODEL,
    settings={"add_pooling_layer": False},
)


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    import transformers

    words = tokenizer()
    return {"model": transformers.RobertaConfig(**SIZES, vocab_size=len(words)), "tokenizer": words}


CARD = TextEncoderCard(
    name="roberta",
    make=RoBERTa,
    title="RoBERTa",
    about="RoBERTa, or a model of its architecture, averaged over the text's own tokens.",
    source="Liu et al. 2019, RoBERTa: a robustly optimized BERT pretraining approach",
    licence="MIT",
    weights=f"hub {MODEL}",
    pretrained=True,
    languages="eng",
    probe=tiny,
)
