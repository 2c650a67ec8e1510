"""The language encoder of a model by SentEval's published tasks: `language_quality(model)`, a row a task.

Embeddings are frozen and taken at one of two levels. "projection" is where texts meet clips, of unit length: what
`model.encode_text` gives, and what the losses shape. "features" are what the text encoder gives before its projection.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.sentences import EXTRINSIC, INTRINSIC, Sentences, read_task
from pullpush.encoders.interface import Model
from pullpush.errors import PullPushError, unknown
from pullpush.extras import MissingExtraError
from pullpush.metrics.senteval import (
    FOLDS,
    Examples,
    Pairs,
    crossed_accuracy,
    nested_accuracy,
    pair_features,
    similarity_score,
    validated_accuracy,
)

TASKS = (*INTRINSIC, *EXTRINSIC)
LEVELS = ("projection", "features")
COLUMNS = ("task", "kind", "score", "n")
IN_MTEB = {**{name: name for name in INTRINSIC}, "STS-B": "STSBenchmark", "SICKR": "SICK-R"}
Embed = Callable[[Sequence[str]], Tensor]


def language_quality(
    model: Model,
    tasks: Iterable[str] = TASKS,
    *,
    level: str = "projection",
    folds: int = FOLDS,
    pool: str = "all",
    batch_size: int = 64,
) -> pd.DataFrame:
    """Scores on the tasks, from SentEval's files (see `data.sentences`).

    Folds within folds are some 600 regressions a task: with 384 dimensions, two minutes each for MR and its like.

    Args:
        model: whose texts are embedded, in eval mode; it is left in the mode it was in.
        tasks: some of `TASKS`.
        level: "projection" or "features", see above; models of others may have no features.
        folds: of cross-validation; papers take ten.
        pool: how the sources of STS12–16 become one score, see `metrics.senteval.similarity_score`.
        batch_size: sentences embedded at once.

    Returns:
        Columns: task; kind, "intrinsic" (score is Spearman's ρ) or "extrinsic" (accuracy, a fraction); score; n, the
        pairs, or the sentences or pairs that are tested.

    Raises:
        UnknownNameError: another task or level.
        DataNotFoundError: SentEval is not on disk; the message says where it is looked for and how to get it.
        PullPushError: its files are not as published, or the model has no features.
    """
    embed = embedder(model, level, batch_size)
    rows = []
    for task in tasks:
        parts = read_task(task)
        if task in INTRINSIC:
            score, n = _intrinsic(parts, embed, pool), sum(len(part.gold) for part in parts.values())
            rows.append((task, "intrinsic", score, n))
        else:
            tested = parts["test" if "test" in parts else "all"]
            rows.append((task, "extrinsic", _extrinsic(parts, embed, folds), len(tested.gold)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def similarity_by_mteb(
    model: Model, tasks: Iterable[str] = INTRINSIC, *, level: str = "projection", batch_size: int = 64
) -> pd.DataFrame:
    """The intrinsic tasks by `mteb`, which fetches them from the hub itself and pools a task's sources as "all" does.

    Of the extrinsic ones it has none.

    Returns:
        As `language_quality`.

    Raises:
        MissingExtraError: `mteb` is not installed.
        UnknownNameError: another task or level.
    """
    try:
        library = importlib.import_module("mteb")
    except ModuleNotFoundError as error:
        raise MissingExtraError("this needs mteb, which is not installed: pip install 'pullpush[senteval]'") from error
    encoder, rows = MtebEncoder(embedder(model, level, batch_size), batch_size), []
    for name in tasks:
        if name not in IN_MTEB:
            raise unknown("task of SentEval that mteb has", name, IN_MTEB)
        task = library.get_task(IN_MTEB[name])
        rows.append((name, "intrinsic", *encoder.score(task)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


class MtebEncoder:
    """A model's texts behind the protocol that `mteb` 2 asks of encoders.

    >>> encoder = MtebEncoder(lambda texts: torch.tensor([[float(len(text)), 1.0] for text in texts]))
    >>> encoder.encode([{"text": ["a", "frog"]}, {"text": ["bell"]}]).shape
    (3, 2)
    """

    mteb_model_meta = None

    def __init__(self, embed: Embed, batch_size: int = 64) -> None:
        self.embed, self.batch_size = embed, batch_size

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_: Any) -> np.ndarray:
        """Batches of texts → `(N, d)` float32; which task they are of does not matter."""
        return self.embed([text for batch in inputs for text in batch["text"]]).numpy()

    def similarity(self, left: Any, right: Any) -> Tensor:
        """Cosines of all pairs, `(N, M)`."""
        return F.normalize(torch.as_tensor(left), dim=1) @ F.normalize(torch.as_tensor(right), dim=1).T

    def similarity_pairwise(self, left: Any, right: Any) -> Tensor:
        """Cosines of pairs, `(N,)`."""
        return F.cosine_similarity(torch.as_tensor(left), torch.as_tensor(right), dim=1)

    def score(self, task: Any) -> tuple[float, int]:
        """Spearman's ρ of the cosines on the English test pairs of a task of similarity, and how many there are."""
        task.load_data()
        (scores,) = task.evaluate(self, split="test", encode_kwargs={"batch_size": self.batch_size}).values()
        return float(scores["cosine_spearman"]), len(task.dataset["test"])


def embedder(model: Model, level: str = "projection", batch_size: int = 64) -> Embed:
    """Texts → `(N, d)` float32 on the CPU, by a model in eval mode, each of equal texts computed once.

    >>> from pullpush.encoders import create
    >>> model = create("cnn", "hashed", dim=8)
    >>> [embedder(model, level)(["a frog", "a bell", "a frog"]).shape[1] for level in ("projection", "features")]
    [8, 512]

    Raises:
        UnknownNameError: another level.
        PullPushError: a model without features, such as a published one.
    """
    if level not in LEVELS:
        raise unknown("level of embeddings", level, LEVELS)
    encode: Any = model.encode_text if level == "projection" else getattr(model, "text", None)
    if encode is None:
        raise PullPushError(
            f"{type(model).__name__} has no features of texts, only embeddings: take level='projection'"
        )

    def embed(texts: Sequence[str]) -> Tensor:
        """See above."""
        order = sorted(set(texts), key=lambda text: (len(text), text))  # those of like length together: less padding
        place = {text: row for row, text in enumerate(order)}
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad():
                blocks = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
                found = torch.cat([encode(block, ["eng"] * len(block)).float().cpu() for block in blocks])
        finally:
            model.train(was_training)
        return found[[place[text] for text in texts]]

    return embed


def _intrinsic(parts: Mapping[str, Sentences], embed: Embed, pool: str) -> float:
    return similarity_score([Pairs(embed(part.left), embed(part.right), part.gold) for part in parts.values()], pool)


def _extrinsic(parts: Mapping[str, Sentences], embed: Embed, folds: int) -> float:
    """Accuracy by the protocol that a task's splits ask for."""
    splits = {split: _examples(part, embed) for split, part in parts.items()}
    if "all" in splits:
        return nested_accuracy(splits["all"], folds)
    if "valid" in splits:
        return validated_accuracy(splits["train"], splits["valid"], splits["test"])
    return crossed_accuracy(splits["train"], splits["test"], folds)


def _examples(part: Sentences, embed: Embed) -> Examples:
    left = embed(part.left)
    features = pair_features(left, embed(part.right)) if part.right else left
    return Examples(features, torch.tensor(part.gold).long())
