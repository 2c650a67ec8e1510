"""Models, batches and systems at the papers' sizes, with random weights: for `paper_sizes.py` and `gpu.py`.

It needs none of the packages that chapters need.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from pullpush.data.batches import Batch
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.encoders.audio_transformer import SpectrogramTransformer
from pullpush.encoders.frozen import FeatureStore, FrozenText
from pullpush.encoders.pretrained_text import SONAR
from pullpush.losses import Offer, apply
from pullpush.training import recipe
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe

AUDIOCAPS = (6, 7, 8, 8, 9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 14, 14, 15, 16, 16, 17, 19, 20, 23, 28)
SVR, CONSISTENCY = "02-svr", "03-consistency"


@dataclass(frozen=True)
class Sizes:
    """Of both encoders, the joint space and a clip; `tokens`: of a caption, one for each clip of the batch."""

    audio: tuple[int, int, int] = (768, 12, 12)  # width, layers, heads
    text: tuple[int, int, int, int] = (1024, 24, 16, 8192)  # width, layers, heads, feed-forward
    vocabulary: int = 256_206
    dim: int = 1024
    seconds: float = 10.0
    tokens: tuple[int, ...] = AUDIOCAPS
    languages: tuple[str, ...] = LANGUAGES


SMALL = Sizes((32, 2, 4), (64, 4, 4, 256), 1000, 32, 1.0, AUDIOCAPS[::3])  # of texts mostly


def systems(clips: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Chapter → system → arguments of `recipe`; the first of each chapter is what the others are compared with."""
    chunks = {f"KCL, chunks of {k * clips}": {"name": "kcl", "text_chunk": k * clips} for k in (1, 2, 4, 6)}
    return {
        SVR: {
            "InfoNCE": {"name": "infonce"},
            "InfoNCE + bi-StaticSVR": {"name": "infonce+bi-static-svr"},
            "InfoNCE + bi-DynamicSVR": {"name": "infonce+bi-dynamic-svr"},
        },
        CONSISTENCY: {
            "ML-CLAP": {"name": "ml-clap"},
            "CACL": {"name": "cacl"},
            "KCL": {"name": "kcl", "text_chunk": 0},
            "KCL, packed": {"name": "kcl", "text_chunk": -1},
            **chunks,
        },
    }


class Words:
    """A tokenizer whose tokens are words and whose numbers, from 4 on, mean nothing."""

    src_lang = None

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def __call__(self, text: str, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(input_ids=[4 + crc32(word.encode()) % (self.vocabulary - 4) for word in text.split()])

    def pad(self, tokens: dict[str, list[list[int]]], **options: Any) -> Any:
        from transformers import BatchEncoding

        rows = tokens["input_ids"]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [1] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        return BatchEncoding({"input_ids": ids, "attention_mask": mask})


def text_encoder(sizes: Sizes, frozen: bool) -> nn.Module:
    """SONAR's architecture; frozen: features that are there already."""
    width, layers, heads, feed_forward = sizes.text
    if frozen:
        return FrozenText(FeatureStore(lambda texts: np.ones((len(texts), width), np.float32), width))
    from transformers import M2M100Config

    config = M2M100Config(
        vocab_size=sizes.vocabulary,
        d_model=width,
        encoder_layers=layers,
        encoder_attention_heads=heads,
        encoder_ffn_dim=feed_forward,
        encoder_layerdrop=0.0,
        scale_embedding=True,
    )
    return SONAR(model=config, tokenizer=Words(sizes.vocabulary))


def audio_encoder(sizes: Sizes) -> SpectrogramTransformer:
    width, layers, heads = sizes.audio
    return SpectrogramTransformer(width=width, layers=layers, heads=heads)


def batch_of(sizes: Sizes, one: Recipe) -> Batch:
    """A batch as `PairDataset` would draw it, with silent clips and captions of no meaning, no two alike."""
    clips = len(sizes.tokens)
    columns = {"fixed": 1, "random": 1, "pair": 2, "all": len(sizes.languages)}[one.sampling]
    texts = [[_caption(n, f"{i:02d}{k}") for i, n in enumerate(sizes.tokens)] for k in range(columns)]
    languages = [[sizes.languages[k]] * clips for k in range(columns)]
    return Batch(
        audio=torch.zeros(clips, round(16_000 * sizes.seconds)),
        lengths=torch.full((clips,), round(16_000 * sizes.seconds)),
        texts=texts[0],
        languages=languages[0],
        index=torch.arange(clips),
        parallel=tuple(texts[1:]),
        parallel_languages=tuple(languages[1:]),
    )


def _caption(tokens: int, name: str) -> str:
    return " ".join([name] + ["word"] * (tokens - 1))


def recipe_of(sizes: Sizes, arguments: dict[str, Any]) -> Recipe:
    """The recipe of one of `systems`."""
    many = {"languages": sizes.languages} if arguments["name"] in ("ml-clap", "cacl", "kcl") else {}
    return recipe(**arguments, **many, dim=sizes.dim, batch_size=len(sizes.tokens))


def loss_step(sizes: Sizes, one: Recipe, device: str = "cpu") -> Callable[[], None]:
    """A forward and backward pass of the loss terms alone."""
    objective = Objective(nn.Module(), one).to(device)
    columns = 2 + len(batch_of(sizes, one).parallel)
    drawn = torch.randn(columns, len(sizes.tokens), sizes.dim, device=device)
    leaves = [F.normalize(x, dim=1).requires_grad_() for x in drawn]

    def step() -> None:
        audio, text, *parallel = leaves
        offer = Offer(audio, text, tuple(parallel))
        pairs = zip(objective.weights, objective.terms, strict=True)
        sum(weight * apply(term, offer).value for weight, term in pairs).backward()

    return step
