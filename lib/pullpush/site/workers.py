"""Calls spread over processes or a Dask cluster: outcomes come as they are there, and a killed process is replaced."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from pullpush.site.declared import LongError
from pullpush.site.status import end_with

PATIENCE = 10  # seconds that a scheduler has to answer
ROUNDS = 3  # a process that is killed takes the others of its pool with it: so often is a new pool started

Outcome = tuple[str, float, str]  # key, seconds, what went wrong
Work = Callable[[Mapping[str, Callable[[], None]]], Generator[Outcome, None, None]]


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at an address.

    Raises:
        LongError: dask is not installed, or nobody answers.
    """
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise LongError("--dask needs dask: pip install 'pullpush[cluster]'") from error
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise LongError(f"no Dask scheduler answers at {address} ({error}): start one, or leave --dask out") from error
    try:
        yield client
    finally:
        with suppress(Exception):  # it may have gone
            client.close(timeout=PATIENCE)


@contextmanager
def workers(jobs: int, dask: str) -> Iterator[Work]:
    if not dask:
        yield lambda calls: _in_processes(calls, jobs)
        return
    with cluster(dask) as client:
        yield lambda calls: _on_cluster(client, dask, calls)


def _in_processes(calls: Mapping[str, Callable[[], None]], jobs: int) -> Generator[Outcome, None, None]:
    left = dict(calls)
    for _ in range(ROUNDS):
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        outcomes = pool(joblib.delayed(_attempt)(key, call, os.getpid()) for key, call in list(left.items()))
        try:
            for outcome in outcomes:
                left.pop(outcome[0])
                yield outcome
            return
        except TerminatedWorkerError:
            continue
        except BaseException:
            if jobs > 1:
                get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)  # else they end their runs
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib's, that work was left undone
                outcomes.close()
            raise
    yield from ((key, 0.0, "its process was killed, again and again: too little memory?") for key in left)


def _on_cluster(client: Any, address: str, calls: Mapping[str, Callable[[], None]]) -> Generator[Outcome, None, None]:
    from dask.distributed import CancelledError, as_completed

    gone = f"the cluster at {address} went away with {{}} runs to go: give the same command again, there or elsewhere"
    futures = {client.submit(_attempt, key, call, pure=False): key for key, call in calls.items()}
    left = len(futures)
    try:
        for future in as_completed(futures):
            if future.status in ("cancelled", "lost") or client.status != "running":
                raise LongError(gone.format(left))
            left -= 1
            if future.status == "finished":
                yield future.result()
            else:
                yield futures[future], 0.0, f"lost with its worker: {future.exception()}"
    except (CancelledError, OSError) as error:
        raise LongError(gone.format(left)) from error
    if left:
        raise LongError(gone.format(left))


def _attempt(key: str, call: Callable[[], None], parent: int | None = None) -> Outcome:
    """Make a call; where a process `parent` started this one, it ends with it, however that ended."""
    if parent not in (None, os.getpid()):
        end_with(parent)
    began = time.monotonic()
    try:
        call()
    except Exception as error:
        return key, time.monotonic() - began, f"{type(error).__name__}: {error}"
    return key, time.monotonic() - began, ""
