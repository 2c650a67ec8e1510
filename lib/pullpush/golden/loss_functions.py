"""Probes of what losses are made of and no card goes through: functions, temperatures, tiles, the printed formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pullpush.golden.compare import Values
from pullpush.golden.inputs import numbers, seen, sphere
from pullpush.losses import (
    SVR,
    Offer,
    RadiusPredictor,
    Temperature,
    _tiles,
    apply,
    clusters,
    epsilon_of_entropy,
    info_nce,
    label_smoothing,
    plain,
    positive_first,
    radius_constraint,
    siglip,
    simcse,
    support_vector,
    svr,
)

N, D = 5, 6


@contextmanager
def in_tiles(scores: int) -> Iterator[None]:
    """Let losses hold no more than so many similarities at once, as they do above some thousands of clips."""
    before = _tiles.BLOCK
    _tiles.BLOCK = scores
    try:
        yield
    finally:
        _tiles.BLOCK = before


def _with_gradients(name: str, function: Callable[..., Tensor], *inputs: Tensor, twice: bool = False) -> dict[str, Any]:
    """What a function gives, and the gradients of its sum by its inputs; twice: and those of their squares."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    value = function(*leaves)
    slopes = torch.autograd.grad(value.sum(), leaves, create_graph=twice, allow_unused=True)
    values = {name: seen(value)} | {f"{name}: gradient {at}": seen(x) for at, x in enumerate(slopes) if x is not None}
    if twice:
        bends = torch.autograd.grad(torch.cat([x.flatten() for x in slopes]).square().sum(), leaves)
        values |= {f"{name}: second gradient {at}": seen(x) for at, x in enumerate(bends)}
    return values


def functions() -> Values:
    """Arguments that modules do not give."""
    audio, text, tau = sphere(N, D, seed=1), sphere(N, D, seed=2), torch.tensor(0.2, dtype=torch.float64)
    text[0] = audio[0]  # no way to go
    radii = numbers(N, seed=3) / 2
    groups = sphere(2, N, D, seed=4), sphere(2, N, D, seed=5)
    entropy = torch.tensor([-0.1, 0.0, 0.5, 1.2, math.log(N), 2.0], dtype=torch.float64)
    epsilons = radii.abs().clamp(max=1), radii.square().clamp(max=1)
    same = torch.tensor([0, 1, 0, 2, 1])
    values = {"epsilon of entropy": epsilon_of_entropy(entropy, N), "of one": epsilon_of_entropy(entropy, 1)}
    values |= _with_gradients("support vector", support_vector, text, audio, radii)
    values |= _with_gradients("constraint", radius_constraint, radii, (audio - text).norm(dim=1))
    values |= _with_gradients("positive first", positive_first, text @ audio.T)
    values |= _with_gradients("second derivative", info_nce, audio, text, tau, twice=True)
    values |= _with_gradients("second derivative of sigmoids", siglip, audio, text, tau, twice=True)
    values |= _with_gradients("simcse", partial(simcse, text_ids=same), audio, text, tau)
    values |= _with_gradients("label smoothing", partial(label_smoothing, epsilon=epsilons), audio, text, tau)
    values |= _with_gradients("clusters", partial(clusters, labels=same - 1), audio[:, :2], text[:, :2])
    for direction in ("t2a", "both"):
        moved = partial(svr, direction=direction)
        values |= _with_gradients(f"svr of radii, {direction}", moved, audio, text, radii, tau)
        values |= _with_gradients(f"svr of groups, {direction}", moved, *groups, numbers(2, N, seed=6) / 2, tau)
    values |= _with_gradients(
        "svr of one", partial(svr, positive_in_denominator=False), audio[1:2], text[1:2], radii[:1]
    )
    return {**values, **_modules(audio, text, groups)}


