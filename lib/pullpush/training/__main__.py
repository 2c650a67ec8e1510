"""Train one recipe: `python -m pullpush.training …`, or on several GPUs or CPUs by torchrun (see distributed.py)."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Mapping, Sized
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch.distributed as dist
from tqdm import tqdm

from pullpush.cache import atomic_path
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import SPLITS, Clips, Config, World, load_data
from pullpush.data.pairing import CAPTIONS
from pullpush.data.recordings.corpora import CLEANINGS, CorpusConfig, Queries, read_queries, shared_captions
from pullpush.data.recordings.overlap import overlap
from pullpush.data.scenes.world import WorldConfig
from pullpush.data.shards import ShardsConfig
from pullpush.encoders import AUDIO, DualEncoder
from pullpush.errors import PullPushError, SettingError, TrainingError
from pullpush.parallel import keep_memory
from pullpush.settings import check_folder, check_setting
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.distributed import begin, of_the_whole_batch
from pullpush.training.evaluate import query_table, retrieval_table
from pullpush.training.loop import RECIPE, Result
from pullpush.training.recipes import RECIPES, Recipe, from_json, recipe
from pullpush.training.runs import train_run
from pullpush.training.trunk import FinishedRun

SCENES = {"n_train": 4000, "n_valid": 500, "n_test": 500}
COMMAND = "command.json"  # of a run: the options that it was trained with
AGAIN = "the same command goes on from the last checkpoint, unless it says --restart"
SHARDS = "shards:"  # in front of where they are
FIELDS = ("epochs", "batch_size", "audio", "text", "dim")  # of the recipe, that have an option of their own


def main(arguments: list[str] | None = None) -> int:
    """Train, print the best epoch and the retrieval on test clips; returns the exit status."""
    options = parser().parse_args(arguments)
    keep_memory()
    try:
        if options.out == Path() or not 0 <= options.seed < 2**32:
            given = f"{str(options.out)!r} and {options.seed}"
            raise SettingError(f"--out must be a folder of its own and --seed a whole number below 2³², got {given}")
        check_folder(options.out, "--out")
        first = begin().is_main_process  # before anything is read or written
        chosen = recipe_of(options)  # before the world, which takes longer
        if chosen.batch_size < 2:
            raise SettingError(f"batch_size must be at least 2, got {chosen.batch_size}: one clip has no negatives")
        world = load_data(config_of(options, chosen))
        check_splits(world)
        queries = None
        if options.queries:
            queries = read_queries(options.queries, world.test, cleaning=options.text_cleaning or "none")
            if len(queries.texts) < 2:
                raise SettingError(f"{options.queries}: one query alone has no interval: ask two at least")
        if options.overlap and first:
            table = overlap(world.train, world.test)
            options.out.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.out / "overlap.csv", index=False, lineterminator="\n")
            heard = f"{table['test'].nunique()} of {len(world.test)} test clips are heard in training"
            print(f"overlap: {heard} ({options.out / 'overlap.csv'})")
        diagnostics = Diagnostics(every=options.diagnostics) if options.diagnostics else None
        with of_the_whole_batch():
            result = train_run(
                world,
                chosen,
                out=options.out,
                seed=options.seed,
                base=options.base,
                resume=not options.restart,
                diagnostics=diagnostics,
                after_epoch=partial(say_epoch, chosen.epochs),
            )
        if first:
            with atomic_path(options.out / COMMAND) as path:  # by which the run's folder alone is scored and searched
                given = vars(options) | {name: from_anywhere(getattr(options, name)) for name in ("dataset", "bank")}
                path.write_text(json.dumps(given, default=str, indent=2) + "\n", encoding="utf-8")
            report(result, world.test, queries, options.out)
    except (PullPushError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted: {AGAIN}", file=sys.stderr)
        return 130
    except RuntimeError as error:
        if not dist.is_initialized():
            raise
        print(f"error: another process of the group was lost ({str(error).splitlines()[0]}): {AGAIN}", file=sys.stderr)
        return 1
    return 0


def check_splits(world: World) -> None:
    """Refuse a split of one clip alone, where everything is right; shards are counted as they are read."""
    clips = {name: split for name in SPLITS if isinstance(split := world.split(name), Sized)}
    if alone := [name for name, split in clips.items() if len(split) < 2]:
        raise SettingError(f"one clip alone in {', '.join(alone)}, which has none to be told from: give two at least")


def from_anywhere(name: str | None) -> str | None:
    """The name of data whose places on this disk do not depend on where the command is given.

    >>> from_anywhere("clotho"), from_anywhere("shards:/a?test=/b")
    ('clotho', 'shards:/a?test=/b')
    """
    kind, _, rest = (name or "").partition(":")
    if kind not in ("folder", "shards"):
        return name
    places = re.split(r"([?&](?:valid|test)=)", rest) if kind == "shards" else [rest]
    places[::2] = [str(Path(place).expanduser().absolute()) for place in places[::2]]
    return f"{kind}:{''.join(places)}"


def say_epoch(epochs: int, row: Mapping[str, float]) -> None:
    """One line an epoch, in a terminal above the bar."""
    line = f"epoch {row['epoch']}/{epochs}  loss {row['loss']:.3f}  valid R@1 {row['R@1']:.1%}"
    tqdm.write(line, file=sys.stderr)


class Trained(NamedTuple):
    """A finished run: the model of its best epoch, its last temperature, and the data that it is of."""

    model: DualEncoder
    tau: float
    config: Config


def open_run(run: Path) -> Trained:
    """What this command trained, from its folder.

    Raises:
        TrainingError: the folder holds no finished run, or one that another program trained.
    """
    if missing := [name for name in (RECIPE, COMMAND) if not (run / name).is_file()]:
        raise TrainingError(f"{run} has no {missing[0]}: give the --out of a finished `python -m pullpush.training`")
    chosen = from_json((run / RECIPE).read_text(encoding="utf-8"))
    try:
        given = argparse.Namespace(**json.loads((run / COMMAND).read_text(encoding="utf-8")))
        steps = pd.read_csv(run / "steps.csv")
    except (OSError, TypeError, ValueError) as error:
        raise TrainingError(f"{run} has a file that is lost or damaged ({error}): train anew by --restart") from error
    model = FinishedRun(run).model().eval()
    return Trained(model, float(steps["tau"].iloc[-1]) if "tau" in steps else 0.07, config_of(given, chosen))


def recipe_of(options: argparse.Namespace) -> Recipe:
    """The recipe that is asked for."""
    overrides = dict(map(setting, options.set))
    if "name" in overrides:
        raise SettingError("--set cannot name a recipe: give --recipe")
    if options.freeze:
        told = overrides.get("encoder_options", {})
        check_setting("encoder_options", told, dict)
        overrides["encoder_options"] = told | {f"{tower}_frozen": True for tower in options.freeze}  # as published
    overrides |= {name: value for name in FIELDS if (value := getattr(options, name)) is not None}
    if options.balance:
        overrides["balance"] = dict(map(group_weight, options.balance))
    if options.captions in CAPTIONS:
        overrides["captions"] = options.captions
    return recipe(options.recipe, **overrides)


def config_of(options: argparse.Namespace, chosen: Recipe) -> Config:
    """The data that is asked for: a dataset at the rate of the recipe's audio encoder, or scenes.

    Raises:
        ValueError: options of the one with the other.
    """
    sizes = {"n_train": options.train, "n_valid": options.valid, "n_test": options.test}
    every = options.captions == "every"
    if options.dataset is None:
        real = {"--seconds": options.seconds, "--subset": options.subset, "--text-cleaning": options.text_cleaning}
        real |= {"--captions every": every, "--queries": options.queries}
        if given := [name for name, value in real.items() if value]:
            raise ValueError(f"{', '.join(given)} goes with recordings: give --dataset NAME")
        scenes: dict[str, Any] = {name: SCENES[name] if size is None else size for name, size in sizes.items()}
        return WorldConfig(bank=options.bank or "tuxpaint", seed=options.world_seed, **scenes)
    if options.bank is not None:
        raise ValueError("--bank makes scenes, --dataset reads recordings: give one of them")
    heard = chosen.encoder_options.get("audio_members", [chosen.audio])  # by several encoders, or one
    sample_rate = max(AUDIO[name].sample_rate or SAMPLE_RATE for name in heard)
    if options.dataset.startswith(SHARDS):
        return shards_config(options, sample_rate, chosen.languages[0])
    return CorpusConfig(
        options.dataset,
        sample_rate=sample_rate,
        seconds=options.seconds,
        subset=options.subset,
        text_cleaning=options.text_cleaning or "none",
        every_caption=every,
        **sizes,
    )


def shards_config(options: argparse.Namespace, sample_rate: int, unnamed: str) -> ShardsConfig:
    """The shards that are asked for: "shards:/data/mine"; what goes with clips in memory alone is refused."""
    memory = {"--train": options.train, "--subset": options.subset, "--text-cleaning": options.text_cleaning}
    memory |= {"--captions every": options.captions == "every", "--overlap": options.overlap}
    if given := [name for name, value in memory.items() if value]:
        raise ValueError(f"{', '.join(given)} cannot be had with shards, which are read as they are needed")
    where = options.dataset.removeprefix(SHARDS)
    sizes = {"n_valid": options.valid, "n_test": options.test}
    return ShardsConfig(where, seconds=options.seconds, sample_rate=sample_rate, unnamed=unnamed, **sizes)


def report(result: Result, test: Clips, queries: Queries | None, out: Path) -> None:
    """Print what was learnt, and write the tables of the test."""
    languages = result.recipe.languages
    table = retrieval_table(result.model, test, languages)
    table.to_csv(out / "test.csv", index=False, lineterminator="\n")
    print("best epoch:", json.dumps(result.best))
    captions = test.captions(table["language"].iloc[0])  # what scores depend on beside the model
    count, shared = sum(map(len, captions)), shared_captions(captions)
    print(f"test: {len(test)} clips, {count} captions, {shared} of them another clip's, too")
    print(table.to_string(index=False, float_format="{:.3f}".format))
    if queries is not None:
        table = query_table(result.model, test, queries)
        table.to_csv(out / "queries.csv", index=False, lineterminator="\n")
        print(f"{len(queries.texts)} queries with {queries.relevance.sum(dim=1).double().mean():.1f} right clips each")
        print(table.to_string(index=False, float_format="{:.3f}".format))


def parser() -> argparse.ArgumentParser:
    """The options."""
    but = ("name", "terms", "encoder_options", "balance", "languages", *FIELDS)
    known = ", ".join(f"{item.name}={json.dumps(item.default)}" for item in fields(Recipe) if item.name not in but)
    result = argparse.ArgumentParser(
        prog="python -m pullpush.training",
        description="Train one recipe on one world.",
        epilog="\n".join(textwrap.wrap(f"--set takes options of terms and, with these defaults, {known}", 79)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--recipe", default="infonce", help=f"a sum of: {', '.join(RECIPES)}")
    result.add_argument("--out", type=Path, required=True, help="folder of the run; an unfinished run there goes on")
    result.add_argument("--seed", type=int, default=0, help="of weights, batches and captions; default 0")
    result.add_argument("--base", type=Path, metavar="RUN", help="folder of a finished run to start from")
    result.add_argument("--train", type=int, help="training clips; default 4000 scenes, or all of a dataset")
    result.add_argument("--valid", type=int, help="default 500 scenes, or all")
    result.add_argument("--test", type=int, help="default 500 scenes, or all")
    scenes = result.add_argument_group("scenes")
    scenes.add_argument("--bank", help="tuxpaint (default), synthetic or folder:PATH")
    scenes.add_argument("--world-seed", type=int, default=0, help="seed of the scenes")
    data = result.add_argument_group("recordings with captions")
    data.add_argument(
        "--dataset", metavar="NAME", help="audiocaps, clotho, wavcaps, macs, folder:PATH, shards:PATH or hf:NAME"
    )
    data.add_argument(
        "--seconds", type=float, help="longer clips are cut to this; default 30 of Clotho, all of shards, else 10"
    )
    data.add_argument("--subset", metavar="NAME", help="of the test clips: 957 or 975 of AudioCaps")
    data.add_argument("--text-cleaning", choices=CLEANINGS, help="how captions are cleaned; default none")
    data.add_argument(
        "--queries", type=Path, metavar="CSV", help="test on these queries, too, with several right clips each"
    )
    data.add_argument("--overlap", action="store_true", help="look for test clips among the training clips first")
    model = result.add_argument_group("recipe")
    model.add_argument("--epochs", type=int, help=f"passes over the training clips; default {Recipe.epochs}")
    model.add_argument("--batch-size", type=int, help=f"over all processes together; default {Recipe.batch_size}")
    model.add_argument("--audio", help=f"audio encoder; default {Recipe.audio}; `pullpush list --contents` has all")
    model.add_argument("--text", help=f"text encoder; default {Recipe.text}")
    model.add_argument("--dim", type=int, help=f"dimensions of the joint space; default {Recipe.dim}")
    model.add_argument(
        "--freeze",
        nargs="+",
        choices=("audio", "text"),
        default=(),
        help="keep the published weights of these encoders: only projections learn, many times faster",
    )
    model.add_argument(
        "--captions",
        choices=(*CAPTIONS, "every"),
        help="of a clip: its first, one drawn an epoch, all at once (for losses over many texts such as kcl, with "
        "--set sampling=fixed), or each as a pair of its own (every; recordings only)",
    )
    model.add_argument(
        "--balance",
        nargs="+",
        metavar="GROUP=WEIGHT",
        help="have every batch hold these groups of clips in this proportion; 0 leaves one out",
    )
    model.add_argument("--diagnostics", type=int, metavar="N", help="measure forces and drift every N steps")
    model.add_argument("--restart", action="store_true", help="start anew even if there is a checkpoint")
    model.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any field of the recipe or option of its terms",
    )
    return result


def setting(text: str) -> tuple[str, Any]:
    """`"lr=0.01"` → `("lr", 0.01)`: the value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set wants NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def group_weight(text: str) -> tuple[str, float]:
    """`"English speech=2"` → `("English speech", 2.0)`."""
    name, equals, value = text.rpartition("=")
    try:
        return name, float(value if equals else "")
    except ValueError:
        raise ValueError(f"--balance wants GROUP=WEIGHT, such as speech=2, got {text!r}") from None


if __name__ == "__main__":
    sys.exit(main())
