"""Time and peak memory of losses in tiles against their plain forms, forward and backward, in one run.

    python benchmarks/tiles.py --n 16384 --d 1024 --repeats 3 --out benchmarks/tiles.csv
    python benchmarks/tiles.py --n 131072 --d 64 --how tiles --repeats 1
    python benchmarks/tiles.py --n 32768 --d 1024 --device cuda

Bars: in tiles at most 1/8 of the plain form's peak memory at 1.3 × its time (N = 16,384 and d = 1,024 on a CPU, N =
32,768 on a GPU); N = 131,072 within 2 GiB beyond the embeddings.

plain: autograd through the N × N matrix, as the losses are where it fits into one tile. chunks: open_clip's
`SigLipLoss(chunk_size=…)` (later than 3.3.0), whose chunks' logits stay in the graph; left out where it is missing.
Temperature and bias learn in all of them.

On two busy hyperthreads of an EPYC (`tiles.csv`, one round): sigmoid 0.64 × the time and 1/22 of the memory, InfoNCE
0.62 × and 1/21, open_clip's chunks 0.80 × and 1/5 of the sigmoid's plain form. SVR at N = 131,072 and d = 1,024 takes
1,135 MiB, measured on every 32nd tile; 1,024 of them are the gradients (3,083 where support vectors are held whole).

Every measurement is a process of its own, whose peak starts from nothing, and the forms take turns, so that a busy
machine slows all of them alike. Ratios are the median over rounds. Memory is what one step takes beyond its
embeddings, their gradients included.
"""

import argparse
import importlib
import inspect
import math
import multiprocessing
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.losses import _tiles, info_nce, plain, siglip, svr

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # of audio, text, τ and β
TAU, BIAS, RADIUS, CHUNK = 0.07, -10.0, 0.3, 1024
BARS = {"memory": 1 / 8, "time": 1.3}
LARGEST = 2048  # MiB, of N = 131,072


class Measured(NamedTuple):
    """One step: seconds of work, MiB beyond the embeddings, the loss and the length of its gradient."""

    seconds: float
    mebibytes: float
    loss: float
    gradient: float


def forms(n: int) -> dict[tuple[str, str], Loss]:
    """(loss, how it is computed) → the loss."""
    whole: dict[str, Loss] = {
        "sigmoid": lambda a, t, tau, bias: siglip(a, t, tau, bias, "siglip"),
        "sigmoid, Eq. 2": lambda a, t, tau, bias: siglip(a, t, tau, bias * tau, "glap"),
        "InfoNCE": lambda a, t, tau, bias: info_nce(a, t, tau),
        "InfoNCE, t2a alone": lambda a, t, tau, bias: info_nce(a, t, tau, "t2a"),
        "SVR": lambda a, t, tau, bias: svr(a, t, RADIUS, tau),
    }
    table: dict[tuple[str, str], Loss] = {}
    for name, loss in whole.items():
        table[name, "plain"] = partial(in_one, loss, n)
        table[name, "tiles"] = loss
    table["SVR", "plain"] = lambda a, t, tau, bias: plain.svr(a, t, RADIUS, tau)  # ours knows nothing but tiles
    if (chunks := open_clip()) is not None:
        table["sigmoid", "chunks"] = lambda a, t, tau, bias: chunks(t, a, 1 / tau, bias)
    return table


def in_one(loss: Loss, n: int, *arguments: Tensor) -> Tensor:
    """A loss as it is where N × N scores fit into one tile."""
    before, _tiles.BLOCK = _tiles.BLOCK, n * n
    try:
        return loss(*arguments)
    finally:
        _tiles.BLOCK = before


def open_clip() -> Any | None:
    """open_clip's loss in chunks, if that is installed."""
    try:
        kind = importlib.import_module("open_clip.loss").SigLipLoss
    except ImportError:
        return None
    return kind(chunk_size=CHUNK) if "chunk_size" in inspect.signature(kind).parameters else None


def inputs(n: int, d: int, device: str) -> tuple[Tensor, ...]:
    """Unit audio and text embeddings `(n, d)`, τ and β, all of which gradients reach."""
    torch.manual_seed(0)
    pair = (F.normalize(torch.randn(n, d, device=device), dim=1).requires_grad_() for _ in range(2))
    return *pair, *(torch.tensor(value, device=device, requires_grad=True) for value in (TAU, BIAS))


