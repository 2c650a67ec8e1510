"""The library's loop against a plain one on a CPU: processor time of a run of 336 steps on features, in turns.

    python benchmarks/loop.py --rounds 7 --out benchmarks/loop.csv

Both train the same dual encoder (projections of 1,024 features and of hashed words, d = 256) by InfoNCE and fused Adam,
batch 24, one thread. plain: a `DataLoader`, the step written out, a look at the loss each step. library: `train`, with
its reports, clipping, validation on 24 clips each epoch, checkpoint and tables. arithmetic: the plain step on one batch
that is there, with nothing around it. Bar: 0.9 of the plain loop; a row a measurement.

On two busy hyperthreads of an EPYC (`loop.csv`): 1.35, from 1.27 to 1.38, which misses the bar; arithmetic alone is
0.90 of the plain loop, so that the bar leaves nothing for data, clipping, reports and validation. The plain loop uses
the library's encoders, too: what is saved in these does not show.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam
from torch.utils.data import DataLoader

from pullpush.data.batches import PairDataset
from pullpush.encoders import create
from pullpush.training import recipe, train

CLIPS, BATCH, EPOCHS, SIZE, DIM = 1008, 24, 8, 1024, 256


class Features:
    """Clips of random features, each with a caption of its own."""

    def __init__(self, count: int) -> None:
        self.columns: dict[str, list[str]] = {}
        self.features = torch.randn(count, SIZE, generator=torch.Generator().manual_seed(count))

    def __len__(self) -> int:
        return len(self.features)

    def audio(self, index: list[int] | slice, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        rows = self.features[index]
        return rows, torch.full((len(rows),), SIZE)

    def captions(self, language: str) -> list[list[str]]:
        return [[f"a sound number {row} rings, then {row % 17} frogs croak"] for row in range(len(self))]


def model() -> nn.Module:
    return create("features", "hashed", dim=DIM, audio_dim=SIZE)


def library(clips: Features) -> None:
    one = recipe("infonce", text="hashed", audio="features", epochs=EPOCHS, batch_size=BATCH, dim=DIM)
    with tempfile.TemporaryDirectory() as folder:
        train(model(), one, PairDataset(clips), Features(24), out=folder, progress=False)


def plain(clips: Features) -> None:
    dual = model().train()
    optimiser = Adam(dual.parameters(), lr=1e-3, fused=True)
    pairs = list(zip(clips.features, [texts[0] for texts in clips.captions("eng")], strict=True))
    loader = DataLoader(pairs, batch_size=BATCH, shuffle=True)
    for _ in range(EPOCHS):
        total = 0.0
        for audio, texts in loader:
            total += step(optimiser, dual.encode_audio(audio), dual.encode_text(list(texts))).item()


def arithmetic(clips: Features) -> None:
    dual = model().train()
    optimiser = Adam(dual.parameters(), lr=1e-3, fused=True)
    audio, texts = clips.features[:BATCH], dual.text([texts[0] for texts in clips.captions("eng")[:BATCH]])
    for _ in range(EPOCHS * CLIPS // BATCH):
        step(optimiser, dual.audio_projection(audio), dual.text_projection(texts))


def step(optimiser: Adam, audio: Tensor, text: Tensor) -> Tensor:
    logits = audio @ text.T / 0.07
    rows = torch.arange(len(logits))
    loss = F.cross_entropy(logits, rows) + F.cross_entropy(logits.T, rows)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="a CSV file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    loops: dict[str, Callable[[Features], None]] = {"plain": plain, "library": library, "arithmetic": arithmetic}
    rows = []
    for number in range(-1, options.rounds):  # the first round warms up
        for name, loop in loops.items():
            start = time.process_time()
            loop(Features(CLIPS))
            rows.append({"round": number, "loop": name, "seconds": time.process_time() - start})
    table = pd.DataFrame(rows).query("round >= 0").pivot(index="round", columns="loop", values="seconds")
    table["ratio"], table["floor"] = table["library"] / table["plain"], table["arithmetic"] / table["plain"]
    print(table.to_string(float_format="{:.3f}".format), table.describe().to_string(), sep="\n")
    if options.out is not None:
        table.to_csv(options.out, float_format="%.4g")


if __name__ == "__main__":
    main()
