"""Adam with moments of eight bits against Adam: a training step of InfoNCE at the papers' sizes, in bfloat16."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from paper_models import recipe_of

from on_gpu.meter import NotHereError, Run, ratios
from on_gpu.models import dual_encoder, random_batch, sizes_of
from on_gpu.tables import BACKWARD, LR, STEP, step
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser

COLUMNS = ["optimiser", "quantity", "value", "ratio", "low", "high"]


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """Rows of both optimisers, one after the other, for the moments of both would count in each other's peak."""
    if find_spec("bitsandbytes") is None:
        raise NotHereError("bitsandbytes is not installed: pip install bitsandbytes")
    sizes, rng = sizes_of(run.is_quick), np.random.default_rng(0)
    model = dual_encoder(sizes, run.device)
    found: dict[str, list[dict[str, float]]] = {}
    for name in ("adam", "adam8bit"):
        one = recipe_of(sizes, {"name": "infonce", "optimiser": name, "lr": LR})
        objective = Objective(model, one).to(run.device)
        optimiser = make_optimiser(objective, one)
        batches = (random_batch(sizes, one, rng).to(run.device) for _ in range(12))
        taken = [step(run, objective, optimiser, batch, "bf16") for batch in batches]
        found[name] = taken[2:]
        del optimiser  # its moments go
    for quantity in ("seconds", BACKWARD, STEP):
        values = [{name: taken[number][quantity] for name, taken in found.items()} for number in range(10)]
        for name, numbers in ratios(values, "adam").items():
            yield {"optimiser": name, "quantity": quantity, **numbers}
