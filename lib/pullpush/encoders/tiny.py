"""Tokenizers without a download, for models whose random weights are drawn in a moment: what cards give to probes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ENDS = ("<s>", "<pad>", "</s>", "<unk>")  # their places are their numbers
WORDS = ("a", "frog", "croaks", "bell", "rings", "dog", "barks", "then", "une", "grenouille", "coasse")
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def tokenizer(*, languages: Iterable[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer of one token a word of `ENDS`, `WORDS` and `languages`; where there are languages, it puts the code
    in `src_lang` before a text, as NLLB's does, in place of what begins and ends it.

    >>> tokenizer()("a frog").input_ids
    [0, 4, 5, 2]
    """
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    class Marking(transformers.PreTrainedTokenizerFast):
        src_lang = ""

        def __call__(self, text: Any, **options: Any) -> Any:
            return super().__call__(f"{self.src_lang} {text}", **options)

    codes = sorted(languages)
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate((*ENDS, *WORDS, *codes))}, unk_token=ENDS[3]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit() if codes else pre_tokenizers.Whitespace()
    if not codes:
        ends = [(ENDS[0], 0), (ENDS[2], 2)]
        words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    kind = Marking if codes else transformers.PreTrainedTokenizerFast
    return kind(tokenizer_object=words, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
