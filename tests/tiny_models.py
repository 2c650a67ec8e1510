"""Configurations of published models, so small that random weights of theirs are made and run in a moment."""

from __future__ import annotations

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["<s>", "<pad>", "</s>", "<unk>", "a", "frog", "croaks", "bell", "rings", "dog", "barks", "then"]
IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}


def tokenizer():
    """One token a word of `WORDS`."""
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
