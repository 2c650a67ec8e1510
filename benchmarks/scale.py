"""What a training of GLAP's size takes: seconds of a step by part, memory, hours, and what is short.

    python benchmarks/scale.py                                       # GLAP on the paper's machine, by size of the batch
    python benchmarks/scale.py --devices 8 --utilisation 0.3         # any field of a Job or a Machine
    python benchmarks/scale.py --out book/measured/scale.csv         # what the book shows, beside its origin
    python benchmarks/scale.py --cost book/measured                  # measured points, and what follows at scale

The model is arithmetic: FLOPs that `throughput.py` counted over FLOP/s, bytes over bytes a second, seconds of audio
over what a core decodes. What it cannot know is how much of its peak a machine sustains: `utilisation` is an
assumption.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pullpush.cache import atomic_path
from pullpush.errors import unknown
from pullpush.studies import measured
from pullpush.studies.measured import BOTH, FORWARD, KEPT, WEIGHTS

FILES = ("processes", "loop", "stacked", "losses")
PROCESSES, LOOP, STACKED, ALONE = (Path(__file__).with_name(f"{name}.csv") for name in FILES)
BATCHES = (256, 512, 1024, 4096, 16384, 65536)
LOSSES = ("plain", "tiles")
DECODING, AUDIO, TEXT, LOSS, GATHERING = "decoding", "audio encoder", "text encoder", "loss", "gathering embeddings"
GRADIENTS, OPTIMISER = "adding up gradients", "optimiser"
PARTS = (DECODING, AUDIO, TEXT, LOSS, GATHERING, GRADIENTS, OPTIMISER)
FLOAT, HALF = 4, 2  # bytes
STATE = 2  # bytes that Adam in 8 bits holds of a weight
COPIES = 4  # N × N matrices in float32 that the plain sigmoid loss holds at once: three kept, one in the making
TOUCHED = 20  # times that the loss reads or writes a score, about: ten elementwise steps, forth and back
TILE = 3 * 64 * 2**20  # bytes that the loss in tiles holds beside embeddings and their gradients


@dataclass(frozen=True)
class Machine:
    """What a training runs on.

    Attributes:
        name: for tables.
        flops: dense FLOP/s of one device in 16 bits at its peak; flops32: in float32, which losses are computed in.
        memory, bandwidth: of one device, bytes and bytes/s.
        network: bytes/s that a device sends, and receives, at once.
        devices: how many.
        cores: of CPUs that decode, all together.
        decode: seconds of audio that a core reads, mixes to one channel and resamples in a second: about 500 of FLAC
            at 48 kHz in stereo, five times as much at 16 kHz.
        utilisation: share of `flops` and `flops32` that a training sustains.
    """

    name: str
    flops: float
    flops32: float
    memory: float
    bandwidth: float
    network: float
    devices: int = 1
    cores: int = 16
    decode: float = 500.0
    utilisation: float = 0.4

    @property
    def label(self) -> str:
        """ "8 × A800" """
        return self.name if self.devices == 1 else f"{self.devices} × {self.name}"


@dataclass(frozen=True)
class Job:
    """What is trained: an audio encoder beside a frozen text encoder.

    Attributes:
        name: for tables.
        audio, text: encoders, as they were counted.
        tokens: of a text; seconds: of a clip, on average.
        batch: pairs, on all devices together.
        pairs: seen in the whole training.
        dim: of embeddings.
        loss: "plain" or "tiles".

    Raises:
        UnknownNameError: another loss.
        ValueError: a number that is not positive.
    """

    name: str = "GLAP"
    audio: str = "dasheng"
    text: str = "sonar"
    tokens: float = 20.0
    seconds: float = 5.0
    batch: int = 1024
    pairs: float = 204.8e6
    dim: int = 1024
    loss: str = "plain"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise unknown("loss of a job", self.loss, LOSSES)
        for name in ("tokens", "seconds", "batch", "pairs", "dim"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} of a job must be positive, got {getattr(self, name)}")


PAPER = Job()  # GLAP §3: 20 epochs of 10,000 batches of 1,024
# By their makers' numbers, with an assumed utilisation.
A800 = Machine("A800", 312e12, 19.5e12, 80e9, 2.039e12, 200e9, devices=8, cores=128)
H200 = Machine("H200", 989e12, 67e12, 141e9, 4.8e12, 450e9)
H100 = replace(H200, name="H100", memory=80e9, bandwidth=3.35e12)


def counts(what: str, quantity: str, size: float = 0.0) -> float:
    """A counted quantity at any size: linear between the sizes that were counted, and beyond the longest in proportion,
    for longer clips are heard in windows. Below the shortest it is the shortest's: encoders pad.

    Raises:
        UnknownNameError: not counted.
    """
    rows = measured.read("throughput", how=measured.COUNTED, what=what, quantity=quantity).sort_values("size")
    longest = float(rows["size"].max())
    value = float(np.interp(min(size, longest), rows["size"], rows["value"]))
    return value * max(1.0, size / longest) if longest else value


def step(job: Job, machine: Machine) -> dict[str, float]:
    """Seconds of one step by part. Decoding is done by other processors, while the devices compute; all else comes one
    after the other.
    """
    local = job.batch / machine.devices
    sustained, wide = machine.flops * machine.utilisation, machine.flops32 * machine.utilisation
    others = (machine.devices - 1) / machine.devices
    weights = counts(job.audio, WEIGHTS)
    products, touched = loss_cost(job)
    return {
        DECODING: job.batch * job.seconds / (machine.cores * machine.decode),
        AUDIO: local * counts(job.audio, BOTH, job.seconds) / sustained,
        TEXT: local * counts(job.text, FORWARD, job.tokens) / sustained,
        LOSS: products / wide + touched / machine.bandwidth,
        # Both sides: forth, and back as a sum over devices.
        GATHERING: 3 * others * 2 * FLOAT * job.batch * job.dim / machine.network,
        GRADIENTS: 2 * others * FLOAT * weights / machine.network,
        OPTIMISER: (4 * FLOAT + 2 * STATE) * weights / machine.bandwidth,
    }


def memory(job: Job, machine: Machine) -> dict[str, float]:
    """Bytes on a device at the fullest moment by part."""
    local, weights, matrix = job.batch / machine.devices, counts(job.audio, WEIGHTS), COPIES * FLOAT * job.batch**2
    return {
        "weights": FLOAT * (weights + counts(job.text, WEIGHTS)),
        "gradients": FLOAT * weights,
        "optimiser": STATE * weights,
        "activations": local * HALF / FLOAT * counts(job.audio, KEPT, job.seconds),  # in 16 bits; counted in float32
        "embeddings": 4 * FLOAT * job.batch * job.dim,  # both sides, and their gradients
        "loss": matrix if job.loss == "plain" else min(TILE, matrix),
    }


def loss_cost(job: Job) -> tuple[float, float]:
    """FLOPs of the sigmoid loss over all pairs of the batch, which every device computes, and bytes that it touches.

    One product forth, two back: 6 N² d.

    >>> loss_cost(Job(batch=2, dim=3))
    (72.0, 320.0)
    """
    pairs = float(job.batch) ** 2
    return 6 * pairs * job.dim, TOUCHED * FLOAT * pairs


def outline(job: Job, machine: Machine) -> dict[str, Any]:
    """job, machine, pairs, batch, seconds a step, hours, GB (on one device), fits, bottleneck, pairs a second."""
    parts, needed = step(job, machine), sum(memory(job, machine).values())
    decoding = parts.pop(DECODING)
    computing = sum(parts.values())
    seconds = max(decoding, computing)
    return {
        "job": job.name,
        "machine": machine.label,
        "pairs": job.pairs,
        "batch": job.batch,
        "seconds a step": seconds,
        "hours": seconds * job.pairs / job.batch / 3600,
        "GB": needed / 1e9,
        "fits": needed <= machine.memory,
        "bottleneck": DECODING if decoding > computing else max(parts, key=lambda part: parts[part]),
        "pairs a second": job.batch / seconds,
    }


# ---------------------------------------------------------------- measured points, and what follows from them


@dataclass(frozen=True)
class Line:
    """Seconds of a step on a GPU = fixed + clips · each, through two measured batches: nothing is left to test it."""

    fixed: float
    each: float

    def seconds(self, clips: float, operations: float) -> float:
        """Of so many clips a device, each with so many times the FLOPs of those that were measured."""
        return self.fixed + clips * operations * self.each


def line(loop: str) -> tuple[Line, pd.DataFrame]:
    """Of a loop of `gpu-throughput` with InfoNCE, and its rows."""
    rows = measured.read("gpu-throughput", loss="infonce", loop=loop).sort_values("batch")
    (small, large), (first, last) = rows["batch"], rows["seconds"]
    each = (last - first) / (large - small)
    return Line(first - small * each, each), rows


def pair_flops(audio: str, seconds: float, tokens: float, *, is_trained: bool) -> float:
    """Of a clip and its text, forward and backward where they are trained."""
    return counts(audio, BOTH, seconds) + counts("sonar", BOTH if is_trained else FORWARD, tokens)


MEASURED_PAIR = {"audio": "ced", "seconds": 10.0, "tokens": 28.0, "is_trained": True}  # a text is padded to the longest


OF_LOOP = {
    "library / plain": "seconds over a plain loop's",
    "library / alike": "seconds over those of a plain loop that clips, validates and reports, too",
    "arithmetic / plain": "arithmetic alone, seconds over a plain loop's",
}
BARS = {"features": 0.9, "cnn": 0.8, "yamnet": 0.8}
BARS_ALONE = {"InfoNCE": 0.75, "SigLIP": 0.6, "InfoNCE + uni-SVR": 1.2, "InfoNCE + bi-SVR": 1.5}


def points() -> pd.DataFrame:
    """What was measured beside what the model says, and what awaits a GPU."""
    speed = measured.read("throughput", how="measured, cpu").set_index(["what", "size"])["value"]
    rate = speed["products in float32", 1024]
    seconds = {"Dasheng, a clip of 5 s": (1, speed["dasheng, trained", 5], counts("dasheng", BOTH, 5) / rate)}
    for batch in (1024, 2048):
        seconds[f"sigmoid loss, {batch} pairs"] = batch, speed["sigmoid, plain", batch], 6 * batch**2 * 1024 / rate
    rows = [
        {"where": "CPU, one thread", "what": what, "batch": batch, "seconds": found, "model": model}
        for what, (batch, found, model) in seconds.items()
    ]
    both = pd.read_csv(PROCESSES).median()  # the model: half of one process's seconds
    of_two = {"batch": 32, "seconds": 32 / both["clips/s, 2"], "model": 16 / both["clips/s, 1"]}
    rows.append({"where": "CPU, two threads", "what": "two processes over gloo, 32 clips"} | of_two)
    table = measured.read("gpu-tables", chapter="02-svr", system="InfoNCE", precision="bf16")
    share = table.set_index("quantity")["value"]
    for loop in ("plain", "library"):
        of_loop, found = line(loop)
        for row in found.itertuples():
            model = row.batch * pair_flops(**MEASURED_PAIR) / H100.flops
            loss = share["seconds of the loss"] / share["seconds"] if row.batch == 24 else np.nan
            rows.append(
                {
                    "where": "H100, bf16",
                    "what": f"{loop} loop",
                    "batch": row.batch,
                    "seconds": row.seconds,
                    "model": model,
                }
                | {"GiB": row.MiB / 1024, "loss": loss, "fixed": of_loop.fixed}
            )
    awaited = [name for name in measured.SOURCES if name.startswith("gpu-") and measured.awaited(name)]
    rows += [{"where": "GPU", "what": measured.SOURCES[name].about, "status": "awaits a GPU"} for name in awaited]
    table = pd.DataFrame(rows)
    table.insert(4, "clips a second", table["batch"] / table["seconds"])
    table["of the model"] = table["model"] / table["seconds"]
    return table.assign(status=table["status"].fillna("measured"))


def small() -> pd.DataFrame:
    """Small runs: the loop beside plain ones, and stacked runs beside runs alone, with quartiles over rounds."""
    here, spread = {"where": "CPU, one thread"}, {"low": 0.25, "ratio": 0.5, "high": 0.75}
    rows: list[dict[str, Any]] = []
    for setting, found in pd.read_csv(LOOP).groupby("setting", sort=False):
        for column, what in OF_LOOP.items():
            row = {**here, "what": what, "encoder": setting, "system": "infonce", "runs": 1}
            row |= {name: found[column].quantile(at) for name, at in spread.items()}
            rows.append(row | ({"bar": BARS[setting]} if column == "library / plain" else {}))
    seconds = pd.read_csv(ALONE, index_col="round")
    for system, found in seconds.drop(columns="ClipLoss").div(seconds["ClipLoss"], axis=0).items():
        row = {**here, "what": "the loss alone, seconds over those of open_clip's ClipLoss", "system": system}
        row |= {name: found.quantile(at) for name, at in spread.items()}
        rows.append(row | {"bar": BARS_ALONE[str(system)]})
    over_alone, columns = "runs an hour over those alone", ["system", "runs", "ratio", "low", "high"]
    stacked = pd.read_csv(STACKED)
    older = stacked.get("older", False)
    stacked = stacked[columns].assign(encoder="features", what=over_alone)
    stacked["what"] += np.where(older, ", when the loop was slower", "")
    rows += [here | row for row in stacked.to_dict("records")]
    if measured.awaited("gpu-stacked"):
        on_gpu = pd.DataFrame({"system": stacked["system"].unique()})
    else:
        on_gpu = measured.read("gpu-stacked")[columns]
    rows += [
        {"where": "GPU", "what": over_alone} | row
        for row in on_gpu.assign(encoder="features", bar=30.0).to_dict("records")
    ]
    table = pd.DataFrame(rows)[["where", "what", "encoder", *columns, "bar"]]
    return table.assign(status=np.where(table["ratio"].notna(), "measured", "awaits a GPU"))


def extrapolated() -> pd.DataFrame:
    """GLAP's training on H100s by the measured line of the plain loop; `assumed` names what each row adds."""
    of_loop, _ = line("plain")
    operations = pair_flops(PAPER.audio, PAPER.seconds, PAPER.tokens, is_trained=False) / pair_flops(**MEASURED_PAIR)
    rows = []
    for batch in (1024, 65_536):
        for devices, assumed in ASSUMED.items():
            machine = replace(H100, devices=devices, cores=16 * devices, network=450e9 if devices <= 8 else 50e9)
            job, tiles = replace(PAPER, batch=batch), replace(PAPER, batch=batch, loss="tiles")
            parts, needed = step(job, machine), sum(memory(tiles, machine).values())
            talk = parts[GATHERING] + parts[GRADIENTS]
            computing = of_loop.seconds(batch / devices, operations) + parts[LOSS] + talk
            seconds = max(computing, parts[DECODING])
            waits = DECODING if parts[DECODING] > computing else "GPU"
            short = waits if needed <= machine.memory else "memory"
            rows.append(
                {
                    "batch": batch,
                    "GPUs": devices,
                    "seconds a step": seconds,
                    "hours": seconds * job.pairs / batch / 3600,
                }
                | {"loss": parts[LOSS] / seconds, "between GPUs": talk / seconds, "GB": needed / 1e9}
                | {"short": short, "assumed": assumed}
            )
    table = pd.DataFrame(rows)
    alone = table.groupby("batch")["hours"].transform("first")
    table.insert(4, "efficiency", alone / table["hours"] / table["GPUs"])
    return table


