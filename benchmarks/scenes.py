"""How many scenes a second are composed, rendered and told: `python benchmarks/scenes.py [--bank synthetic]`.

Renders into an empty cache of its own, which is removed afterwards; only the stamps and the decoded recordings are
taken from the real one. The design asks for at least 200 scenes of 4 s a second on two cores.
"""

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from pullpush.data.banks import create_bank
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.recordings import tuxpaint
from pullpush.data.scenes.composer import compose, pitch_bank
from pullpush.data.scenes.renderer import render
from pullpush.data.scenes.world import SceneConfig, WorldConfig, load_world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bank", default="tuxpaint")
    parser.add_argument("--scenes", type=int, default=2000)
    options = parser.parse_args()
    if options.bank == "tuxpaint":
        os.environ[tuxpaint.SOURCE] = str(tuxpaint.fetch())
    os.environ["PULLPUSH_PROGRESS"] = "0"
    home = Path(tempfile.mkdtemp(prefix="pullpush-benchmark-"))
    os.environ["PULLPUSH_HOME"] = str(home)
    try:
        measure(options.bank, options.scenes)
    finally:
        shutil.rmtree(home)


def measure(name: str, scenes: int) -> None:
    """Time each step on its own, then all of a world together."""
    started = time.perf_counter()
    bank = create_bank(name)
    report("decode the bank", sum(map(len, bank.clips)), "recordings", started)
    config = SceneConfig()
    started = time.perf_counter()
    pitch_bank(bank, config.max_semitones)
    report("shift its pitch", sum(map(len, bank.clips)) * (2 * config.max_semitones + 1), "recordings", started)
    started = time.perf_counter()
    drawn = [compose(bank, config, seed=0, index=index) for index in range(scenes // 4)]
    report("compose", len(drawn), "scenes", started)
    started = time.perf_counter()
    for scene in drawn:
        render(scene, bank, config)
    report("render, one thread", len(drawn), "scenes", started)
    started = time.perf_counter()
    world = load_world(WorldConfig(bank=name, n_train=scenes, n_valid=1, n_test=1, n_single_per_event=1))
    total = scenes + 2 + len(world.singles)
    report(f"build a world, {os.cpu_count()} cores", total, "scenes", started)
    started = time.perf_counter()
    for language in LANGUAGES:
        world.train.captions(language)
    report("write captions", scenes * 5 * len(LANGUAGES), "captions", started)


def report(what: str, count: int, unit: str, started: float) -> None:
    seconds = time.perf_counter() - started
    print(f"{what:<24} {count:>6} {unit:<10} {seconds:7.2f} s  {count / seconds:9.0f} {unit}/s")


if __name__ == "__main__":
    main()
