"""Runs that chapters share: trained once, kept under `home()/runs`, read from there ever after."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from accelerate import PartialState
from torch import nn

from pullpush.cache import content_key, home, locked
from pullpush.data.batches import Clips, PairDataset
from pullpush.data.world import World
from pullpush.encoders import create
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.loop import Result, train
from pullpush.training.recipes import Recipe, recipe

FORMAT = 1  # raise when training gives other numbers than before, so that old runs are not read
KIND = "runs"


def trained(
    world: World,
    recipe: Recipe,
    *,
    seed: int = 0,
    base: Result | None = None,
    diagnostics: Diagnostics | None = None,
    progress: bool | None = None,
) -> Result:
    """The run of a recipe on a world: read if it was trained before, else trained, going on where a killed one stopped.

    Args:
        world: its train split is learnt from, its valid split chooses the best epoch.
        recipe: what to train.
        seed: of the new weights, the batches and the captions.
        base: run to start from, itself one of `trained` or `base_model`; its seed decides the weights.
        diagnostics: what to measure; part of the run's identity, although it does not change the numbers.
        progress: show a bar.

    Raises:
        TrainingError: see `train`.
        CacheError: the cache cannot be written.
    """
    key = run_key(world, recipe, seed=seed, base=base, diagnostics=diagnostics)
    # Of several processes in one group the first holds the lock for all.
    with locked(KIND, key) if PartialState().is_main_process else nullcontext(home() / KIND / key) as out:
        return run(world, recipe, out=out, seed=seed, base=base, diagnostics=diagnostics, progress=progress)


def run_key(
    world: World,
    recipe: Recipe,
    *,
    seed: int = 0,
    base: Result | None = None,
    diagnostics: Diagnostics | None = None,
) -> str:
    """Name of a run's folder: a hash of all that shapes it."""
    if base is not None and base.path is None:
        raise ValueError("base must be a run on disk: one of `trained` or `base_model`, or of `train` with `out`")
    return content_key(
        [FORMAT, world.config, world.bank.key, recipe, seed, base.path.name if base else None, diagnostics]
    )


def base_model(world: World, *, seed: int = 0, progress: bool | None = None, **overrides: Any) -> Result:
    """The run that all recipes of a comparison start from: InfoNCE, `overrides` as for `recipe`."""
    return trained(world, recipe("infonce", **overrides), seed=seed, progress=progress)


def run(
    world: World,
    recipe: Recipe,
    *,
    out: Path | str | None,
    seed: int = 0,
    base: Result | None = None,
    diagnostics: Diagnostics | None = None,
    progress: bool | None = None,
    resume: bool = True,
) -> Result:
    """Create the recipe's model, pair the world's clips with captions, train."""
    model = create(recipe.audio, recipe.text, dim=recipe.dim, seed=seed, **recipe.encoder_options)
    dataset = PairDataset(
        world.train, languages=recipe.languages, sampling=recipe.sampling, captions=recipe.captions, seed=seed
    )
    precompute(model, dataset, world.valid)
    return train(
        model,
        recipe,
        dataset,
        world.valid,
        out=out,
        seed=seed,
        resume=resume,
        diagnostics=diagnostics,
        progress=progress,
        base=base.path if base else None,
    )


def precompute(model: nn.Module, dataset: PairDataset, valid: Clips) -> None:
    """Encode what a frozen text encoder will be asked for at once, which is faster than batch by batch."""
    if not hasattr(model, "precompute_text"):
        return
    count = None if dataset.choice == "random" else 1
    texts = [text for language in dataset.languages for own in dataset.split.captions(language) for text in own[:count]]
    texts += [own[0] for own in valid.captions(dataset.languages[0])]
    model.precompute_text(texts)
