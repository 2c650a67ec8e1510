"""Kernels that start warm: forked from a process that has imported what pages import, 5 s of a processor each time.

That process, this file run as a module, gets one order a line: a kernel's arguments, environment and folder. It ends
when whoever started it does. The first kernel of a process is an ordinary one.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache, partialmethod
from importlib import import_module
from itertools import count
from typing import Any
from uuid import uuid4

import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner

# None of them computes when it is imported: threads would not be there in a fork.
MODULES = ("ipykernel.kernelapp", "matplotlib_inline.backend_inline", "pullpush.lab.page", "pullpush.lab.findings")
MODULES += ("pullpush.training.evaluate", "pullpush.studies", "sklearn.linear_model", "torch._dynamo")
before = count()  # kernels of this process


class Manager(AsyncKernelManager):
    """Starts its kernel warm, where a fork is safe: frameworks of macOS are not.

    It and the kernel talk over sockets with a name: a free port may be another process's before the kernel takes it.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        if sys.platform != "linux":
            return
        self.transport, self.ip = "ipc", f"@{uuid4()}"  # abstract: no file is left
        if next(before):
            self.provisioner = Forks(kernel_spec=self.kernel_spec, parent=self)


class Forks(LocalProvisioner):
    """Forks a kernel; if that cannot be done, starts an ordinary one."""

    async def launch_kernel(self, cmd: list[str], **given: Any) -> KernelConnectionInfo:
        server = _server()
        try:
            print(json.dumps([cmd, given["env"], os.getcwd()]), file=server.stdin, flush=True)
            self.process = Forked(int(server.stdout.readline()))
        except (OSError, ValueError):  # it has gone
            return await super().launch_kernel(cmd, **given)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Forked(psutil.Process):
    """A process that is no child of this one, with what is asked of a `Popen`: what has ended is let be."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return None if self.is_running() else 0  # or what else it has ended with

    def send_signal(self, sig: int) -> None:
        with suppress(psutil.NoSuchProcess):
            super().send_signal(sig)

    kill = partialmethod(send_signal, signal.SIGKILL)
    terminate = partialmethod(send_signal, signal.SIGTERM)


@cache
def _server() -> Any:
    """What forks kernels; how many threads they compute by is fixed with it."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # A session of its own: neither Ctrl-C nor a closed terminal reaches it.
    server = subprocess.Popen([sys.executable, "-m", __name__], start_new_session=True, **pipes)
    atexit.register(server.communicate)
    return server


def _serve() -> None:
    for name in MODULES:
        import_module(name)
    from ipykernel.kernelapp import launch_new_instance

    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what has ended is gone, without a `wait`
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
            continue
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        cmd, env, cwd = json.loads(line)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        return launch_new_instance([*cmd[cmd.index("-f") :], f"--IPKernelApp.parent_handle={os.getppid()}"])


if __name__ == "__main__":
    del sys.path[0]  # the folder that it was started in
    _serve()
