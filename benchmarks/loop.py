"""The library's loop against plain ones on a CPU: processor time of short runs, in turns.

    python benchmarks/loop.py --rounds 7 --out benchmarks/loop.csv
    python benchmarks/loop.py cnn yamnet --rounds 3

All train the same dual encoder (an audio encoder and hashed words, d = 256) by InfoNCE and fused Adam, batch 24, one
thread. features: projections of 1,024 features, 336 steps; cnn: the small network, in training on 4 s of sound; yamnet:
YAMNet in training, as in fine-tuning. plain: a `DataLoader`, the step written out, a look at the loss each step. alike:
the same with what the library does beside it: clipping, a table of loss, norm and rate, R@1 on 1 of 42 clips each
epoch, the best weights, a checkpoint. library: `train`. arithmetic: the plain step on one batch that is there, with
nothing around it. Bar: 0.9 of the plain loop on features, 0.8 otherwise; a row a measurement.

The plain loops use the library's encoders, too: what is saved in these does not show. On features no single thing is
slow: without clipping, random states of their own, checks and details the library would still take 1.2 times as long
as the plain loop; the rest is Python, about a millisecond a step, and two calls of Adam where plain has one.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import Adam
from torch.utils.data import DataLoader

from pullpush.data.batches import PairDataset
from pullpush.data.clips import StoredClips
from pullpush.data.store import FULL_SCALE, Waveforms
from pullpush.encoders import create
from pullpush.training import recipe, train
from pullpush.training.evaluate import recall_at_1

CLIPS, BATCH, EPOCHS, SIZE, DIM, SAMPLES = 1008, 24, 8, 1024, 256, 64_000


class Features:
    """Clips of random features, each with a caption of its own."""

    def __init__(self, count: int) -> None:
        self.columns: dict[str, list[str]] = {}
        self.features = torch.randn(count, SIZE, generator=torch.Generator().manual_seed(count))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> tuple[Tensor, str]:
        return self.features[index], caption(index)

    def audio(self, index: list[int] | slice, *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        rows = self.features[index]
        return rows, torch.full((len(rows),), SIZE)

    def captions(self, language: str) -> list[list[str]]:
        return [[caption(row)] for row in range(len(self))]


class Noise(StoredClips):
    """Clips of noise in memory as they are stored, each with a caption of its own."""

    def __init__(self, count: int) -> None:
        noise = np.random.default_rng(count).integers(-3000, 3000, SAMPLES * count, dtype=np.int16)
        waves, rows = Waveforms(noise, SAMPLES * np.arange(1, count + 1)), np.arange(count)
        super().__init__("noise", "noise", waves, rows, {"file": rows.tolist()}, captions)

    def __getitem__(self, index: int) -> tuple[Tensor, str]:
        return torch.from_numpy(self.waveforms[index].astype(np.float32) / FULL_SCALE), caption(index)


def caption(row: int) -> str:
    return f"a sound number {row} rings, then {row % 17} frogs croak"


def captions(columns: Any, language: str) -> list[list[str]]:
    return [[caption(row)] for row in columns["file"]]


class Setting(NamedTuple):
    """What is trained: an audio encoder with its options, on so many clips, for so many epochs."""

    make: Callable[[int], Any]
    audio: str
    options: dict[str, Any]
    clips: int
    epochs: int


SETTINGS = {
    "features": Setting(Features, "features", {"audio_dim": SIZE}, CLIPS, EPOCHS),
    "cnn": Setting(Noise, "cnn", {}, 12 * BATCH, 3),
    "yamnet": Setting(Noise, "yamnet", {"audio_pretrained": False}, 5 * BATCH, 2),
}


class Run(NamedTuple):
    """A setting with a new model, its clips, those to choose by, and a folder for what is written."""

    setting: Setting
    model: nn.Module
    clips: Any
    valid: Any
    folder: Path

    @property
    def adam(self) -> Adam:
        return Adam(self.model.parameters(), lr=1e-3, fused=True)


def library(run: Run) -> None:
    one = recipe(
        "infonce", text="hashed", audio=run.setting.audio, epochs=run.setting.epochs, batch_size=BATCH, dim=DIM
    )
    train(run.model, one, PairDataset(run.clips), run.valid, out=run.folder, progress=False)


def plain(run: Run) -> None:
    optimiser, loader = run.adam, DataLoader(run.clips, batch_size=BATCH, shuffle=True)
    for _ in range(run.setting.epochs):
        total = 0.0
        for audio, texts in loader:
            total += step(run, optimiser, audio, list(texts)).item()


def alike(run: Run) -> None:
    optimiser, loader = run.adam, DataLoader(run.clips, batch_size=BATCH, shuffle=True)
    rows, best, weights = [], -1.0, {}
    for epoch in range(run.setting.epochs):
        for audio, texts in loader:
            loss, norm = step(run, optimiser, audio, list(texts), clip=1.0)
            rows.append({"epoch": epoch, "loss": loss.item(), "gradient": norm.item(), "lr": 1e-3})
        found = recall_at_1(run.model.eval(), run.valid)["R@1"]
        run.model.train()
        if found > best:
            best, weights = found, {name: value.clone() for name, value in run.model.state_dict().items()}
    torch.save(weights, run.folder / "best.pt")
    pd.DataFrame(rows).to_csv(run.folder / "steps.csv", index=False)


def arithmetic(run: Run) -> None:
    optimiser = run.adam
    audio, texts = map(list, zip(*(run.clips[row] for row in range(BATCH)), strict=True))
    audio, text = torch.stack(audio), run.model.text(texts)
    for _ in range(run.setting.epochs * len(run.clips) // BATCH):
        heard = run.model.audio_projection(run.model.audio(audio, torch.full((BATCH,), audio.shape[1])))
        update(run, optimiser, heard, run.model.text_projection(text))


def step(run: Run, optimiser: Adam, audio: Tensor, texts: list[str], clip: float = 0.0) -> Any:
    return update(run, optimiser, run.model.encode_audio(audio), run.model.encode_text(texts), clip)


def update(run: Run, optimiser: Adam, audio: Tensor, text: Tensor, clip: float = 0.0) -> Any:
    """The loss of a step; with `clip` its gradient's norm, too."""
    logits = audio @ text.T / 0.07
    rows = torch.arange(len(logits))
    loss = F.cross_entropy(logits, rows) + F.cross_entropy(logits.T, rows)
    optimiser.zero_grad()
    loss.backward()
    norm = clip_grad_norm_(run.model.parameters(), clip) if clip else None
    optimiser.step()
    return loss if norm is None else (loss.detach(), norm)


