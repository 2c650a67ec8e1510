"""SONAR's text encoder: the encoder of an NLLB model, mean pooled."""

from __future__ import annotations

from functools import partial

from pullpush.encoders.cards import TextEncoderCard
from pullpush.encoders.pretrained_text import PretrainedText

# ISO 639-3 → the codes that NLLB's and SONAR's tokenizer put before a text
FLORES = {
    "eng": "eng_Latn",
    "fra": "fra_Latn",
    "deu": "deu_Latn",
    "spa": "spa_Latn",
    "nld": "nld_Latn",
    "cat": "cat_Latn",
    "jpn": "jpn_Jpan",
    "zho": "zho_Hans",
}
SONAR = partial(
    PretrainedText,
    "transformers.models.m2m_100.modeling_m2m_100:M2M100Encoder",
    model="cointegrated/SONAR_200_text_encoder",
    codes=FLORES,
)
CARD = TextEncoderCard(
    name="sonar",
    make=SONAR,
    title="SONAR",
    about="SONAR's text encoder, told the language of each text.",
    source="Duquenne, Schwenk & Sagot 2023, SONAR: sentence-level multimodal and language-agnostic representations",
    licence="CC BY-NC 4.0",
    weights="hub cointegrated/SONAR_200_text_encoder",
    pretrained=True,
    languages="200",
)
