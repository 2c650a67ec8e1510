"""Captions rewritten on this machine, by models of the hub or of a folder: two translators, or one that is instructed.

    create("huggingface", model="Qwen/Qwen2.5-1.5B-Instruct")
    create("translation", there="Helsinki-NLP/opus-mt-en-fr", back="Helsinki-NLP/opus-mt-fr-en")

Without a temperature generation draws nothing, and what one caption becomes does not depend on the batch but for the
rounding of sums. No code that comes with a model is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from pullpush.data.draws import number as draw
from pullpush.data.scenes.augmented import Rewriter, RewritingError
from pullpush.rewriting import RewriterCard
from pullpush.rewriting.prompts import HOW, Prompted, Question


class Loaded(NamedTuple):
    """A tokenizer and a model; seq2seq: whether it has an encoder, so that answers do not repeat the question."""

    tokenizer: Any
    model: Any
    seq2seq: bool


@dataclass(frozen=True)
class HuggingFaceRewriter(Prompted):
    """Asks one model, instructed (a causal one, by its chat template where it has one) or sequence to sequence.

    Attributes:
        model: its name on the hub, or its folder.
        revision: of the hub's files.
        temperature: 0 takes the likeliest word each time; above, words are drawn by (seed, caption, number).
        max_tokens: of an answer.
        device: default: a GPU where there is one. batch_size: questions at once.

    Raises:
        ValueError: no model.
        RewritingError: (`rewrite`, `merge`) the model cannot be loaded, or says nothing.
    """

    model: str = ""
    revision: str | None = field(default=None, kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)
    max_tokens: int = field(default=64, kw_only=True)
    device: str | None = field(default=None, **HOW)
    batch_size: int = field(default=16, **HOW)

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self, "model")

    def answers(self, questions: Sequence[Question]) -> list[str]:
        """See `Prompted`."""
        pair = loaded(self.model, self.revision, device_of(self.device))
        prompts = [one.prompt for one in questions]
        if getattr(pair.tokenizer, "chat_template", None):  # as the model was taught to be asked
            form = {"tokenize": False, "add_generation_prompt": True}
            prompts = [pair.tokenizer.apply_chat_template(self.messages(prompt), **form) for prompt in prompts]
        seeds = [draw((self.seed, one.caption, one.number), size=4) for one in questions]
        replies = generated(pair, prompts, seeds, self.temperature, self.max_tokens, self.batch_size)
        return complete(self.model, [one.caption for one in questions], replies)


@dataclass(frozen=True)
class TranslationRewriter(Rewriter):
    """Back-translation by two models: from English into another language, and back.

    Attributes:
        there, back: names on the hub, or folders, of sequence-to-sequence models.
        prefix_there, prefix_back: what such a model wants before a text, as T5's "translate English to French: ".
        temperature: 0 takes the likeliest word each time; copies then do not differ. seed: of what is drawn above 0.
        max_tokens, device, batch_size: see `HuggingFaceRewriter`.

    Raises:
        ValueError: a model is missing.
        RewritingError: (`rewrite`) a model cannot be loaded, or says nothing.
    """

    there: str = ""
    back: str = ""
    prefix_there: str = ""
    prefix_back: str = ""
    temperature: float = 0.0
    max_tokens: int = 64
    seed: int = 0
    device: str | None = field(default=None, **HOW)
    batch_size: int = field(default=16, **HOW)

    def __post_init__(self) -> None:
        check(self, "there", "back")

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        """See `Rewriter`."""
        texts = list(captions)
        for name, prefix in ((self.there, self.prefix_there), (self.back, self.prefix_back)):
            pair = loaded(name, None, device_of(self.device))
            seeds = [draw((self.seed, name, caption, number), size=4) for caption in captions]
            prompts = [prefix + text for text in texts]
            replies = generated(pair, prompts, seeds, self.temperature, self.max_tokens, self.batch_size)
            texts = complete(name, captions, replies)
        return [text.strip() for text in texts]


def check(rewriter: HuggingFaceRewriter | TranslationRewriter, *names: str) -> None:
    """Require the models of these names and numbers that make sense."""
    for name in names:
        if not getattr(rewriter, name):
            raise ValueError(f"a rewriter of transformers needs {name}='…', a model's name on the hub or its folder")
    size, temperature = rewriter.batch_size, rewriter.temperature
    if size < 1 or temperature < 0:
        raise ValueError(f"batch_size must be at least 1 and temperature at least 0, got {size}, {temperature}")


def complete(model: str, captions: Sequence[str], replies: list[str]) -> list[str]:
    """What a model said, where it said something to every caption."""
    if silent := [caption for caption, text in zip(captions, replies, strict=True) if not text.strip()]:
        raise RewritingError(f"{model} says nothing to {len(silent)} captions, such as {silent[0]!r}")
    return replies


def device_of(device: str | None) -> str:
    """The device that was asked for, or else a GPU where there is one."""
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


@lru_cache(maxsize=2)  # of back-translation both
def loaded(name: str, revision: str | None, device: str) -> Loaded:
    """A model ready to generate.

    Raises:
        RewritingError: it cannot be loaded; the message says what transformers says.
    """
    import transformers

    options: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        seq2seq = bool(getattr(config, "is_encoder_decoder", False))
        kind = transformers.AutoModelForSeq2SeqLM if seq2seq else transformers.AutoModelForCausalLM
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
        model = kind.from_pretrained(name, use_safetensors=True, **options)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:300]
        raise RewritingError(
            f"cannot load {name!r} ({reason}): give a folder with a model of transformers in safetensors, or a name on "
            "the hub and a network"
        ) from error
    tokenizer.padding_side = "right" if seq2seq else "left"  # answers go on after the last word; positions count from 0
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Loaded(tokenizer, model.eval().to(device), seq2seq)


@torch.no_grad()
def generated(
    pair: Loaded, texts: Sequence[str], seeds: Sequence[int], temperature: float, max_tokens: int, batch_size: int
) -> list[str]:
    """What a model goes on with after each text; texts of like length share a batch, drawn ones go alone."""
    size = 1 if temperature else batch_size  # a batch would share one stream of draws
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    replies = [""] * len(texts)
    options: dict[str, Any] = {"max_new_tokens": max_tokens, "pad_token_id": pair.tokenizer.pad_token_id}
    options |= {"do_sample": True, "temperature": temperature} if temperature else {"do_sample": False, "num_beams": 1}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        batch = pair.tokenizer([texts[row] for row in rows], return_tensors="pt", padding=True).to(pair.model.device)
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        with torch.random.fork_rng():
            torch.manual_seed(seeds[rows[0]])
            tokens = pair.model.generate(**inputs, **options)
        new = tokens if pair.seq2seq else tokens[:, inputs["input_ids"].shape[1] :]
        for row, text in zip(rows, pair.tokenizer.batch_decode(new, skip_special_tokens=True), strict=True):
            replies[row] = text
    return replies


CARDS = (
    RewriterCard(
        name="huggingface",
        make=HuggingFaceRewriter,
        title="Local model",
        about="Asks an instructed model on this machine to translate a caption there and back, or to merge two.",
        source="Distillation & clusters §2.4, with a local model",
        citation="distill_cluster",
        merges=True,
        needs="a model of transformers",
    ),
    RewriterCard(
        name="translation",
        make=TranslationRewriter,
        title="Two translators",
        about="Translates a caption by one local model and back by another.",
        source="Back-translation; Distillation & clusters §2.4",
        citation="distill_cluster",
        needs="two models of transformers",
    ),
)
