"""Losses alone against open_clip's ClipLoss on a CPU: processor time of one thread, forward and backward, in turns.

    python benchmarks/losses.py --rounds 9 --out benchmarks/losses.csv

N = 2,048 pairs, d = 512, float32; a row a round, in seconds. ClipLoss is written out as open_clip has it, with a
product of its own for each direction, so that it needs six products of matrices in all, 94 % of its time here. InfoNCE
needs three, SVR three a direction: with nothing but its products InfoNCE + bi-SVR would take 1.41 of ClipLoss. One
pass over shared similarities would need seven, and one loss that knows of both terms.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.losses import info_nce, siglip, svr

PAIRS, DIM = 2048, 512


def clip_loss(audio: Tensor, text: Tensor) -> Tensor:
    """open_clip's `ClipLoss` of one process, at a temperature of 0.07."""
    target = torch.arange(len(audio))
    return (F.cross_entropy(audio / 0.07 @ text.T, target) + F.cross_entropy(text / 0.07 @ audio.T, target)) / 2


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ClipLoss": clip_loss,
    "InfoNCE": info_nce,
    "SigLIP": lambda a, t: siglip(a, t, 0.07, -10.0, "siglip"),
    "InfoNCE + uni-SVR": lambda a, t: info_nce(a, t) + svr(a, t, 0.3),
    "InfoNCE + bi-SVR": lambda a, t: info_nce(a, t) + svr(a, t, 0.3, direction="both"),
}


def one_round(tensors: list[Tensor]) -> dict[str, float]:
    """Seconds of each loss."""
    found = {}
    for name, loss in LOSSES.items():
        for tensor in tensors:
            tensor.grad = None
        start = time.process_time()
        loss(*tensors).backward()
        found[name] = time.process_time() - start
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, help="a CSV file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    drawn = F.normalize(torch.randn(2, PAIRS, DIM, generator=torch.Generator().manual_seed(0)), dim=-1)
    tensors = [x.clone().requires_grad_() for x in drawn]
    one_round(tensors)  # warms up
    table = pd.DataFrame([one_round(tensors) for _ in range(options.rounds)])
    print(table.div(table["ClipLoss"], axis=0).describe().to_string(float_format="{:.3f}".format))
    if options.out is not None:
        table.to_csv(options.out, index_label="round", float_format="%.4g")


if __name__ == "__main__":
    main()
