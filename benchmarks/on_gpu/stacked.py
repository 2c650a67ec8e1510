"""Runs an hour: small runs on features together against one after the other, see `benchmarks/stacked.py`."""

import time
from collections.abc import Iterator
from typing import Any

import stacked

from on_gpu.meter import Run

COLUMNS = stacked.COLUMNS


def measure(run: Run) -> Iterator[dict[str, Any]]:
    """A row a system and number of runs, while there is time."""
    sizes, clips, epochs = ((2,), 48, 1) if run.is_quick else ((1, 16, 64), 1008, 4)

    def clock() -> float:
        run.wait()
        return time.perf_counter()

    for row in stacked.measure(sizes, lambda: run.rounds(3, 1), clips, epochs, clock):
        yield row
        if time.monotonic() > run.until:
            print("no time for further systems", flush=True)
            return
