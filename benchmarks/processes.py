"""Two processes on one machine against one, over gloo: the gradient of a step, and clips a second.

    python benchmarks/processes.py --out benchmarks/processes.csv

InfoNCE on a transformer of clips and one of bytes, 32 clips of a second in all, one thread a process, new processes
each round. speed-up: of the clock, which needs as many idle cores as processes; by work: processor's seconds of one
process over those of the busiest of two, which other load on the machine changes less. gradient off: largest difference
from one process with the whole batch, over the largest gradient. GPUs over NCCL are for a machine that has two.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import torch.multiprocessing as mp

from pullpush.data.batches import Batch, shard
from pullpush.encoders import create
from pullpush.training import recipe
from pullpush.training.distributed import accelerator
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser, update

CLIPS, SAMPLES, WARM = 32, 16_000, 2
SMALL = {"audio_width": 96, "audio_layers": 3, "audio_heads": 3, "text_width": 96, "text_layers": 2, "text_heads": 3}


def share(rank: int, processes: int) -> Batch:
    """A process's part of the batch."""
    rows = shard(list(range(CLIPS)), rank, processes)
    waves = 0.1 * torch.randn(CLIPS, SAMPLES, generator=torch.Generator().manual_seed(0))
    texts: list[str | None] = [f"sound number {row} is loud and near" for row in rows]
    return Batch(waves[rows], torch.full((len(rows),), SAMPLES), texts, ["eng"] * len(rows), torch.tensor(rows))


def work(rank: int, processes: int, port: int, steps: int, found: Any) -> None:
    """Train a few steps, and tell the first gradient, seconds of the clock and of the processor a step."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()} | {"MASTER_ADDR": "127.0.0.1"}
    torch.set_num_threads(1)
    group = accelerator()
    one = recipe("infonce", audio="audio_transformer", text="transformer", dim=64, batch_size=CLIPS)
    objective = Objective(create(one.audio, one.text, dim=one.dim, **SMALL), replace(one, encoder_options=SMALL))
    towers, optimiser = group.prepare(objective, make_optimiser(objective, one))
    batch, gradient = share(rank, processes), torch.zeros(0)
    for step in range(WARM + steps):
        if step == WARM:
            group.wait_for_everyone()
            clock, processor = time.perf_counter(), time.process_time()
        loss = towers(batch).loss
        group.backward(loss)
        if not step:
            gradient = torch.cat([p.grad.flatten() for p in objective.parameters() if p.grad is not None])
        update(optimiser, torch.isfinite(loss.detach()))
        optimiser.zero_grad()
    found[rank] = ((time.perf_counter() - clock) / steps, (time.process_time() - processor) / steps, gradient.numpy())
    group.end_training()


def spent(processes: int, steps: int) -> tuple[float, float, torch.Tensor]:
    """Seconds a step of the clock, those of the busiest processor, and the first gradient."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    with mp.Manager() as manager:
        found = manager.dict()
        mp.spawn(work, (processes, port, steps, found), nprocs=processes)
        clocks, processors, gradients = zip(*(found[rank] for rank in range(processes)), strict=True)
    return max(clocks), max(processors), torch.from_numpy(gradients[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a CSV file")
    options = parser.parse_args()
    rows = []
    for number in range(options.rounds):
        alone, two = (spent(processes, options.steps) for processes in (1, 2))
        off = float((alone[2] - two[2]).abs().max() / alone[2].abs().max())
        row = {"round": number, "clips/s, 1": CLIPS / alone[0], "clips/s, 2": CLIPS / two[0]}
        row |= {"speed-up": alone[0] / two[0], "speed-up by work": alone[1] / two[1], "gradient off": off}
        rows.append(row)
        print(*(f"{name}={value:.4g}" for name, value in row.items()), flush=True)
    if options.out is not None:
        pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
