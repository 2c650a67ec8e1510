"""Labels and topics against what is true of scenes: what a caption fits, what a label says of it and does to forces,
which topics agree with what sounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.clips import Clips
from pullpush.errors import SettingError
from pullpush.forces import tangent
from pullpush.losses import epsilon_of_entropy
from pullpush.metrics.annotations import FITS
from pullpush.metrics.inference import Array
from pullpush.studies.distill.grounds import Grounds
from pullpush.studies.distill.stages import Stage
from pullpush.studies.distill.tables import level
from pullpush.studies.distill.teachers import Teacher, similarities, soft_labels
from pullpush.topics import OUTLIER, Density, agreement
from pullpush.topics.density import dense
from pullpush.training.evaluate import embed_audio

LEVELS = ("nothing in common", "something in common", "same events", "the same scene")  # of relevance
CLASSES = {"set of events": "events", "first event": "event", "category of the first event": "category"}
AGREEMENT = ("AMI", "NMI", "V-measure")


def fitting(clips: Clips) -> NDArray[np.int64]:
    """How many clips the captions of each truly fit, its own among them, `(N,)`."""
    return (clips.relevance() >= FITS).sum(dim=1).numpy()


def twins(captions: Sequence[str]) -> tuple[int, int]:
    """The first clip whose caption an earlier one has, behind that one.

    Raises:
        SettingError: all captions differ.

    >>> twins(["a fox", "rain", "a fox"])
    (0, 2)
    """
    for row, caption in enumerate(captions):
        if (first := captions.index(caption)) < row:
            return first, row
    raise SettingError("no two clips have one caption: take more clips")


def against_truth(labels: Tensor, relevance: Tensor) -> NDArray[np.float64]:
    """Rank correlation (Spearman) of each query's label with the true relevance of all candidates, `(Q,)`.

    Equal values share a rank; a label that says the same of all knows nothing, which is a correlation of 0.

    Args:
        labels, relevance: `(Q, N)`, of the same queries and candidates.

    >>> truth = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]])
    >>> against_truth(truth, truth).tolist(), against_truth(torch.eye(3)[:2], truth).round(2).tolist()
    ([1.0, 1.0], [0.87, 0.87])
    """
    ranks = [rankdata(values.double().numpy(), axis=1) for values in (labels, relevance)]
    ours, truth = (rank - rank.mean(axis=1, keepdims=True) for rank in ranks)
    scale = np.sqrt((ours**2).sum(axis=1) * (truth**2).sum(axis=1))
    return np.divide((ours * truth).sum(axis=1), scale, out=np.zeros(len(ours)), where=scale > 0)


def correctness(named: Mapping[str, Sequence[Sequence[Teacher]]], clips: Clips, tau: float = 0.05) -> pd.DataFrame:
    """Teachers against the truth, of each text's label over all training clips.

    Args:
        named: teachers' name → by seed, the teachers.
        clips: with waveforms.
        tau: of the labels.

    Returns:
        Columns teacher, metric ("rank correlation", "share on clips that fit", "share on the own clip"), value, low,
        high, seeds, clips; binary labels first.
    """
    truth = clips.relevance()
    fits = (truth >= FITS).double()
    binary = against_truth(torch.eye(len(clips)), truth)[None]
    rows = [level(binary, teacher="binary labels", metric="rank correlation")]
    for name, by_seed in named.items():
        scores: dict[str, list[Array]] = {}
        for teachers in by_seed:
            similarity = similarities(soft_labels(teachers, clips)).T  # texts in rows
            label = (similarity.double() / tau).softmax(dim=1)
            scores.setdefault("rank correlation", []).append(against_truth(similarity, truth))
            scores.setdefault("share on clips that fit", []).append((label * fits).sum(dim=1).numpy())
            scores.setdefault("share on the own clip", []).append(label.diagonal().numpy())
        rows += [level(np.stack(values), teacher=name, metric=metric) for metric, values in scores.items()]
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- forces


def smoothed(soft: Tensor) -> Tensor:
    """Labels `(N, N)` of the same entropy, row by row, that say the same of all clips but the own one.

    >>> smoothed(torch.tensor([[0.8, 0.2], [0.5, 0.5]]))
    tensor([[0.8000, 0.2000],
            [0.5000, 0.5000]])
    """
    epsilon = epsilon_of_entropy(torch.special.entr(soft).sum(dim=1), len(soft)).to(soft.dtype)[:, None]
    label = (epsilon / max(1, len(soft) - 1)).repeat(1, len(soft))
    return label.diagonal_scatter(1 - epsilon[:, 0])


def push_by_truth(
    student: Tensor, teacher: Tensor, relevance: Tensor, tau: float, *, size: int, seed: int = 0
) -> pd.DataFrame:
    """How labels have a text pushed by the clips of other pairs of its batch, by how well these fit in truth.

    The weight of clip j on text i is q_ij − label_ij: positive pushes, negative pulls. Binary labels are those of
    InfoNCE, soft ones the teachers', and smoothed ones say the same of all other clips, with the entropy of the soft.
    "binary and soft" is the sum of these two losses, which is what trains (λ₁ = 1).

    Args:
        student, teacher: `(N, N)` similarities, texts in rows; tau: of both.
        relevance: `(N, N)`.
        size: pairs in a batch, seed: of the batches, into which the pairs are dealt once.

    Returns:
        Columns label, level (of LEVELS, those that occur), weight: the mean over such pairs, in units of 1/τ; pairs.
    """
    order = torch.randperm(len(student), generator=torch.Generator().manual_seed(seed))
    batches, others = [], ~torch.eye(size, dtype=torch.bool)
    for rows in order[: len(order) - len(order) % size].view(-1, size):
        q, soft = ((each[rows][:, rows].double() / tau).softmax(dim=1) for each in (student, teacher))
        binary = torch.eye(size, dtype=q.dtype)
        weights = {"binary": q - binary, "soft": q - soft, "smoothed": q - smoothed(soft)}
        weights["binary and soft"] = weights["binary"] + weights["soft"]
        fits = relevance[rows][:, rows][others]
        levels = (fits > 0).long() + (fits >= FITS) + (fits >= 1)
        columns = {"level": levels, **{name: each[others] for name, each in weights.items()}}
        batches.append(pd.DataFrame({name: values.numpy() for name, values in columns.items()}))
    long = pd.concat(batches).melt("level", var_name="label", value_name="weight")
    table = long.groupby(["label", "level"], sort=False)["weight"].agg(weight="mean", pairs="size").reset_index()
    return table.assign(level=[LEVELS[number] for number in table["level"]])


def force_parts(
    terms: Mapping[str, Callable[[Tensor, Tensor], Tensor]], audio: Tensor, text: Tensor, topics: Tensor
) -> pd.DataFrame:
    """Where each term takes the texts of one batch: a row a term, of what descent asks of N·loss on the sphere.

    Args:
        terms: name → loss of (audio, text), a mean over the batch.
        audio, text: `(N, d)` unit vectors.
        topics: `(N,)`, of the captions.

    Returns:
        Columns term; along, towards the text's own clip on the great circle (mean), across, the length of the rest
        (mean); and alike, the cosine of a text's force with the mean force on the other texts of its topic.
    """
    towards = F.normalize(tangent(audio - text, text), dim=1)
    same = (topics[:, None] == topics).to(text.dtype).fill_diagonal_(0)
    has = same.sum(dim=1) > 0
    rows = []
    for name, loss in terms.items():
        leaf = text.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(len(text) * loss(audio.detach(), leaf), leaf)
        force = tangent(-gradient, text)
        along = (force * towards).sum(dim=1)
        across = (force - along[:, None] * towards).norm(dim=1)
        alike = F.cosine_similarity((same @ force)[has], force[has])
        rows.append((name, *(float(each.mean()) for each in (along, across, alike))))
    return pd.DataFrame(rows, columns=["term", "along", "across", "alike"])


def fitted_heads(heads: Any, audio: Tensor, text: Tensor, topics: Tensor, *, steps: int = 200) -> Any:
    """Heads that have learnt to name the topics of embeddings that stand still, by Adam; they are returned."""
    optimiser = torch.optim.Adam(heads.parameters(), lr=3e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        heads(audio, text, topics).value.backward()
        optimiser.step()
    return heads


# ---------------------------------------------------------------- topics


def agreements(labels: Mapping[str, NDArray[np.int64]], truths: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """How far topics of clips agree with true classes: columns topics, classes, AMI, NMI, V-measure."""
    rows = []
    for name, given in labels.items():
        for kind, truth in truths.items():
            found = agreement(given, truth)
            rows.append({"topics": name, "classes": kind} | {score: found[score] for score in AGREEMENT})
    return pd.DataFrame(rows)


def plane(
    embeddings: NDArray[np.float32], texts: Sequence[str], labels: NDArray[np.int64], *, umap: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Where UMAP puts each different caption in two dimensions, `(M, 2)`, and its topic, `(M,)`; only the places count
    here. umap: False shows the first two coordinates.
    """
    rows = np.sort(np.unique(np.array(texts), return_index=True)[1])
    how = Density(dimensions=2 if umap else 0, min_size=2)
    return dense(embeddings[rows], how, seed=0).points[:, :2], labels[rows]


def followed(ground: Grounds, stage: Stage, seed: int, topics: NDArray[np.int64]) -> float:
    """How far the model of a stage lays the training clips out by their topics, `(N,)`; see `groups_agree`."""
    model = ground.plan(stage, seed).train(progress=False).model
    clips = ground.view_of(Stage("finetune", encoder=stage.encoder)).data.train
    return groups_agree(embed_audio(model, clips), topics)


def groups_agree(audio: Tensor, topics: NDArray[np.int64], *, seed: int = 0) -> float:
    """How far k-means of audio embeddings `(N, d)` with as many groups as there are topics agrees with these: AMI."""
    known = topics != OUTLIER
    rows, topics = audio.numpy()[known], topics[known]
    groups = KMeans(len(np.unique(topics)), n_init=3, random_state=seed).fit(rows).labels_
    return agreement(groups, topics)["AMI"]
