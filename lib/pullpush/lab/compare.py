"""Systems that chapters compare: trained side by side, scored clip by clip, with intervals of differences, and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from pullpush.data.batches import Batch
from pullpush.data.corpora import Recordings
from pullpush.data.world import Split
from pullpush.lab import common
from pullpush.lab.session import Session
from pullpush.metrics import Interval, caption_relevance, paired_bootstrap, retrieval_per_query
from pullpush.parallel import in_threads, one_thread, side_by_side
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import KS, embed
from pullpush.training.frozen import Data, on_features, trunk_of
from pullpush.training.loop import Result, make_optimiser, train
from pullpush.training.objective import Objective
from pullpush.training.recipes import Recipe
from pullpush.training.runs import ready, reloaded, trained_all

METRICS = tuple(f"{side} {metric}" for side in ("T2A", "A2T") for metric in (*(f"R@{k}" for k in KS), "mAP@10"))
Runs = dict[tuple[str, int], Result]


class Trial(NamedTuple):
    """One system at one point of a setting: what the table says, the recipe, and what differs from the profile."""

    setting: str
    value: Any
    recipe: str
    own: Mapping[str, Any] = {}


def train_systems(
    book: Session,
    data: Data,
    systems: Mapping[Any, tuple[str, Mapping[str, Any]]],
    seeds: Iterable[int],
    *,
    watch: Diagnostics | None = None,
) -> dict[tuple[Any, int], Result]:
    """Train each system with each seed on a world, encoded or not, side by side, or read the runs.

    Args:
        systems: label → recipe name and overrides, such as a batch size or an option of a term.

    Returns:
        (label, seed) → run.
    """
    plans = [(label, seed) for label in systems for seed in seeds]
    features = on_features(data) if trunk_of(data) else {}
    recipes = {label: common.sized(book, name, **_merged(features, own)) for label, (name, own) in systems.items()}
    runs = trained_all(data, [(recipes[label], seed) for label, seed in plans], diagnostics=watch)
    return dict(zip(plans, runs, strict=True))


def probed(
    data: Data, plans: Iterable[tuple[Recipe, int]], probe: Callable[[Data, Recipe], Diagnostics]
) -> list[pd.DataFrame]:
    """The steps of runs that a probe watches, side by side; the runs are not kept.

    Args:
        data: known by its configuration and trunk, as it is read anew in each process.
        plans: recipe and seed of each run.
        probe: makes the probe of a run, from the world and the recipe; can be sent to another process.
    """
    source = (data.config, trunk_of(data))
    return side_by_side([partial(_probed, source, plan, seed, probe) for plan, seed in plans])


def _probed(source: tuple, plan: Recipe, seed: int, probe: Callable[[Data, Recipe], Diagnostics]) -> pd.DataFrame:
    data = reloaded(*source)
    model, dataset = ready(data, plan, seed=seed)
    watch = probe(data, plan)
    with one_thread():
        return train(model, plan, dataset, data.valid, seed=seed, diagnostics=watch, progress=False).steps


def _merged(features: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides of a recipe, with the encoders' options of both."""
    options = {**features.get("encoder_options", {}), **own.get("encoder_options", {})}
    return {**features, **own} | ({"encoder_options": options} if options else {})


def trials(
    book: Session,
    data: Data,
    points: Sequence[Trial],
    seeds: Iterable[int],
    *,
    watch: Diagnostics | None = None,
) -> pd.DataFrame:
    """Scores on the test clips at all points: columns setting, value, system, seed, steps and METRICS."""
    runs = train_systems(book, data, {n: (p.recipe, p.own) for n, p in enumerate(points)}, list(seeds), watch=watch)
    table = scores(runs, data.test).table
    tried = [points[number] for number in table["system"]]
    table = table.assign(
        setting=[point.setting for point in tried],
        value=[point.value for point in tried],
        system=[point.recipe for point in tried],
        steps=[len(run.steps) for run in runs.values()],
    )
    return table[["setting", "value", "system", "seed", "steps", *METRICS]]


def per_clip(audio: Tensor, text: Tensor) -> dict[str, Tensor]:
    """METRICS of every clip, `(N,)` float64 each; T2A is the mean over the clip's captions.

    Args:
        audio: `(N, d)` L2-normalised.
        text: `(N, C, d)` L2-normalised, the clip's captions.
    """
    clips, captions, _ = text.shape
    similarity, truth = text.flatten(0, 1) @ audio.T, caption_relevance(clips, captions)
    table = {}
    for side, rows, relevant in (("T2A", similarity, truth), ("A2T", similarity.T, truth.T)):
        for metric, values in retrieval_per_query(rows, relevant, KS, (10,)).items():
            table[f"{side} {metric}"] = values.view(clips, -1).mean(1)
    return table


class Scores(NamedTuple):
    """What several runs score.

    table: columns system, seed, METRICS, and language where there are several; clips: (system, seed) → metric → the
    value of each clip `(N,)`, or in each language `(N, K)`.
    """

    table: pd.DataFrame
    clips: dict[tuple[Any, int], dict[str, Tensor]]


