"""Two processes on this machine that are one group, as torchrun would start them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def of_two(work: Callable[[int, Path], Any], out: Path) -> list[Any]:
    """What `work(rank, out)` gives in each of the two; work: of a module that they can import; out: an empty folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(_member, args=(work, port, out), nprocs=2)
    return [torch.load(out / f"{rank}.pt", weights_only=True) for rank in (0, 1)]


def _member(rank: int, work: Callable[[int, Path], Any], port: int, out: Path) -> None:
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()}
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        torch.save(work(rank, out), out / f"{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()
