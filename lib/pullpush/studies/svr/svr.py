"""The measurements of the chapter on SVR: the proof against autograd, numbers of runs by seed, probes of the radius."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.batches import Batch, PairDataset, collate
from pullpush.data.corpora import Recordings
from pullpush.data.world import Split
from pullpush.forces import tangent
from pullpush.lab import common
from pullpush.lab.experiments import Scores
from pullpush.lab.ledger import Ledger
from pullpush.lab.material import Labelled
from pullpush.lab.probes import probed
from pullpush.losses import info_nce
from pullpush.losses.svr import simple_reweight, support_vector, svr
from pullpush.metrics.inference import Difference, difference, holm
from pullpush.parallel import one_thread
from pullpush.show.palette import method_name
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import zero_shot
from pullpush.training.frozen import Data
from pullpush.training.loop import Result
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe

# ---------------------------------------------------------------- the proof


def proof_errors(text: Tensor, audio: Tensor, radius: float, tau: float, alpha: float = 1.0) -> pd.DataFrame:
    """SupCLAP Eq. 13–18 for the dot product on given embeddings, `(N, d)` each, against autograd in float64.

    Columns: equation, statement, error (largest absolute), scale (largest absolute value of what is compared).
    """
    text, audio = text.double(), audio.double()
    unit = F.normalize(audio - text, dim=1)
    factor = 1 - radius / (audio - text).norm(dim=1)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda t, a: _moved(t, a, radius)))(text, audio)
    outer = unit[:, :, None] * unit[:, None, :]
    eye = torch.eye(text.shape[1], dtype=text.dtype)
    forces, ours = push_by_negative(text, audio, radius, tau), _equation_16(text, audio, radius, tau)
    plain = push_by_negative(text, audio, 0.0, tau)
    along, off = _split(plain + alpha * forces, unit)
    weight, moved_weight = _probabilities(text, audio, 0.0, tau), _probabilities(text, audio, radius, tau)
    parallel, across = _split(audio[None].expand(len(text), -1, -1), unit)
    total = (weight + alpha * moved_weight)[:, :, None] / tau * parallel
    rest = (weight + alpha * moved_weight * factor[:, None])[:, :, None] / tau * across
    diagonal = torch.eye(len(text), dtype=torch.bool)
    for tensor in (along, off, total, rest):
        tensor[diagonal] = 0
    anchor = text.clone().requires_grad_()
    loss = svr(audio, anchor, radius, tau, similarity="dot", positive_in_denominator=True)
    (gradient,) = torch.autograd.grad(loss * len(text), anchor)
    # The positive pulls along the same Jacobian, which leaves a⁺'s part across û scaled like any other.
    pull = _through(eye - (1 - factor)[:, None, None] * (eye - outer), audio) * (_pull(moved_weight) / tau)[:, None]
    rows = [
        ("Eq. 15", "∂t_sup/∂t = I − R/‖a − t‖ · P_⊥", eye - (1 - factor)[:, None, None] * (eye - outer), jacobian),
        ("Eq. 13", "∇L_svr = Jᵀ ∇L(t_sup), summed over all candidates", ours.sum(1) + pull, gradient),
        ("Eq. 16", "push of each negative: a_∥ + (1 − R/‖a − t‖) a_⊥", ours, forces),
        ("Eq. 17", "parallel part of the total push, each negative", total, along),
        ("Eq. 18", "perpendicular part of the total push, each negative", rest, off),
    ]
    return pd.DataFrame(
        [(e, s, (one - other).abs().max().item(), other.abs().max().item()) for e, s, one, other in rows],
        columns=["equation", "statement", "error", "scale"],
    )


def push_by_negative(
    text: Tensor, audio: Tensor, radius: float, tau: float, *, similarity: str = "dot", on_sphere: bool = False
) -> Tensor:
    """What each negative adds to ∇_t L_svr, by autograd: `(N, d)`, `(N, d)` → `(N, N, d)`, zero for the positive.

    A candidate's share is P_sup,j · ∂s(t_sup, a_j)/∂t, since ∂L/∂s_j = P_sup,j (Eq. 3).

    Args:
        text, audio: unit embeddings.
        radius: R.
        tau: temperature.
        similarity: "dot" or "cosine".
        on_sphere: keep the tangent part at t⁺ alone: all that can move a normalised embedding.
    """

    def scores(t: Tensor, a: Tensor) -> Tensor:
        moved = _moved(t, a, radius)
        return audio @ (F.normalize(moved, dim=0) if similarity == "cosine" else moved) / tau

    share = torch.func.vmap(torch.func.jacrev(scores))(text, audio)  # (N, candidates, d)
    push = share * _probabilities(text, audio, radius, tau, similarity=similarity)[:, :, None]
    push[torch.eye(len(text), dtype=torch.bool)] = 0
    return tangent(push, text[:, None]) if on_sphere else push


def departure(text: Tensor, audio: Tensor, tau: float, *, radii: Sequence[float] | None = None) -> pd.DataFrame:
    """How far either reading of the similarity is from Eq. 16, over the radius; `(N, d)` each, on the sphere.

    Columns: similarity, radius, parallel and perpendicular (mean norm of the push's parts by negative, over those of
    the same negatives at R = 0), predicted (mean 1 − R/‖a − t‖), error (‖push − Eq. 16‖/‖Eq. 16‖ over all negatives).
    The probabilities are held at their values for each R, so that only the geometry is compared.
    """
    text, audio = text.double(), audio.double()
    distance = (audio - text).norm(dim=1)
    unit = F.normalize(audio - text, dim=1)
    radii = np.linspace(0, 1.4 * float(distance.mean()), 15) if radii is None else radii
    rows = []
    for similarity in ("dot", "cosine"):
        for radius in map(float, radii):
            push = push_by_negative(text, audio, radius, tau, similarity=similarity)
            weight = _probabilities(text, audio, radius, tau, similarity=similarity)
            weight[torch.eye(len(text), dtype=torch.bool)] = 0
            law = _law(text, audio, radius, weight, tau)
            start = weight[:, :, None] / tau * audio[None]
            parts = [
                (_norms(ours) / _norms(base)).item()
                for ours, base in zip(_split(push, unit), _split(start, unit), strict=True)
            ]
            error = _norms(tangent(push - law, text[:, None])) / _norms(tangent(start, text[:, None]))
            predicted = (1 - radius / distance).mean().item()
            rows.append((similarity, radius, *parts, predicted, error.item()))
    columns = ["similarity", "radius", "parallel", "perpendicular", "predicted", "error"]
    return pd.DataFrame(rows, columns=columns)


def gradient_parts(
    text: Tensor, audio: Tensor, tau: float, losses: Mapping[str, Callable[[Tensor, Tensor], Tensor]], batch_size: int
) -> pd.DataFrame:
    """Mean norms of −∇_t of several losses along û and across it, over batches of given embeddings, `(N, d)` each.

    Args:
        losses: name → loss of (audio, text), the mean over a batch.

    Returns:
        Columns loss, parallel, perpendicular, drift (cosine with û).
    """
    rows = []
    for name, loss in losses.items():
        parts = []
        for start in range(0, len(text) - batch_size + 1, batch_size):
            anchor = text[start : start + batch_size].clone().requires_grad_()
            partner = audio[start : start + batch_size]
            with one_thread():
                (gradient,) = torch.autograd.grad(loss(partner, anchor) * len(anchor), anchor)
            anchor = anchor.detach()
            gradient = tangent(-gradient, anchor)  # what is left of it on the sphere
            unit = F.normalize(tangent(partner - anchor, anchor), dim=1)
            along = (gradient * unit).sum(1)
            across = (gradient - along[:, None] * unit).norm(dim=1)
            parts.append(torch.stack([along.abs(), across, along / gradient.norm(dim=1).clamp(min=1e-12)], dim=1))
        parallel, perpendicular, cosine = torch.cat(parts).mean(0).tolist()
        rows.append((name, parallel, perpendicular, cosine))
    return pd.DataFrame(rows, columns=["loss", "parallel", "perpendicular", "drift"])


def radius_effects(text: Tensor, audio: Tensor, tau: float, radii: Sequence[float], batch_size: int) -> pd.DataFrame:
    """All that a radius changes in the SVR term alone (cosine, text-to-audio), over batches of `(N, d)` embeddings.

    Columns: radius; 1 − P_sup, the weight that the negatives are left with; parallel and perpendicular, mean norms of
    −∇_t along û and across it, on the sphere; across/along, their ratio; through t_sup, the share of the gradient on
    the sounds that reaches a⁺ through the support vector.
    """
    parts = gradient_parts(text, audio, tau, {r: lambda a, t, r=r: svr(a, t, r, tau) for r in radii}, batch_size)
    parts = parts.drop(columns="drift").rename(columns={"loss": "radius"})
    parts["across/along"] = parts["perpendicular"] / parts["parallel"]
    starts = range(0, len(text) - batch_size + 1, batch_size)
    cuts = [slice(start, start + batch_size) for start in starts]
    extra = np.array([[_weight_and_share(text[c], audio[c], r, tau) for c in cuts] for r in radii]).mean(axis=1)
    parts.insert(1, "1 − P_sup", extra[:, 0])
    return parts.assign(**{"through t_sup": extra[:, 1]})


def _weight_and_share(text: Tensor, audio: Tensor, radius: float, tau: float) -> tuple[float, float]:
    candidates, positives = (audio.clone().requires_grad_() for _ in range(2))
    moved = F.normalize(support_vector(text, positives, radius), dim=1)
    loss = F.cross_entropy(moved @ candidates.T / tau, torch.arange(len(text)))
    direct, through = torch.autograd.grad(loss, (candidates, positives))
    direct, through = (tangent(gradient, audio).norm() for gradient in (direct, through))
    weight = 1 - _probabilities(text, audio, radius, tau, similarity="cosine").diagonal().mean()
    return weight.item(), (through / (direct + through)).item()


def reweighted_parallel(text: Tensor, audio: Tensor, tau: float, weight: float, batch_size: int) -> float:
    """What Simple Reweight (gradient) adds to the parallel part of InfoNCE's step, as a fraction."""
    losses = {
        "reweight": lambda a, t: simple_reweight(a, t, weight, tau, "t2a"),
        "infonce": lambda a, t: info_nce(a, t, tau, direction="t2a"),
    }
    ours, theirs = gradient_parts(text, audio, tau, losses, batch_size)["parallel"]
    return ours / theirs - 1