ASSUMED = {
    1: "fixed seconds and share of the peak as measured with CED and SONAR; the loss by its count; 16 cores decode",
    8: "and 450 GB/s between GPUs, nothing overlaps",
    64: "and 50 GB/s between machines of 8, no stragglers",
}


def sweep(job: Job, machine: Machine, batches: Sequence[int]) -> pd.DataFrame:
    """`outline` over sizes of the batch, with the hours of each part in columns of its name."""
    rows = []
    for each in (replace(job, batch=size) for size in batches):
        hours = {part: seconds * each.pairs / each.batch / 3600 for part, seconds in step(each, machine).items()}
        rows.append(outline(each, machine) | hours)
    return pd.DataFrame(rows)


def table(job: Job, machines: Sequence[Machine], batches: Sequence[int]) -> pd.DataFrame:
    """`sweep` of some machines, with the gigabytes of the loss in both ways."""
    rows = pd.concat([sweep(job, machine, batches) for machine in machines], ignore_index=True)
    for loss in LOSSES:
        jobs = [replace(job, batch=batch, loss=loss) for batch in rows["batch"]]
        rows[f"GB of the loss, {loss}"] = [memory(each, machines[0])["loss"] / 1e9 for each in jobs]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = {**asdict(A800), **asdict(PAPER)}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=type(value), choices=LOSSES if name == "loss" else None)
    parser.add_argument("--out", type=Path, help="CSV file")
    parser.add_argument("--cost", type=Path, metavar="FOLDER", help="write cost.csv, cost-small.csv, cost-scale.csv")
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    start, out = time.monotonic(), given.pop("out", None)
    if folder := given.pop("cost", None):
        for name, rows in (("cost", points()), ("cost-small", small()), ("cost-scale", extrapolated())):
            print(rows.to_string())
            rows.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
            command = "python benchmarks/scale.py --cost book/measured"
            measured.note(name, measured.COUNTED, time.monotonic() - start, command, path=folder / f"{name}.csv")
        return
    ours = [
        replace(one, **{each.name: given[each.name] for each in fields(one) if each.name in given})
        for one in (PAPER, A800, H200)
    ]
    rows = table(ours[0], ours[1:], [given["batch"]] if "batch" in given else BATCHES)
    print(rows.to_string())
    if out:
        with atomic_path(out) as partial:
            rows.to_csv(partial, index=False, float_format="%.15g")
        command = shlex.join(["python", "benchmarks/scale.py", *(arguments or sys.argv[1:])])
        measured.note("scale", measured.COUNTED, time.monotonic() - start, command, path=out)


if __name__ == "__main__":
    main()
