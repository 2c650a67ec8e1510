"""SONAR's text encoder: the encoder of an NLLB model, mean pooled."""

from __future__ import annotations

from functools import partial

from pullpush.data.languages import load_languages
from pullpush.encoders.cards import TextEncoderCard
from pullpush.encoders.pretrained_text import PretrainedText


def flores_codes() -> dict[str, str]:
    """ISO 639-3 → the codes that NLLB's and SONAR's tokenizer put before a text, of the languages that have one.

    >>> flores_codes()["zho"]
    'zho_Hans'
    """
    return {code: language.flores for code, language in load_languages().items() if language.flores}


SONAR = partial(
    PretrainedText,
    "transformers.models.m2m_100.modeling_m2m_100:M2M100Encoder",
    model="cointegrated/SONAR_200_text_encoder",
    codes=flores_codes,
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
