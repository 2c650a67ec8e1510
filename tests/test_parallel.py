"""Processes side by side: results in order, this process's places, and no second computation of what they cached."""

import os
import resource
import subprocess
import sys
import time
from functools import partial

import joblib
import psutil
import pytest
import torch

from pullpush.cache import home
from pullpush.parallel import drawing, in_threads, keep_memory, side_by_side
from pullpush.site.workers import THREADS


def place() -> str:
    return str(home())


def workers() -> list[int]:
    return side_by_side([os.getpid, os.getpid], jobs=2)


def refuse() -> None:
    raise ValueError("no such thing")


@pytest.mark.parametrize("cores", [1, 2])
def test_results_come_in_the_order_of_the_calls(cores, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: cores)
    assert side_by_side([partial(divmod, number, 3) for number in range(7)]) == [divmod(n, 3) for n in range(7)]
    assert side_by_side([]) == []


def test_processes_know_where_this_one_keeps_its_data_also_when_it_changes(tmp_path, monkeypatch):
    for name in ("one", "two"):  # the same processes, which joblib keeps
        monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / name))
        assert side_by_side([place, place], jobs=2) == [str(tmp_path / name)] * 2


def test_one_of_several_processes_starts_no_others():
    for one, other in side_by_side([workers, workers], jobs=2):
        assert one == other != os.getpid()


ORPHANS = """
import os, sys, time
from functools import partial
from pathlib import Path
from pullpush.parallel import side_by_side
print(*side_by_side([os.getpid, os.getpid], jobs=2), flush=True)
side_by_side([partial(time.sleep, float(sys.argv[1]))] * 2, jobs=2)
time.sleep(60)
"""


def faults(tensors: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(tensors):
        torch.empty(40 * 2**20, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not give memory back so soon")
def test_what_a_tensor_has_freed_the_next_one_takes():
    keep_memory()
    faults(20)
    assert faults(20) < 40 * 2**20 / os.sysconf("SC_PAGE_SIZE")  # of one tensor


@pytest.mark.deep
@pytest.mark.parametrize("at_work", [60, 0])
def test_killed_it_leaves_no_process_behind(at_work):
    with subprocess.Popen([sys.executable, "-c", ORPHANS, str(at_work)], stdout=subprocess.PIPE, text=True) as one:
        others = [int(number) for number in one.stdout.readline().split()]
        one.kill()
        until = time.monotonic() + 30
        while any(map(psutil.pid_exists, others)) and time.monotonic() < until:
            time.sleep(0.1)
    assert others
    assert not any(map(psutil.pid_exists, others))


def test_threads_compute_by_one_thread_each_and_leave_the_setting_as_it_was():
    before = torch.get_num_threads()
    assert in_threads([torch.get_num_threads] * 3) == [1] * 3
    assert in_threads([torch.get_num_threads], jobs=1) == [before] == [torch.get_num_threads()]


def drawn(seed: int) -> float:
    with drawing(seed):
        time.sleep(0.01)  # in which others would draw
        return float(torch.rand(()))


def test_what_numba_computes_leaves_torch_the_threads_that_a_kernel_has():
    twice = "numba.njit(parallel=True)(lambda x: x + x)(torch.ones(9).numpy())"
    command = [sys.executable, "-c", f"import numba, torch; {twice}; print(torch.get_num_threads())"]
    assert subprocess.check_output(command, env=os.environ | dict.fromkeys(THREADS, "1"), text=True) == "1\n"


def test_what_threads_draw_is_what_one_draws():
    calls = [partial(drawn, seed) for seed in range(4)]
    assert in_threads(calls, jobs=4) == [call() for call in calls]


def test_what_fails_elsewhere_fails_here(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 2)
    with pytest.raises(ValueError, match="no such thing"):
        side_by_side([refuse, refuse])
