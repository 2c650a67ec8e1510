"""Runs an hour: S runs on features trained together against one after the other, in turns, in one process.

    python benchmarks/stacked.py --out benchmarks/stacked.csv

The runs of `benchmarks/loop.py` (1,008 clips as 1,024 features, d = 256, batch 24) over four epochs, whole: from the
plan to the checkpoint, each with its seed. KCL has three languages. On a CPU seconds are the processor's, of one
thread; on a GPU (`make gpu`) those of the clock. `loss off` is the largest difference of an epoch's loss, `R@1 off` of
a score, of 24 clips. Bar, on a GPU: 30 times the runs an hour.

On two busy hyperthreads of an EPYC (`stacked.csv`) arithmetic is most of a run, which stacking does not spare: 16 runs
of InfoNCE together are 1.25 times as fast as alone, with bi-DynamicSVR 1.7 times; one in a stack of its own is a
fifth or a seventh slower. Rows that are `older` are from before the loop was faster. The losses differ by rounding, and
where that turns a unit on or off by up to 0.007 of 0.16 in the fourth epoch; so does a run alone whose initial weights
are changed by 1e-7 of themselves (0.0005 in one of four). The tests, of six steps, hold 1e-5.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import torch
from loop import BATCH, DIM, SIZE, Features

from pullpush.training import recipe
from pullpush.training.runs import Plan
from pullpush.training.stacked import train_stacked

SYSTEMS = {"infonce": ("eng",), "infonce+bi-dynamic-svr": ("eng",), "kcl": ("eng", "fra", "deu")}
COLUMNS = ["system", "runs", "rounds", "runs/h alone", "runs/h together", "ratio", "low", "high", "loss off", "R@1 off"]
SEEDS = count()  # each run a new one, so that none is found again


def plans(system: str, runs: int, clips: int, epochs: int) -> list[Plan]:
    world: Any = SimpleNamespace(train=Features(clips), valid=Features(24), identity=f"{clips} clips")
    shape = {"audio": "features", "text": "hashed", "encoder_options": {"audio_dim": SIZE}, "dim": DIM}
    one = recipe(system, **shape, batch_size=BATCH, epochs=epochs, languages=SYSTEMS[system])
    return [Plan(world, one, next(SEEDS)) for _ in range(runs)]


def one_round(system: str, runs: int, clips: int, epochs: int, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds a run, alone and together, and how far the results are from each other."""
    few = plans(system, runs, clips, epochs)
    start = clock()
    alone = [plan.train(progress=False) for plan in few[: 4 if runs > 4 else runs]]
    middle = clock()
    for plan in few:
        shutil.rmtree(plan.path, ignore_errors=True)
    again = clock()
    together = train_stacked(few, progress=False)
    end = clock()
    pairs = list(zip(alone, together, strict=False))
    return {
        "alone": (middle - start) / len(alone),
        "together": (end - again) / runs,
        "loss off": max((a.history["loss"] - b.history["loss"]).abs().max() for a, b in pairs),
        "R@1 off": max((a.history["R@1"] - b.history["R@1"]).abs().max() for a, b in pairs),
    }


def measure(sizes: Sequence[int], rounds: Callable[[], Iterator[int]], clips: int, epochs: int, clock: Any) -> Iterator:
    """A row a system and number of runs: medians over rounds, and quartiles of the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        before, os.environ["PULLPUSH_HOME"] = os.environ.get("PULLPUSH_HOME", ""), folder
        try:
            for system in SYSTEMS:
                one_round(system, 2, clips, 1, clock)  # warms up
                for runs in sizes:
                    found = pd.DataFrame([one_round(system, runs, clips, epochs, clock) for _ in rounds()])
                    share = found["alone"] / found["together"]
                    quartiles = {
                        name: share.quantile(at) for name, at in {"ratio": 0.5, "low": 0.25, "high": 0.75}.items()
                    }
                    speed = {f"runs/h {how}": 3600 / found[how].median() for how in ("alone", "together")}
                    off = dict(found[["loss off", "R@1 off"]].max())
                    yield {"system": system, "runs": runs, "rounds": len(found)} | speed | quartiles | off
        finally:
            os.environ["PULLPUSH_HOME"] = before
            if not before:
                del os.environ["PULLPUSH_HOME"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--out", type=Path, help="a CSV file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    rows = []
    for row in measure(options.runs, lambda: iter(range(options.rounds)), 1008, 4, clock):
        rows.append(row)
        print(
            *(f"{name}={value:.4g}" if isinstance(value, float) else value for name, value in row.items()), flush=True
        )
        if options.out is not None:
            pd.DataFrame(rows, columns=COLUMNS).to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
