"""Runs that chapters share: trained once, kept under `home()/runs`, read from there ever after.

plan = Plan(world, recipe("infonce", epochs=2), seed=3)
result = plan.train()  # trains, or reads what was trained before
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

from pullpush.cache import atomic_path, content_key, damage, digest, home, locked
from pullpush.data.batches import Batch, PairDataset, TrainingData
from pullpush.data.clips import Clips, Config, World, load_data
from pullpush.encoders import TEXT, DualEncoder, create
from pullpush.errors import TrainingError
from pullpush.golden import version_of_diagnostics, versions
from pullpush.losses import TERMS, LossCard
from pullpush.parallel import one_thread, side_by_side
from pullpush.training.checkpoints import best_file
from pullpush.training.components import of_recipe
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.distributed import begin
from pullpush.training.frozen import encoded
from pullpush.training.loop import RECIPE, TABLES, Result, is_finished, train
from pullpush.training.objective import bring_columns
from pullpush.training.recipes import Recipe
from pullpush.training.trunk import Trunk, local_weights

KIND = "runs"
SECONDS = "seconds.json"
Source = tuple[Config, Trunk | None]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that makes a run. What it is called by is found once: make another plan where data have changed.

    Attributes:
        world: scenes or a real dataset; its train split is learnt from, its valid split chooses the best epoch.
        recipe: what to train.
        seed: of the new weights, the batches and the captions.
        diagnostics: what to measure; part of the run's identity, although it does not change the numbers.
        base: folder of the run to start from, such as another plan's `path`; it decides the weights.
    """

    world: World
    recipe: Recipe
    seed: int = 0
    diagnostics: Diagnostics | None = None
    base: Path | None = None
    known: str = ""  # its key, where another process has found it: of what cannot be probed each look gives another

    @cached_property
    def key(self) -> str:
        """Name of the run's folder: a hash of what it learns from, by bytes, of its recipe, of the weights that it may
        start from, and of what the components do that it goes through.
        """
        recipe, watch, base = self.recipe, self.diagnostics, self.base
        in_cache = base and base.parent == home() / KIND  # where its folder names a run; elsewhere its weights do
        return self.known or content_key(
            {
                "components": versions(*of_recipe(recipe)),
                "data": self.world.identity,
                "recipe": recipe,
                "seed": self.seed,
                "weights": local_weights(recipe.encoder_options),
                "base": base and (base.name if in_cache else digest(best_file(base))),
                "diagnostics": [watch, version_of_diagnostics(watch)] if watch else None,
            }
        )

    @property
    def path(self) -> Path:
        """The run's folder, which need not exist yet."""
        return home() / KIND / self.key

    @property
    def finished(self) -> bool:
        """Whether it was trained to its end, and its tables are what was written."""
        return is_finished(self.path) and not damage(self.path, only=TABLES)

    @property
    def seconds(self) -> float:
        """How long it was trained for, over all its beginnings but those that were killed; 0 if unknown."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            return json.loads((self.path / SECONDS).read_text(encoding="utf-8"))["seconds"]
        return 0.0

    def train(self, *, progress: bool | None = None) -> Result:
        """The run: read if it was trained before, else trained, going on where a killed one stopped.

        progress: show a bar.

        Raises:
            TrainingError: see `training.train`.
            CacheError: the cache cannot be written.
        """
        # Of several processes in one group the first holds the lock for all.
        first = begin().is_main_process
        lock = locked(KIND, self.key, again=(*TABLES, SECONDS)) if first else nullcontext(self.path)
        with lock as out, one_thread():
            began, before = time.monotonic(), is_finished(out)
            options = {"base": self.base, "diagnostics": self.diagnostics, "progress": progress}
            result = train_run(self.world, self.recipe, out=out, seed=self.seed, **options)
            if not before and first:
                write_seconds(out, time.monotonic() - began)
            return result

    def order(self, *then: "Callable[[Plan], object]") -> Callable[[], None]:
        """A call that trains the run in another process, also on another machine that shares the cache: its world
        travels as a configuration. then: what is done with the run there.
        """
        source = (self.world.config, self.world.trunk)
        plan = (self.recipe, self.seed, self.diagnostics, self.base, self.key)
        return partial(_train_order, source, plan, then, added=TERMS.added)


def train_all(plans: Sequence[Plan], *, jobs: int | None = None) -> list[Result]:
    """Several runs, those that are missing trained side by side where there is no GPU; see `train_missing`."""
    train_missing(plans, jobs=jobs)
    return [plan.train() for plan in plans]


def train_missing(plans: Sequence[Plan], *, jobs: int | None = None) -> int:
    """Train those of several runs that are not there yet, side by side where there is no GPU; how many there were.

    jobs: processes at once; default: one a core.
    """
    missing = list(missing_of(plans).values())
    prepare(missing)
    side_by_side([plan.order() for plan in missing], jobs=1 if torch.cuda.is_available() else jobs)
    return len(missing)


def missing_of(plans: Iterable[Plan]) -> dict[str, Plan]:
    """Those of several runs that are not finished, by their keys: each once."""
    return {plan.key: plan for plan in plans if not plan.finished}


def prepare(plans: Sequence[Plan]) -> None:
    """Encode the frozen texts that several runs ask for, once for all of them."""
    if len(plans) > 1:
        asked = attrgetter("text", "encoder_options", "languages", "captions")  # decide which texts are encoded
        for plan in {(id(plan.world), content_key(asked(plan.recipe))): plan for plan in plans}.values():
            ready(plan.world, plan.recipe, seed=plan.seed)


def write_seconds(out: Path, seconds: float) -> None:
    """Say how long a run was trained for."""
    with atomic_path(out / SECONDS) as path:
        path.write_text(json.dumps({"seconds": round(seconds, 2)}) + "\n", encoding="utf-8")


def _train_order(
    source: Source, fields: tuple[Any, ...], then: Sequence[Callable[[Plan], object]], *, added: Sequence[LossCard]
) -> None:
    for card in added:
        TERMS.add(card)
    plan = Plan(reloaded(*source), *fields)
    plan.train(progress=False)
    for use in then:
        use(plan)


@lru_cache(maxsize=1)
def reloaded(config: Config, trunk: Trunk | None) -> World:
    """A world in another process: read once, for a run on features is not much longer."""
    world = load_data(config)
    return encoded(world, trunk) if trunk else world


def train_run(world: World, recipe: Recipe, *, out: Path | str | None, seed: int = 0, **options: Any) -> Result:
    """Create the recipe's model, pair the world's clips with captions, train in a folder of its own; see `Plan`.

    out: the folder, where an unfinished run goes on; None: nothing is written; options: further ones of `train`.
    """
    check_texts_of(options.get("base"), recipe)
    model, dataset = ready(world, recipe, seed=seed)
    return train(model, recipe, dataset, world.valid, out=out, seed=seed, data=content_key(world.identity), **options)


def check_texts_of(base: Any, recipe: Recipe) -> None:
    """Refuse a base whose projection learnt from another frozen text encoder, which no weight tells from this one."""
    before = recipe.text
    with suppress(OSError, ValueError, TypeError, KeyError):  # none, or a file of weights; its losses need not be here
        before = json.loads(best_file(base).with_name(RECIPE).read_text(encoding="utf-8"))["text"]
    if before != recipe.text and all(name in TEXT and TEXT[name].frozen for name in (before, recipe.text)):
        raise TrainingError(f"{base} learnt from texts of {before!r}, this run from {recipe.text!r}: take one for both")


def new_model(recipe: Recipe, *, seed: int) -> DualEncoder:
    """The model that a run of this recipe and seed starts from."""
    return create(recipe.audio, recipe.text, dim=recipe.dim, seed=seed, **recipe.encoder_options)


def untrained(recipe: Recipe, *, seed: int) -> DualEncoder:
    """`new_model`, ready to embed."""
    return new_model(recipe, seed=seed).eval()


def drawn(clips: Clips, recipe: Recipe, count: int = 8, *, seed: int = 0) -> list[Batch]:
    """The first batches that training by a recipe would draw: `count`, or as many as an epoch has.

    clips: with the columns that the terms need, such as NLI's sentences.
    """
    options = {"languages": recipe.languages, "sampling": recipe.sampling, "captions": recipe.captions}
    dataset = PairDataset(clips, **options, seed=seed, weights=recipe.balance)
    bring_columns(dataset, recipe)
    return list(islice(dataset.batches(recipe.batch_size, seed=seed, epoch=0), count))


def ready(world: World, recipe: Recipe, *, seed: int) -> tuple[DualEncoder, TrainingData]:
    """A recipe's new model and its pairs, with the features of frozen encoders in the cache."""
    model = new_model(recipe, seed=seed)
    options: dict[str, Any] = {"languages": recipe.languages, "sampling": recipe.sampling, "captions": recipe.captions}
    options |= {"seed": seed, "sample_rate": model.sample_rate, "weights": recipe.balance}
    stream = getattr(world.train, "pairs", None)  # shards pair themselves (see data.shards)
    dataset = stream(**options) if stream else PairDataset(world.train, **options)
    precompute(model, dataset, world.valid)
    return model, dataset


def precompute(model: DualEncoder, dataset: TrainingData, valid: Clips) -> None:
    """Encode what a frozen text encoder will be asked for at once, which is faster than batch by batch."""
    texts = [text for captions in valid.captions(dataset.languages[0]) for text in captions[:1]]
    if isinstance(dataset, PairDataset):  # of a stream nobody knows the texts before they come
        count = 1 if dataset.pairing.captions == "first" else None
        of_languages = (dataset.split.captions(language) for language in dataset.languages)
        texts = [text for of_language in of_languages for captions in of_language for text in captions[:count]] + texts
    model.precompute_text(texts)
