"""The measurements of the chapter on SVR: the proof against autograd, training end to end, probes of the radius."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
from pullpush.lab.compare import METRICS, Runs, gains, probed, scores, train_systems
from pullpush.lab.material import Labelled, Material
from pullpush.lab.paper import paper_table
from pullpush.lab.root import find_root
from pullpush.lab.session import Session
from pullpush.losses import info_nce
from pullpush.losses.svr import simple_reweight, support_vector, svr
from pullpush.parallel import one_thread
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import embed, zero_shot
from pullpush.training.frozen import Data, encoded
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
        Columns loss, parallel, perpendicular, share (perpendicular² over all), drift (cosine with û).
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


def text_losses(tau: float, radius: float, weights: Mapping[str, float]) -> dict[str, Callable]:
    """The text-to-audio halves of InfoNCE, of it with SVR at one radius, and of Simple Reweight at learnt weights."""
    table: dict[str, Callable] = {
        "InfoNCE": lambda a, t: info_nce(a, t, tau, direction="t2a"),
        "InfoNCE, twice": lambda a, t: 2 * info_nce(a, t, tau, direction="t2a"),
        f"InfoNCE + SVR, R = {radius:.2f}": lambda a, t: info_nce(a, t, tau, direction="t2a") + svr(a, t, radius, tau),
    }
    for form, weight in weights.items():
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


# ---------------------------------------------------------------- end to end


class EndToEnd(NamedTuple):
    """What is kept of systems trained with their audio encoders, which takes longer than a chapter may.

    scores: columns system, seed and METRICS; gains: those of `gains`; history: system, seed, epoch and both validation
    R@1; drift: system, seed, DRIFTS over the second half of training, and the mean radius of its last tenth.
    """

    scores: pd.DataFrame
    gains: pd.DataFrame
    history: pd.DataFrame
    drift: pd.DataFrame


DRIFTS = ("gradient_drift_pull", "gradient_drift_tangent", "update_drift_tangent")


def end_to_end(runs: Runs, split: Split, pairs: Sequence[tuple[str, str]]) -> EndToEnd:
    """Tables of runs on waveforms, watched by diagnostics.

    Args:
        runs: (system, seed) → run.
        split: the test clips.
        pairs: (system, baseline) to compare, over the seeds that both have.
    """
    scored = scores(runs, split)
    tables = []
    for system, base in pairs:
        both = [seed for name, seed in runs if name == system and (base, seed) in runs]
        tables.append(gains(scored, [(system, base)], both))
    history = [run.history.assign(system=system, seed=seed) for (system, seed), run in runs.items()]
    columns = ["system", "seed", "epoch", "T2A R@1", "A2T R@1"]
    rows = []
    for (system, seed), run in runs.items():
        late = run.steps[run.steps["step"] > run.steps["step"].max() / 2]
        end = run.steps.tail(max(1, len(run.steps) // 10))
        radius = end["radius"].mean() if "radius" in end else float("nan")
        rows.append({"system": system, "seed": seed, **late[list(DRIFTS)].mean(), "radius": radius})
    return EndToEnd(scored.table, pd.concat(tables), pd.concat(history)[columns], pd.DataFrame(rows))


def stored_end_to_end(folder: Path | None = None) -> EndToEnd:
    """The tables that a sweep of the quick profile has left in `book/measured`."""
    folder = folder or find_root() / "book" / "measured"
    return EndToEnd(*(pd.read_csv(folder / f"end-to-end-{name}.csv") for name in EndToEnd._fields))


def paper_gain(table: int, system: str, base: str = "InfoNCE", *, task: str, metric: str = "R@1") -> float:
    """What `system` adds to `base` in a table of the paper on AudioCaps, in points."""
    rows = paper_table("supclap", table).query("dataset == 'AudioCaps' and task == @task and metric == @metric")
    values = rows.set_index("system")["value"]
    return float(values[f"{base} + {system}"] - values[base])


def positive_cosines(runs: Mapping[tuple[str, int], Result], split: Split | Recordings) -> pd.DataFrame:
    """Cosine of every test clip with its first caption: columns system, seed, cosine."""
    tables = []
    for (system, seed), run in runs.items():
        audio, text = embed(run.model, split)
        tables.append(pd.DataFrame({"system": system, "seed": seed, "cosine": (audio * text).sum(1).numpy()}))
    return pd.concat(tables, ignore_index=True)


def mean_negative(runs: Mapping[tuple[str, int], Result], split: Split | Recordings) -> pd.DataFrame:
    """Cosines of clips with their own first caption and with those of others, on the mean over the clips.

    Columns: system, seed, positive, negative, spread of negatives (standard deviation).
    """
    rows = []
    for (system, seed), run in runs.items():
        audio, text = embed(run.model, split)
        similarity = text @ audio.T
        off = similarity[~torch.eye(len(text), dtype=torch.bool)]
        rows.append((system, seed, similarity.diagonal().mean().item(), off.mean().item(), off.std().item()))
    return pd.DataFrame(rows, columns=["system", "seed", "positive", "negative", "spread of negatives"])


def zero_shots(runs: Mapping[tuple[str, int], Result], sounds: Mapping[str, Labelled]) -> pd.DataFrame:
    """Zero-shot accuracy with the paper's English prompt: columns set, system, seed, accuracy, chance."""
    rows = []
    for name, (split, prompts) in sounds.items():
        for (system, seed), run in runs.items():
            table = zero_shot(run.model, split, prompts).set_index("metric")
            rows.append((name, system, seed, table.loc["accuracy", "value"], table.loc["accuracy", "chance"]))
    return pd.DataFrame(rows, columns=["set", "system", "seed", "accuracy", "chance"])


# ---------------------------------------------------------------- worlds that differ


def transfer(
    book: Session,
    worlds: Mapping[str, Data],
    systems: Mapping[str, tuple[str, Mapping[str, Any]]],
    seeds: Sequence[int],
) -> pd.DataFrame:
    """Train on each world, test on each: columns train, test, system, seed and METRICS."""
    tables = []
    for source, data in worlds.items():
        runs = train_systems(book, data, systems, seeds)
        for target, other in worlds.items():
            tables.append(scores(runs, other.test).table.assign(train=source, test=target))
    return pd.concat(tables, ignore_index=True)[["train", "test", "system", "seed", *METRICS]]


def from_noise(
    ground: Material, systems: Sequence[str], seeds: Sequence[int], *, tau: float, watch: Diagnostics | None = None
) -> tuple[Data, Runs]:
    """Table 9: systems trained on an audio trunk and a text encoder that have learnt nothing, and their world."""
    noisy = encoded(ground.data(), ground.random_trunk())
    deaf = {"tau": tau, **ground.random_text}
    return noisy, train_systems(ground.book, noisy, {name: (name, deaf) for name in systems}, seeds, watch=watch)


# ---------------------------------------------------------------- the radius


def radius_table(runs: Mapping[tuple[Any, int], Result], *, points: int = 40) -> pd.DataFrame:
    """Mean radius of SVR over training: columns recipe, seed, step, epoch, radius."""
    own = {key: run for key, run in runs.items() if "radius" in run.steps}
    return common.steps_by_run(own, points=points)[["recipe", "seed", "step", "epoch", "radius"]]


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
