"""Chapter 1: what the push is made of, one caption in a plane, batches beside the whole, and training seed by seed."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import LocalGlobal, decompose
from pullpush.lab.contrasts import Experiments
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Measure
from pullpush.metrics import Difference
from pullpush.studies.means import by_clip, by_seed


def local_share(found: LocalGlobal) -> Difference:
    """How much of E‖F⊥‖² of mini-batches fluctuates: a ratio of means as a mean over clips, linear in both means."""
    ratio = found.variance.mean() / found.batch.mean()
    return by_clip((found.variance - ratio * found.batch) / found.batch.mean() + ratio)


class Plane(NamedTuple):
    """One anchor's forces as `figures.force_plane` draws them; see there."""

    negatives: list[np.ndarray]
    partner: np.ndarray
    pushes: list[np.ndarray]


def project(text: Tensor, audio: Tensor, anchor: int, groups: Sequence[Sequence[int]], tau: float) -> Plane:
    """SupCLAP Figure 2 from real embeddings: the plane of û and of the direction in which the groups' pushes lie most.

    Args:
        text, audio: `(N, d)` each.
        anchor: row of the text that is looked at.
        groups: rows of audio that are its negatives: all others, or those of several mini-batches.
        tau: temperature.
    """
    caption, partner = text[anchor], audio[anchor]
    unit = F.normalize(partner - caption, dim=0)
    candidates = [torch.cat([partner[None], audio[list(rows)]]) for rows in groups]
    forces = [decompose(caption[None], each, tau, positive=torch.tensor([0])) for each in candidates]
    off_line = torch.cat([force.perpendicular for force in forces])
    centred = off_line - off_line.mean(0) if len(groups) > 1 else off_line
    across = F.normalize(torch.linalg.svd(centred, full_matrices=False).Vh[0], dim=0)
    axes = torch.stack([unit, across])
    points = [
        torch.cat([(each[1:] - caption) @ axes.T, (each @ caption / tau).softmax(0)[1:, None]], dim=1).numpy()
        for each in candidates
    ]
    return Plane(points, (axes @ (partner - caption)).numpy(), [(axes @ -force.push[0]).numpy() for force in forces])


# ---------------------------------------------------------------- training, seed by seed


def late(steps: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Means of columns over the second half of training: system, seed, columns.

    >>> steps = pd.DataFrame({"system": "infonce", "seed": 0, "step": [1, 2, 3, 4], "drift": [0.9, 0.7, 0.4, 0.2]})
    >>> late(steps, ["drift"]).round(3).to_dict("records")
    [{'system': 'infonce', 'seed': 0, 'drift': 0.3}]
    """
    rows = steps[steps["step"] > steps["step"].max() / 2]
    return rows.groupby(["system", "seed"], sort=False)[list(columns)].mean().reset_index()


def over_size(steps: pd.DataFrame, part: str, whole: str) -> pd.Series:
    """The mean of one column over the mean size of another, all of training together, by (system, seed)."""
    by_run = steps.assign(size=steps[whole].abs()).groupby(["system", "seed"], sort=False)
    return by_run[part].mean() / by_run["size"].mean()


def _of_infonce(measured: Callable[[pd.DataFrame], pd.Series]) -> Measure:
    """One number a seed of InfoNCE's steps."""

    def of(found: Experiments) -> Difference:
        steps = found["training"].steps
        steps = steps[steps["system"] == "infonce"]
        if steps["seed"].nunique() < 2:
            raise ExperimentError("InfoNCE was not trained with several seeds")
        return by_seed(measured(steps))

    return Measure(["training"], of)


MEASURES: Mapping[str, Measure] = {
    "perpendicular-share": _of_infonce(lambda steps: late(steps, ["perpendicular_share"])["perpendicular_share"]),
    "noise-penalty-ratio": _of_infonce(lambda steps: over_size(steps, "noise_penalty", "ideal")),
    # Along û a step δ changes the squared distance d² by −2dδ + δ². A bound: of 2dδ its mean over anchors is known.
    "second-order-ratio": _of_infonce(
        lambda steps: over_size(steps.assign(square=steps["ideal"] - steps["first_order"]), "square", "first_order") - 1
    ),
    # Figure 1 read literally: the gradient against F_pull.
    "drift-infonce": _of_infonce(lambda steps: late(steps, ["gradient_drift_pull"])["gradient_drift_pull"] - 1),
}
