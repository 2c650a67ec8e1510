"""SupCLAP's Table 14 and ATRI's Table 4: what SVR, CACL and KCL cost more than the loss that they go beside.

CED-Base and SONAR's text encoder, both trained by Adam; 24 clips of 10 s, captions as long as AudioCaps', eight
languages. All systems of a chapter take turns over one model and one Adam, every step on a new batch; two that warm up
come before the steps that count. A peak is what the allocator held at most, weights, gradients and Adam's moments
included: of forward and backward pass, and of the optimiser's step, whose temporary tensors are the same everywhere.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from paper_models import Sizes, loss_step, recipe_of, systems

from on_gpu.meter import PRECISIONS, Run, attention_of, ratios
from on_gpu.models import dual_encoder, random_batch, sizes_of
from pullpush.data.batches import Batch
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser
from pullpush.training.recipes import Recipe

LR = 1e-5
BACKWARD, STEP = "MiB, forward and backward", "MiB, optimiser's step"
COLUMNS = ["chapter", "system", "precision", "attention", "quantity", "value", "ratio", "low", "high"]
Row = dict[str, Any]


def measure(run: Run) -> Iterator[Row]:
    """Rows of both tables, in bfloat16 first."""
    sizes = sizes_of(run.is_quick)
    model = dual_encoder(sizes, run.device)
    clips = len(sizes.tokens)
    for precision in PRECISIONS:
        for chapter, own in systems(clips).items():
            plans = {name: recipe_of(sizes, {**arguments, "lr": LR}) for name, arguments in own.items()}
            plans = {name: one for name, one in plans.items() if one.text_chunk in (None, 0, -1, clips)}
            found = list(turns(run, sizes, model, plans, precision))
            for row in found:
                yield {"chapter": chapter, "precision": precision, **row}


def turns(run: Run, sizes: Sizes, model: torch.nn.Module, plans: Mapping[str, Recipe], precision: str) -> Iterator[Row]:
    """Rows of the systems of a chapter; those that do not fit into memory are left out."""
    gc.collect()  # the last Adam's moments go before this one's come
    objectives = {name: Objective(model, one).to(run.device) for name, one in plans.items()}
    optimiser = make_optimiser(next(iter(objectives.values())), next(iter(plans.values())))
    known = {id(parameter) for group in optimiser.param_groups for parameter in group["params"]}
    for objective in objectives.values():  # weights of the encoders stand in the first one's groups
        if own := [p for p in objective.terms.parameters() if p.requires_grad and id(p) not in known]:
            optimiser.add_param_group({"params": own, "weight_decay": 0.0})
    rng = np.random.default_rng(0)

    def one_step(name: str) -> dict[str, float]:
        batch = random_batch(sizes, plans[name], rng).to(run.device)
        return step(run, objectives[name], optimiser, batch, precision)

    fitting = [name for name in plans if all(fits(optimiser, lambda name=name: one_step(name)) for _ in range(2))]
    for name in plans.keys() - set(fitting):
        print(f"{name} in {precision} does not fit into memory", flush=True)
    first = next(iter(plans))
    if first not in fitting:
        return
    attention = attention_of(lambda: one_step(first))  # the others have the same encoders
    found = [{name: one_step(name) for name in fitting} for _ in run.rounds(20)]
    for quantity in ("seconds", BACKWARD, STEP):
        values = [{name: taken[quantity] for name, taken in one.items()} for one in found]
        for name, numbers in ratios(values, first).items():
            yield {"system": name, "attention": attention, "quantity": quantity, **numbers}
    alone = {name: loss_step(sizes, plans[name], run.device) for name in fitting}
    for name, numbers in ratios(loss_alone(run, alone), first).items():
        yield {"system": name, "attention": "", "quantity": "seconds of the loss", **numbers}


def fits(optimiser: torch.optim.Optimizer, one_step: Callable[[], Any]) -> bool:
    """Take a step, which warms up; whether there was memory for it."""
    try:
        one_step()
    except torch.OutOfMemoryError:
        optimiser.zero_grad()
        return False
    return True


def step(
    run: Run, objective: Objective, optimiser: torch.optim.Optimizer, batch: Batch, precision: str
) -> dict[str, float]:
    """A training step: seconds, and MiB at its two peaks."""
    start = run.start()
    with run.autocast(precision):
        loss = objective(batch).loss
    loss.backward()
    most = run.peak()
    run.reset()
    optimiser.step()
    optimiser.zero_grad()
    return {"seconds": run.since(start), BACKWARD: most, STEP: run.peak()}


def loss_alone(run: Run, work: Mapping[str, Callable[[], None]]) -> list[dict[str, float]]:
    """Seconds of the loss terms alone, forward and backward, in float32 as they always are, after some that warm up."""
    found = []
    for _ in range(2 if run.is_quick else 55):
        found.append({})
        for name, loss in work.items():
            start = run.start()
            loss()
            found[-1][name] = run.since(start)
    return found if run.is_quick else found[5:]
