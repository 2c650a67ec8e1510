"""Work shared by processes, from which small models and small arrays gain more than from threads."""

import ctypes
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import islice
from typing import TypeVar

import joblib
import torch

PULSE = 0.5  # seconds between two looks at a parent
GRACE = 8.0  # seconds between asking and forcing
T = TypeVar("T")
_one_of_several = False
_drawing = threading.RLock()  # random numbers are the process's


def side_by_side(calls: Sequence[Callable[[], T]], *, jobs: int | None = None) -> list[T]:
    """Results of the calls, in their order, made by as many processes as there are cores; here, if one is enough or
    this process is itself one of several.

    Args:
        calls: what can be sent to another process, such as a `functools.partial` of a module's function.
        jobs: processes at once; default: one a core.
    """
    jobs = min(jobs or joblib.cpu_count(), len(calls))
    if jobs <= 1 or _one_of_several:
        keep_memory()
        return [call() for call in calls]
    return joblib.Parallel(n_jobs=jobs)(joblib.delayed(elsewhere(call))() for call in calls)


@cache
def keep_memory() -> None:
    """Let this process keep up to 2 GiB of what its tensors free. By default glibc gives every block above 32 MiB back
    at once, and the system zeroes it anew: a fifth of a training step on clips, two thirds of what their spectra take.
    """
    with suppress(AttributeError, OSError):  # another C library
        for option, value in ((-4, 0), (-1, 2**31 - 1)):  # M_MMAP_MAX: no block by itself; M_TRIM_THRESHOLD
            ctypes.CDLL(None).mallopt(option, value)


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """torch's random numbers of a CPU from a seed, for one thread alone; the process's come back as they were."""
    with _drawing, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute by one thread on the CPU, since the last bits of a sum depend on how many threads share it: a
    shared run must not depend on who trained it, alone or beside others.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def ahead(items: Iterable[T], count: int = 2) -> Iterator[T]:
    """Items in their order, made by a thread before they are asked for; what it raises comes at its item's turn."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:
        waiting = deque(pool.submit(list, islice(iterator, 1)) for _ in range(count))
        try:
            while item := waiting.popleft().result():
                waiting.append(pool.submit(list, islice(iterator, 1)))
                yield item[0]
        finally:
            for each in waiting:
                each.cancel()


def in_threads(calls: Sequence[Callable[[], T]], *, jobs: int | None = None) -> list[T]:
    """Results of the calls, in their order, by as many threads as there are cores: for calls that are long in torch,
    on arrays too small to share. Each computes by one thread, so that results do not depend on the machine.

    jobs: threads at once; default: one a core. With 1 each call has all of torch's own threads.
    """
    if jobs == 1:
        return [call() for call in calls]
    with one_thread():
        return joblib.Parallel(n_jobs=jobs or joblib.cpu_count(), prefer="threads")(
            joblib.delayed(call)() for call in calls
        )


def elsewhere(call: Callable[[], T]) -> Callable[[], T]:
    """The same call for a process that was started for other work: data and caches are where they are for this one."""
    return partial(_there, os.getpid(), _places(), call)


@cache
def end_with(parent: int) -> None:
    """End this process when the process `parent`, which started it, is no more: politely at first, by SIGTERM."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PULSE)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _places() -> dict[str, str]:
    """Where data and caches are, by this process's environment."""
    return {name: value for name, value in os.environ.items() if name.startswith("PULLPUSH_")}


def _there(parent: int, places: dict[str, str], call: Callable[[], T]) -> T:
    """Make a call in a process that may have been started for other work, while the places were others."""
    keep_memory()
    if os.getppid() == parent:  # and no worker of a cluster
        end_with(parent)
    for name in _places().keys() - places.keys():
        del os.environ[name]
    os.environ.update(places)
    global _one_of_several
    _one_of_several = True
    return call()
