"""Losses in tiles against autograd through the N × N matrix, forward and backward: time, peak memory, exactness.

The forms of `benchmarks/tiles.py`, in float32, which take turns; each has one step before those that count. A form that
does not fit into memory has no numbers. Bars, at N = 32,768: 1/8 of the plain form's memory at 1.3 × its time.
"""

import time
from collections.abc import Iterator
from typing import Any

import pandas as pd
import tiles
import torch

from on_gpu.meter import Run

LOSSES = ("sigmoid", "InfoNCE", "SVR")
SIZES = ((16_384, 1024), (32_768, 1024), (131_072, 64), (131_072, 1024))  # N and d
COLUMNS = ["N", "d", "form", "rounds", "seconds", "mebibytes", "time / plain", "memory / plain", "loss off"]
COLUMNS += ["gradient off", "bars"]


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """A row a form and size."""
    if tiles.open_clip() is None:
        print("open_clip's SigLipLoss(chunk_size=…) is not installed: measured without it", flush=True)
    for n, d in ((300, 8),) if run.is_quick else SIZES:
        if time.monotonic() > run.until:
            print(f"no time for N = {n}, d = {d}", flush=True)
            continue
        # LOSSES by turns of forms, of which those that do not fit drop out after the first one.
        forms = [form for form in tiles.forms(n) if form[0] in LOSSES]
        lost = [form for form in forms if not fits(form, n, d, run.device)]
        rows = [row for number in run.rounds(5, 2) for row in one_round(run, number, forms, lost, n, d)]
        yield from summarised(pd.DataFrame(rows), lost, n, d)


def fits(form: tuple[str, str], n: int, d: int, device: str) -> bool:
    """Take one step, which warms up; whether there was memory for it."""
    try:
        tiles.measure(form, n, d, device, torch.get_num_threads())
    except torch.OutOfMemoryError:
        return False
    finally:
        if device == "cuda":
            torch.cuda.empty_cache()
    return True


def one_round(
    run: Run, number: int, forms: list[tuple[str, str]], lost: list[tuple[str, str]], n: int, d: int
) -> Iterator[dict[str, Any]]:
    """What each form takes."""
    for loss, how in forms:
        if (loss, how) not in lost:
            taken = tiles.measure((loss, how), n, d, run.device, torch.get_num_threads())
            yield {"N": n, "d": d, "round": number, "form": f"{loss}: {how}", "of": loss, "how": how, **taken._asdict()}


def summarised(rows: pd.DataFrame, lost: list[tuple[str, str]], n: int, d: int) -> Iterator[dict[str, Any]]:
    """Medians over rounds, and whether the bars are kept."""
    table = tiles.summary(rows).assign(rounds=rows["round"].nunique())
    for row in table.to_dict("records"):
        shares = {name: row[f"{name} / plain"] for name in tiles.BARS}
        known = row["form"].endswith("tiles") and all(share == share for share in shares.values())
        kept = all(share <= tiles.BARS[name] for name, share in shares.items())
        yield row | {"bars": ("kept" if kept else "missed") if known else ""}
    for loss, how in lost:
        yield {"N": n, "d": d, "form": f"{loss}: {how}", "rounds": 0, "bars": "does not fit into memory"}
