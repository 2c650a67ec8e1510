"""What the scene graphs say of the world and of what a model retrieves."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.clips import World
from pullpush.metrics import retrieval


def contents(world: World) -> pd.DataFrame:
    """How much there is of everything: columns what, count."""
    rows = [(f"scenes for {name}", len(split)) for name, split in world.splits.items() if name != "singles"]
    rows += [("clips of a single event", len(world.singles)), ("events", len(world.bank))]
    rows += [("recordings", sum(len(recordings) for recordings in world.bank.clips))]
    return pd.DataFrame(rows, columns=["what", "count"])


def false_negatives(tested: Tensor, trained: Tensor, batch_size: int) -> pd.DataFrame:
    """How often a caption fits a clip that counts as a negative: columns what, share.

    tested, trained: relevance of test and training clips, `(N, N)` in [0, 1]; batch_size: of training.
    """
    partly = (off_diagonal(tested) > 0).float().mean().item()
    fully = (off_diagonal(trained) >= 1).float().mean().item()
    pairs = batch_size * (batch_size - 1) / 2
    rows = [
        ("other test clips that a caption fits at least in part", partly),
        ("other training clips that it fits fully", fully),
        (f"batches of {batch_size} with a pair of clips that fit each other fully", 1 - (1 - fully) ** pairs),
    ]
    return pd.DataFrame(rows, columns=["what", "share"])


def off_diagonal(relevance: Tensor) -> Tensor:
    """Relevance of all pairs of different clips, `(N, N)` → `(N² − N,)`.

    >>> off_diagonal(torch.tensor([[1.0, 0.5], [0.0, 1.0]])).tolist()
    [0.5, 0.0]
    """
    return relevance[~torch.eye(len(relevance), dtype=torch.bool)]


def first_grades(similarity: Tensor, relevance: Tensor) -> Tensor:
    """How well the clip that comes first fits each query, `(N, N)` and `(N, N)` → `(N,)` in [0, 1].

    >>> first_grades(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([[1.0, 0.5], [0.5, 1.0]])).tolist()
    [1.0, 0.5]
    """
    return relevance[torch.arange(len(relevance)), similarity.argmax(dim=1)]


def graded(similarity: Tensor, relevance: Tensor) -> pd.DataFrame:
    """Retrieval judged by graded relevance: columns what, value. Queries are rows, `(N, N)` each."""
    fits = retrieval(similarity, relevance >= 1, ks=(1,), map_at=(10,))
    rows = [
        ("R@1 where every clip that fits fully is right", fits["R@1"]),
        ("mean relevance of the clip that comes first", first_grades(similarity, relevance).mean().item()),
        ("mean relevance of a random clip", relevance.mean().item()),
    ]
    return pd.DataFrame(rows, columns=["what", "value"])


def confusions(predicted: Tensor, label: Tensor, names: Sequence[str]) -> pd.DataFrame:
    """Which class was taken for which, most frequent first: columns heard, named, clips.

    predicted, label: `(N,)` int64; names: of the classes.
    """
    wrong = predicted != label
    pairs = pd.DataFrame({"heard": label[wrong].tolist(), "named": predicted[wrong].tolist()})
    counts = pairs.value_counts().rename("clips").reset_index()
    return counts.assign(**{side: [names[row] for row in counts[side]] for side in ("heard", "named")})
