"""What is running: a folder for each run, and nothing that outlives whoever started it.

A run's folder `.running-HOST-PID-…` holds all that is not finished, and the process id of its kernel. A watcher, this
file run as a script, waits at the other end of a pipe: when the pipe closes, however the run ended (`kill -9`
included), it ends the kernel with all that the kernel started, and removes the folder. (ipykernel looks for its parent,
too, but leaves what it has started itself.) Where the watcher was killed as well, the next run removes the folder.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = ".running-"
KERNEL = "kernel.pid"  # written by the kernel itself when it starts
GRACE = 2.0  # seconds between asking and forcing


@contextmanager
def run_folder(parent: Path) -> Iterator[Path]:
    """A folder in `parent` for one run; gone afterwards, and so is the kernel that has left its id there."""
    from psutil import pid_exists  # the watcher does without

    parent.mkdir(parents=True, exist_ok=True)
    for folder in parent.glob(f"{PREFIX}*"):  # of runs of this machine whose process is no more
        host, _, process = folder.name.removeprefix(PREFIX).rpartition("-")[0].rpartition("-")
        if host == socket.gethostname() and process.isdigit() and not pid_exists(int(process)):
            shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{PREFIX}{socket.gethostname()}-{os.getpid()}-", dir=parent, ignore_cleanup_errors=True
    ) as name:
        command = [sys.executable, "-I", "-S", __file__, name]
        quiet: dict = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # A session of its own: neither Ctrl-C nor a closed terminal reaches the watcher.
        watcher = subprocess.Popen(command, start_new_session=True, **quiet)
        try:
            yield Path(name)
        finally:
            watcher.communicate()


def end_kernel(folder: Path) -> None:
    """End the kernel of a run with all processes of its group, politely at first, so that they may tidy up."""
    with suppress(OSError, ValueError):  # there is none, or it has gone
        group = int((folder / KERNEL).read_text(encoding="ascii"))
        os.killpg(group, signal.SIGTERM)
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            os.killpg(group, 0)  # raises once all of them are gone
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that everything is tidied up on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.stdin.read()
    end_kernel(Path(sys.argv[1]))
    shutil.rmtree(sys.argv[1], ignore_errors=True)
