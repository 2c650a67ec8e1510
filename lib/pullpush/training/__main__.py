"""Train one recipe: `python -m pullpush.training …`, or `accelerate launch -m pullpush.training …`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pullpush.data.world import WorldConfig, load_world
from pullpush.errors import PullPushError
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.distributed import world as processes
from pullpush.training.evaluate import retrieval_table
from pullpush.training.recipes import RECIPES, recipe
from pullpush.training.runs import train_run


def main(arguments: list[str] | None = None) -> int:
    """Train, print the best epoch and the retrieval on test clips; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        overrides = dict(map(setting, options.set))
        for name in ("epochs", "batch_size", "audio", "text", "dim"):
            if (value := getattr(options, name)) is not None:
                overrides[name] = value
        chosen = recipe(options.recipe, **overrides)  # before the world, which takes longer
        sizes = {"n_train": options.train, "n_valid": options.valid, "n_test": options.test}
        world = load_world(WorldConfig(bank=options.bank, seed=options.world_seed, **sizes))
        diagnostics = Diagnostics(every=options.diagnostics) if options.diagnostics else None
        result = train_run(
            world,
            chosen,
            out=options.out,
            seed=options.seed,
            resume=not options.restart,
            diagnostics=diagnostics,
        )
        if processes()[0] == 0:
            table = retrieval_table(result.model, world.test, result.recipe.languages)
            table.to_csv(options.out / "test.csv", index=False, lineterminator="\n")
            print("best epoch:", json.dumps(result.best))
            print(table.to_string(index=False, float_format="{:.3f}".format))
    except (PullPushError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(prog="python -m pullpush.training", description="Train one recipe on one world.")
    result.add_argument("--recipe", default="infonce", help=f"a sum of: {', '.join(RECIPES)}")
    result.add_argument("--bank", default="tuxpaint", help="tuxpaint, synthetic or folder:PATH")
    result.add_argument("--out", type=Path, required=True, help="folder of the run; an unfinished run there goes on")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--world-seed", type=int, default=0, help="seed of the scenes")
    result.add_argument("--train", type=int, default=4000, help="training scenes")
    result.add_argument("--valid", type=int, default=500)
    result.add_argument("--test", type=int, default=500)
    result.add_argument("--epochs", type=int)
    result.add_argument("--batch-size", type=int, help="over all processes together")
    result.add_argument("--audio", help="audio encoder")
    result.add_argument("--text", help="text encoder")
    result.add_argument("--dim", type=int)
    result.add_argument("--diagnostics", type=int, metavar="N", help="measure forces and drift every N steps")
    result.add_argument("--restart", action="store_true", help="start anew even if there is a checkpoint")
    result.add_argument(
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


if __name__ == "__main__":
    sys.exit(main())
