"""Training as the profile `full` does, at 1,024 pairs a step: seconds, clips a second and memory of four systems.

`training.train` as everyone calls it, in bfloat16 on a GPU: CED-Base and SONAR's text encoder from random weights, both
trained, clips of 4 s as long as the book's scenes, in memory; both encoded by chunks with cached gradients, KCL's
captions in eight languages. The first epoch warms up; a row's quartiles are over the others. `minutes`: of ten epochs
of 40,000 scenes, at this speed. Bar: 8.
"""

import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from on_gpu.meter import Run
from on_gpu.models import dual_encoder, sizes_of
from on_gpu.throughput import LR, stored, waveforms
from pullpush.data.batches import PairDataset
from pullpush.training import recipe
from pullpush.training.loop import train

SYSTEMS = ("infonce", "infonce+bi-dynamic-svr", "siglip", "kcl")
SCENES, EPOCHS, BAR = 40_000, 10, 8.0
COLUMNS = ["system", "batch", "texts", "seconds", "low", "high", "clips per second", "MiB", "minutes", "bar"]


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """A row a system; one that does not fit into memory has no numbers."""
    sizes = sizes_of(run.is_quick) if run.is_quick else replace(sizes_of(False), seconds=4.0)
    batch, chunk, steps = (4, 2, 1) if run.is_quick else (1024, 128, 2)
    model, waves = dual_encoder(sizes, run.device), waveforms(sizes)
    for system in SYSTEMS:
        if time.monotonic() > run.until:
            print(f"no time for {system}", flush=True)
            return
        languages = sizes.languages if system == "kcl" else ("eng",)
        chunks = {"audio_chunk": chunk, "text_chunk": 2 * chunk}
        one = recipe(system, dim=sizes.dim, batch_size=batch, epochs=3, optimiser="adamw", lr=LR, **chunks)
        one = replace(one, languages=languages)
        dataset = PairDataset(stored(sizes, waves, batch * steps), languages=languages, sampling=one.sampling)
        row, marks = {"system": system, "batch": batch, "texts": batch * len(languages), "bar": BAR}, []
        gc.collect()  # the last optimiser's moments go before this one's come
        run.reset()
        try:
            # One clip to choose by is always found: no later epoch is better, and no weights are copied.
            valid = dataset.split.head(1)
            train(model, one, dataset, valid, progress=False, after_epoch=lambda _: marks.append(run.since(0.0)))  # noqa: B023
        except torch.OutOfMemoryError:
            yield row
            continue
        took = pd.Series(marks).diff().dropna() / steps
        seconds = float(took.median())
        row |= {"seconds": seconds, "low": took.min(), "high": took.max(), "MiB": run.peak()}
        yield row | {"clips per second": batch / seconds, "minutes": seconds * SCENES * EPOCHS / batch / 60}
