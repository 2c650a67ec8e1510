"""Two GPUs over NCCL against one: the gradient of a step, and clips a second; see `benchmarks/processes.py`.

The same batch, by one process and by two, which share it. Bar: in float32 the gradient of one process, to rounding. On
a CPU, to try it out, two processes over gloo.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from processes import LARGE, Plan, one_round

from on_gpu.meter import NotHereError, Run

COLUMNS = ["precision", "batch", "clips/s, 1", "clips/s, 2", "speed-up", "low", "high", "gradient off", "bar", "within"]
ON_GPU = Plan("cuda", 20, 256, LARGE, ("bf16", "float32"))
TINY = Plan(steps=1, clips=4)
BARS = {"float32": 1e-4}


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """A row a precision: medians over rounds, and quartiles of the speed-up."""
    if run.on_gpu and torch.cuda.device_count() < 2:
        raise NotHereError("two processes over NCCL need two GPUs, and there is one")
    plan = ON_GPU if run.on_gpu else TINY
    rounds = [one_round(plan) for _ in (range(1) if run.is_quick else run.rounds(3, 1))]
    for precision in plan.precisions:
        found = pd.DataFrame([each[precision] for each in rounds])
        quartiles = found["speed-up"].quantile([0.25, 0.75])
        row = {"precision": precision, "batch": plan.clips} | dict(found.median())
        row |= {"low": quartiles[0.25], "high": quartiles[0.75], "bar": BARS.get(precision)}
        yield row | {"within": row["gradient off"] <= BARS.get(precision, 1.0)}
