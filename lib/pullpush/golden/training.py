"""Probes of training: the loop, what it is made of, and what watches it, on tiny clips and a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from copy import copy
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch

from pullpush.data.batches import PairDataset
from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen
from pullpush.golden.stand_ins import standing_in
from pullpush.golden.tiny import DIM, LANGUAGES, Alone, TinyModel, Tones, alone
from pullpush.golden.training_parts import PARTS
from pullpush.golden.training_uses import USES
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.loop import Result, train
from pullpush.training.objective import Objective
from pullpush.training.optimiser import clip_gradients, make_optimiser, rate
from pullpush.training.recipes import Recipe
from pullpush.training.terms import Term

TOLERANCE = 1e-6
KILLED_AFTER = 5  # steps


class Killed(Exception):
    """A run that stops in the middle."""


class Mortal(PairDataset):
    """Pairs of which a run sees only so many batches."""

    left = KILLED_AFTER

    def __getitems__(self, indices: Any) -> Any:
        """See `PairDataset`."""
        if not self.left:
            raise Killed
        self.left -= 1
        return super().__getitems__(indices)


def names() -> Collection[str]:
    """What decides the numbers of a run, beside its losses, encoders and data."""
    return PROBES.keys()


def probe(name: str) -> Values:
    """What one of them gives."""
    with alone(), nullcontext() if name == "recipes" else standing_in():
        return PROBES[name]()


def diagnostics_numbers(diagnostics: Diagnostics) -> Values:
    """What a measurement reports of each of three steps, also one of a reader's own class: column → `(3,)`.

    Every step is watched, whatever `every` says. The recipe has a dynamic radius, for those that ask for it.

    >>> list(diagnostics_numbers(Diagnostics()))[:3]
    ['displacement', 'distance_after', 'distance_before']
    """
    watch = copy(diagnostics)
    object.__setattr__(watch, "every", 1)
    recipe = tiny((Term("infonce"), Term("svr", options={"modelling": "dynamic"})), epochs=1, batch_size=5)
    with alone():
        usual, watched = (_trained(recipe, diagnostics=each).steps for each in (None, watch))
    return {str(name): watched[name].to_numpy() for name in sorted(watched) if name not in usual}


def tiny(terms: Iterable[Term], **options: Any) -> Recipe:
    """A recipe for the tiny model."""
    settings: dict[str, Any] = {"dim": DIM, "batch_size": 6, "epochs": 2, "lr": 0.02, **options}
    return Recipe("tiny", tuple(terms), **settings)


def _trained(recipe: Recipe, *, gaps: bool = False, pairs: type[PairDataset] = PairDataset, **options: Any) -> Result:
    """The tiny model, with batch normalisation and noise, after a run."""
    choices: dict[str, Any] = {name: getattr(recipe, name) for name in ("languages", "sampling", "captions")}
    data = pairs(Tones(gaps=gaps, columns={"group": list("aab" * 5)[:14]}), weights=recipe.balance, **choices)
    valid = Tones(10, seed=1, gaps=gaps)
    return train(TinyModel(norm=True, noise=True), recipe, data, valid, progress=False, **options)


def _of_run(name: str, result: Result, *, steps: bool = True) -> dict[str, Any]:
    """Weights and epochs; steps: and what was written of each step."""
    weights = torch.cat([value.double().flatten() for value in result.model.state_dict().values()])
    values = {f"{name}: weights": seen(weights), f"{name}: best": [*result.best.values()]}
    values |= {f"{name}: {key} of epochs": column for key, column in _columns(result.history).items()}
    if steps:
        values |= {
            f"{name}: {key}": seen(torch.tensor(column, dtype=torch.float64))
            for key, column in _columns(result.steps).items()
        }
    return values | {f"{name}: evaluates": not result.model.training}


def _columns(table: pd.DataFrame) -> dict[str, list[float]]:
    """A table by columns; −1 where a number does not exist."""
    return {str(name): table[name].fillna(-1.0).tolist() for name in table}


def loop() -> Values:
    """Runs to their end, one that is killed and goes on, one that starts from it, one that is watched."""
    plain = tiny((Term("infonce", options={"learnable": True}), Term("svr", 0.5, {"modelling": "static"})))
    languages = {"languages": LANGUAGES, "sampling": "all", "captions": "random"}
    several = tiny((Term("kcl"),), optimiser="adamw", schedule="constant", weight_decay=0.3, clip=0.1, **languages)
    balanced = tiny((Term("siglip"),), balance={"a": 1.0, "b": 1.0}, audio="features", epochs=3)
    values = _of_run("plain", _trained(plain)) | _of_run("balanced", _trained(balanced, seed=2))
    values |= _of_run("languages", _trained(several, gaps=True, seed=1, diagnostics=Diagnostics(every=2)))
    with TemporaryDirectory() as folder:
        try:
            _trained(plain, pairs=Mortal, out=folder, save_every=1)
        except Killed:
            values |= _of_run("went on", _trained(plain, out=folder, save_every=2), steps=False)
        values |= _of_run("read", _trained(plain, out=folder), steps=False)
        values |= _of_run("from a base", _trained(plain, base=folder, seed=1), steps=False)
    return values


def optimiser() -> Values:
    """Groups of weights, rates over the steps, shortened gradients, and where three steps lead."""
    values: dict[str, Any] = {}
    terms = (Term("siglip"), Term("svr", options={"batch_size": 4, "hidden": 3}))
    for optimised in ({"optimiser": "adam"}, {"optimiser": "adamw", "clip": 0.0}, {"audio": "features"}):
        name, recipe = ", ".join(map(str, optimised.values())), tiny(terms, network_lr=2.0, **optimised)
        torch.default_generator.manual_seed(0)
        towers = Objective(TinyModel(), recipe).double()
        towers.model.text.requires_grad_(False)
        optimiser = make_optimiser(towers, recipe)
        for step in range(3):
            for group in optimiser.param_groups:
                group["lr"] = recipe.lr * group["factor"]
                for at, parameter in enumerate(group["params"]):
                    parameter.grad = numbers(*parameter.shape, seed=10 * step + at)
            values[f"{name}: norms {step}"] = [*clip_gradients(Alone(), towers, recipe).values()]  # pyrefly: ignore
            optimiser.step()
        values[f"{name}: is"] = type(optimiser).__name__
        for at, group in enumerate(optimiser.param_groups):
            flat = torch.cat([parameter.detach().flatten() for parameter in group["params"]])
            values |= {f"{name}: group {at}": [len(group["params"]), group["weight_decay"], group["factor"]]}
            values |= {f"{name}: weights {at}": seen(flat)}
    schedules: tuple[dict[str, Any], ...] = ({}, {"schedule": "constant"}, {"floor": 0.1, "warmup_steps": 5})
    for options in (*schedules, {"warmup": 0.0}):
        values[f"rates {options}"] = [rate(step, 20, tiny(terms, **options)) for step in range(0, 20, 3)]
    return values


def diagnostics() -> Values:
    """What is measured of a step, with the objective's temperature or another, and of the texts that are there."""
    values: dict[str, Any] = {}
    for name, watch in {"own": Diagnostics(), "another": Diagnostics(tau=0.5)}.items():
        values |= {f"{name}: {key}": column for key, column in diagnostics_numbers(watch).items()}
    languages = {"languages": LANGUAGES, "sampling": "all"}
    for name, term in {"missing": Term("kcl", options={"tau": 0.3}), "no temperature": Term("sparsity")}.items():
        steps = _trained(tiny((term,), epochs=1, **languages), gaps=True, diagnostics=Diagnostics(every=2)).steps
        values |= {f"{name}: {key}": column for key, column in _columns(steps).items()}
    return values


PROBES: Mapping[str, Callable[[], Values]] = {
    "diagnostics": diagnostics,
    "loop": loop,
    "optimiser": optimiser,
    **PARTS,
    **USES,
}
