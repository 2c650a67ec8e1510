"""Seconds and memory on a device, and how long a part may go on."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

KERNELS = ("flash", "efficient", "cudnn", "math")  # of attention, as torch names them
PRECISIONS = ("bf16", "float32")  # autocast to bfloat16 as in training, or none


class NotHereError(RuntimeError):
    """A part that this machine cannot measure; the message says what it lacks."""


@dataclass(frozen=True)
class Run:
    """Where and how long a part measures: device; is_quick: tiny sizes, to try it out; until: of `time.monotonic`."""

    device: str
    is_quick: bool
    until: float

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def wait(self) -> None:
        """Until the device has done all that it was given."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def start(self) -> float:
        """Seconds of the clock once the device is idle; peaks count from here."""
        self.wait()
        self.reset()
        return time.perf_counter()

    def since(self, start: float) -> float:
        """Seconds from `start` until the device is idle."""
        self.wait()
        return time.perf_counter() - start

    def reset(self) -> None:
        """Let peaks count from here; the allocator knows sizes before the device has done its work."""
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> float:
        """The most MiB that were allocated since; NaN on a CPU."""
        return torch.cuda.max_memory_allocated() / 2**20 if self.on_gpu else math.nan

    def autocast(self, precision: str) -> torch.autocast:
        return torch.autocast(self.device, torch.bfloat16, enabled=precision == "bf16")

    def rounds(self, most: int, least: int = 3) -> Iterator[int]:
        """Numbers of rounds: `most`, but from `least` on only while there is time; two where it is to be quick."""
        most, least = (2, 2) if self.is_quick else (most, least)
        for number in range(most):
            if number >= least and time.monotonic() > self.until:
                return
            yield number


def ratios(found: list[dict[str, float]], base: str) -> dict[str, dict[str, float]]:
    """Name → median value, and median and quartiles of its ratio to the base's value in the same round.

    >>> ratios([{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 6.0}], "a")["b"]
    {'value': 4.0, 'ratio': 2.5, 'low': 2.25, 'high': 2.75}
    """
    table = pd.DataFrame(found)
    share = table.div(table[base], axis=0)
    quartiles = {"ratio": 0.5, "low": 0.25, "high": 0.75}
    return {
        name: {"value": float(table[name].median())}
        | {column: float(share[name].quantile(where)) for column, where in quartiles.items()}
        for name in table
    }


def attention_of(step: Callable[[], Any]) -> str:
    """The kernels of attention that a step takes, of KERNELS."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step()
    names = {event.key for event in profile.key_averages() if "_scaled_dot_product" in event.key}
    return ", ".join(kind for kind in KERNELS if any(kind in name for name in names))
