"""Nothing outlives whoever started it, and what is stopped leaves everything as it was."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pullpush.progress import held_back
from pullpush.site import status
from pullpush.site.run import run

WARM = "next(warm.before); "
LONGEST = 240  # seconds that anything here is waited for: twenty times what it takes on an idle machine
SLOW = """
```{code-cell} ipython3
import os, subprocess, sys, time
from pathlib import Path

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
(Path(os.environ["PULLPUSH_BOOK"]) / f"kernel-{os.getpid()}").write_text(str(child.pid))
time.sleep(600)
```
"""


@pytest.fixture
def slow(tiny):
    """The tiny book, whose chapter starts a process and sleeps; each kernel leaves its own and the child's ids."""
    chapter = tiny / "book" / "10-tiny.md"
    header = chapter.read_text()
    chapter.write_text(header[: header.rindex("```{code-cell}")] + SLOW)
    return tiny


def until(true: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + LONGEST
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def lives(process: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] not in ("", "Z")


def processes(root: Path) -> list[int]:
    """The kernels that the slow chapter has run in, and their children."""
    kernels = list(root.glob("kernel-*"))
    return [int(path.name.removeprefix("kernel-")) for path in kernels] + [int(path.read_text()) for path in kernels]


def pullpush(*words: str, warm: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"from pullpush.site import cli, warm; {warm}cli.main()", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def begun(root: Path, kernels: int) -> bool:
    return sum(path.stat().st_size > 0 for path in root.glob("kernel-*")) == kernels


def files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (root / "executed").rglob("*") if path.is_file()}


@pytest.mark.parametrize(("how", "warm"), [(signal.SIGINT, ""), (signal.SIGTERM, WARM)], ids=["ordinary", "warm"])
def test_a_stopped_run_ends_its_kernel_and_leaves_everything_as_it_was(slow, how, warm):
    (slow / "executed" / "local" / "quick").mkdir(parents=True)
    (slow / "executed" / "local" / "quick" / "10-tiny.ipynb").write_text("{}")
    before = files(slow)
    command = pullpush("run", "10-tiny", warm=warm)
    until(lambda: begun(slow, 1))
    command.send_signal(how)
    said = command.communicate(timeout=LONGEST)[1]
    assert command.returncode == 130
    assert said == "stopped; nothing was changed\n"
    assert not any(map(lives, processes(slow)))
    assert files(slow) == before
    assert [path.name for path in (slow / "executed").iterdir()] == ["local"]


def test_a_killed_run_takes_its_kernel_and_its_folder_with_it(slow):
    command = pullpush("run", "10-tiny", warm=WARM)
    until(lambda: begun(slow, 1))
    started = [*processes(slow), *children(command.pid)]
    assert len(started) == 4, "a kernel and its child, what watches over them, what the kernel was forked from"
    command.kill()
    command.communicate(timeout=LONGEST)
    until(lambda: not any(map(lives, started)) and not list((slow / "executed").iterdir()))


@pytest.mark.deep
def test_a_stopped_sweep_ends_all_its_cells_and_starts_no_other(slow):
    (slow / "grid.yaml").write_text("chapter: 10-tiny\nprofile: smoke\ngrid: {seed: [0, 1, 2]}\n")
    command = pullpush("sweep", str(slow / "grid.yaml"))
    until(lambda: begun(slow, 2))
    command.send_signal(signal.SIGINT)
    said = command.communicate(timeout=LONGEST)[1]
    assert command.returncode == 130
    assert said == "stopped; finished runs are kept, the same command goes on\n"
    assert len(processes(slow)) == 4, "a third cell was started"
    assert not any(map(lives, processes(slow)))
    assert {path.suffix or path.name for path in files(slow)} <= {".lock"}


@pytest.mark.deep
def test_a_killed_sweep_takes_its_cells_and_their_kernels_with_it(slow):
    (slow / "grid.yaml").write_text("chapter: 10-tiny\nprofile: smoke\ngrid: {seed: [0, 1]}\n")
    command = pullpush("sweep", str(slow / "grid.yaml"))
    until(lambda: begun(slow, 2))
    cells = children(command.pid)
    assert len(cells) >= 2, "a process a cell, and what watches over them"
    command.kill()
    command.communicate(timeout=LONGEST)
    until(lambda: not any(map(lives, [*processes(slow), *cells])))
    until(lambda: not list((slow / "executed").glob(".running-*")))


WORK = """
import os, pathlib, sys, time
from functools import partial
from pullpush.site.workers import work_through

def call(folder):
    (pathlib.Path(folder) / str(os.getpid())).touch()
    time.sleep(300)

work_through({name: partial(call, sys.argv[1]) for name in "ab"}, jobs=2)
"""


@pytest.mark.deep
def test_killed_in_a_chapters_sweep_it_takes_the_processes_that_train_with_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WORK)
    at_work = tmp_path / "at-work"
    at_work.mkdir()
    words = [sys.executable, str(program), str(at_work)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True) as command:
        until(lambda: len(list(at_work.iterdir())) == 2)
        found = [int(path.name) for path in at_work.iterdir()]
        assert command.pid not in found
        command.kill()
    until(lambda: not any(map(lives, found)))


def children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,pid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for parent, pid in map(str.split, listed.splitlines()) if int(parent) == process]


def test_a_stopped_build_keeps_the_site_that_was_there(tiny):
    run("10-tiny")
    page = tiny / "_build" / "html" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("as it was")
    command = pullpush("build")
    until(lambda: (tiny / "_build" / "out").exists())
    command.send_signal(signal.SIGINT)
    assert command.communicate(timeout=LONGEST)[1] == "stopped; nothing was changed\n"
    assert command.returncode == 130
    assert page.read_text() == "as it was"
    assert not (tiny / "_build" / "out").exists()


def test_a_run_removes_what_dead_runs_of_this_machine_have_left(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = socket.gethostname()
    dead = tmp_path / f".running-{here}-{gone.pid}-abc"
    kept = [f".running-{here}-{os.getpid()}-abc", f".running-not{here}-{gone.pid}-abc", ".running-abc", "quick"]
    for folder in (dead, *(tmp_path / name for name in kept)):
        (folder / "tables").mkdir(parents=True)
    with status.run_folder(tmp_path) as mine:
        assert not dead.exists()
        assert mine.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_signal_is_held_back_and_ends_the_work_and_a_second_one_is_not():
    ended = []
    with held_back(lambda: ended.append(True)) as came:
        os.kill(os.getpid(), signal.SIGINT)
        assert came == [signal.SIGINT]
        assert ended == [True]
        with pytest.raises(KeyboardInterrupt):  # the second one is not held back
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