def measure(form: tuple[str, str], n: int, d: int, device: str, threads: int) -> Measured:
    """One step in this process, after a small one that brings the libraries' own buffers."""
    torch.set_num_threads(threads)
    loss = forms(n)[form]
    loss(*inputs(64, 8, device)).backward()
    tensors = inputs(n, d, device)
    before = start_peak(device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    # The work of one thread does not depend on who else works; of several threads, and on a GPU, the clock counts.
    clock = time.process_time if device == "cpu" and threads == 1 else time.perf_counter
    wait()
    start = clock()
    value = loss(*tensors)
    value.backward()
    wait()
    seconds, used = clock() - start, peak(device) - before
    length = math.hypot(*(float(x.grad.norm()) for x in tensors if x.grad is not None))
    return Measured(seconds, used, float(value.detach()), length)


def start_peak(device: str) -> float:
    """MiB in use now, from which on the peak counts."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 2**20
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the largest size so far is the present one
    except OSError:
        return math.nan
    return status("VmRSS")


def peak(device: str) -> float:
    """The most MiB in use since `start_peak` (a CPU: Linux; elsewhere NaN)."""
    return torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else status("VmHWM")


def status(name: str) -> float:
    """A size of this process in MiB."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return math.nan
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith(name))


def rounds(options: argparse.Namespace, n: int) -> pd.DataFrame:
    """All forms in turn, as often as asked: a row a measurement."""
    wanted = [form for form in forms(n) if form[0] in options.loss and form[1] in options.how]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "pullpush.losses"])  # importing them is most of a short measurement
    rows = []
    for number in range(options.repeats):
        for loss, how in wanted:
            with context.Pool(1) as pool:
                taken = pool.apply(measure, ((loss, how), n, options.d, options.device, options.threads))
            rows.append({"N": n, "d": options.d, "round": number, "form": f"{loss}: {how}", "of": loss, "how": how})
            rows[-1] |= taken._asdict()
            print(f"{number}: {rows[-1]['form']}: {taken.seconds:.1f} s, {taken.mebibytes:.0f} MiB", flush=True)
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Medians of a form, and of its ratios to the plain form of the same round, where that was measured."""
    base = rows[rows["how"] == "plain"].set_index(["round", "of"])
    places = pd.MultiIndex.from_frame(rows[["round", "of"]])
    for name, column in (("time", "seconds"), ("memory", "mebibytes")):
        rows[f"{name} / plain"] = rows[column].to_numpy() / base[column].reindex(places).to_numpy()
    for column in ("loss", "gradient"):
        of_plain = base[column].reindex(places).to_numpy()
        rows[f"{column} off"] = ((rows[column] - of_plain) / of_plain).abs().to_numpy()
    columns = ["seconds", "mebibytes", "time / plain", "memory / plain", "loss off", "gradient off"]
    return rows.groupby(["N", "d", "form"], sort=False)[columns].median().reset_index()


def main() -> None:
    """Print a table for each batch size, and what it says of the bars."""
    names = list(dict.fromkeys(name for name, _ in forms(1)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="+", default=[6144], help="batch sizes, above 4,096")
    parser.add_argument("--d", type=int, default=256, help="dimensions")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=1, help="on a CPU")
    parser.add_argument("--repeats", type=int, default=1, help="rounds, of each of which every form has one step")
    parser.add_argument("--loss", nargs="+", default=names, choices=names)
    parser.add_argument("--how", nargs="+", default=["plain", "tiles", "chunks"], choices=("plain", "tiles", "chunks"))
    parser.add_argument("--out", type=Path, help="a CSV file to add the rows to")
    options = parser.parse_args()
    if open_clip() is None and "chunks" in options.how:
        print("open_clip's SigLipLoss(chunk_size=…) is not installed: measured without it")
    for n in options.n:
        table = summary(rounds(options, n))
        table["device"] = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
        table["torch"], table["rounds"] = torch.__version__, options.repeats
        print(table.to_string(index=False, float_format="{:.3g}".format))
        for _, row in table[table["form"].str.endswith("tiles")].iterrows():
            kept = {name: row[f"{name} / plain"] <= bar for name, bar in BARS.items() if row[f"{name} / plain"] > 0}
            kept |= {f"{LARGEST} MiB": row["mebibytes"] <= LARGEST}
            print(row["form"], ", ".join(f"{name}: {'kept' if held else 'MISSED'}" for name, held in kept.items()))
        if options.out is not None:
            table.to_csv(options.out, mode="a", header=not options.out.exists(), index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
