"""Calls spread over processes or a Dask cluster: outcomes come as they are there, and a killed process is replaced.

This is the one pool of the house: runs of experiments, points of a grid and pages go through it.
"""

import os
import signal
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import as_completed
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from pullpush.cache import home
from pullpush.errors import PullPushError
from pullpush.parallel import elsewhere
from pullpush.progress import held_back

PATIENCE = 10  # seconds that a scheduler has to answer
ROUNDS = 3  # a process that is killed takes the others of its pool with it: so often is a new pool started
# Numba, which UMAP computes by, sets the number of torch's threads with its own: those wait for cores by spinning.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

Outcome = tuple[str, float, str, str]  # key, seconds, what went wrong, what else is to be said
Calls = Mapping[str, Callable[[], str | None]]
Tell = Callable[[str], object]


class SweepError(PullPushError, RuntimeError):
    """A sweep that cannot begin or go on, as of a file that cannot be read; or an experiment that cannot be kept."""


@dataclass(frozen=True)
class Swept:
    """What a sweep did: labels of what it ran, of what was there, and of what failed, with the reason; and, of a grid,
    the gathered tables by name.
    """

    ran: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    tables: Mapping[str, Path] = field(default_factory=dict)


def check_jobs(jobs: int) -> None:
    """Require one process at least, also where nothing is left to do."""
    if jobs < 1:
        raise SweepError(f"jobs must be at least 1, got {jobs}")


def work_through(
    calls: Calls,
    *,
    jobs: int,
    dask: str = "",
    labels: Mapping[str, str] = MappingProxyType({}),
    is_there: Callable[[str], bool] = lambda key: True,
    before: int = 0,
    total: int = 0,
    noun: str = "runs",
    report: Tell = lambda line: None,
    watch: Tell = lambda state: None,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Make calls in processes or on a cluster: the labels of those that went well, and of the others with the reason.

    Args:
        calls: by key; what one returns, a text or nothing, is added to its line.
        jobs: processes at once; with 1 calls are made here.
        dask: address of a Dask scheduler, whose workers share this machine's folders, in place of processes.
        labels: key → what the call is known by, its key by default.
        is_there: whether what a call makes is here, after it was made.
        before, total: how many are over already, and how many there are in all; default: these.
        report: gets one line for every call, such as "3/4  radius: SVR, seed 1  12 s"; watch: how many are over.

    Raises:
        SweepError: fewer than one process; or the cluster cannot be reached, or goes away: what was made stays.
        KeyboardInterrupt: Ctrl-C or SIGTERM; processes have been ended, what was made stays.
    """
    check_jobs(jobs)
    ran: list[str] = []
    failed: list[tuple[str, str]] = []
    total = total or len(calls)
    watch(f"{before}/{total} {noun}")
    here = (_attempt(key, call) for key, call in calls.items())
    made = _on_cluster(dask, calls) if dask else here if jobs == 1 or len(calls) < 2 else _in_processes(calls, jobs)
    with closing(made) as outcomes:
        for key, seconds, message, note in outcomes:
            label = labels.get(key, key)
            if not message and not is_there(key):
                message = f"it is not there: let all machines share {home()}, and restart workers of older code"
            failed.append((label, message)) if message else ran.append(label)
            count = f"{before + len(ran) + len(failed)}/{total}"
            took = f"{seconds:.0f} s{', ' + note if note else ''}"
            report(f"{count}  {label}  {'FAILED: ' + message if message else took}")
            watch(f"{count} {noun}")
    return ran, failed


def _in_processes(calls: Calls, jobs: int) -> Generator[Outcome, None, None]:
    left = {key: elsewhere(call) for key, call in calls.items()}
    threads = dict.fromkeys(THREADS, str(max(1, cpu_count() // jobs)))
    for _ in range(ROUNDS):
        pool = ProcessPoolExecutor(max_workers=min(jobs, len(left)), env=threads)
        whole = False  # else whoever owns the block has gone, and processes would end their runs
        with held_back(partial(_ask_to_stop, pool)) as came:
            try:
                futures = [pool.submit(_attempt, key, call, os.getpid()) for key, call in left.items()]
                for future in as_completed(futures):
                    outcome = future.result()
                    if not came:
                        left.pop(outcome[0])
                        yield outcome
                whole = not came
            except TerminatedWorkerError:
                whole = not came
                if whole:
                    continue
            finally:
                pool.shutdown(wait=True, kill_workers=not whole)
        if came:
            raise KeyboardInterrupt
        return
    yield from ((key, 0.0, "its process was killed, again and again: too little memory?", "") for key in left)


def _ask_to_stop(pool: Any) -> None:
    """Let the processes of the pool end what they are at, politely: a page ends its kernel and removes its folder."""
    for process in list(pool._processes):
        with suppress(OSError):  # it has gone
            os.kill(process, signal.SIGTERM)


def _on_cluster(address: str, calls: Calls) -> Generator[Outcome, None, None]:
    try:
        from dask.distributed import CancelledError, Client, as_completed as as_they_come
    except ImportError as error:
        raise SweepError("--dask needs dask: pip install 'pullpush[cluster]'") from error
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise SweepError(f"no Dask scheduler answers at {address} ({error}): start one, or leave --dask out") from error
    gone = f"the cluster at {address} went away with {{}} runs to go: give the same command again, here or there"
    left = len(calls)
    try:
        futures = {client.submit(_attempt, key, elsewhere(call), pure=False): key for key, call in calls.items()}
        for future in as_they_come(futures):
            if future.status in ("cancelled", "lost") or client.status != "running":
                break
            left -= 1
            if future.status == "finished":
                yield future.result()
            else:
                yield futures[future], 0.0, f"lost with its worker: {future.exception()}", ""
        if left:
            raise SweepError(gone.format(left))
    except (CancelledError, OSError) as error:
        raise SweepError(gone.format(left)) from error
    finally:
        with suppress(Exception):  # it may have gone
            client.close(timeout=PATIENCE)


_busy = _stopped = False  # of a process of the pool: whether it makes a call, and whether it is to make no further one


def _attempt(key: str, call: Callable[[], str | None], parent: int | None = None) -> Outcome:
    """Make a call; in a process that `parent` started SIGTERM stops it and all later ones."""
    global _busy, _stopped
    is_process = parent not in (None, os.getpid())
    if is_process:
        signal.signal(signal.SIGTERM, _stop)
    began, note, message = time.monotonic(), None, "stopped" if _stopped else ""
    try:
        _busy = True
        note = None if _stopped else call()
    except PullPushError as error:
        message = str(error)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        if not is_process:
            raise
        _stopped, message = True, "stopped"
    finally:
        _busy = False
    return key, time.monotonic() - began, message, note or ""


def _stop(number: int, frame: FrameType | None) -> None:
    global _stopped
    _stopped = True
    if _busy:
        raise KeyboardInterrupt
