"""What a language encoder knows, as SentEval measures it: similarity of sentences, and what a classifier finds in them.

*Intrinsic*: Spearman's ρ between the cosines of pairs of sentences and what people said of them (STS12–16, STS-B,
SICK-R). *Extrinsic*: accuracy of logistic regression on frozen embeddings (MR, CR, SUBJ, MPQA, SST2, TREC, MRPC).
Scores are fractions; papers print percents. `training.senteval` runs the tasks on a model.

Regression is scikit-learn's: L2 with C, no penalty on the bias, one vector for two classes, softmax for more. Its C is
chosen among those of SentEval, which takes the accuracy to a hundredth of a percent, and the smallest of equals.
SentEval's other classifier, a network trained with Adam, is not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn import functional as F

FOLDS = 10
SEED = 1111  # SentEval's
SPLIT_CS = tuple(2.0**power for power in range(-2, 4))  # for folds within folds, and for a split to validate
TEST_CS = tuple(2.0**power for power in range(-1, 6))  # for folds of what is learnt from, beside a test split
POOLS = ("all", "mean", "wmean")


class Pairs(NamedTuple):
    """Embeddings of pairs of sentences, `(N, d)` each, and how alike people find them, `(N,)`."""

    left: Tensor
    right: Tensor
    gold: Sequence[float]


class Examples(NamedTuple):
    """Features, `(N, d)`, and class numbers from 0, `(N,)` int64."""

    features: Tensor
    labels: Tensor


def similarity_score(parts: Sequence[Pairs], pool: str = "all") -> float:
    """Spearman's ρ of cosines and judgements.

    parts: the sources of a task, such as headlines and forums; pool: "all" pairs together, as SimCSE and mteb do;
    "mean" of the parts' ρ, or "wmean", weighted by their sizes, as SentEval does. ρ of embeddings that do not differ,
    which is undefined, counts as 0.

    >>> pairs = Pairs(torch.eye(3), torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 0, 0]]), [5, 3, 0])
    >>> similarity_score([pairs])
    1.0

    Raises:
        ValueError: another `pool`.
    """
    if pool not in POOLS:
        raise ValueError(f"pool must be one of {', '.join(POOLS)}, got {pool!r}")
    cosines = [F.cosine_similarity(left.double(), right.double(), dim=1).cpu().numpy() for left, right, _ in parts]
    golds = [np.asarray(part.gold, dtype=float) for part in parts]
    if pool == "all":
        return _rho(np.concatenate(cosines), np.concatenate(golds))
    weights = [len(gold) for gold in golds] if pool == "wmean" else None
    return float(np.average([_rho(*pair) for pair in zip(cosines, golds, strict=True)], weights=weights))


def pair_features(left: Tensor, right: Tensor) -> Tensor:
    """What a classifier of pairs sees, |u − v| and u · v by dimension: two `(N, d)` → `(N, 2 d)`.

    >>> pair_features(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 2.0]])).tolist()
    [[2.0, 0.0, 3.0, 4.0]]
    """
    return torch.cat([(left - right).abs(), left * right], dim=1)


def nested_accuracy(examples: Examples, folds: int = FOLDS) -> float:
    """Of a task without splits (MR, CR, SUBJ, MPQA): the mean accuracy of folds, C chosen by folds within the others.

    >>> points = torch.arange(-6.0, 6.0)[:, None] + 0.5
    >>> nested_accuracy(Examples(points, (points[:, 0] > 0).long()), folds=3)
    1.0
    """
    scores = []
    for learnt, held_out in _folds(examples, folds):
        best = _best_c(list(_folds(learnt, folds)), SPLIT_CS)
        scores.append(_accuracy(learnt, held_out, best))
    return float(np.mean(scores))


def crossed_accuracy(train: Examples, test: Examples, folds: int = FOLDS) -> float:
    """Of a task with a test split (TREC, MRPC): C chosen by folds of what is learnt from.

    >>> points = torch.arange(-6.0, 6.0)[:, None] + 0.5
    >>> examples = Examples(points, (points[:, 0] > 0).long())
    >>> crossed_accuracy(examples, examples, folds=3)
    1.0
    """
    return _accuracy(train, test, _best_c(list(_folds(train, folds)), TEST_CS))


def validated_accuracy(train: Examples, valid: Examples, test: Examples) -> float:
    """Of a task with three splits (SST2): C chosen on the second, learnt from the first alone.

    >>> points = torch.arange(-6.0, 6.0)[:, None] + 0.5
    >>> examples = Examples(points, (points[:, 0] > 0).long())
    >>> validated_accuracy(examples, examples, examples)
    1.0
    """
    return _accuracy(train, test, _best_c([(train, valid)], SPLIT_CS))


def logistic_regression(examples: Examples, c: float, start: np.ndarray | None = None) -> tuple[Tensor, Tensor]:
    """Weights `(K, d)` and biases `(K,)`, float64, that minimise C · Σ cross-entropy + ‖W‖² / 2.

    K is the number of classes, or 1 for two of them.

    start: where to begin, `(K · (d + 1),)`; zeros by default.

    >>> weights, bias = logistic_regression(Examples(torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1])), c=1.0)
    >>> round(float(weights), 3), round(float(bias.abs()), 3)
    (0.675, 0.0)

    Raises:
        ValueError: all examples are of one class.
    """
    features, labels = examples.features.double(), examples.labels.to(examples.features.device)
    classes, width = int(labels.max()) + 1, features.shape[1]
    if len(labels.unique()) < 2:
        raise ValueError("logistic regression needs examples of two classes at least")
    outputs = 1 if classes == 2 else classes
    truth = labels.double()[:, None] if outputs == 1 else F.one_hot(labels, classes).double()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        """Both terms by 1 / (C · N), and their gradient."""
        held = torch.from_numpy(flat).to(features.device)
        weights, bias = held[: outputs * width].view(outputs, width), held[outputs * width :]
        scores = features @ weights.T + bias
        spread = F.softplus(scores) if outputs == 1 else scores.logsumexp(1, keepdim=True)
        wrong = (spread.sum() - (truth * scores).sum()) / len(labels)
        beyond = ((scores.sigmoid() if outputs == 1 else scores.softmax(1)) - truth) / len(labels)
        slope = torch.cat([(beyond.T @ features + weights / (c * len(labels))).flatten(), beyond.sum(0)])
        return (wrong + weights.square().sum() / (2 * c * len(labels))).item(), slope.cpu().numpy()

    begin = np.zeros(outputs * (width + 1)) if start is None else start
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "gtol": 1e-6, "ftol": 0})
    best = torch.from_numpy(found.x).to(features.device)
    return best[: outputs * width].view(outputs, width), best[outputs * width :]


def _accuracy(train: Examples, test: Examples, c: float) -> float:
    return _right(logistic_regression(train, c), test)


def _right(fitted: tuple[Tensor, Tensor], test: Examples) -> float:
    """The share of examples whose class is said."""
    weights, bias = fitted
    scores = test.features.double() @ weights.T + bias
    said = (scores[:, 0] > 0).long() if len(weights) == 1 else scores.argmax(1)
    return float((said == test.labels.to(said.device)).double().mean())


def _best_c(trials: Sequence[tuple[Examples, Examples]], cs: Sequence[float]) -> float:
    """The C with the best mean accuracy over pairs to learn from and to test on; each fit begins at the one before."""
    scores = []
    for train, test in trials:
        start, own = None, []
        for c in cs:
            fitted = logistic_regression(train, c, start)
            start = torch.cat([part.flatten() for part in fitted]).cpu().numpy()
            own.append(_right(fitted, test))
        scores.append(own)
    return cs[int(np.argmax(np.round(100 * np.mean(scores, axis=0), 2)))]


def _folds(examples: Examples, count: int) -> Iterator[tuple[Examples, Examples]]:
    """Examples to learn from and to test on, `count` times, each class spread evenly and at random over the folds."""
    labels = examples.labels.cpu().numpy()
    chance = np.random.default_rng(SEED)
    shuffled = chance.permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = np.empty(len(labels), dtype=int)
    fold[order] = np.arange(len(labels)) % count
    for number in range(count):
        rows = [torch.from_numpy(np.flatnonzero(chosen)) for chosen in (fold != number, fold == number)]
        learnt, held_out = (Examples(examples.features[own], examples.labels[own]) for own in rows)
        yield learnt, held_out


def _rho(cosines: np.ndarray, gold: np.ndarray) -> float:
    if np.ptp(cosines) == 0 or np.ptp(gold) == 0:
        return 0.0
    return float(spearmanr(cosines, gold).statistic)
