"""Runs that chapters share: trained once, kept under `home()/runs`, read from there ever after."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import joblib
import torch
from accelerate import PartialState
from torch import nn

from pullpush.cache import content_key, home, locked
from pullpush.data.batches import Clips, PairDataset
from pullpush.data.corpora import CorpusConfig, load_data
from pullpush.data.speech import SpeechConfig
from pullpush.data.world import WorldConfig
from pullpush.encoders import create
from pullpush.parallel import one_thread, side_by_side
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import Data, Trunk, encoded, local_weights, trunk_digest, trunk_of
from pullpush.training.loop import Result, is_finished, train
from pullpush.training.recipes import Recipe, recipe

FORMAT = 4  # raise when training gives other numbers than before, so that old runs are not read
KIND = "runs"


def trained(
    world: Data,
    recipe: Recipe,
    *,
    seed: int = 0,
    base: Path | None = None,
    diagnostics: Diagnostics | None = None,
    progress: bool | None = None,
) -> Result:
    """The run of a recipe on a world: read if it was trained before, else trained, going on where a killed one stopped.

    Args:
        world: scenes or a real dataset; its train split is learnt from, its valid split chooses the best epoch.
        recipe: what to train.
        seed: of the new weights, the batches and the captions.
        base: folder of the run to start from, the `path` of one of `trained` or `base_model`; it decides the weights.
        diagnostics: what to measure; part of the run's identity, although it does not change the numbers.
        progress: show a bar.

    Raises:
        TrainingError: see `train`.
        CacheError: the cache cannot be written.
    """
    key = run_key(world, recipe, seed=seed, base=base, diagnostics=diagnostics)
    # Of several processes in one group the first holds the lock for all.
    lock = locked(KIND, key) if PartialState().is_main_process else nullcontext(home() / KIND / key)
    with lock as out, one_thread():
        return run(world, recipe, out=out, seed=seed, base=base, diagnostics=diagnostics, progress=progress)


def trained_all(
    world: Data,
    plans: Sequence[tuple[Recipe, int]],
    *,
    base: Path | None = None,
    diagnostics: Diagnostics | None = None,
    jobs: int | None = None,
) -> list[Result]:
    """`trained` for several recipes and seeds, side by side where there is no GPU.

    Args:
        plans: recipe and seed of each run.
        base: folder of the run that all start from.
        diagnostics: what to measure in all.
        jobs: processes at once; default: one a core.
    """
    shared = {"base": base, "diagnostics": diagnostics}
    missing = [
        (recipe, seed)
        for recipe, seed in plans
        if not is_finished(home() / KIND / run_key(world, recipe, seed=seed, **shared))
    ]
    jobs = min(jobs or joblib.cpu_count(), len(missing))
    if jobs > 1 and not torch.cuda.is_available():
        for recipe, seed in {_reads(recipe): (recipe, seed) for recipe, seed in missing}.values():
            ready(world, recipe, seed=seed)  # frozen texts are encoded once, before the processes start
        # By its configuration: a world's arrays are mapped anew in each process.
        source = (world.config, trunk_of(world))
        side_by_side([partial(_train, source, *plan, base, diagnostics) for plan in missing], jobs=jobs)
    return [trained(world, recipe, seed=seed, **shared) for recipe, seed in plans]


def _reads(recipe: Recipe) -> str:
    """What decides which texts a recipe has encoded."""
    return content_key([recipe.text, recipe.encoder_options, recipe.languages, recipe.captions])


def _train(
    source: tuple[WorldConfig | CorpusConfig | SpeechConfig, Trunk | None],
    recipe: Recipe,
    seed: int,
    base: Path | None,
    diagnostics: Diagnostics | None,
) -> None:
    trained(reloaded(*source), recipe, seed=seed, base=base, diagnostics=diagnostics, progress=False)


@lru_cache(maxsize=1)
def reloaded(config: WorldConfig | CorpusConfig | SpeechConfig, trunk: Trunk | None) -> Data:
    """A world in another process: read once, for a run on features is not much longer."""
    world = load_data(config)
    return encoded(world, trunk) if trunk else world


def run_key(
    world: Data,
    recipe: Recipe,
    *,
    seed: int = 0,
    base: Path | None = None,
    diagnostics: Diagnostics | None = None,
) -> str:
    """Name of a run's folder: a hash of all that shapes it."""
    parts = [FORMAT, *world.identity, recipe, seed, base.name if base else None, diagnostics]
    trunk, weights = trunk_of(world), local_weights(recipe.encoder_options)
    return content_key([*parts, *([trunk_digest(trunk)] if trunk else []), *([weights] if weights else [])])


def base_model(world: Data, *, seed: int = 0, progress: bool | None = None, **overrides: Any) -> Result:
    """The run that all recipes of a comparison start from: InfoNCE, `overrides` as for `recipe`."""
    return trained(world, recipe("infonce", **overrides), seed=seed, progress=progress)


def run(
    world: Data,
    recipe: Recipe,
    *,
    out: Path | str | None,
    seed: int = 0,
    base: Path | None = None,
    diagnostics: Diagnostics | None = None,
    progress: bool | None = None,
    resume: bool = True,
) -> Result:
    """Create the recipe's model, pair the world's clips with captions, train."""
    model, dataset = ready(world, recipe, seed=seed)
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
        base=base,
    )


def ready(world: Data, recipe: Recipe, *, seed: int) -> tuple[nn.Module, PairDataset]:
    """A recipe's new model and its pairs, with the features of frozen encoders in the cache."""
    model = create(recipe.audio, recipe.text, dim=recipe.dim, seed=seed, **recipe.encoder_options)
    dataset = PairDataset(
        world.train, languages=recipe.languages, sampling=recipe.sampling, captions=recipe.captions, seed=seed
    )
    precompute(model, dataset, world.valid)
    return model, dataset


def precompute(model: nn.Module, dataset: PairDataset, valid: Clips) -> None:
    """Encode what a frozen text encoder will be asked for at once, which is faster than batch by batch."""
    if not hasattr(model, "precompute_text"):
        return
    count = None if dataset.choice == "random" else 1
    texts = [text for language in dataset.languages for own in dataset.split.captions(language) for text in own[:count]]
    texts += [text for own in valid.captions(dataset.languages[0]) for text in own[:1]]
    model.precompute_text(texts)