def text_losses(tau: float, radius: float, weights: Sequence[tuple[str, float]]) -> dict[str, Callable]:
    """The text-to-audio halves of InfoNCE, of it with SVR at a radius, and of Simple Reweight, (form, w) each."""
    table: dict[str, Callable] = {
        "InfoNCE": lambda a, t: info_nce(a, t, tau, direction="t2a"),
        "InfoNCE twice": lambda a, t: 2 * info_nce(a, t, tau, direction="t2a"),
        f"InfoNCE + SVR, R = {radius:.2f}": lambda a, t: info_nce(a, t, tau, direction="t2a") + svr(a, t, radius, tau),
    }
    for form, weight in weights:
        table[f"Simple Reweight ({form}), w = {weight:.2f}"] = lambda a, t, form=form, w=weight: simple_reweight(
            a, t, w, tau, "t2a", form=form
        )
    return table


def _moved(t: Tensor, a: Tensor, radius: float) -> Tensor:
    return t + radius * F.normalize(a - t, dim=0)


def _probabilities(text: Tensor, audio: Tensor, radius: float, tau: float, *, similarity: str = "dot") -> Tensor:
    """P_sup of Eq. 3 `(N, N)`; at R = 0 the P of InfoNCE."""
    moved = support_vector(text, audio, radius)
    moved = F.normalize(moved, dim=1) if similarity == "cosine" else moved
    return (moved @ audio.T / tau).softmax(dim=1)


