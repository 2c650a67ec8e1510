"""Two processes on one machine against one, over gloo: the gradient of a step, and clips a second.

    python benchmarks/processes.py --out benchmarks/processes.csv

InfoNCE on a transformer of clips and one of bytes, 32 clips of a second in all, one thread a process, new processes
each round. speed-up: of the clock, which needs as many idle cores as processes; by work: processor's seconds of one
process over those of the busiest of two, which other load on the machine changes less. gradient off: largest difference
from one process with the whole batch, over the largest gradient. Where there are two GPUs `make gpu` measures NCCL.
"""

import argparse
import os
import socket
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
import torch.multiprocessing as mp
from accelerate import Accelerator

from pullpush.data.batches import Batch, shard
from pullpush.encoders import create
from pullpush.training import recipe
from pullpush.training.distributed import begin
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser, update

SAMPLES, WARM = 16_000, 2
SMALL = {"audio_width": 96, "audio_layers": 3, "audio_heads": 3, "text_width": 96, "text_layers": 2, "text_heads": 3}
LARGE = {"audio_width": 768, "audio_layers": 12, "audio_heads": 12, "text_width": 512, "text_layers": 6}
LARGE["text_heads"] = 8


class Plan(NamedTuple):
    """What is measured: on "cpu" or "cuda", steps that count, clips of a batch of all processes, options of encoders,
    and the precisions, one after the other.
    """

    device: str = "cpu"
    steps: int = 10
    clips: int = 32
    encoders: dict[str, int] = SMALL
    precisions: tuple[str, ...] = ("float32",)


class Spent(NamedTuple):
    """Seconds a step of the clock, those of the busiest processor, and the first gradient."""

    clock: float
    processor: float
    gradient: torch.Tensor


def share(clips: int, rank: int, processes: int) -> Batch:
    """A process's part of the batch."""
    rows = shard(list(range(clips)), rank, processes)
    waves = 0.1 * torch.randn(clips, SAMPLES, generator=torch.Generator().manual_seed(0))
    texts: list[str | None] = [f"sound number {row} is loud and near" for row in rows]
    return Batch(waves[rows], torch.full((len(rows),), SAMPLES), texts, ["eng"] * len(rows), torch.tensor(rows))


def work(rank: int, processes: int, port: int, plan: Plan, folder: str) -> None:
    """Train a few steps in each precision, and write what they took."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()} | {"MASTER_ADDR": "127.0.0.1"}
    os.environ["ACCELERATE_USE_CPU"] = str(int(plan.device == "cpu"))
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # else float32 is not
    begin()
    group = Accelerator(cpu=plan.device == "cpu", mixed_precision="no")  # which is said at each step
    found = {precision: steps(group, rank, processes, plan, precision) for precision in plan.precisions}
    torch.save({precision: tuple(spent) for precision, spent in found.items()}, Path(folder) / f"{rank}.pt")
    group.end_training()


def steps(group: Accelerator, rank: int, processes: int, plan: Plan, precision: str) -> Spent:
    """What a process's part of some steps took."""
    one = recipe("infonce", audio="audio_transformer", text="transformer", dim=64, batch_size=plan.clips)
    model = create(one.audio, one.text, dim=one.dim, **plan.encoders)
    objective = Objective(model, replace(one, encoder_options=plan.encoders))
    made = make_optimiser(objective, one, on_gpu=plan.device == "cuda")
    towers, optimiser = group.prepare(objective, made)
    batch, gradient = share(plan.clips, rank, processes).to(group.device), torch.zeros(0)
    wait = torch.cuda.synchronize if plan.device == "cuda" else int
    for step in range(WARM + plan.steps):
        if step == WARM:
            group.wait_for_everyone()
            wait()
            clock, processor = time.perf_counter(), time.process_time()
        with torch.autocast(plan.device, torch.bfloat16, enabled=precision == "bf16"):
            loss = towers(batch).loss
        group.backward(loss)
        if not step:
            gradient = torch.cat([p.grad.flatten() for p in objective.parameters() if p.grad is not None]).cpu()
        update(optimiser, torch.isfinite(loss.detach()))
        optimiser.zero_grad()
    wait()
    return Spent((time.perf_counter() - clock) / plan.steps, (time.process_time() - processor) / plan.steps, gradient)


def spent(processes: int, plan: Plan) -> dict[str, Spent]:
    """What so many processes took, by precision."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        started: Any = mp.spawn(work, (processes, port, plan, folder), nprocs=processes, join=False)
        try:
            while not started.join():
                continue
        finally:  # where its time is over
            for process in started.processes:
                process.kill()
        found = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(processes)]
    return {
        precision: Spent(*(max(each[precision][place] for each in found) for place in (0, 1)), found[0][precision][2])
        for precision in plan.precisions
    }


def one_round(plan: Plan) -> dict[str, dict[str, float]]:
    """One process beside two, by precision."""
    alone, two = (spent(processes, plan) for processes in (1, 2))
    return {
        precision: {
            "clips/s, 1": plan.clips / alone[precision].clock,
            "clips/s, 2": plan.clips / two[precision].clock,
            "speed-up": alone[precision].clock / two[precision].clock,
            "speed-up by work": alone[precision].processor / two[precision].processor,
            "gradient off": off(alone[precision].gradient, two[precision].gradient),
        }
        for precision in plan.precisions
    }


def off(alone: torch.Tensor, two: torch.Tensor) -> float:
    """The largest difference of gradients over the largest gradient."""
    return float((alone - two).abs().max() / alone.abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a CSV file")
    options = parser.parse_args()
    rows = []
    for number in range(options.rounds):
        row = {"round": number} | one_round(Plan(steps=options.steps))["float32"]
        rows.append(row)
        print(*(f"{name}={value:.4g}" for name, value in row.items()), flush=True)
    if options.out is not None:
        pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
