"""What each encoder costs: clips or texts a second, heard and trained, and memory.

    python benchmarks/encoders.py                          # all, with random weights: nothing is fetched
    python benchmarks/encoders.py cnn yamnet minilm        # some
    python benchmarks/encoders.py --weights                # the published weights, which cost the same

Each encoder runs in a process of its own: a batch of noise at its own sample rate, or of captions. `heard` is forward
alone; `trained` forward and backward through all of it; `upper` the same through its upper part, from activations of
the lower one that were computed before, which is what training with `trainable="upper"` costs from the second epoch on.
`MiB` is how much the largest resident size of the process grew while it trained (heard, where nothing can be trained).
Encoders whose architecture is published on a hub alone need it, and are left out where it cannot be reached.

Bar: the upper part of YAMNet at 3 × the clips a second of all of it, or more.
"""

import argparse
import inspect
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pandas as pd
import torch

from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.interface import EncoderCard

NOT_ENCODERS = ("features", "upper")  # clips that come as features, or as activations
Step = Callable[[], Any]


def resident() -> float:
    """MiB of the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rate(step: Step, batch: int, rounds: int) -> float:
    """Clips or texts a second: the median of the rounds, after one that warms up."""
    step()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return batch / statistics.median(seconds)


def build(card: EncoderCard, weights: bool) -> Any:
    """The encoder, with random weights unless asked for others."""
    drawn = {"pretrained": False} if card.pretrained and not weights else {}
    return card.make(**drawn)


def heard(encode: Step) -> Step:
    """Forward in evaluation mode, without gradients."""

    def step() -> None:
        with torch.no_grad():
            encode()

    return step


def trained(module: torch.nn.Module, encode: Step) -> Step:
    """Forward and backward, as training does."""

    def step() -> None:
        module.zero_grad()
        encode().square().mean().backward()

    return step


def measure_audio(card: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The row of an audio encoder."""
    encoder = build(card, options.weights).eval()
    samples = round(options.seconds * encoder.sample_rate)
    audio = 0.1 * torch.randn(options.batch, samples)
    lengths = torch.full((options.batch,), samples)
    row, before = facts(encoder), resident()
    row["heard"] = rate(heard(lambda: encoder(audio, lengths)), options.batch, options.rounds)
    if row["trainable"]:
        encoder.train()
        row["trained"] = rate(trained(encoder, lambda: encoder(audio, lengths)), options.batch, options.rounds)
        if "trainable" in inspect.signature(card.make).parameters:
            with torch.no_grad():
                activations, sizes = encoder.lower(audio, lengths)
            step = trained(encoder, lambda: encoder.upper(activations, sizes))
            row["upper"] = rate(step, options.batch, options.rounds)
    return row | {"MiB": resident() - before}


def measure_text(card: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The row of a text encoder. A frozen one gets texts that it has not seen in every round, as it keeps features."""
    encoder = build(card, options.weights).eval()
    world = load_world(WorldConfig("synthetic", n_train=2 * options.texts, n_valid=1, n_test=1))
    captions = list(dict.fromkeys(text for several in world.train.captions("eng") for text in several))
    blocks = iter([captions[start :: options.rounds + 1][: options.texts] for start in range(options.rounds + 1)])
    languages = ["eng"] * options.texts
    row, before = facts(encoder), resident()
    if row["trainable"]:
        fixed = captions[: options.texts]
        row["heard"] = rate(heard(lambda: encoder(fixed, languages)), len(fixed), options.rounds)
        encoder.train()
        row["trained"] = rate(trained(encoder, lambda: encoder(fixed, languages)), len(fixed), options.rounds)
    else:

        def fresh() -> torch.Tensor:
            texts = next(blocks)
            return encoder(texts, languages[: len(texts)])

        row["heard"] = rate(heard(fresh), options.texts, options.rounds)
    return row | {"MiB": resident() - before}


def facts(encoder: torch.nn.Module) -> dict[str, Any]:
    """What can be counted: million weights, and whether any can be trained."""
    parameters = list(encoder.parameters())
    return {
        "M weights": sum(p.numel() for p in parameters) / 1e6,
        "trainable": any(p.requires_grad for p in parameters),
        "dimensions": encoder.dim,
    }


def serve(kind: str, name: str, options: argparse.Namespace, pipe: Connection) -> None:
    """In a process of its own: send the row, or why there is none."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    cards, measure = {"audio": (AUDIO, measure_audio), "text": (TEXT, measure_text)}[kind]
    try:
        pipe.send(measure(cards[name], options))
    except Exception as error:  # the reason is the row
        pipe.send({"left out": f"{type(error).__name__}: {str(error)[:100]}"})


def measure(options: argparse.Namespace) -> pd.DataFrame:
    """A row an encoder."""
    context = multiprocessing.get_context("spawn")
    load_world(WorldConfig("synthetic", n_train=2 * options.texts, n_valid=1, n_test=1))  # rendered once
    names = [("audio", name) for name in AUDIO if name not in NOT_ENCODERS] + [("text", name) for name in TEXT]
    rows = []
    for kind, name in names:
        if options.names and name not in options.names:
            continue
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(kind, name, options, theirs), daemon=True)
        process.start()
        theirs.close()
        try:
            found = ours.recv()
        except EOFError:
            found = {"left out": f"its process ended with {process.exitcode}"}
        process.join()
        print(f"{name}: {'left out' if 'left out' in found else 'measured'}", file=sys.stderr, flush=True)
        rows.append({"encoder": name, "kind": kind, **found})
    return pd.DataFrame(rows).drop(columns="trainable", errors="ignore")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="encoders; default: all")
    parser.add_argument("--batch", type=int, default=16, help="clips at once")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a clip")
    parser.add_argument("--texts", type=int, default=64, help="texts at once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--weights", action="store_true", help="fetch and take the published weights")
    options = parser.parse_args()
    table = measure(options)
    print(table.to_string(index=False, float_format="{:.1f}".format, na_rep=""))


if __name__ == "__main__":
    main()
