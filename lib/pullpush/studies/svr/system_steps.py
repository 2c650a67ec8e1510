"""What each system of the radius taken apart asks of a step, on the embeddings of one model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.errors import PullPushError
from pullpush.forces import step_parts
from pullpush.lab.experiments import System
from pullpush.losses import TERMS
from pullpush.metrics.inference import Difference, difference
from pullpush.parallel import one_thread
from pullpush.studies.svr.effects import radius_effects
from pullpush.training.recipes import recipe

HARD = 0.5  # the share of a batch's pairs that count as those which fit least


def step_of(systems: Mapping[str, System], text: Tensor, audio: Tensor, tau: float, *, batch_size: int) -> pd.DataFrame:
    """What the objective of each system asks of the texts of a model, at one temperature; `(N, d)` unit vectors each.

    Returns:
        Columns system; parallel, perpendicular (mean norms along the geodesic direction and across it); across/along,
        their ratio; kept for pairs that fit, the mean length of the step of the better half of each batch's pairs (by
        cosine) over that of the other half; audio to audio, the share of the gradient on the sounds that comes to them
        through the support vector. Systems whose radius is learnt are left out: here nothing has taught it. A batch
        larger than the set is the set.
    """
    rows, batch_size = [], min(batch_size, len(text))
    for name, (parts, options) in systems.items():
        if "dynamic" in parts:
            continue
        loss = _objective(parts, {**options, "tau": tau})
        with one_thread():
            found = step_parts(loss, text, audio, batch_size=batch_size)
        along, across = found.parallel.abs(), found.perpendicular
        length = torch.hypot(along, across)
        fits = _fits(text, audio, batch_size)
        kept = (length[fits].mean() / length[~fits].mean()).item()
        means = along.mean().item(), across.mean().item()
        partner = _through_partner(loss, parts, options, text, audio, tau, batch_size)
        rows.append((name, *means, means[1] / means[0], kept, partner))
    columns = ["system", "parallel", "perpendicular", "across/along", "kept for pairs that fit", "audio to audio"]
    return pd.DataFrame(rows, columns=columns)


def parallel_change(text: Tensor, audio: Tensor, tau: float, radius: float, *, batch_size: int) -> Difference:
    """How much the part along the way of the SVR term's step changes from R = 0 to a radius, as a fraction, over
    batches of `(N, d)`: nothing, if a radius suppresses what is across and that alone.

    Raises:
        PullPushError: there are fewer than two batches.
    """
    if len(text) < 2 * batch_size:
        raise PullPushError(f"{len(text)} pairs are too few: an interval takes two batches of {batch_size}")
    changes = []
    for start in range(0, len(text) - batch_size + 1, batch_size):
        rows = slice(start, start + batch_size)
        none, some = radius_effects(text[rows], audio[rows], tau, (0.0, radius), batch_size=batch_size)["parallel"]
        changes.append(some / none - 1)
    return difference([changes])


def _objective(name: str, options: Mapping):
    """The sum of a recipe's terms as a function of (audio, text), at one temperature."""
    plain = {key: value for key, value in options.items() if key not in ("scalar_lr", "lr", "epochs")}
    terms = recipe(name, **plain).terms
    modules = [(term.weight, TERMS[term.name].make(**{**term.options, "tau": options["tau"]})) for term in terms]
    return lambda audio, text: sum(weight * module(audio, text).value for weight, module in modules)


def _fits(text: Tensor, audio: Tensor, batch_size: int) -> Tensor:
    """Whether a pair is of the better half of its batch."""
    count = len(text) // batch_size * batch_size
    cosines = (text * audio).sum(dim=1)[:count].view(-1, batch_size)
    return (cosines > cosines.quantile(HARD, dim=1, keepdim=True)).flatten()


def _through_partner(loss, name: str, options: Mapping, text: Tensor, audio: Tensor, tau: float, size: int) -> float:
    """How much of the gradient on the sounds goes away when the partner is held, as a share of its norm."""
    if not options.get("partner"):
        return 0.0
    without = _objective(name, {**options, "tau": tau, "partner": False})
    shares = []
    for start in range(0, len(text) - size + 1, size):
        rows = slice(start, start + size)
        gradients = []
        for one in (loss, without):
            leaf = audio[rows].clone().requires_grad_()
            gradients.append(torch.autograd.grad(one(leaf, text[rows]), leaf)[0])
        shares.append(((gradients[0] - gradients[1]).norm() / gradients[0].norm()).item())
    return float(np.mean(shares))
