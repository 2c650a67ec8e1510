"""One step of every term in one process or in several; a module of its own, so that processes can import it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from standin import WORDS, TinyClips, TinyModel

from pullpush.data.batches import Batch, PairDataset, collate, shard
from pullpush.losses import _tiles
from pullpush.training import Recipe, recipe
from pullpush.training.objective import Objective

N = 7  # 3 and 4 clips in two processes; the first and the last have one caption
OPTIONS = {"clusters": {"topics": 3, "clusters.dim": 8}, "infonce+simcse-0.1": {"duplicates": "mask"}}
SYSTEMS = ("infonce+simcse-0.1", "infonce-learnable+cyclic+nli-0.1+sentence-simcse-0.1")
# Recipes whose scores go in tiles of two rows, in each process's copy of the whole batch.
TILED = {
    "siglip in tiles": ("siglip", {}),
    "siglip of Eq. 2": ("siglip", {"form": "glap"}),
    "siglip of Eq. 2 in tiles": ("siglip", {"form": "glap"}),
    "infonce in tiles": ("infonce-learnable", {}),
    "svr in tiles": ("infonce-learnable+bi-dynamic-svr", {}),
}


def clips(count: int = N, seed: int = 0) -> TinyClips:
    """Clips with everything that a loss may need."""
    generator = torch.Generator().manual_seed(seed)
    columns = {
        "premise": [f"eng: some {WORDS[i % 5]}" for i in range(count)],
        "entailment": [f"eng: a sound of {WORDS[i % 5]}" for i in range(count)],
        "contradiction": [f"eng: no {WORDS[i % 6]}" for i in range(count)],
        "clusters": [i % 3 for i in range(count)],
        "teachers": list(torch.randn(count, 2, 2, 4, generator=generator).numpy()),
    }
    return TinyClips(count, seed, columns)


def plan(name: str, **options: Any) -> Recipe:
    """A tiny recipe, in three languages if its loss wants several."""
    languages = ("eng", "fra", "deu") if recipe(name).sampling != "fixed" else ("eng",)
    return recipe(name, languages=languages, dim=8, batch_size=N, **options)


def batch(one: Recipe, rows: Sequence[int] = range(N)) -> Batch:
    """Some rows of the clips."""
    dataset = PairDataset(clips(), languages=one.languages, sampling=one.sampling, columns=one.columns)
    return collate([dataset[row] for row in rows])


def step(name: str, rows: Sequence[int] = range(N)) -> dict[str, Any]:
    """Loss and gradients in float64; without what differs between one process and two."""
    known, options = TILED.get(name, (name, OPTIONS.get(name, {})))
    with patch.object(_tiles, "BLOCK", 2 * N if name.endswith("in tiles") else _tiles.BLOCK):
        return _step(plan(known, **options), rows)


def _step(one: Recipe, rows: Sequence[int]) -> dict[str, Any]:
    torch.manual_seed(0)
    objective = Objective(TinyModel(dropout=0), one).double()
    for loss in objective.terms:  # a predictor begins with zeros
        for parameter in loss.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter)
    outcome = objective(batch(one, rows))
    outcome.loss.backward()
    gradients = {key: parameter.grad for key, parameter in objective.named_parameters() if parameter.grad is not None}
    return {"loss": outcome.loss.detach(), "gradients": gradients}


def work(names: Sequence[str], rank: int, out: Path) -> dict[str, Any]:
    """The share of one of two processes; gradients are averaged as DistributedDataParallel does."""
    results = {name: step(name, shard(list(range(N)), rank, 2)) for name in names}
    for result in results.values():
        for gradient in result["gradients"].values():
            dist.all_reduce(gradient)
            gradient /= 2
    return results
