"""Configurations of published models, so small that random weights of theirs are made and run in a moment."""

from __future__ import annotations

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["<s>", "<pad>", "</s>", "<unk>", "a", "frog", "croaks", "bell", "rings", "dog", "barks", "then"]
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}


def tokenizer():
    """One token a word of `WORDS`."""
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def clap_audio(**settings):
    """The audio tower of a CLAP."""
    sizes = {"patch_embeds_hidden_size": 8, "depths": [1, 1], "num_attention_heads": [2, 2]}
    return transformers.ClapAudioConfig(**{**sizes, "hidden_size": 16, "num_mel_bins": 64, **settings})


def clap(**settings):
    """A whole CLAP."""
    audio = {"patch_embeds_hidden_size": 8, "depths": [1, 1], "num_attention_heads": [2, 2], "hidden_size": 16}
    text = {**SMALL, "vocab_size": len(WORDS), "pad_token_id": 1, "max_position_embeddings": 40}
    return transformers.ClapConfig(
        audio_config={**audio, "num_mel_bins": 64, **settings}, text_config=text, projection_dim=8
    )


def pe_audio():
    """A whole PE-Audio."""
    codec = {
        "encoder_hidden_size": 2,
        "codebook_dim": 4,
        "n_codebooks": 1,
        "downsampling_ratios": [2, 8, 10, 12],
    }
    return transformers.PeAudioConfig(
        audio_config={**SMALL, "head_dim": 8, "dac_config": codec},
        text_config={**SMALL, **IDS, "vocab_size": len(WORDS), "max_position_embeddings": 64},
    )