def _pull(probability: Tensor) -> Tensor:
    """P⁺ − 1 as minus the sum over the negatives, `(N, N)` → `(N,)`."""
    return probability.diagonal() - 1


def _split(vectors: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """`(N, M, d)` along and across `(N, d)`."""
    along = (vectors * unit[:, None]).sum(-1, keepdim=True) * unit[:, None]
    return along, vectors - along


def _law(text: Tensor, audio: Tensor, radius: float, weight: Tensor, tau: float) -> Tensor:
    """Eq. 16 with given probabilities `(N, N)` → `(N, N, d)`."""
    factor = 1 - radius / (audio - text).norm(dim=1)
    parallel, across = _split(audio[None].expand(len(text), -1, -1), F.normalize(audio - text, dim=1))
    return weight[:, :, None] / tau * (parallel + factor[:, None, None] * across)


def _equation_16(text: Tensor, audio: Tensor, radius: float, tau: float) -> Tensor:
    weight = _probabilities(text, audio, radius, tau)
    weight[torch.eye(len(text), dtype=torch.bool)] = 0
    return _law(text, audio, radius, weight, tau)


def _through(jacobian: Tensor, vectors: Tensor) -> Tensor:
    """Jᵀv, `(N, d, d)`, `(N, d)` → `(N, d)`."""
    return (jacobian.mT @ vectors[:, :, None]).squeeze(2)


def _norms(vectors: Tensor) -> Tensor:
    return vectors.norm(dim=-1).sum()


# ---------------------------------------------------------------- what is shown of scores

NAMES = {
    "twice": "InfoNCE twice (R = 0)",
    "siglip+infonce": "SigLIP + InfoNCE (R = 0)",
    "reweight": "Simple Reweight, gradient",
    "reweight-softmax": "Simple Reweight, softmax",
}
READINGS = {
    "gradient_drift_pull": "gradient, F_pull",
    "gradient_drift_tangent": "gradient, geodesic",
    "update_drift_tangent": "realised update, geodesic",
}
DRIFT_MEASURES = ("drift-gradient-pull", "drift-gradient-geodesic", "drift-update-geodesic")  # of READINGS, for ledgers


def named(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table with the printed names of its systems, in the column "system" unless others are named."""
    names = {column: table[column].map(lambda name: NAMES.get(name) or method_name(name)) for column in columns}
    return table.assign(**names) if columns else named(table, "system")


def standings(
    scores: Scores, metrics: Sequence[str], *, by: Sequence[str] = ("system",), where: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Who stands where, in %: mean ± standard deviation over seeds, and what validation R@1 still gained at the end.

    Args:
        metrics: columns of `scores.table`.
        by: columns that name a row together, such as ("route", "system").
        where: column → value of the rows that are meant.

    Returns:
        Columns system (the row's name), seeds, test items, the metrics, and "still gained (%)": in the last quarter of
        training, so that runs that were stopped early show it.
    """
    table = scores.table
    for column, value in (where or {}).items():
        table = table[table[column] == value]
    names = named(table)[list(by)].astype(str).agg(", ".join, axis=1)
    table = table.assign(system=names).rename(columns={"unconverged": "still gained"})
    shown = common.mean_and_spread(table, "system", [*metrics, "still gained"], percent=True)
    shown.insert(2, "test items", max(len(values[metrics[0]]) for values in scores.clips.values()))
    return shown


def differences(found: Mapping[tuple, Difference], heads: Sequence[str], *, scale: float = 100) -> pd.DataFrame:
    """Differences as a table: the `heads`, difference, low, high, half width, p (Holm within it), seeds, items.

    scale: of fractions, 100 gives points.
    """
    rows = []
    for key, one in holm(found).items():
        numbers = (scale * number for number in (one.value, one.low, one.high, one.half_width))
        rows.append((*key, *numbers, one.p_holm, one.seeds, one.clips))
    return pd.DataFrame(rows, columns=[*heads, "difference", "low", "high", "half width", "p (Holm)", "seeds", "items"])


def readable(table: pd.DataFrame, *, digits: int = 1) -> pd.DataFrame:
    """What `differences` gives, as text: "+1.2 ± 0.8 [0.4, 2.0]", p, and how many seeds × test items."""
    shown = table.drop(columns=["difference", "low", "high", "half width", "p (Holm)", "seeds", "items"])
    form = f"z.{digits}f"
    texts = [
        f"{row['difference']:+{form}} ± {row['half width']:{form}} [{row['low']:{form}}, {row['high']:{form}}]"
        for row in table.to_dict("records")
    ]
    shown["difference [95 %]"] = [text.replace("-", "−") for text in texts]
    shown["p (Holm)"] = table["p (Holm)"].map("{:.3f}".format)
    return shown.assign(**{"seeds × items": table["seeds"].astype(str) + " × " + table["items"].astype(str)})


def at_every_point(scores: Scores, system: str, baseline: str, metric: str = "R@1") -> dict[tuple, Difference]:
    """What a system has over a baseline at each point at which both were trained, by the values that make the point."""
    points = [trial.where for trial in scores.experiment.trials if trial.system == baseline]
    wheres = [trial.where for trial in scores.experiment.trials if trial.system == system and trial.where in points]
    return {tuple(where.values()): scores.contrast(system, baseline, metric, where) for where in wheres}


def compared(gains: pd.DataFrame) -> pd.DataFrame:
    """`Scores.gains` for a figure: the column system says "… over …"."""
    both = named(gains, "system", "baseline")
    return gains.assign(system=both["system"] + " over " + both["baseline"])


def ids(ledger: Ledger, *sources: str) -> list[str]:
    """The claims of a ledger that stand first in one of these places, such as "Table 1", and are judged."""
    return [claim.id for claim in ledger.judged if claim.source[0] in sources]


def positive_cosines(scores: Scores, systems: Iterable[str]) -> pd.DataFrame:
    """Cosine of every test clip with its first caption, seed by seed: columns system, seed, cosine."""
    return pd.concat(
        pd.DataFrame({"system": system, "seed": seed, "cosine": scores.clips[system, seed]["positive cosine"]})
        for system in systems
        for seed in scores.seeds(system)
    )


def zero_shots(runs: Mapping[tuple[str, int], Result], sounds: Mapping[str, Labelled]) -> pd.DataFrame:
    """Zero-shot accuracy with the paper's English prompt: columns set, system, seed, accuracy, chance."""
    rows = []
    for name, (split, prompts) in sounds.items():
        for (system, seed), run in runs.items():
            table = zero_shot(run.model, split, prompts).set_index("metric")
            rows.append((name, system, seed, table.loc["accuracy", "value"], table.loc["accuracy", "chance"]))
    return pd.DataFrame(rows, columns=["set", "system", "seed", "accuracy", "chance"])


# ---------------------------------------------------------------- one number a seed


def over_training(scores: Scores, system: str, column: str) -> np.ndarray:
    """A measurement of a system by seed and stretch of training, `(S, T)`."""
    own = scores.steps[scores.steps["system"] == system]
    return np.stack([rows.sort_values("step")[column].to_numpy(float) for _, rows in own.groupby("seed")])


def late(scores: Scores, system: str, column: str) -> np.ndarray:
    """A measurement's mean over the second half of training, `(S, 1)`."""
    values = over_training(scores, system, column)
    return np.nanmean(values[:, values.shape[1] // 2 :], axis=1, keepdims=True)


def fall(values: np.ndarray) -> np.ndarray:
    """First quarter minus last quarter of training, of measurements over it `(S, T)` → `(S, 1)`."""
    quarter = max(1, values.shape[1] // 4)
    return (values[:, :quarter].mean(axis=1) - values[:, -quarter:].mean(axis=1))[:, None]


def drifts(scores: Scores, system: str, baseline: str) -> dict[str, Difference]:
    """What a system's drift, a cosine, has over a baseline's in the second half of training, by column of READINGS."""
    return {name: difference(late(scores, system, name), late(scores, baseline, name)) for name in READINGS}


def distance_over_radius(scores: Scores, system: str) -> Difference:
    """The distance of a pair (root of the mean square) minus the mean radius, averaged over training."""
    distance = np.sqrt(over_training(scores, system, "distance_before"))
    return difference(np.nanmean(distance - over_training(scores, system, "radius"), axis=1, keepdims=True))


def after_first_epoch(scores: Scores, system: str, baseline: str) -> Difference:
    """Validation R@1 after one epoch, system over baseline."""
    first = scores.history[scores.history["epoch"] == 1].pivot(index="seed", columns="system", values="R@1")
    return difference(first[[system]], first[[baseline]])


def fluctuation(runs: Mapping[tuple[str, int], Result], system: str, seeds: Iterable[int]) -> np.ndarray:
    """Mean absolute change of the radius from one step to the next, `(S, 1)`."""
    return np.array([[runs[system, seed].steps["radius"].diff().abs().mean()] for seed in seeds])


# ---------------------------------------------------------------- the radius


class RadiusProbe(Diagnostics):
    """Asks a run's radius predictor, while it trains, about batches whose negatives are hard to a chosen degree.

    Each anchor gets a batch of its own: its positive, K hard negatives, and others at random (SupCLAP Figure 7).
    Hard are the most similar of `pool` sampled negatives, by the model's own similarities ("similar"), or those whose
    scene graph fits best without fitting fully ("graph", where there are scene graphs).
    """

    def __init__(
        self,
        split: Split | Recordings,
        *,
        every: int,
        ks: Sequence[int] = (0, 6, 12, 18),
        anchors: int = 64,
        pool: int = 720,
    ) -> None:
        super().__init__(every=every)
        pool = min(pool, len(split) - anchors)
        if pool < 1:
            raise ValueError(f"{len(split)} clips are too few for {anchors} anchors and a pool of negatives")
        self.ks, self.anchors = tuple(ks), anchors
        self.view = split.head(anchors + pool)
        own = PairDataset(self.view)
        self.batch: Batch = collate([own[i] for i in range(len(own))])
        self.relevance = self.view.head(anchors).relevance(self.view)[:, anchors:]

    def before(self, objective: Objective, batch: Batch) -> Tensor:
        return torch.empty(0)

    @torch.no_grad()
    def after(self, objective: Objective, batch: Batch, pair: Any, start: Tensor) -> dict[str, float]:
        """Columns `radius <kind> <K>`: mean R over the anchors."""
        loss = next(term.loss for term in objective.terms if getattr(term.loss, "predictor", None) is not None)
        text = objective.model.encode_text(self.batch.texts[: self.anchors])
        audio = objective.model.encode_audio(self.batch.audio, self.batch.lengths)
        similarity = text @ audio.T / loss.tau
        positive, others = similarity[:, : self.anchors].diagonal(), similarity[:, self.anchors :]
        others = others.masked_fill(self.relevance >= 1, -torch.inf)  # fits fully: no negative
        hardness = {"similar": others}
        if self.view.graded:  # a real dataset has no scene graphs
            hardness["graph"] = self.relevance.masked_fill(self.relevance >= 1, -1.0)
        generator = torch.Generator().manual_seed(0)
        row = {}
        for kind, order in hardness.items():
            for k in self.ks:
                radius = self._radius(loss.predictor, positive, others, order, k, generator)
                row[f"radius {kind} {k}"] = radius
        return row

    def _radius(
        self, predictor: torch.nn.Module, positive: Tensor, others: Tensor, order: Tensor, k: int, generator: Any
    ) -> float:
        """Mean R when K negatives are the first of `order` and the rest random, in random places of the batch."""
        n = predictor.batch_size
        k = min(k, n - 1)
        noise = torch.rand(others.shape, generator=generator)
        hard = (order + 1e-6 * noise).topk(k, dim=1).indices
        easy = noise.masked_fill(torch.isinf(others), -1).scatter(1, hard, -1.0).topk(n - 1 - k, dim=1).indices
        chosen = others.gather(1, torch.cat([hard, easy], dim=1))
        places = torch.rand(chosen.shape, generator=generator).argsort(1)
        rows = torch.cat([positive[:, None], chosen.gather(1, places)], dim=1)
        return predictor.layers(rows.to(predictor.layers[0].weight.dtype)).mean().item()


def radius_by_hardness(data: Data, plan: Recipe, seeds: Iterable[int], **probe: Any) -> pd.DataFrame:
    """Figure 7: columns seed, step, kind, K, radius; the runs are not kept."""
    seeds = list(seeds)
    steps = probed(data, [(plan, seed) for seed in seeds], partial(_radius_probe, probe))
    tables = [_by_hardness(table).assign(seed=seed) for seed, table in zip(seeds, steps, strict=True)]
    return pd.concat(tables, ignore_index=True)[["seed", "step", "kind", "K", "radius"]]


def _radius_probe(options: Mapping[str, Any], data: Data, plan: Recipe) -> RadiusProbe:
    return RadiusProbe(data.train, **options)


def _by_hardness(steps: pd.DataFrame) -> pd.DataFrame:
    """The probe's columns of a run: columns step, kind, K, radius."""
    columns = [name for name in steps if name.startswith("radius ")]
    table = steps[["step", *columns]].dropna().melt("step", value_name="radius")
    names = table["variable"].str.split(" ", expand=True)
    return table.assign(kind=names[1], K=names[2].astype(int)).drop(columns="variable")


def hardness_effects(table: pd.DataFrame, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Of `radius_by_hardness`, `(S, 1)` each: the mean radius with the most hard negatives minus that with none, and
    the least over K of what it falls from the first quarter of training to the last.
    """
    own = table[table["kind"] == kind].pivot(index=["seed", "K"], columns="step", values="radius")
    mean = own.mean(axis=1).unstack()
    falls = pd.Series(fall(own.to_numpy())[:, 0], index=own.index).unstack()
    return (mean.iloc[:, [-1]] - mean.iloc[:, [0]].to_numpy()).to_numpy(), falls.min(axis=1).to_numpy()[:, None]
