"""The quality of the language encoder, as SentEval asks for it, on captions whose truth is known.

Intrinsic: do the similarities of captions follow what is known of their clips, as in semantic textual similarity?
Extrinsic: can a linear probe read from a caption what its clip is? (Conneau & Kiela 2018, SentEval.) Its tasks are what
is known of clips and captions may mention.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import rankdata
from torch import Tensor

from pullpush.checks import check_relevance, check_tensors
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values

Array = NDArray[np.float64]
FOLDS = 5
C = 1.0  # inverse strength of the L2 penalty, in scikit-learn's units
DIGITS = 6  # of cosines: captions of the same words tie, though batches round them otherwise
ITERATIONS, TOLERANCE = 500, 1e-6  # of the probe: steps, and gradient a caption
FLAT = 1e-12  # of a variance
FEWEST, MOST = 2, 20  # classes of a task
MEMBERS = 10  # of a class, at least; fewer where there are few clips
SHARE = 20  # 1/20 of the clips then, and never fewer than two


def intrinsic(text: Tensor, relevance: Tensor) -> Array:
    """Spearman's correlation, by clip `(N,)`, of its first caption's cosines with second captions, and of relevance.

    Against the second caption of every clip, its own included, since two captions of one clip are a pair of known
    relation, too; where there is one caption a clip, against the first of all others. Ties share their mean rank. Where
    relevance is 1 for a clip itself and 0 elsewhere, as real captions have it, the value is (2 AUC − 1) √(3 / (N + 1)):
    its differences are those of AUC, on a scale that shrinks with N. 0 where relevance or all cosines are the same, as
    for a single clip: nothing is ordered then.

    Args:
        text: `(N, C, d)` L2-normalised captions.
        relevance: `(N, N)`, how well the captions of each clip (rows) fit each clip.

    >>> import torch
    >>> captions = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])[:, None]
    >>> intrinsic(captions, torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    check_tensors(text=text)
    check_relevance(relevance)
    if text.ndim != 3 or relevance.shape != (len(text), len(text)):
        raise ValueError(f"need text (N, C, d) and relevance (N, N), got {[*text.shape]} and {[*relevance.shape]}")
    asked, truth = text.double().numpy(), relevance.double().numpy()
    cosine = (asked[:, 0] @ asked[:, min(1, asked.shape[1] - 1)].T).round(DIGITS)
    if asked.shape[1] == 1:
        others = ~np.eye(len(cosine), dtype=bool)
        cosine, truth = (matrix[others].reshape(len(matrix), -1) for matrix in (cosine, truth))
    if cosine.shape[1] < 2:
        return np.zeros(len(cosine))
    a, b = (rankdata(matrix, axis=1) - (matrix.shape[1] + 1) / 2 for matrix in (cosine, truth))
    spread = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.divide((a * b).sum(axis=1), spread, out=np.zeros(len(a)), where=spread > 0)


def probed(text: Tensor, classes: NDArray[np.int64]) -> Array:
    """Share of the captions of each clip `(N,)` from which a linear probe that has not seen the clip reads its class.

    Logistic regression with an L2 penalty (C = 1) on all captions, centred and scaled as a whole to a variance of 1 a
    dimension, so that turning the space changes nothing. Five folds, stratified by class, each clip with all of its
    captions in one: the same for all systems. NaN for clips without a class.

    Args:
        text: `(N, C, d)` captions.
        classes: `(N,)`, −1 for none.

    >>> import torch
    >>> probed(torch.eye(2).repeat(5, 1)[:, None], np.arange(10) % 2).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    check_tensors(text=text)
    if text.ndim != 3 or np.shape(classes) != (len(text),):
        raise ValueError(f"need text (N, C, d) and classes (N,), got {[*text.shape]} and {[*np.shape(classes)]}")
    known = np.flatnonzero(classes >= 0)
    x, y = text.double().numpy()[known], np.unique(classes[known], return_inverse=True)[1]
    fold = np.empty(len(y), np.int64)
    fold[np.argsort(y, kind="stable")] = np.arange(len(y)) % FOLDS
    x = x - x.mean(axis=(0, 1))
    x /= np.sqrt((x * x).mean()) if (x * x).mean() > FLAT else 1.0
    right, found, width = np.full(len(classes), np.nan), None, x.shape[2]
    for left in np.unique(fold):
        train = fold != left
        sentences = x[train].reshape(-1, width)
        found = _fitted(sentences, np.repeat(y[train], x.shape[1]), int(y.max()) + 1, found)
        told = (x[~train] @ found[:-1] + found[-1]).argmax(axis=2)
        right[known[~train]] = (told == y[~train, None]).mean(axis=1)
    return right


def extrinsic(embedded: Embeddings) -> Array | None:
    """By clip `(N,)`, of which the mean is the mean over `tasks` of what is `probed`; None where there is no task.

    In a task that leaves clips out, a clip enters by the first order of the ratio of two means: accuracy + N / n
    (right − accuracy) if it is one of the n that have a class, else by the accuracy.

    >>> from types import SimpleNamespace
    >>> extrinsic(SimpleNamespace(columns={"file": ["a", "b"]}, languages=("eng",), texts=lambda language: None))
    """
    text, found = embedded.texts(embedded.languages[0]), []
    for classes in tasks(embedded.columns).values():
        right, there = probed(text, classes), classes >= 0
        accuracy = right[there].mean()
        found.append(accuracy + np.where(there, (right - accuracy) / there.mean(), 0.0))
    return np.mean(found, axis=0) if found else None


def language_by_clip(embedded: Embeddings) -> Values:
    """ "intrinsic" and "extrinsic" of the captions in the first language; only the first where nothing is known that a
    probe could be asked for.
    """
    values = {"intrinsic": intrinsic(embedded.texts(embedded.languages[0]), embedded.relevance)}
    probes = extrinsic(embedded)
    return values if probes is None else values | {"extrinsic": probes}


def _fitted(x: Array, y: NDArray[np.int64], classes: int, start: Array | None) -> Array:
    """Weights and, below them, intercepts `(d + 1, classes)` that minimise Σ loss + ‖weights‖² / 2 C."""
    shape, wanted = (x.shape[1] + 1, classes), np.eye(classes)[y]

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape)
        logits = x @ weights[:-1] + weights[-1]
        logs = log_softmax(logits, axis=1)
        away = np.exp(logs) - wanted
        gradient = np.vstack([x.T @ away + weights[:-1] / C, away.sum(axis=0)])
        value = (weights[:-1] ** 2).sum() / (2 * C) - (logs * wanted).sum()
        return float(value), gradient.ravel()

    begin = np.zeros(shape) if start is None else start
    options = {"maxiter": ITERATIONS, "ftol": 1e-12, "gtol": TOLERANCE * len(x)}
    return minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)


def attributes(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Hashable]]:
    """By name the attributes of N clips, "" where one is unknown or does not apply.

    Of a "scene" its relation and its number of events; of a "phrase" of music the family of its instrument, and shape,
    tempo, mode, register and articulation; of a "category" such as "animals/birds" itself, and the kind "animals".
    Other columns (files, fonts, speakers) are nothing that captions tell.

    >>> attributes({"category": ["animals/birds", "food"], "file": ["a.png", "b.png"]})
    {'category': ['animals/birds', 'food'], 'kind': ['animals', 'food']}
    """
    found: dict[str, list[Hashable]] = {}
    if scenes := columns.get("scene"):
        found |= {"relation": [scene.relation for scene in scenes], "events": [len(scene.sounds) for scene in scenes]}
    if phrases := columns.get("phrase"):
        from pullpush.data.music.instruments import load_instruments

        family = {item.name: item.family for item in load_instruments()}
        found["family"] = [family.get(phrase.instrument, "") for phrase in phrases]
        names = ("shape", "tempo", "mode", "register", "articulation")
        found |= {name: [getattr(phrase, name) for phrase in phrases] for name in names}
    if categories := columns.get("category"):
        found["category"] = list(categories)
        if any("/" in category for category in categories):
            found["kind"] = [category.partition("/")[0] for category in categories]
    return found


def tasks(columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
    """By attribute the class of each clip, `(N,)` int64, −1 where it has none; attributes that make a task alone.

    A task has 2 to 20 classes of at least ten clips (of fewer than 200 clips 1/20, at least two); clips of smaller
    classes are left out of it.

    >>> {name: classes.tolist() for name, classes in tasks({"category": ["bird", "bird", "cow", "dog", "dog"]}).items()}
    {'category': [0, 0, -1, 1, 1]}
    """
    found = {}
    for name, values in attributes(columns).items():
        least = max(2, min(MEMBERS, len(values) // SHARE))
        large = [value for value, count in Counter(values).items() if count >= least and value != ""]
        if FEWEST <= len(large) <= MOST:
            number = {value: place for place, value in enumerate(sorted(large, key=str))}
            found[name] = np.array([number.get(value, -1) for value in values], np.int64)
    return found


CARD = MetricCard(
    name="language",
    make=language_by_clip,
    title="Quality of the language encoder",
    about="Whether similarities of captions follow what is known of their clips, and whether a probe can read it.",
    source="On the Language Encoder of Contrastive Cross-modal Models, §5.2, Table 7; Conneau & Kiela 2018, SentEval",
    citation="language_encoder",
    needs=("texts", "relevance", "columns"),
    scores=(Score("intrinsic", better="higher"), Score("extrinsic", better="higher")),
)