def _modules(audio: Tensor, text: Tensor, groups: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """A predictor on batches of all lengths, the radii that a loss has in use, and languages that a batch lacks."""
    predictor, loss = RadiusPredictor(N, initial=0.2).double(), SVR("dynamic", direction="both", batch_size=N).double()
    for parameter in (*predictor.parameters(), *loss.predictor.parameters()):
        with torch.no_grad():
            parameter.copy_(numbers(*parameter.shape, seed=7) / 3)
    values: dict[str, Any] = {}
    for n in (1, 3, N):
        values |= _with_gradients(f"predictor of {n}", predictor, (text @ audio.T)[:n, :n])
    for name, pair in (("one group", (audio, text)), ("groups", groups)):
        values |= {f"radii of {name} {at}": seen(each) for at, each in enumerate(loss.radii(*pair))}
    values["static radii"] = [seen(each) for each in SVR("static", direction="both").double().radii(audio, text)]
    present = torch.tensor([[True, False]] * N)
    lacking = Offer(audio, text, (sphere(N, D, seed=8),), present)
    return {**values, "a language that no clip has": seen(apply(loss, lacking).value)}


def temperature() -> Values:
    """τ and its gradient: within its bound, at it and beyond, drawn either way."""
    values: dict[str, Any] = {"fixed": Temperature(0.1)()}
    ways: dict[str, dict[str, Any]] = {"bounded": {}, "raw": {"raw": True}, "wider": {"max_scale": 500.0}}
    for name, options in ways.items():
        for start, moved in ((0.07, 0.0), (0.01, 0.0), (0.01, 0.3), (0.001, 0.0)):
            module = Temperature(start, learnable=True, **options).double()
            (parameter,) = module.parameters()
            with torch.no_grad():
                parameter += moved
            for way in (1.0, -1.0):
                tau = module()
                (slope,) = torch.autograd.grad(way * tau, parameter)
                values[f"{name} from {start} by {moved}, {way}"] = [tau, slope]
    return values


def tiles() -> Values:
    """Losses of all pairs in tiles of two rows, whole groups, and some of the gradients alone."""
    audio, text = sphere(N, D, seed=1), sphere(N, D, seed=2)
    tau, bias, values = torch.tensor(0.2, dtype=torch.float64), torch.tensor(-0.6, dtype=torch.float64), {}
    groups = sphere(3, N, D, seed=4), sphere(3, N, D, seed=5)
    with in_tiles(2 * N):
        for direction in ("t2a", "a2t", "both"):
            values |= _with_gradients(f"infonce {direction}", partial(info_nce, direction=direction), audio, text, tau)
            values |= _with_gradients(f"svr {direction}", partial(svr, radius=0.4, direction=direction), *groups)
        for form in ("glap", "siglip"):
            values |= _with_gradients(f"siglip {form}", partial(siglip, form=form), audio, text, tau, bias)
        values |= _with_gradients("of texts", partial(info_nce, audio), text)
        values |= _with_gradients("of clips", lambda x: info_nce(x, text), audio)
        values["none"] = seen(siglip(audio, text, tau, bias))
        leaf = text.clone().requires_grad_()
        loss = info_nce(audio, leaf, tau)
        again = [torch.autograd.grad(loss, leaf, retain_graph=True)[0] for _ in range(2)]
        values["twice"] = seen(again[1])
    with in_tiles(2 * N * N):
        values |= _with_gradients("two groups at a time", partial(svr, radius=0.4), *groups)
    return values


def formulas() -> Values:
    """`losses.plain`."""
    audio, text, other, more = (sphere(N, D, seed=seed) for seed in range(1, 5))
    calls: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
        "info_nce": (plain.info_nce, (audio, text)),
        "siglip": (plain.siglip, (audio, text)),
        "svr": (partial(plain.svr, radius=0.4), (audio, text)),
        "radius_constraint": (plain.radius_constraint, (numbers(N, seed=5), (audio - text).norm(dim=1))),
        "simple_reweight": (partial(plain.simple_reweight, weight=0.7), (audio, text)),
        "scaled_push": (partial(plain.scaled_push, perpendicular=0.3), (audio, text)),
        "focal": (plain.focal, (audio, text)),
        "additive_margin": (plain.additive_margin, (audio, text)),
        "ml_clap": (plain.ml_clap, (audio, text)),
        "kcl": (plain.kcl, (audio, sphere(N, 3, D, seed=6))),
        "cacl": (plain.cacl, (audio, text, other)),
        "cross_cyclic": (plain.cross_cyclic, (audio, text)),
        "in_modal_cyclic": (plain.in_modal_cyclic, (audio, text)),
        "simcse": (plain.simcse, (text, other)),
        "nli": (plain.nli, (text, other, more)),
        "sparsity": (plain.sparsity, (audio, text)),
        "distillation": (plain.distillation, (audio, text, numbers(N, N, seed=7).tanh())),
        "label_smoothing": (plain.label_smoothing, (audio, text)),
        "clusters": (partial(plain.clusters, labels=torch.tensor([0, 1, -1, 2, 1])), (audio, text)),
    }
    for part in ("probabilities", "jacobian", "partner"):
        calls |= {f"svr without {part}": (partial(plain.svr_parts, radius=0.4, **{part: False}), (audio, text))}
    values: dict[str, Any] = {"decompose": [seen(part) for part in plain.decompose(text, audio)]}
    for name, (function, inputs) in calls.items():
        values |= _with_gradients(name, function, *inputs)
    return values


FUNCTIONS: Mapping[str, Callable[[], Values]] = {
    "formulas": formulas,
    "functions": functions,
    "temperature": temperature,
    "tiles": tiles,
}