def scores(runs: Runs, split: Split | Recordings) -> Scores:
    """Score runs on a split with all its English captions."""
    own = in_threads([partial(_scored, run.model, split) for run in runs.values()])
    clips = dict(zip(runs, own, strict=True))
    rows = [{"system": system, "seed": seed, **means(values)} for (system, seed), values in clips.items()]
    return Scores(pd.DataFrame(rows), clips)


def _scored(model: torch.nn.Module, split: Split | Recordings) -> dict[str, Tensor]:
    return per_clip(*embed(model, split, caption="all", batch_size=512))


def means(clips: Mapping[str, Tensor]) -> dict[str, float]:
    """METRICS over all clips."""
    return {metric: values.mean().item() for metric, values in clips.items()}


def gain(scored: Scores, system: Any, base: Any, metric: str, seeds: Sequence[int]) -> Interval:
    """What `system` adds to `base` in the mean over languages: paired bootstrap over clips of the seeds' means."""
    ours, theirs = (
        torch.stack([_over_languages(scored.clips[name, seed][metric]) for seed in seeds]).mean(0).numpy()
        for name in (system, base)
    )
    return paired_bootstrap(ours, theirs)


def _over_languages(clips: Tensor) -> Tensor:
    """`(N,)` or `(N, K)` → `(N,)`."""
    return clips.reshape(len(clips), -1).mean(1)


def gains(
    scored: Scores,
    pairs: Iterable[tuple[Any, Any]],
    seeds: Sequence[int],
    metrics: Sequence[str] = ("T2A R@1", "A2T R@1"),
) -> pd.DataFrame:
    """`gain` of several (system, baseline).

    Returns:
        Columns system, baseline, metric, value, low, high (95 %, over clips), wins (seeds in which it is ahead).
    """
    table = scored.table.groupby(["system", "seed"], sort=False)[list(metrics)].mean()
    rows = []
    for system, base in pairs:
        for metric in metrics:
            ahead = sum(table.loc[(system, seed), metric] > table.loc[(base, seed), metric] for seed in seeds)
            rows.append((system, base, metric, *gain(scored, system, base, metric, seeds), f"{ahead}/{len(seeds)}"))
    return pd.DataFrame(rows, columns=["system", "baseline", "metric", "value", "low", "high", "wins"])


def verdict(low: float, high: float) -> str:
    """What an interval of a difference says of the claim that it is positive."""
    return "confirmed" if low > 0 else "contradicted" if high < 0 else "not seen: the interval holds 0"


def over_seeds(values: Sequence[float]) -> Interval:
    """Mean of one number a seed with Student's 95 % interval.

    Raises:
        ValueError: fewer than two seeds.
    """
    values = np.asarray(values, float)
    if len(values) < 2:
        raise ValueError("an interval over seeds needs at least two of them")
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Interval(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


# ---------------------------------------------------------------- overhead


def overhead(
    plans: Mapping[str, Recipe], model: torch.nn.Module, batch: Batch | Mapping[str, Batch], *, rounds: int = 7
) -> pd.DataFrame:
    """What a training step costs: plans take turns, so that a busy machine slows all of them alike.

    Args:
        batch: of all plans, or one for each.

    Returns:
        Columns system, seconds (median), time and memory, the ratios to the first plan. Memory is what a step holds
        for its backward pass plus weights, gradients and the two moments of Adam.
    """
    own = batch if isinstance(batch, Mapping) else dict.fromkeys(plans, batch)
    made = {name: Objective(model, plan) for name, plan in plans.items()}
    steps = {name: _stepper(objective, plans[name], own[name]) for name, objective in made.items()}
    held = {name: _held_bytes(objective, own[name]) for name, objective in made.items()}
    for step in steps.values():
        step()
    table = pd.DataFrame([{name: step() for name, step in steps.items()} for _ in range(rounds)])
    first = next(iter(plans))
    return pd.DataFrame(
        {
            "system": list(plans),
            "seconds": table.median().to_numpy(),
            "time": table.div(table[first], axis=0).median().to_numpy(),
            "memory": [held[name] / held[first] for name in plans],
        }
    )


def _stepper(objective: Objective, plan: Recipe, batch: Batch) -> Callable[[], float]:
    optimiser = make_optimiser(objective, plan)

    def step() -> float:
        start = time.process_time()
        optimiser.zero_grad()
        objective(batch).loss.backward()
        optimiser.step()
        return time.process_time() - start

    return step


def _held_bytes(objective: Objective, batch: Batch) -> int:
    """Bytes of all different tensors kept for the backward pass, and four times the weights."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outcome = objective(batch)
        size = sum(kept.values())  # while the graph lives, so that no address is used twice
        del outcome
    return size + 4 * sum(p.numel() * p.element_size() for p in objective.parameters() if p.requires_grad)
