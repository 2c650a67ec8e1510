"""What eight languages cost: time and peak memory of a training step of KCL, plain and in chunks, against ML-CLAP's.

    python benchmarks/chunked.py
    python benchmarks/chunked.py --unique               # no text twice in a batch
    python benchmarks/chunked.py --text hashed          # a frozen text encoder: only its projection is trained
    python benchmarks/chunked.py --clips 64 --batch 1024 --text hashed  # clips in chunks of 64 against the whole batch

Every clip is seen once a step by all methods, so that a step's time is the time per clip seen. Scenes of the synthetic
bank, the CNN and a text encoder, by default the byte transformer, trained by Adam. Time and memory are measured in the
same run, in a process for each method; steps of all methods take turns, so that other load on the machine hits them
alike. Memory is what torch allocates (weights, gradients, the optimiser's moments, activations) at its highest: on a
CPU from the profiler's record of every allocation, on a GPU from the allocator.

With --clips, InfoNCE on a small transformer of clips (the CNN's batch normalisation allows no chunks): the whole batch
at once against chunks of so many clips.

KCL, packed: the texts of all languages sorted by length, those of like length padded together. At the papers' sizes
(`book/measured/paper-sizes.csv`) that is 2.3 × the FLOPs of ML-CLAP and 1.27 × its bytes in float32, in place of 3.7
and 1.59; in chunks 2.7 and 1.00. The bars are of a GPU, which has not measured it: packed 2.6 × the seconds and 1.18 ×
the memory, in chunks 3.2 ×. Nothing cheap is left of the memory: what the layer of embeddings keeps is one tensor among
those of 24 layers. By the line between both rows, a third of the packed texts encoded again in the backward pass would
give 1.18 × the bytes at about 2.5 × the FLOPs; that is not built.
"""

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pandas as pd
import torch

from pullpush.data.batches import PairDataset, collate
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import create
from pullpush.training import recipe
from pullpush.training.objective import Objective
from pullpush.training.optimiser import make_optimiser

CPU = [torch.profiler.ProfilerActivity.CPU]


def methods(languages: tuple[str, ...], batch_size: int, clips: int = 0) -> dict[str, dict[str, object]]:
    """Name → arguments of `recipe`; clips: of a chunk, where it is clips that go in chunks."""
    if clips:
        small = {"audio_width": 96, "audio_layers": 3, "audio_heads": 3}
        one = {"name": "infonce", "audio": "audio_transformer", "encoder_options": small}
        return {"whole": one, f"chunks of {clips}": one | {"audio_chunk": clips}}
    kcl = {"name": "kcl", "languages": languages}
    sizes = {f"KCL, chunks of {size}": kcl | {"text_chunk": size} for size in (2 * batch_size, batch_size, 8)}
    return {
        "ML-CLAP": {"name": "ml-clap", "languages": languages},
        "CACL": {"name": "cacl", "languages": languages},
        "KCL": kcl | {"text_chunk": 0},
        "KCL, packed": kcl | {"text_chunk": -1},
        **sizes,
    }


def config(options: argparse.Namespace) -> WorldConfig:
    """So many scenes as a batch has; more than 64 are repeated where their sound alone is asked for."""
    count = min(options.batch, 64) if options.clips else options.batch
    return WorldConfig("synthetic", n_train=count, n_valid=8, n_test=8)


def prepare(options: argparse.Namespace, arguments: dict[str, object]) -> Callable[[], None]:
    """A function that does one step of training."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    one = recipe(**arguments, text=options.text, batch_size=options.batch)
    world = load_world(config(options))
    dataset = PairDataset(world.train, languages=one.languages, sampling=one.sampling, captions="random")
    batch = collate([dataset[row % len(dataset)] for row in range(one.batch_size)]).to(device)
    if options.unique:
        texts = [[f"{i}: {text}" for i, text in enumerate(column)] for column in (batch.texts, *batch.parallel)]
        batch = replace(batch, texts=texts[0], parallel=tuple(texts[1:]))
    model = create(one.audio, one.text, dim=one.dim)
    objective = Objective(model, one).to(device)
    optimiser = make_optimiser(objective, one)

    def step() -> None:
        optimiser.zero_grad()
        objective(batch).loss.backward()
        optimiser.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step


def peak_memory(options: argparse.Namespace, arguments: dict[str, object]) -> float:
    """MiB that torch holds at its highest in two steps, from the model's creation on."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        step = prepare(options, arguments)
        step(), step()
        return torch.cuda.max_memory_allocated() / 2**20
    with torch.profiler.profile(profile_memory=True, acc_events=True, activities=CPU) as profile:
        step = prepare(options, arguments)
        step(), step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return max(event["args"]["Total Allocated"] for event in events if event["name"] == "[memory]") / 2**20


def serve(options: argparse.Namespace, arguments: dict[str, object], pipe: Connection) -> None:
    """In a process of its own: tell the peak memory, then the seconds of a step at each request."""
    torch.set_num_threads(options.threads)
    pipe.send(peak_memory(options, arguments))
    step = prepare(options, arguments)
    step()  # warms up
    clock = time.perf_counter if torch.cuda.is_available() or options.threads > 1 else time.process_time
    while pipe.recv():
        start = clock()
        step()
        pipe.send(clock() - start)


def measure(options: argparse.Namespace) -> pd.DataFrame:
    """A row a method: ms a step (median), MiB, and both relative to the first."""
    context = multiprocessing.get_context("spawn")
    load_world(config(options))  # rendered once
    rows, workers = {}, {}
    for name, arguments in methods(LANGUAGES[: options.languages], options.batch, options.clips).items():
        ours, theirs = context.Pipe()
        workers[name] = context.Process(target=serve, args=(options, arguments, theirs), daemon=True), ours
        workers[name][0].start()
        rows[name] = {"MiB": ours.recv()}
    times: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(options.rounds):
        for name, (_, pipe) in workers.items():
            pipe.send(True)
            times[name].append(pipe.recv())
    for name, (process, pipe) in workers.items():
        pipe.send(False)
        process.join()
        rows[name]["ms a step"] = 1000 * statistics.median(times[name])
    table = pd.DataFrame(rows).T
    first = table.iloc[0]
    return table.assign(**{"memory ×": table["MiB"] / first["MiB"], "time ×": table["ms a step"] / first["ms a step"]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--languages", type=int, default=8)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--text", default="transformer")
    parser.add_argument("--clips", type=int, default=0, metavar="N", help="compare chunks of N clips with the batch")
    parser.add_argument("--unique", action="store_true", help="number the texts, so that none comes twice")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(measure(options).to_string(float_format="{:.2f}".format))


if __name__ == "__main__":
    main()
