"""Text encoders with the classes of `transformers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from pullpush.encoders.huggingface import Backbone, build, from_hub
from pullpush.encoders.interface import TextEncoder
from pullpush.encoders.masks import masked_mean
from pullpush.errors import unknown

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


class PretrainedText(TextEncoder):
    """A pretrained text encoder, averaged over the text's own tokens.

    Args:
        architecture: class of the model, as "module:class"; imported when it is needed.
        model: name, folder or configuration.
        tokenizer: needed with a configuration; otherwise the model's own.
        pretrained: take the published weights; else random ones in the same architecture.
        codes: gives ISO 639-3 → the tokenizer's language codes; None for a tokenizer that marks no language.
        language: what texts are written in when nobody says.
        frozen: keep the weights.
        max_tokens: longer texts are cut.
        settings: what the configuration or the class is to be told besides.
    """

    def __init__(
        self,
        architecture: str,
        *,
        model: str | PretrainedConfig,
        tokenizer: PreTrainedTokenizerBase | None = None,
        codes: Callable[[], Mapping[str, str]] | None = None,
        language: str = "eng",
        frozen: bool = False,
        pretrained: bool = True,
        max_tokens: int = 128,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        import transformers

        super().__init__()
        if tokenizer is None and not isinstance(model, str):
            raise ValueError("a model made from a configuration has no tokenizer: give one as tokenizer=")
        module, _, name = architecture.partition(":")
        made = build(getattr(import_module(module), name), model, pretrained=pretrained, **settings)
        self.backbone = Backbone(made, frozen=frozen)
        if tokenizer is None:
            tokenizer = from_hub(transformers.AutoTokenizer, model)
        self.tokenizer, self.language, self.max_tokens = tokenizer, language, max_tokens
        self.codes = None if codes is None else codes()
        self.dim = self.backbone.model.config.hidden_size
        self._code(language)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """B texts, their ISO 639-3 codes → `(B, dim)`."""
        languages = [self.language] * len(texts) if languages is None else list(languages)
        if len(languages) != len(texts):
            raise ValueError(f"{len(texts)} texts need as many languages, got {len(languages)}")
        tokens = [self._tokens(text, language) for text, language in zip(texts, languages, strict=True)]
        batch = self.tokenizer.pad({"input_ids": tokens}, return_tensors="pt").to(self.backbone.device)
        states = self.backbone(input_ids=batch.input_ids, attention_mask=batch.attention_mask).last_hidden_state
        return masked_mean(states.mT, batch.attention_mask.bool())

    def _tokens(self, text: str, language: str) -> list[int]:
        if self.codes is not None:
            self.tokenizer.src_lang = self._code(language)
        return self.tokenizer(text, truncation=True, max_length=self.max_tokens).input_ids

    def _code(self, language: str) -> str | None:
        if self.codes is None:
            return None
        if language not in self.codes:
            raise unknown("language", language, self.codes)
        return self.codes[language]
