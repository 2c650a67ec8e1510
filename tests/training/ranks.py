"""What each of two processes does in test_distributed.py; a module of its own, so that they can import it."""

import torch
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, shard
from pullpush.losses import info_nce
from pullpush.training import Diagnostics, recipe, train
from pullpush.training.distributed import gather

CHUNKED = {"name": "kcl", "languages": ("eng", "fra", "deu"), "text_chunk": 3, "audio_chunk": 2}
GROUPS = {"group": ["rare"] * 4 + ["common"] * 17}
# Part 2 of 3 of a batch lies in both processes.
BALANCED = {"name": "siglip", "loss_parts": 3, "balance": {"rare": 1, "common": 1}, "warmup_steps": 2, "floor": 0.1}


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


def work(rank, out):
    """Gather with gradient, then train."""
    audio, text = (x[shard(list(range(5)), rank, 2)].requires_grad_() for x in embeddings())  # 2 rows and 3
    loss = info_nce(gather(audio), gather(text))
    loss.backward()
    result = {"loss": loss.detach(), "audio": audio.grad, "text": text.grad, "whole": gather(audio.detach())}
    further = {"chunked": run(**CHUNKED), "balanced": run(**BALANCED)}
    return result | run(out / "run") | further
