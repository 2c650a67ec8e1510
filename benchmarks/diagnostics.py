"""What watching costs: time of a training step without and with diagnostics.

    python benchmarks/diagnostics.py

Four-second scenes of the synthetic bank, batch 24, the CNN of the `quick` profile, frozen text features; runs of both
kinds take turns, so that other load on the machine hits them alike.
"""

import argparse
import time

import pandas as pd

from pullpush.data.batches import PairDataset
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import create
from pullpush.training import Diagnostics, recipe, train
from pullpush.training.runs import precompute


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text", default="hashed")
    options = parser.parse_args()
    one = recipe("infonce", epochs=1, text=options.text)
    world = load_world(WorldConfig("synthetic", n_train=one.batch_size * options.steps, n_valid=8, n_test=8))
    kinds = {"none": None, "every 10th": Diagnostics(every=10), "every": Diagnostics()}
    rows = []
    for turn in range(options.rounds + 1):
        for kind, diagnostics in kinds.items():
            model = create(one.audio, one.text, dim=one.dim)
            dataset = PairDataset(world.train)
            precompute(model, dataset, world.valid)
            start = time.perf_counter()
            train(model, one, dataset, world.valid, diagnostics=diagnostics, progress=False)
            if turn:  # the first round warms up
                rows.append({"steps watched": kind, "ms a step": 1000 * (time.perf_counter() - start) / options.steps})
    table = pd.DataFrame(rows).groupby("steps watched", sort=False)["ms a step"].min().to_frame()
    table["extra"] = table["ms a step"] / table.loc["none", "ms a step"] - 1
    print(table.to_string(formatters={"ms a step": "{:.1f}".format, "extra": "{:+.1%}".format}))


if __name__ == "__main__":
    main()