LOOPS = {loop.__name__: loop for loop in (plain, alike, library, arithmetic)}


def seconds(name: str, loop: Callable[[Run], None]) -> float:
    """Of the processor."""
    one = SETTINGS[name]
    model = create(one.audio, "hashed", dim=DIM, **one.options).train()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(one, model, one.make(one.clips), one.make(max(one.clips // 42, 2)), Path(folder))
        start = time.process_time()
        loop(run)
        return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", metavar="SETTING", help=f"of {', '.join(SETTINGS)}; default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="a CSV file; rows of other settings stay")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for setting in options.settings or SETTINGS:
        for number in range(-1, options.rounds):  # the first round warms up
            row: dict[str, Any] = {"setting": setting, "round": number}
            row |= {name: seconds(setting, loop) for name, loop in LOOPS.items()}
            row |= {f"{name} / plain": row[name] / row["plain"] for name in ("library", "alike", "arithmetic")}
            row["library / alike"] = row["library"] / row["alike"]
            print(*(f"{name}={value:.4g}" if isinstance(value, float) else value for name, value in row.items()))
            rows.append(row)
    table = pd.DataFrame(rows).query("round >= 0")
    print(table.groupby("setting").median().to_string(float_format="{:.3f}".format))
    if options.out is not None:
        if options.out.is_file():
            old = pd.read_csv(options.out)
            table = pd.concat([old[~old["setting"].isin(table["setting"])], table])
        table.to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
