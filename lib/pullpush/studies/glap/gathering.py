"""One batch on several processes, simulated on one, and what a loss keeps in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.metrics.inference import Array
from pullpush.studies.glap.weights import loss_of
from pullpush.studies.term_forces import drawn
from pullpush.training.loop import Result
from pullpush.training.objective import Objective


def gradient_left_out(run: Result, clips: Clips, processes: int, *, seed: int = 0) -> Array:
    """How far the gradient of losses within processes is from that of the gathered batch, `(1, batches)`.

    Each of the first batches that training would draw is dealt out to so many processes in equal parts, and their local
    losses are averaged.

    Args:
        run: the model and its loss, with what it has learnt.
        clips: that it was trained on.
        processes: a divisor of its batch size.
        seed: of the batches.

    Returns:
        The norm of the difference of both gradients of all trained weights, over that of the gathered one.
    """
    objective, loss = Objective(run.model, run.recipe), loss_of(run)
    weights = [weight for weight in run.model.parameters() if weight.requires_grad]
    found = []
    for batch in drawn(clips, run.recipe, seed=seed):
        audio, (text, *_) = run.model.encode_audio(batch.audio, batch.lengths), objective.embed_here(batch)
        parts = zip(audio.chunk(processes), text.chunk(processes), strict=True)
        local = torch.stack([loss(*part) for part in parts]).mean()
        whole, within = (
            torch.cat([part.flatten() for part in torch.autograd.grad(value, weights, retain_graph=True)])
            for value in (loss(audio, text), local)
        )
        found.append(float((whole - within).norm() / whole.norm()))
    return np.array(found)[None]


def kept_bytes(loss: Callable[..., Tensor], audio: Tensor, text: Tensor, *options: float) -> int:
    """Bytes that autograd keeps for the backward pass of a loss of (audio, text, *options), embeddings apart.

    >>> pairs = torch.eye(4).requires_grad_()
    >>> kept_bytes(lambda audio, text: (audio * text).exp().sum(), pairs, pairs)
    64
    """
    kept: dict[int, int] = {}
    given = {side.untyped_storage().data_ptr() for side in (audio, text)}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in given:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _ = loss(audio, text, *options)  # held until all that it keeps was counted
    return sum(kept.values())


def kept_by(
    versions: Mapping[str, Callable[..., Tensor]], audio: Tensor, text: Tensor, *options: float
) -> pd.DataFrame:
    """What autograd keeps of several versions of a loss: a row a version, and MiB kept; see `kept_bytes`."""
    rows = [(name, kept_bytes(loss, audio, text, *options) / 2**20) for name, loss in versions.items()]
    return pd.DataFrame(rows, columns=["version", "MiB kept"])
