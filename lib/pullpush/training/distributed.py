"""Several processes: how they become one group, and the one place where they exchange embeddings.

    torchrun --standalone --nproc_per_node 2 -m pullpush.training …   # on the GPUs or CPUs of one machine
    accelerate launch --num_processes 2 -m pullpush.training …        # on GPUs

They train as one process does with the whole batch, up to rounding, but for dropout, which draws other numbers in each.
Batch normalisation takes the statistics of the whole batch in this command; a script of yours says so itself, by
`of_the_whole_batch`, else it takes those of a process's share.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from accelerate import Accelerator, PartialState
from torch import Tensor
from torch.distributed.nn.functional import all_gather, all_reduce
from torch.nn.modules.batchnorm import _BatchNorm

from pullpush.errors import TrainingError
from pullpush.precision import single

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
    started = max([*sizes, world()[1]])
    if started != state.num_processes:
        raise TrainingError(
            f"{started} processes were started, and each would train alone: something used accelerate before "
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
    wanted = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    return wanted or not torch.accelerator.is_available()


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
    if world()[1] == 1:
        return local
    counts = [int(number) for number in all_gather(torch.tensor([len(local)], device=local.device))]
    # Collectives want one shape: pad to the largest share, cut the padding off again.
    padded = torch.cat([local, local.new_zeros(max(counts) - len(local), *local.shape[1:])])
    return torch.cat([part[:number] for part, number in zip(all_gather(padded), counts, strict=True)])


@contextmanager
def of_the_whole_batch() -> Iterator[None]:
    """Let batch normalisation in training mode take mean and variance over all processes; nothing changes for one.

    It is no part of a model: the code that one process trains by stays the same, and so does what its results are
    called. torch's own `SyncBatchNorm` is for GPUs alone.

    Every process must come by the same layers in the same order, as in `train`. Masked frames are left out before, by
    the layer that knows the mask, so that a process with more frames counts for more.

        with of_the_whole_batch():
            train(model, recipe, dataset, valid)
    """
    if world()[1] == 1:
        yield
        return
    alone = _BatchNorm.forward
    group = dist.new_group()  # of its own, so that nothing comes between these sums and those of gradients

    def forward(norm: _BatchNorm, x: Tensor) -> Tensor:
        return normalised(norm, x, group) if norm.training else alone(norm, x)

    _BatchNorm.forward = forward
    try:
        yield
    finally:
        _BatchNorm.forward = alone
        dist.destroy_process_group(group)


def normalised(norm: _BatchNorm, x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """`(N, C, …)` → the same, each channel by mean and variance of the rows of all processes; N may differ."""
    norm._check_input_dim(x)
    axes, shape = [0, *range(2, x.dim())], [1, -1] + [1] * (x.dim() - 2)
    rows = single(x)
    count = all_reduce(rows.new_tensor(x.numel() / x.shape[1]), group=group)
    mean = all_reduce(rows.sum(axes), group=group) / count
    centred = rows - mean.view(shape)
    variance = all_reduce(centred.square().sum(axes), group=group) / count
    if norm.track_running_stats:  # they move as torch moves them
        norm.num_batches_tracked.add_(1)  # pyrefly: ignore[missing-attribute]
        share = norm.momentum if norm.momentum is not None else 1 / float(norm.num_batches_tracked)
        norm.running_mean.lerp_(mean.detach(), share)  # pyrefly: ignore[missing-attribute]
        unbiased = variance.detach() * count / (count - 1)
        norm.running_var.lerp_(unbiased, share)  # pyrefly: ignore[missing-attribute]
    result = centred * torch.rsqrt(variance + norm.eps).view(shape)
    if norm.affine:
        result = result * norm.weight.view(shape) + norm.bias.view(shape)
    return result.to(x.dtype)
