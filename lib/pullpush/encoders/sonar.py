"""SONAR's text encoder: the encoder of an NLLB model, mean pooled."""

from __future__ import annotations

from functools import partial
from typing import Any

from pullpush.data.languages import load_languages
from pullpush.encoders.cards import TextEncoderCard
from pullpush.encoders.pretrained_text import PretrainedText
from pullpush.encoders.tiny import tokenizer

# Of languages without a file: those of `data/language/labels.yaml`, and of the recordings of people who speak.
FURTHER = {
    **{"ara": "arb_Arab", "ita": "ita_Latn", "kor": "kor_Hang", "pol": "pol_Latn", "por": "por_Latn"},
    **{"rus": "rus_Cyrl", "tha": "tha_Thai", "tur": "tur_Latn"},
    **{"bul": "bul_Cyrl", "ces": "ces_Latn", "dan": "dan_Latn", "ell": "ell_Grek", "fin": "fin_Latn"},
    **{"gle": "gle_Latn", "glg": "glg_Latn", "heb": "heb_Hebr", "hun": "hun_Latn", "ind": "ind_Latn"},
    **{"lit": "lit_Latn", "mal": "mal_Mlym", "nno": "nno_Latn", "nob": "nob_Latn", "ron": "ron_Latn"},
    **{"slv": "slv_Latn", "srp": "srp_Cyrl", "swe": "swe_Latn", "tsn": "tsn_Latn", "ukr": "ukr_Cyrl"},
}


def flores_codes() -> dict[str, str]:
    """ISO 639-3 → the codes that NLLB's and SONAR's tokenizer put before a text, of the languages that have one.

    >>> flores_codes()["zho"]
    'zho_Hans'
    """
    return FURTHER | {code: language.flores for code, language in load_languages().items() if language.flores}


SONAR = partial(
    PretrainedText,
    "transformers.models.m2m_100.modeling_m2m_100:M2M100Encoder",
    model="cointegrated/SONAR_200_text_encoder",
    codes=flores_codes,
)


def tiny() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    import transformers

    words = tokenizer(languages=flores_codes().values())
    sizes = {"d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
    # Without layer drop: else one forward pass in twenty skips the only layer.
    config = transformers.M2M100Config(**sizes, vocab_size=len(words), encoder_layerdrop=0.0)
    return {"model": config, "tokenizer": words}


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
    probe=tiny,
)
