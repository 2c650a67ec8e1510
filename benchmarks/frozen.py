"""What a frozen audio trunk saves: clips a second of training from scratch and on its features, on one core.

    python benchmarks/frozen.py

Scenes of the synthetic bank, batch 24, frozen text features. The rate is that of further epochs, each with its
validation; the start of a run is left out.
"""

import argparse
import tempfile
import time
from dataclasses import replace

import torch

from pullpush.data.scenes.world import World, WorldConfig, load_world
from pullpush.training import recipe
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import Recipe
from pullpush.training.runs import train_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--text", default="hashed")
    options = parser.parse_args()
    torch.set_num_threads(1)
    world = load_world(WorldConfig("synthetic", n_train=options.clips, n_valid=100, n_test=1))
    with tempfile.TemporaryDirectory() as folder:
        base = train_run(world, recipe("infonce", epochs=1, text=options.text), out=folder, progress=False)
        fast = encoded(world, base)
    systems = {"from waveforms, d = 256": (world, recipe("infonce", text=options.text))}
    for name in ("infonce", "infonce+bi-dynamic-svr", "cacl", "kcl"):
        for dim in (256, 128):
            one = recipe(name, text=options.text, dim=dim, **on_features(fast))
            systems[f"{name} on features, d = {dim}"] = (fast, one)
    for kind, system in systems.items():
        rounds = 1 if system[0] is world else options.rounds
        print(f"{kind:40} {max(rate(*system) for _ in range(rounds)):6.0f} clips/s", flush=True)


def rate(world: World, one: Recipe) -> float:
    """Clips a second: by how much two epochs more lengthen a run."""
    times = []
    for epochs in (1, 3):
        start = time.perf_counter()
        train_run(world, replace(one, epochs=epochs), out=None, progress=False)
        times.append(time.perf_counter() - start)
    return 2 * len(world.train) / (times[1] - times[0])


if __name__ == "__main__":
    main()
