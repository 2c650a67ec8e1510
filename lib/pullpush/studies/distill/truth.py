"""How right soft labels are: against the true relevance of the training clips, and what topics have to do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.metrics.annotations import FITS
from pullpush.metrics.inference import Array, difference
from pullpush.studies.distill.lesson import against_truth
from pullpush.studies.distill.teachers import Teacher, similarities, soft_labels
from pullpush.studies.distill.topic_labels import Classes
from pullpush.topics import agreement

BINARY = "binary labels"


def correctness(named: Mapping[str, Sequence[Sequence[Teacher]]], clips: Clips, tau: float = 0.05) -> pd.DataFrame:
    """Teachers against the truth, of each text's label over all training clips.

    Args:
        named: teachers' name → by seed, the teachers.
        clips: plain ones, with waveforms.
        tau: of the labels.

    Returns:
        Columns teacher, metric ("rank correlation", "share on clips that fit", "share on the own clip"), value, low,
        high, seeds, clips; binary labels first.
    """
    truth = clips.relevance()
    rows = [_row(BINARY, "rank correlation", against_truth(torch.eye(len(clips)), truth)[None])]
    for name, by_seed in named.items():
        found: dict[str, list[Array]] = {}
        for teachers in by_seed:
            similarity = similarities(soft_labels(teachers, clips)).T  # texts in rows
            label = (similarity.double() / tau).softmax(dim=1)
            found.setdefault("rank correlation", []).append(against_truth(similarity, truth))
            fits = (truth >= FITS).double()
            found.setdefault("share on clips that fit", []).append((label * fits).sum(dim=1).numpy())
            found.setdefault("share on the own clip", []).append(label.diagonal().numpy())
        rows += [_row(name, metric, np.stack(values)) for metric, values in found.items()]
    return pd.DataFrame(rows)


def _row(name: str, metric: str, values: Array) -> dict[str, Any]:
    one = difference(values)
    head = {"teacher": name, "metric": metric, "value": one.value, "low": one.low, "high": one.high}
    return head | {"seeds": one.seeds, "clips": one.clips}


def fits_by_caption(clips: Clips) -> pd.DataFrame:
    """How many clips each caption truly fits, its own included: columns fits, clips (share)."""
    counts = (clips.relevance() >= FITS).sum(dim=1)
    found = counts.unique(return_counts=True)
    return pd.DataFrame({"fits": found[0].tolist(), "share": (found[1] / len(counts)).tolist()})


def classes(clips: Clips, categories: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """What clips are in truth, by kind: the set of their events, the first of them, and its category."""
    kinds = {"set of events": "events", "first event": "event", "category of the first event": "category"}
    return {title: Classes(kind, tuple(categories)).of(clips, "eng") for title, kind in kinds.items()}


def agreements(labels: Mapping[str, NDArray[np.int64]], truths: Mapping[str, NDArray[np.int64]]) -> pd.DataFrame:
    """How far topics of clips agree with true classes: columns topics, classes, AMI, NMI, V-measure."""
    rows = []
    for name, given in labels.items():
        for kind, truth in truths.items():
            found = agreement(given, truth)
            rows.append(
                {"topics": name, "classes": kind} | {score: found[score] for score in ("AMI", "NMI", "V-measure")}
            )
    return pd.DataFrame(rows)


def followed(audio: Tensor, topics: NDArray[np.int64], *, seed: int = 0) -> float:
    """How far k-means of audio embeddings `(N, d)` with as many groups as there are topics agrees with these: AMI."""
    groups = KMeans(len(np.unique(topics)), n_init=3, random_state=seed).fit(audio.numpy()).labels_
    return agreement(groups, topics)["AMI"]
