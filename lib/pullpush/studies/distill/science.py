"""What the models of chapter 6 give beside scores, and labels and topics against the truth of scenes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from torch import Tensor

from pullpush.data.clips import Clips
from pullpush.lab.experiments import Derived, Experiment, Trial
from pullpush.losses import epsilon_of_entropy
from pullpush.metrics.annotations import FITS, annotated_by_clip
from pullpush.metrics.cards import Values
from pullpush.metrics.ensembles import by_number, combine, learned, score, two_stages
from pullpush.studies.distill.data import TAU, Context, LessonContext
from pullpush.studies.distill.experiments import SOFT, TEACHERS, Row, experiment
from pullpush.studies.distill.stages import ENCODERS, ENSEMBLE, MAIN, SYSTEMS, Stage
from pullpush.studies.taught import similarities, soft_labels
from pullpush.topics import OUTLIER, Density, agreement
from pullpush.topics.density import dense
from pullpush.training.evaluate import embed_audio, embed_captions

LEVELS = ("nothing in common", "something in common", "same events", "the same scene")  # of relevance
CLASSES = {"set of events": "events", "first event": "event", "category of the first event": "category"}
AGREEMENT = ("AMI", "NMI", "V-measure")


def derived(context: Context, systems: Experiment) -> list[Derived]:
    """What the models of the systems give together and beside their scores: ensembles of all, ensembles through one
    encoder and through three, soft labels against the truth, topics of the finetuned models.
    """
    alone = [Stage(kind, encoder=each) for kind in ("pretrain", "untrained") for each in ENCODERS]
    models = experiment(context, "teachers-alone", systems.seeds, [Row(stage.name, stage) for stage in alone])
    made = {
        "ensembles": (ENSEMBLES, systems, ensembles),
        "several-encoders": (SEVERAL, systems, several_encoders),
        "soft-labels": ((BINARY, *TEACHERS), models, against_scenes),
        "models-topics": (("topics", "4", "3, again"), systems, models_topics),
    }
    every: dict[str, Any] = {"evaluations": ("annotations",), "long": True, "parts": PARTS}
    found = []
    for name, (rows, source, make) in made.items():
        where = {"ears": "all"} if name == "ensembles" else {}
        trials = [Trial(row, "", {}, where, seeds=systems.seeds[:1] * (row == BINARY)) for row in rows]
        found.append(Derived(name, tuple(trials), systems.seeds, source=source, make=make, **every))
    return found


def teaching(context: LessonContext, decisive: Experiment) -> Derived:
    """The lesson's soft labels and binary ones against the truth."""

    def make(context: LessonContext, seed: int) -> dict[str, Values]:
        clips = context.world.train
        similarity = similarities(soft_labels(context.teachers(ENSEMBLE, seed), clips)).T
        found = {"soft labels": similarity, BINARY: torch.eye(len(clips))}
        return {name: {RIGHT[0]: against_truth(each, clips.relevance())} for name, each in found.items()}

    models = experiment(
        context, "models", decisive.seeds, [Row(each, Stage("pretrain", encoder=each)) for each in ENCODERS]
    )
    trials = (Trial("soft labels", ""), Trial(BINARY, ""))
    return Derived(
        "teaching", trials, decisive.seeds, source=models, make=make, long=True, parts=("training/evaluate",)
    )


# ---------------------------------------------------------------- ensembles of systems 2–5 × three encoders (Table 3)

PARTS = ("metrics/annotations", "training/evaluate")
ENSEMBLES = ("E1", "E2", "E3", "E4", "learned", "equal", "best member")
MEMBERS = [(system, encoder) for system in ("2", "3", "4", "5") for encoder in ENCODERS]
SEVERAL: Mapping[str, Sequence[tuple[str, str]]] = {
    "three encoders": [("4", encoder) for encoder in ENCODERS],
    "one encoder": [(system, MAIN) for system in ("2", "3", "4")],
}
STEP = 0.1  # of the grid; the paper's is 0.05, on which the same search takes six times as long
MOST = 24  # subsets of one size
PROTOCOL: Mapping[str, Any] = {"threshold": FITS, "divisor": "relevant"}


