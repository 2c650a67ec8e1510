"""Several processes: how they become one group, and the one place where they exchange embeddings.

    torchrun --standalone --nproc_per_node 2 -m pullpush.training …   # on the GPUs or CPUs of one machine
    accelerate launch --num_processes 2 -m pullpush.training …        # on GPUs

They train as one process does with the whole batch, up to rounding, but for dropout, which draws other numbers in each.
Batch normalisation takes the statistics of the whole batch in this command; a script of yours says so itself, by
`statistics.of_the_whole_batch`, else it takes those of a process's share.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from accelerate import Accelerator, PartialState
from torch import Tensor

from pullpush.errors import TrainingError

# How launchers say how many processes they started.
SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")


def begin() -> PartialState:
    """Join the other processes that a launcher started, if it did; call it before anything asks who is the first.

    Raises:
        TrainingError: several processes were asked for, and this one would train alone.
    """
    sizes = [int(os.environ[name]) for name in SIZES if name in os.environ]
    # accelerate's launcher starts one process on CPUs, whatever --num_processes says, and leaves only these behind.
    if not sizes and not dist.is_initialized() and {"ACCELERATE_DYNAMO_BACKEND", "MASTER_PORT"} <= os.environ.keys():
        raise TrainingError(
            "accelerate launch starts a single process on CPUs, whatever --num_processes says: take "
            "`torchrun --nproc_per_node N -m pullpush.training …`, or leave --num_processes out"
        )
    state = PartialState(cpu=_on_cpu())  # unless it is told so, accelerate makes no group of processes on CPUs
    asked = max([*sizes, world()[1]])
    if asked != state.num_processes:
        raise TrainingError(
            f"{asked} processes were started, and each would train alone: something used accelerate before "
            "pullpush.training.distributed.begin(), or set its process group up without a launcher's variables; "
            "call begin() first"
        )
    return state


def accelerator() -> Accelerator:
    """What places the model and averages gradients over the processes; in bfloat16 on CUDA.

    Raises:
        TrainingError: see `begin`.
    """
    begin()
    cpu = _on_cpu()
    return Accelerator(cpu=cpu, mixed_precision="bf16" if torch.cuda.is_available() and not cpu else "no")


def _on_cpu() -> bool:
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    return asked or not torch.accelerator.is_available()


def world() -> tuple[int, int]:
    """(rank, number of processes); (0, 1) where there is only this one."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def gather(local: Tensor) -> Tensor:
    """The rows of all processes in order of rank, `(n, d)` → `(N, d)`; n may differ; the tensor itself if alone.

    Gradients flow back to every process: each receives the **sum** over processes of dL/d(its rows). With the same
    loss of the gathered batch in all W processes that is W times its gradient, which DistributedDataParallel's
    averaging over the W processes turns into the gradient of one process with the whole batch.
    """
    return local if world()[1] == 1 else _Gather.apply(local)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, local: Tensor) -> Tensor:
        rank, processes = world()
        count = torch.tensor([len(local)], device=local.device)
        counts = [torch.zeros_like(count) for _ in range(processes)]
        dist.all_gather(counts, count)
        counts = [int(number) for number in counts]
        ctx.start, ctx.count = sum(counts[:rank]), len(local)
        # Collectives want one shape: pad to the largest share, cut the padding off again.
        padded = local.new_zeros((max(counts), *local.shape[1:]))
        padded[: len(local)] = local
        parts = [torch.empty_like(padded) for _ in range(processes)]
        dist.all_gather(parts, padded)
        return torch.cat([part[:number] for part, number in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # pyrefly: ignore[bad-override]
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        return gradient[ctx.start : ctx.start + ctx.count]
