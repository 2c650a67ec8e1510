"""Forces and drift while a model trains (SupCLAP Figures 1–2, Eq. 4 and 12), measured on the real steps.

Anchors are the main texts of the batch, candidates the audio clips that have one. Everything is a mean over anchors.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from pullpush.checks import check_temperature
from pullpush.data.batches import Batch, TrainingData
from pullpush.data.clips import Clips
from pullpush.forces import decompose, distance_change, drift, sideways, tangent
from pullpush.losses import Offer
from pullpush.settings import Count, check_fields
from pullpush.training.distributed import gather
from pullpush.training.objective import Objective

DEFAULT_TAU = 0.07


@dataclass(frozen=True)
class Diagnostics:
    """Measure every `every`-th step, from the first.

    tau: temperature of the forces; None takes the objective's own (0.07 if it has none). For a loss other than
    InfoNCE the forces are those that InfoNCE would exert on its embeddings; drift and distances are its own.
    """

    every: Count = 1
    tau: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, of="diagnostics")
        if self.tau is not None:
            check_temperature(self.tau)

    def on(self, objective: Objective, pairs: TrainingData, valid: Clips) -> "Diagnostics":
        """What measures one run, before its first step: itself, unless it asks the model about clips of its choice."""
        return self

    def before(self, objective: Objective, batch: Batch) -> Tensor:
        """Before the step: where its texts are, `(N, d)` float32."""
        return _encode(objective, batch)

    def after(self, objective: Objective, batch: Batch, offer: Offer, start: Tensor) -> dict[str, float]:
        """After the optimiser's step: the row of measurements.

        The texts are encoded with the old and the new weights in the mode of the step, but in float32: bfloat16 is
        coarser than a late step is long. The positives are held where they were.

        Args:
            objective: with its new weights.
            batch: of the step.
            offer: the step's embeddings; those of the texts have kept their gradient.
            start: what `before` gave.

        Returns:
            By column; empty where no clip has a main text.
        """
        audio, text, gradient = offer.audio.detach(), start, offer.text.grad
        gradient = torch.zeros_like(text) if gradient is None else gradient  # of a frozen tower, of losses of texts
        moved = _encode(objective, batch)
        if offer.present is not None:
            rows = offer.present[:, 0]
            if not rows.any():
                return {}
            audio, text, gradient, moved = audio[rows], text[rows], gradient[rows], moved[rows]
        tau = float(self.tau or objective.tau or DEFAULT_TAU)
        return (
            force_norms(text, audio, tau)
            | drifts("gradient", -gradient, text, audio, tau)
            | drifts("update", moved - text, text, audio, tau)
            | distances(text, moved, audio)
        )


def force_norms(text: Tensor, audio: Tensor, tau: float) -> dict[str, float]:
    """Mean norms of the forces on the texts, `(N, d)` each (Eq. 4, per-sample loss).

    Keys: pull, push, parallel, perpendicular (of the push); sideways, the part of the push outside the plane of t⁺ and
    a⁺, in which the pull lies; perpendicular_share = mean ‖F⊥‖²/‖F_push‖²; p_positive.
    """
    forces = decompose(text, audio, tau)
    row = {name: _mean(getattr(forces, name).norm(dim=1)) for name in ("pull", "push", "parallel", "perpendicular")}
    row["sideways"] = _mean(sideways(forces.push, text, audio).norm(dim=1))
    row["perpendicular_share"] = _mean(forces.perpendicular.square().sum(1) / forces.push.square().sum(1))
    row["p_positive"] = _mean(forces.p_positive)
    return row


def drifts(name: str, movement: Tensor, text: Tensor, audio: Tensor, tau: float) -> dict[str, float]:
    """Mean cosine of a movement of the texts, `(N, d)`, with three readings of the pull's direction.

    Keys: `<name>_drift` with û = (a⁺ − t⁺)/‖a⁺ − t⁺‖; `<name>_drift_tangent` the same on the sphere, both projected on
    the tangent plane at t⁺; `<name>_drift_pull` with −F_pull of Eq. 4, which is a⁺.
    """
    straight = audio - text
    pull = -decompose(text, audio, tau).pull
    return {
        f"{name}_drift": _mean(drift(movement, straight)),
        f"{name}_drift_tangent": _mean(drift(tangent(movement, text), tangent(straight, text))),
        f"{name}_drift_pull": _mean(drift(movement, pull)),
    }


def distances(text: Tensor, moved: Tensor, audio: Tensor) -> dict[str, float]:
    """Squared distance to the positive before and after a step, and its parts by Eq. 12; `(N, d)` each.

    Keys: distance_before, distance_after, first_order = 2(t⁺ − a⁺)ᵀΔ, ideal (the whole change along û), noise_penalty
    (‖Δ⊥‖²), penalty_ratio = noise_penalty/|ideal| of the means, displacement = mean ‖Δ‖.
    """
    delta = moved - text
    change = distance_change(text, audio, -delta)
    row = {
        "distance_before": _mean((text - audio).square().sum(1)),
        "distance_after": _mean((moved - audio).square().sum(1)),
        "first_order": _mean(2 * ((text - audio) * delta).sum(1)),
        "ideal": _mean(change.ideal),
        "noise_penalty": _mean(change.noise_penalty),
        "displacement": _mean(delta.norm(dim=1)),
    }
    row["penalty_ratio"] = row["noise_penalty"] / abs(row["ideal"]) if row["ideal"] else float("nan")
    return row


def _mean(values: Tensor) -> float:
    """Mean over the anchors for which the quantity exists; NaN if there is none."""
    return float(values.nanmean())


@torch.no_grad()
def _encode(objective: Objective, batch: Batch) -> Tensor:
    """The batch's main texts, `(N, d)`."""
    if not objective.chunk and all(batch.present[0]):  # then they are encoded first and on their own
        batch = replace(batch, parallel=(), parallel_languages=())
    with unmoved(objective):
        return gather(objective.embed_here(batch)[0])


@contextmanager
def unmoved(objective: Objective) -> Iterator[None]:
    """Put running statistics back after the block, so that watching does not change the run."""
    before = [(buffer, buffer.clone()) for buffer in objective.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)


@dataclass(frozen=True)
class Asking(Diagnostics):
    """What asks about the model after a step, and nothing before it, such as `Diagnostics.on` may give."""

    ask: Callable[[Objective], dict[str, float]] = field(kw_only=True)

    def before(self, objective: Objective, batch: Batch) -> Tensor:
        return torch.empty(0)

    def after(self, objective: Objective, batch: Batch, offer: Offer, start: Tensor) -> dict[str, float]:
        with unmoved(objective):
            return self.ask(objective)
