"""The perpendicular force of mini-batches against that of the whole set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from torch import Tensor

from pullpush.errors import PullPushError
from pullpush.forces import LocalGlobal, local_global
from pullpush.metrics import Difference
from pullpush.studies.means import by_clip


def batches_against_whole(
    text: Tensor, audio: Tensor, tau: float, *, batch_sizes: Sequence[int] = (8, 24, 64, 128, 256, 512, 1024)
) -> dict[int, LocalGlobal]:
    """The perpendicular force of mini-batches against that of all N pairs, by batch size; see `forces.local_global`.

    Raises:
        PullPushError: there are fewer pairs than two of the smallest batches hold.
    """
    found = {}
    if len(text) < 2 * min(batch_sizes):
        raise PullPushError(
            f"{len(text)} pairs are too few: batches of {min(batch_sizes)} are compared with sets twice as large"
        )
    for size in (size for size in batch_sizes if size <= len(text) // 2):
        epochs = 32 if 8 * size > len(text) else 8  # large batches are few, and leave many anchors out
        found[size] = local_global(text, audio, tau, batch_size=size, epochs=epochs)
    return found


def local_global_table(found: Mapping[int, LocalGlobal]) -> pd.DataFrame:
    """Columns: batch_size, and the means over anchors of whole, batch, variance, cosine."""
    rows = [
        {"batch_size": size, **{name: value.mean().item() for name, value in parts._asdict().items()}}
        for size, parts in found.items()
    ]
    return pd.DataFrame(rows)


def local_share(found: LocalGlobal) -> Difference:
    """How much of E‖F⊥‖² of mini-batches fluctuates from batch to batch."""
    return by_clip(_share(found.variance, found.batch))


def nearer_to_all(found: LocalGlobal, less: LocalGlobal) -> Difference:
    """How much larger the cosine with the force of all pairs is in some mini-batches than in others."""
    return by_clip(found.cosine - less.cosine)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    """mean(part) / mean(whole) as a mean over clips, `(N,)`: linear in both means, as in `Scores.contrast`."""
    ratio = part.mean() / whole.mean()
    return (part - ratio * whole) / whole.mean() + ratio
