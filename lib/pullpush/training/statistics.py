"""Batch normalisation of several processes: the statistics of the whole batch, of which each process holds a share.

It is no part of a model: the code that one process trains by stays the same, and so does what its results are called.
torch's own `SyncBatchNorm` is for GPUs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.nn.functional import all_reduce
from torch.nn.modules.batchnorm import _BatchNorm

from pullpush.training.distributed import world


@contextmanager
def of_the_whole_batch() -> Iterator[None]:
    """Let batch normalisation in training mode take mean and variance over all processes; nothing changes for one.

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
    rows = x.to(torch.promote_types(x.dtype, torch.float32))
    count = all_reduce(rows.new_tensor(x.numel() / x.shape[1]), group=group)
    mean = all_reduce(rows.sum(axes), group=group) / count
    centred = rows - mean.view(shape)
    variance = all_reduce(centred.square().sum(axes), group=group) / count
    if norm.track_running_stats:
        _remember(norm, mean.detach(), variance.detach() * count / (count - 1))
    result = centred * torch.rsqrt(variance + norm.eps).view(shape)
    if norm.affine:
        result = result * norm.weight.view(shape) + norm.bias.view(shape)
    return result.to(x.dtype)


def _remember(norm: _BatchNorm, mean: Tensor, variance: Tensor) -> None:
    """Move the running statistics, as torch does."""
    norm.num_batches_tracked.add_(1)  # pyrefly: ignore[missing-attribute]
    share = norm.momentum if norm.momentum is not None else 1 / float(norm.num_batches_tracked)
    norm.running_mean.lerp_(mean, share)  # pyrefly: ignore[missing-attribute]
    norm.running_var.lerp_(variance, share)  # pyrefly: ignore[missing-attribute]