@cache
def matrices(context: Context, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What 12 members make of validation, `(12, N, N)` by first captions, and of the test, `(12, N·C, N)` by all, and
    the relevance of both.
    """
    found = []
    for system, encoder in MEMBERS:
        stage = replace(SYSTEMS[system], encoder=encoder)
        model, world = context.plan(stage, seed).train(progress=False).model, context.view_of(stage).data
        first = [texts[:1] for texts in world.valid.captions("eng")]
        sides = (world.valid, first), (world.test, world.test.captions("eng"))
        found.append([
            embed_captions(model, texts, batch_size=512).flatten(0, 1) @ embed_audio(model, clips, batch_size=512).T
            for clips, texts in sides
        ])  # fmt: skip
    world = context.view_of(SYSTEMS["2"]).data
    valid, test = (torch.stack(side) for side in zip(*found, strict=True))
    return valid, test, world.valid.relevance(), world.test.relevance()


def scored(test: Tensor, weights: Tensor, relevance: Tensor) -> dict[str, Any]:
    """Scores by test clip of a weighted sum of members."""
    values = annotated_by_clip(combine(test, weights.flatten()), relevance)
    return {metric: each.numpy() for metric, each in values.items()}


def ensembles(context: Context, seed: int) -> dict[str, Values]:
    """E1 to E4, and beside them learnt weights, equal weights, and the best member alone, all chosen on validation."""
    return sums_of(*matrices(context, seed), shape=(len(MEMBERS) // len(ENCODERS), len(ENCODERS)))


def sums_of(
    valid: Tensor, test: Tensor, fits: Tensor, relevance: Tensor, *, shape: tuple[int, int], step: float = STEP
) -> dict[str, Values]:
    """See `ensembles`; shape: systems and encoders. Beside scores each has its "weight" of every member; E1 and E3 the
    "landscape" of their second search, and equal weights "mAP@16 of" so many members, by subsets.
    """
    weights, more = dict[str, Tensor](), dict[str, dict[str, Any]]()
    members = valid.view(*shape, *valid.shape[1:])
    for first, (best, second) in {"systems": ("E1", "E2"), "models": ("E3", "E4")}.items():
        found = two_stages(members, fits, first=first, step=step, **PROTOCOL)
        weights[best], more[best] = found.weights, {"landscape": found.landscape.scores.numpy()}
        runner_up = found.landscape.points[found.landscape.best(min(2, len(found.landscape.scores)))]
        weights[second] = found.within * (runner_up[None] if first == "systems" else runner_up[:, None])
    weights["learned"] = learned(valid, fits, threshold=FITS)
    weights["equal"] = torch.full((len(valid),), 1 / len(valid), dtype=torch.float64)
    alone = [score(member, fits, **PROTOCOL) for member in valid]
    weights["best member"] = torch.eye(len(valid), dtype=torch.float64)[int(np.argmax(alone))]
    captions = test.shape[1] // test.shape[2]  # subsets are scored by the first of each clip
    subsets = by_number(test[:, ::captions], relevance, most=MOST, **PROTOCOL)
    more["equal"] = {f"mAP@16 of {size}": scores.numpy() for size, scores in subsets.items()}
    return {
        name: {**scored(test, each, relevance), "weight": each.flatten().numpy(), **more.get(name, {})}
        for name, each in weights.items()
    }


def several_encoders(context: Context, seed: int) -> dict[str, Values]:
    """As many members with equal weights through one encoder and through three."""
    _, test, _, relevance = matrices(context, seed)
    chosen = {name: [MEMBERS.index(member) for member in members] for name, members in SEVERAL.items()}
    return {name: scored(test[rows], torch.ones(len(rows)) / len(rows), relevance) for name, rows in chosen.items()}


# ---------------------------------------------------------------- labels and topics against the truth of scenes

BINARY = "binary labels"
RIGHT = ("rank correlation", "share on clips that fit", "share on the own clip")


def fitting(clips: Clips) -> NDArray[np.int64]:
    """How many clips the captions of each truly fit, its own among them, `(N,)`."""
    return (clips.relevance() >= FITS).sum(dim=1).numpy()


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


def against_scenes(context: Context, seed: int) -> dict[str, Values]:
    """Each teacher's order of all training clips for a caption against the truth, and the shares of its soft label."""
    clips = context.source(Stage("finetune")).train
    truth = clips.relevance()
    found: dict[str, Values] = {BINARY: {RIGHT[0]: against_truth(torch.eye(len(clips)), truth)}}
    for name, teacher in TEACHERS.items():
        similarity = similarities(soft_labels(context.teachers(teacher, seed), clips)).T  # texts in rows
        label = (similarity.double() / TAU).softmax(dim=1)
        shares = (label * (truth >= FITS)).sum(dim=1).numpy(), label.diagonal().numpy()
        found[name] = dict(zip(RIGHT, (against_truth(similarity, truth), *shares), strict=True))
    return found


def models_topics(context: Context, seed: int) -> dict[str, Values]:
    """The topics of system 3's embeddings, and how far those of a model with heads for them and of one without are laid
    out by them: agreement with k-means of as many groups, AMI.
    """
    clips = context.source(Stage("finetune")).train
    topics = context.topics("finetuned", seed).of(clips)
    found: dict[str, Values] = {"topics": {"topic": topics}}
    for name in ("4", "3, again"):
        model = context.plan(SYSTEMS[name], seed).train(progress=False).model
        found[name] = {"AMI": np.array([groups_agree(embed_audio(model, context.view_of(SOFT).data.train), topics)])}
    return found


def groups_agree(audio: Tensor, topics: NDArray[np.int64]) -> float:
    """How far k-means of audio embeddings `(N, d)` with as many groups as there are topics agrees with these: AMI."""
    known = topics != OUTLIER
    rows, topics = audio.numpy()[known], topics[known]
    return agreement(KMeans(len(np.unique(topics)), n_init=3, random_state=0).fit(rows).labels_, topics)["AMI"]


def smoothed(soft: Tensor) -> Tensor:
    """Labels `(N, N)` of the same entropy, row by row, that say the same of all clips but the own one.

    >>> smoothed(torch.tensor([[0.8, 0.2], [0.5, 0.5]]))
    tensor([[0.8000, 0.2000],
            [0.5000, 0.5000]])
    """
    epsilon = epsilon_of_entropy(torch.special.entr(soft).sum(dim=1), len(soft)).to(soft.dtype)[:, None]
    label = (epsilon / max(1, len(soft) - 1)).repeat(1, len(soft))
    return label.diagonal_scatter(1 - epsilon[:, 0])


def push_by_truth(student: Tensor, teacher: Tensor, relevance: Tensor, tau: float, *, size: int) -> pd.DataFrame:
    """How labels have a text pushed by the clips of other pairs of its batch, by how well these fit in truth.

    The weight of clip j on text i is q_ij − label_ij: positive pushes, negative pulls. Binary labels are those of
    InfoNCE, soft ones the teachers', and smoothed ones say the same of all other clips, with the entropy of the soft.
    "binary and soft" is the sum of these two losses, which is what trains (λ₁ = 1).

    Args:
        student, teacher: `(N, N)` similarities, texts in rows; tau: of both.
        relevance: `(N, N)`.
        size: pairs in a batch; all pairs are dealt out into batches once.

    Returns:
        Columns label, level (of LEVELS, those that occur), weight: the mean over such pairs, in units of 1/τ; pairs.
    """
    order = torch.randperm(len(student), generator=torch.Generator().manual_seed(0))
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


def plane(
    embeddings: NDArray[np.float32], texts: Sequence[str], labels: NDArray[np.int64], *, umap: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Where UMAP puts each different caption in two dimensions, `(M, 2)`, and its topic, `(M,)`; umap: False shows the
    first two coordinates.
    """
    rows = np.sort(np.unique(np.array(texts), return_index=True)[1])
    how = Density(dimensions=2 if umap else 0, min_size=2)
    return dense(embeddings[rows], how, seed=0).points[:, :2], labels[rows]
