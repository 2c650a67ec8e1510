"""Local models with random weights: their own greedy words are what comes back, whatever the batch."""

from __future__ import annotations

import pytest
import torch
import transformers
from tiny_models import IDS, WORDS, tokenizer

from pullpush.rewriting import RewritingError, create
from pullpush.rewriting.prompts import Prompts

TEXTS = ["a frog croaks", "bell rings then a dog barks", "dog", "a bell then a frog croaks then dog barks"]
PROMPTS = Prompts(system="", rewrite="{caption} then", merge="{first} then {second}")
TEMPLATE = "{% for m in messages %}{{ m['role'] == 'system' and 'bell ' or 'dog ' }}{{ m['content'] }} {% endfor %}a"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A causal model with and without a chat template, and two of sequence to sequence."""
    place = tmp_path_factory.mktemp("models")
    ids = {name: value for name, value in IDS.items() if name[:3] in ("bos", "pad", "eos")}
    for seed, name in enumerate(["causal", "chat", "there", "back"]):
        torch.manual_seed(seed)
        if seed < 2:
            config = transformers.GPT2Config(
                vocab_size=len(WORDS), n_embd=16, n_layer=1, n_head=2, n_positions=64, **ids
            )
            model = transformers.GPT2LMHeadModel(config)
        else:
            sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
            sizes |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
            config = transformers.BartConfig(
                vocab_size=len(WORDS), max_position_embeddings=64, decoder_start_token_id=2, forced_eos_token_id=None,
                **sizes, **ids
            )  # fmt: skip
            model = transformers.BartForConditionalGeneration(config)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(6)  # far from uniform, so that greedy words have no near rivals
        model.generation_config.suppress_tokens = [0, 1, 2, 3]  # it never ends by itself
        model.save_pretrained(place / name)
        words = tokenizer()
        words.chat_template = TEMPLATE if name == "chat" else None
        words.save_pretrained(place / name)
    return place


def greedy(folder, text, steps):
    """The likeliest next word, again and again, one text at a time, by the model's own forward pass."""
    words = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = words(text, return_tensors="pt")["input_ids"]
    start = ids.shape[1]
    for _ in range(steps):
        with torch.no_grad():
            scores = model(ids).logits[0, -1]
        scores[:4] = -torch.inf
        ids = torch.cat([ids, scores.argmax()[None, None]], dim=1)
    return words.decode(ids[0, start:], skip_special_tokens=True)


def test_a_causal_model_goes_on_after_the_prompt(models):
    rewriter = create("huggingface", model=str(models / "causal"), prompts=PROMPTS, max_tokens=5, device="cpu")
    expected = [greedy(models / "causal", f"{text} then", 5) for text in TEXTS]
    assert rewriter.rewrite(TEXTS) == expected


def test_a_chat_template_is_used_where_there_is_one(models):
    prompts = Prompts(system="rings", rewrite="{caption}", merge="{first} then {second}")
    rewriter = create("huggingface", model=str(models / "chat"), prompts=prompts, max_tokens=5, device="cpu")
    assert rewriter.rewrite(TEXTS[:1]) == [greedy(models / "chat", "bell rings dog a frog croaks a", 5)]
    assert rewriter.merge(["dog"], ["bell"]) == [greedy(models / "chat", "bell rings dog dog then bell a", 5)]


def test_draws_follow_seed_caption_and_number(models):
    options = {"model": str(models / "chat"), "prompts": PROMPTS, "max_tokens": 8, "temperature": 9.0, "device": "cpu"}
    rewriter = create("huggingface", **options)
    found = rewriter.rewrite(TEXTS)
    torch.manual_seed(99)
    before = torch.random.get_rng_state()
    assert rewriter.rewrite(TEXTS[::-1]) == found[::-1]
    assert torch.equal(torch.random.get_rng_state(), before)
    assert rewriter.rewrite(TEXTS, number=1) != found
    assert create("huggingface", **options, seed=1).rewrite(TEXTS) != found


def test_two_translators_go_there_and_back(models):
    places = {"there": str(models / "there"), "back": str(models / "back")}
    found = create("translation", **places, device="cpu", max_tokens=6).rewrite(TEXTS)
    words = tokenizer()
    texts = TEXTS
    for name in ("there", "back"):
        model = transformers.BartForConditionalGeneration.from_pretrained(models / name).eval()
        texts = [
            words.decode(
                model.generate(**words(text, return_tensors="pt", return_token_type_ids=False), max_new_tokens=6)[0],
                skip_special_tokens=True,
            )
            for text in texts
        ]
    assert found == [text.strip() for text in texts]
    assert create("translation", **places, device="cpu", max_tokens=6, batch_size=1).rewrite(TEXTS) == found
    prefixed = create("translation", **places, prefix_there="bell ", device="cpu", max_tokens=6)
    plain = create("translation", **places, device="cpu", max_tokens=6)
    assert prefixed.rewrite(["a dog barks"]) == plain.rewrite(["bell a dog barks"])


def test_what_cannot_be_used_is_named(models, tmp_path):
    with pytest.raises(ValueError, match="needs model="):
        create("huggingface")
    with pytest.raises(ValueError, match="needs back="):
        create("translation", there="x")
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        create("huggingface", model="x", batch_size=0)
    with pytest.raises(RewritingError, match=r"cannot load .*: give a folder with a model"):
        create("huggingface", model=str(tmp_path)).rewrite(["a dog barks"])


def test_a_model_that_says_nothing_is_an_error(models, monkeypatch):
    rewriter = create("huggingface", model=str(models / "causal"), prompts=PROMPTS, max_tokens=5, device="cpu")
    monkeypatch.setattr("pullpush.rewriting.huggingface.generated", lambda held, texts, *rest: [" "] * len(texts))
    with pytest.raises(RewritingError, match="says nothing to 4 captions, such as 'a frog croaks'"):
        rewriter.rewrite(TEXTS)
