"""Text encoders with the classes of `transformers`: RoBERTa, and SONAR, the mean pooled encoder of an NLLB model."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from pullpush.data.languages import load_languages
from pullpush.encoders.interface import KNOWN, TextEncoder, TextEncoderCard
from pullpush.encoders.pretrained import SIZES, Pretrained, build, tiny_tokenizer, tokenizer_of
from pullpush.encoders.windows import masked_mean
from pullpush.errors import looked_up

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


class PretrainedText(TextEncoder):
    """A pretrained text encoder, averaged over the text's own tokens.

    architecture: class of the model, as "module:class", imported when it is needed; tokenizer: needed with a
    configuration, otherwise the model's own; codes: gives ISO 639-3 → the tokenizer's language codes, None for a
    tokenizer that marks no language; language: what texts are written in when nobody says; max_tokens: longer texts are
    cut; settings: what the configuration or the class is to be told besides.
    """

    def __init__(
        self,
        architecture: str,
        *,
        model: "str | PretrainedConfig",
        tokenizer: "PreTrainedTokenizerBase | None" = None,
        codes: Callable[[], Mapping[str, str]] | None = None,
        language: str = "eng",
        frozen: bool = False,
        pretrained: bool = True,
        max_tokens: int = 128,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        module, _, name = architecture.partition(":")
        made = build(getattr(import_module(module), name), model, pretrained=pretrained, **settings)
        self.network, self.dim = Pretrained(made, frozen=frozen), made.config.hidden_size
        self.tokenizer, self.language, self.max_tokens = tokenizer_of(model, tokenizer), language, max_tokens
        self.codes = None if codes is None else codes()
        self._known: dict[tuple[str, str], list[int]] = {}
        self._mark(language)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        languages = [self.language] * len(texts) if languages is None else list(languages)
        if len(languages) != len(texts):
            raise ValueError(f"{len(texts)} texts need as many languages, got {len(languages)}")
        tokens = [self._tokens(text, language) for text, language in zip(texts, languages, strict=True)]
        batch = self.tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self.network.device)
        states = self.network(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        return masked_mean(states.mT, batch.attention_mask.bool())

    def _tokens(self, text: str, language: str) -> list[int]:
        """Of a text, read once a run."""
        if (text, language) not in self._known:
            if len(self._known) == KNOWN:
                self._known.clear()
            self._mark(language)
            self._known[text, language] = self.tokenizer(text, truncation=True, max_length=self.max_tokens).input_ids
        return self._known[text, language]

    def _mark(self, language: str) -> None:
        if self.codes is not None:
            self.tokenizer.src_lang = looked_up("language", language, self.codes)


ROBERTA_MODEL = "FacebookAI/roberta-base@e2da8e2f811d1448a5b465c236feacd80ffbac7b"
SONAR_MODEL = "cointegrated/SONAR_200_text_encoder"
# Of languages that have no file of their own: those of `labels.yaml`, and of the recordings of people who speak.
FURTHER = {
    **{"ara": "arb_Arab", "ita": "ita_Latn", "kor": "kor_Hang", "pol": "pol_Latn", "por": "por_Latn"},
    **{"rus": "rus_Cyrl", "tha": "tha_Thai", "tur": "tur_Latn"},
    **{"bul": "bul_Cyrl", "ces": "ces_Latn", "dan": "dan_Latn", "ell": "ell_Grek", "fin": "fin_Latn"},
    **{"gle": "gle_Latn", "glg": "glg_Latn", "heb": "heb_Hebr", "hun": "hun_Latn", "ind": "ind_Latn"},
    **{"lit": "lit_Latn", "mal": "mal_Mlym", "nno": "nno_Latn", "nob": "nob_Latn", "ron": "ron_Latn"},
    **{"slv": "slv_Latn", "srp": "srp_Cyrl", "swe": "swe_Latn", "tsn": "tsn_Latn", "ukr": "ukr_Cyrl"},
}


def flores_codes() -> dict[str, str]:
    """ISO 639-3 → the codes that NLLB's and SONAR's tokenizer put before a text, of the languages that have one."""
    return FURTHER | {code: language.flores for code, language in load_languages().items() if language.flores}


RoBERTa = partial(
    PretrainedText, "transformers:RobertaModel", model=ROBERTA_MODEL, settings={"add_pooling_layer": False}
)
SONAR = partial(
    PretrainedText,
    "transformers.models.m2m_100.modeling_m2m_100:M2M100Encoder",
    model=SONAR_MODEL,
    codes=flores_codes,
)


def tiny_roberta() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    import transformers

    words = tiny_tokenizer()
    return {"model": transformers.RobertaConfig(**SIZES, vocab_size=len(words)), "tokenizer": words}


def tiny_sonar() -> dict[str, Any]:
    """Options of one that is made in a moment."""
    import transformers

    words = tiny_tokenizer(languages=flores_codes().values())
    sizes = {"d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
    # Without layer drop: else one forward pass in twenty skips the only layer.
    config = transformers.M2M100Config(**sizes, vocab_size=len(words), encoder_layerdrop=0.0)
    return {"model": config, "tokenizer": words}


CARDS = (
    TextEncoderCard(
        name="roberta",
        make=RoBERTa,
        title="RoBERTa",
        about="RoBERTa, or a model of its architecture, averaged over the text's own tokens.",
        source="Liu et al. 2019, RoBERTa: a robustly optimized BERT pretraining approach",
        licence="MIT",
        weights=f"hub {ROBERTA_MODEL}",
        pretrained=True,
        languages="eng",
        probe=tiny_roberta,
    ),
    TextEncoderCard(
        name="sonar",
        make=SONAR,
        title="SONAR",
        about="SONAR's text encoder, told the language of each text.",
        source="Duquenne, Schwenk & Sagot 2023, SONAR: sentence-level multimodal and language-agnostic representations",
        licence="CC BY-NC 4.0",
        weights=f"hub {SONAR_MODEL}",
        pretrained=True,
        languages="200",
        probe=tiny_sonar,
    ),
)
