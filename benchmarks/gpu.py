"""What needs a GPU, in one command of at most eight minutes: `make gpu`.

    python benchmarks/gpu.py                                   # all parts, into book/measured
    python benchmarks/gpu.py tables tiles --out measured  # some
    python benchmarks/gpu.py --device cpu --quick --out measured    # tiny sizes, to try it out

correct       every loss in float32 and bfloat16 against float64 on the CPU
throughput    the library's loop against a plain one of Hugging Face and open_clip
full          training at 1,024 pairs a step by chunks: InfoNCE, with bi-DynamicSVR, SigLIP, KCL in eight languages
tables        SupCLAP's Table 14 and ATRI's Table 4: time and memory of a step, in bfloat16 and float32
processes     two GPUs over NCCL against one, where there are two: gradient and clips a second
stacked       many small runs on features together against one after the other
tiles         InfoNCE, SigLIP and SVR in tiles against the N × N matrix, up to N = 131,072
adam8bit      Adam in eight bits, where bitsandbytes is installed

Random weights and random data in the papers' sizes: nothing is fetched. Needs an NVIDIA GPU of 40 GiB or more and what
`pullpush[train]` brings. The most important parts come first, and the table of each, `gpu-<part>.csv`, is written row
by row, with the device and the versions beside it in `gpu-<part>.json`, so that what is killed leaves what it has; the
chapters show them by `pullpush.studies.measured`. A part that fails is reported and the others go on; the exit status
is then 1. First of all, also where there is no GPU, the command says which tables are missing, broken off, or older
than what their components do today.
"""

import argparse
import gc
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from on_gpu import adam8bit, correct, full, processes, stacked, tables, throughput, tiles
from on_gpu.meter import NotHereError, Run

from pullpush import golden
from pullpush.studies import measured
from pullpush.studies.measured import SOURCES, seal

MEASURED = Path(__file__).resolve().parents[1] / "book" / "measured"
PACKAGES = ("torch", "transformers", "accelerate", "torchaudio", "numpy", "bitsandbytes", "open_clip_torch")


class Part(NamedTuple):
    """measure gives rows, of these columns; seconds: after which it is stopped, beside those that others left over."""

    measure: Any
    columns: Sequence[str]
    seconds: int


PARTS = {
    "correct": Part(correct.measure, correct.COLUMNS, 25),
    "throughput": Part(throughput.measure, throughput.COLUMNS, 110),
    "full": Part(full.measure, full.COLUMNS, 100),
    "tables": Part(tables.measure, tables.COLUMNS, 75),
    "processes": Part(processes.measure, processes.COLUMNS, 50),
    "stacked": Part(stacked.measure, stacked.COLUMNS, 45),
    "tiles": Part(tiles.measure, tiles.COLUMNS, 45),
    "adam8bit": Part(adam8bit.measure, adam8bit.COLUMNS, 25),
}
NO_GPU = (
    "make gpu needs an NVIDIA GPU that torch sees, with 40 GiB or more, and this machine has none ({why}). On one that "
    "has, `make gpu` takes at most 8 minutes and no network; until then the chapters show what was counted. To try the "
    "command out here: python benchmarks/gpu.py --device cpu --quick --out measured"
)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Stop what takes longer.

    Raises:
        TimeoutError: when the time is over.
    """

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"stopped after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure(name: str, options: argparse.Namespace, command: str, end: float) -> str:
    """Measure a part until `end` at most and write its table; returns what went wrong, or nothing."""
    part, rows, start = PARTS[name], [], time.monotonic()
    seconds = max(end - start, 1.0)
    run = Run(options.device, options.quick, start + 0.7 * seconds)  # the rest is for the round that has begun
    trouble = ""

    def write(*, complete: bool) -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        path, about = options.out / f"gpu-{name}.csv", origin(run, name, time.monotonic() - start, command)
        pd.DataFrame(rows, columns=list(part.columns)).to_csv(path, index=False, float_format="%.6g")
        seal(path, about | {"complete": complete})

    try:
        with at_most(seconds * (10 if options.quick else 1)):  # tiny sizes run on CPUs, which may be busy
            for row in part.measure(run):
                rows.append(row)
                shown = {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()}
                print(f"{name}:", *(f"{key}={value}" for key, value in shown.items()), flush=True)
                write(complete=False)
    except NotHereError as missing:
        print(f"{name}: left out: {missing}", flush=True)
        return ""
    except Exception as error:
        traceback.print_exc()
        trouble = f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    took = time.monotonic() - start
    print(f"{name}: {len(rows)} rows in {took:.0f} s", flush=True)
    if rows:
        write(complete=not trouble)
    if outside := sum(not row.get("within", True) for row in rows):
        trouble = trouble or f"{name}: {outside} rows are outside their bars"
    return trouble


def awaiting(folder: Path) -> Iterator[str]:
    """What is to be measured (again), a line a table: missing, broken off, or older than what its components do."""
    for name in PARTS:
        if why := measured.awaited(f"gpu-{name}", folder=folder):
            yield f"gpu-{name}: {why}; awaits a GPU"


def origin(run: Run, name: str, seconds: float, command: str) -> dict[str, Any]:
    """Where, when, how and with which versions of its components the table of a part was measured."""
    known = torch.cuda.get_device_properties(0) if run.on_gpu else None
    return {
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "command": command,
        "seconds": round(seconds, 1),
        "device": known.name if known else f"CPU, {platform.machine()}",
        "memory_gib": round(known.total_memory / 2**30, 1) if known else None,
        "quick": run.is_quick,
        "cuda": torch.version.cuda if known else None,
        "cudnn": torch.backends.cudnn.version() if known else None,
        "float32_products": torch.get_float32_matmul_precision(),
        "python": platform.python_version(),
        "packages": dict(packages()),
        "versions": golden.versions(*SOURCES[f"gpu-{name}"].parts),
    }


def packages() -> Iterator[tuple[str, str]]:
    """Those that are installed, with their versions."""
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the parts that are asked for; 1 if any of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--out", type=Path, help="folder for the tables; default: book/measured")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and few rounds; needs --out")
    options = parser.parse_args(arguments)
    if wrong := [name for name in options.parts if name not in PARTS]:
        parser.error(f"no part {', '.join(wrong)}: there are {', '.join(PARTS)}")
    if options.out is None and (options.quick or options.device == "cpu"):
        parser.error("--quick and --device cpu are for trying out: say where to with --out")
    options.out = options.out or MEASURED
    print(*(awaiting(options.out)), sep="\n", flush=True)
    if options.device == "cuda" and not torch.cuda.is_available():
        print(NO_GPU.format(why=f"torch {torch.__version__}, torch.cuda.is_available() is False"), file=sys.stderr)
        return 2
    if options.device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "1"
    torch.manual_seed(0)
    tried = [*(["--device", "cpu"] if options.device == "cpu" else []), *(["--quick"] if options.quick else [])]
    command = " ".join(["python benchmarks/gpu.py", *options.parts, *tried])  # wherever its tables go
    troubles, end = [], time.monotonic()
    for name in dict.fromkeys(options.parts or PARTS):
        end += PARTS[name].seconds
        troubles.append(measure(name, options, command, end))
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
    for trouble in filter(None, troubles):
        print(f"FAILED: {trouble}", file=sys.stderr)
    return int(any(troubles))


if __name__ == "__main__":
    sys.exit(main())
