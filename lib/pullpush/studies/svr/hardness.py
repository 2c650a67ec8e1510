"""What hard negatives do to the predicted radius and to the push across the pull (SupCLAP Figure 7, Appendix E.8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.batches import Batch, PairDataset, TrainingData
from pullpush.data.clips import Clips
from pullpush.errors import PullPushError
from pullpush.forces import decompose, sideways
from pullpush.losses import SVR, RadiusPredictor
from pullpush.training.diagnostics import Asking, Diagnostics
from pullpush.training.loop import Result
from pullpush.training.objective import Objective

ASKED = ("radius", "perpendicular", "parallel", "sideways")


@dataclass(frozen=True)
class HardnessProbe(Diagnostics):
    """Asks a run, while it trains, about batches of its clips whose negatives are hard to a chosen degree.

    Each anchor gets a batch of its own: its positive, K hard negatives, and others at random (SupCLAP Figure 7).
    Hard are the most similar of `pool` negatives, by the model's own similarities ("similar"), or those whose scene
    graph fits best without fitting fully ("graph", where there are scene graphs).

    Columns `<what> <kind> <K>`, means over the anchors: the radius that the run's predictor gives, and the norms of
    parts of InfoNCE's push (Eq. 4): across the way to the positive, along it, and sideways (`forces.sideways`).

    ks: the Ks; anchors: clips, the first ones, a quarter of all at most; pool: of the clips after them.
    """

    ks: tuple[int, ...] = (0, 6, 12, 18)
    anchors: int = 64
    pool: int = 720

    def on(self, objective: Objective, pairs: TrainingData, valid: Clips) -> Diagnostics:
        """Raises PullPushError where clips are too few to fill a batch, or no radius is predicted."""
        losses = [term for term in objective.terms if isinstance(term, SVR) and term.predictor is not None]
        if not losses:
            raise PullPushError(f"{objective.recipe.name} predicts no radius: watch a recipe with dynamic SVR")
        clips = pairs.split if isinstance(pairs, PairDataset) else valid
        anchors, size = min(self.anchors, len(clips) // 4), objective.recipe.batch_size
        view = clips.head(anchors + self.pool)
        relevance = view.head(anchors).relevance(view)[:, anchors:]
        if anchors < 1 or int((relevance < 1).sum(dim=1).min()) < size:
            raise PullPushError(
                f"{len(clips)} clips are too few, or fit too many captions: hard negatives are chosen among more than "
                f"the {size - 1} that a batch of {size} holds"
            )
        asked = PairDataset(view, languages=pairs.languages[:1], sample_rate=objective.model.sample_rate)
        batch = asked.batch(range(len(asked)))
        return Asking(self.every, ask=partial(_asked, losses[0], batch, relevance, view.graded, self.ks))


@torch.no_grad()
def _asked(
    loss: Any, batch: Batch, relevance: Tensor, graded: bool, ks: Sequence[int], objective: Objective
) -> dict[str, float]:
    """What a probe asks about its anchors and negatives; relevance: how well each of these fits each anchor, `(A, M)`;
    graded: whether that is more than yes or no.
    """
    anchors, size, model = len(relevance), loss.predictor.batch_size, objective.model
    text = model.encode_text(batch.texts[:anchors], batch.languages[:anchors]).cpu()
    audio = model.encode_audio(batch.audio, batch.lengths).cpu()
    tau, fits_fully = float(loss.tau), relevance >= 1  # what does is no negative
    hardness = {"similar": (text @ audio[anchors:].T / tau).masked_fill(fits_fully, -torch.inf)}
    if graded:  # a real dataset has no scene graphs
        hardness["graph"] = relevance.masked_fill(fits_fully, -1.0)
    generator, row = torch.Generator().manual_seed(0), {}
    for (kind, order), k in product(hardness.items(), ks):
        chosen = _negatives(order, fits_fully, min(k, size - 1), size, generator)
        for what, value in _of_batches(text, audio, chosen + anchors, tau, loss.predictor).items():
            row[f"{what} {kind} {k}"] = value
    return row


def _negatives(order: Tensor, fits_fully: Tensor, k: int, size: int, generator: torch.Generator) -> Tensor:
    """For each anchor K that are the first of `order` and the rest random, in random places: `(A, size − 1)`."""
    noise = torch.rand(order.shape, generator=generator)
    hard = (order + 1e-6 * noise).topk(k, dim=1).indices
    others = noise.masked_fill(fits_fully, -1).scatter(1, hard, -1.0)
    chosen = torch.cat([hard, others.topk(size - 1 - k, dim=1).indices], dim=1)
    return chosen.gather(1, torch.rand(chosen.shape, generator=generator).argsort(1))


def _of_batches(
    text: Tensor, audio: Tensor, chosen: Tensor, tau: float, predictor: RadiusPredictor
) -> dict[str, float]:
    """Means over the anchors of ASKED, for batches of an anchor's own clip and those chosen of all: `(A, n − 1)`."""
    rows = torch.cat([torch.arange(len(text))[:, None], chosen], dim=1)
    scores = (text[:, None] @ audio[rows].mT).squeeze(1) / tau
    radius = predictor.layers(scores.to(predictor.layers[0].weight)).mean()
    own = torch.tensor([0])
    forces = [decompose(text[[at]], audio[batch], tau, positive=own) for at, batch in enumerate(rows)]
    push, across, along = (torch.cat([getattr(each, part) for each in forces]) for part in ("push", *ASKED[1:3]))
    norms = [part.norm(dim=1).mean() for part in (across, along, sideways(push, text, audio[: len(text)]))]
    return {name: value.item() for name, value in zip(ASKED, (radius, *norms), strict=True)}


def by_hardness(runs: Mapping[tuple[str, int], Result]) -> pd.DataFrame:
    """What probed runs were asked: columns seed, step, kind, K and ASKED; runs: by system and seed."""
    steps = pd.concat({seed: run.steps.set_index("step") for (_, seed), run in runs.items()}, names=["seed"])
    asked = steps.loc[:, steps.columns.str.fullmatch(r"\w+ \w+ \d+")].dropna()
    asked.columns = pd.MultiIndex.from_tuples(asked.columns.str.split(" ").map(tuple), names=["", "kind", "K"])
    found = asked.stack(["kind", "K"], future_stack=True).reset_index().astype({"K": int})
    return found[["seed", "step", "kind", "K", *ASKED]]
