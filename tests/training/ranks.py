"""Two processes on this machine that are one group, as torchrun would start them, and what they do in
test_distributed.py; a module of its own, so that they can import it.
"""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from standin import TinyClips, TinyModel
from torch import nn

from pullpush.data.batches import PairDataset, shard
from pullpush.encoders.cnn import CNN
from pullpush.losses import info_nce
from pullpush.training import Diagnostics, recipe, train
from pullpush.training.distributed import gather, of_the_whole_batch

CHUNKED = {"name": "kcl", "languages": ("eng", "fra", "deu"), "text_chunk": 3, "audio_chunk": 2}
GROUPS = {"group": ["rare"] * 4 + ["common"] * 17}
# Part 2 of 3 of a batch lies in both processes.
BALANCED = {"name": "siglip", "loss_parts": 3, "balance": {"rare": 1, "common": 1}, "warmup_steps": 2, "floor": 0.1}
SHARES = (slice(0, 2), slice(2, 5))
LENGTHS = torch.tensor([4000, 2500, 4000, 3000, 1200])


def embeddings():
    """Audio and text of a batch of five."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 5, 4, generator=generator, dtype=torch.float64)


def run(out=None, name="infonce-learnable", **options):
    """A short training; without dropout and batch normalisation, which differ between one process and two."""
    one = recipe(name, epochs=2, batch_size=8, dim=8, **options)
    # The last batch has 5 clips: 2 and 3.
    clips = TinyClips(21, columns=GROUPS)
    dataset = PairDataset(clips, languages=one.languages, sampling=one.sampling, weights=one.balance)
    result = train(TinyModel(dropout=0), one, dataset, TinyClips(12, seed=1), diagnostics=Diagnostics(), out=out)
    return {"weights": dict(result.model.state_dict()), "steps": result.steps.to_dict("list")}


def network(momentum=0.1):
    """An encoder with batch normalisation, in double precision."""
    torch.manual_seed(0)
    made = CNN(channels=(4, 8)).double().train()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.momentum = momentum
    return made


def normalised(model, share, processes=1):
    """What comes out of a forward and a backward pass: embeddings, gradients, running statistics."""
    noise = torch.randn(5, 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    clips = noise * (torch.arange(4000) < LENGTHS[:, None])
    out = gather(model(clips[share], LENGTHS[share]))
    (out @ out.T).sin().sum().backward()
    gradients = [parameter.grad / processes for parameter in model.parameters()]
    if processes > 1:
        for gradient in gradients:
            dist.all_reduce(gradient)
    return [out.detach(), *gradients, *(value.double() for value in model.buffers())]


def work(rank, out):
    """Gather with gradient, train, normalise."""
    audio, text = (x[shard(list(range(5)), rank, 2)].requires_grad_() for x in embeddings())  # 2 rows and 3
    loss = info_nce(gather(audio), gather(text))
    loss.backward()
    result = {"loss": loss.detach(), "audio": audio.grad, "text": text.grad, "whole": gather(audio.detach())}
    further = {"chunked": run(**CHUNKED), "balanced": run(**BALANCED)}
    further["apart"] = normalised(network(), SHARES[rank], 2)
    with of_the_whole_batch():
        further |= {str(momentum): normalised(network(momentum), SHARES[rank], 2) for momentum in (0.1, None)}
    further["after"] = normalised(network(), SHARES[rank], 2)
    return result | run(out / "run") | further


def of_two(work: Callable[[int, Path], Any], out: Path) -> list[Any]:
    """What `work(rank, out)` gives in each of the two; work: of a module that they can import; out: an empty folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(_member, args=(work, port, out), nprocs=2)
    return [torch.load(out / f"{rank}.pt", weights_only=True) for rank in (0, 1)]


def _member(rank: int, work: Callable[[int, Path], Any], port: int, out: Path) -> None:
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()}
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        torch.save(work(rank, out), out / f"{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()
