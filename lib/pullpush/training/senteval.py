"""The language encoder of a model by SentEval's published tasks: `language_quality(model)`, a row a task.

*Intrinsic*: Spearman's ρ between the cosines of pairs of sentences and what people judge of them (STS12–16, STS-B,
SICK-R). *Extrinsic*: accuracy of logistic regression on frozen embeddings (MR, CR, SUBJ, MPQA, SST2, TREC, MRPC).
Scores are fractions; papers print percents. SentEval's other classifier, a network trained with Adam, is not here, and
`mteb` is not asked: it has the first seven tasks alone.

Embeddings are taken at one of two levels. "projection" is where texts meet clips, of unit length: what
`model.encode_text` gives, and what the losses shape. "features" are what the text encoder gives before its projection.

Sentences are read from SentEval's own files, as its get_transfer_data.bash leaves them, or SimCSE's download:

    $PULLPUSH_DATA/SentEval/data/downstream/STS/STS12-en-test/STS.input.MSRpar.txt … MR/rt-polarity.pos … TREC/…
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.recordings.registry import DATA, datasets_home
from pullpush.encoders.interface import Model
from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.extras import need

FOLDERS = ("SentEval/data/downstream", "SentEval/downstream", "senteval")
SOURCES = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),  # without SMT, whose licence does not allow it
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
LEVELS = ("projection", "features")
POOLS = ("all", "mean", "wmean")
COLUMNS = ("task", "kind", "score", "n")
FOLDS = 10
SEED = 1111  # SentEval's
SPLIT_CS = tuple(2.0**power for power in range(-2, 4))  # for folds within folds, and for a split to validate
TEST_CS = tuple(2.0**power for power in range(-1, 6))  # for folds of the training split, beside a test split
Embed = Callable[[Sequence[str]], Tensor]


class Sentences(NamedTuple):
    """Sentences, or pairs of them, with a judgement or a class number of each.

    right: the second sentences of pairs; none for single ones.
    """

    left: list[str]
    right: list[str]
    gold: list[float]


Parts = Mapping[str, Sentences]


def language_quality(
    model: Model,
    tasks: Iterable[str] | None = None,
    *,
    level: str = "projection",
    folds: int = FOLDS,
    pool: str = "all",
    batch_size: int = 64,
) -> pd.DataFrame:
    """Scores on the tasks, from SentEval's files.

    Folds within folds are some 600 regressions a task: with 384 dimensions, two minutes each for MR and its like.

    Args:
        model: whose texts are embedded, in eval mode; it is left in the mode it was in.
        tasks: some of `TASKS`; None takes all.
        level: "projection" or "features", see above; models of others may have no features.
        folds: of cross-validation; papers take ten.
        pool: how the sources of STS12–16 become one score: "all" pairs together, as SimCSE does, "mean" of the sources'
            ρ, or "wmean", weighted by their sizes, as SentEval does.
        batch_size: sentences embedded at once.

    Returns:
        Columns: task; kind, "intrinsic" (score is Spearman's ρ) or "extrinsic" (accuracy, a fraction); score; n, the
        pairs, or the sentences or pairs that are tested.

    Raises:
        UnknownNameError: another task, level or way to pool.
        DataNotFoundError: SentEval is not on disk; the message says where it is looked for and how to get it.
        PullPushError: its files are not as published, or the model has no features.
        MissingExtraError: classifiers are scikit-learn's, which is not installed.
    """
    if pool not in POOLS:
        raise unknown("way to pool sources", pool, POOLS)
    embed = embedder(model, level, batch_size)
    rows = []
    for task in TASKS if tasks is None else tasks:
        parts = read_task(task)
        if task in INTRINSIC:
            score, n = _intrinsic(parts, embed, pool), sum(len(part.gold) for part in parts.values())
            rows.append((task, "intrinsic", score, n))
        else:
            tested = parts["test" if "test" in parts else "all"]
            rows.append((task, "extrinsic", _extrinsic(parts, embed, folds), len(tested.gold)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


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
                features = torch.cat([encode(block, ["eng"] * len(block)).float().cpu() for block in blocks])
        finally:
            model.train(was_training)
        return features[[place[text] for text in texts]]

    return embed


def _intrinsic(parts: Parts, embed: Embed, pool: str) -> float:
    """Spearman's ρ of cosines and judgements; of embeddings that do not differ, where it is undefined, 0."""
    cosines = [F.cosine_similarity(embed(part.left).double(), embed(part.right).double()) for part in parts.values()]
    pairs = [(cosine.numpy(), np.asarray(part.gold)) for cosine, part in zip(cosines, parts.values(), strict=True)]
    if pool == "all":
        pairs = [(np.concatenate([cosine for cosine, _ in pairs]), np.concatenate([gold for _, gold in pairs]))]
    scores = [0.0 if np.ptp(cosine) == 0 or np.ptp(gold) == 0 else spearmanr(cosine, gold)[0] for cosine, gold in pairs]
    weights = [len(gold) for _, gold in pairs] if pool == "wmean" else None
    return float(np.average(scores, weights=weights))


def _extrinsic(parts: Parts, embed: Embed, folds: int) -> float:
    """Accuracy by the protocol that a task's splits ask for: folds within folds where there are none (MR, CR, SUBJ,
    MPQA), C chosen on the second of three (SST2), or by folds of the first of two (TREC, MRPC).
    """
    need("book", "SentEval's classifiers")
    linear, selection = import_module("sklearn.linear_model"), import_module("sklearn.model_selection")
    splits = {name: (_features(part, embed), np.array(part.gold, dtype=int)) for name, part in parts.items()}
    cv = selection.StratifiedKFold(folds, shuffle=True, random_state=SEED)

    def search(cs: Sequence[float]) -> Any:
        """Regression with the best C of folds; of equals, to a hundredth of a percent as SentEval has it, the first."""
        best: Any = lambda results: int(np.argmax(results["mean_test_score"].round(4)))  # noqa: E731
        return selection.GridSearchCV(linear.LogisticRegression(max_iter=2000), {"C": cs}, cv=cv, refit=best)

    if "all" in splits:
        return float(selection.cross_val_score(search(SPLIT_CS), *splits["all"], cv=cv).mean())
    if "valid" in splits:
        fitted = [linear.LogisticRegression(C=c, max_iter=2000).fit(*splits["train"]) for c in SPLIT_CS]
        chosen = int(np.argmax([round(each.score(*splits["valid"]), 4) for each in fitted]))
        return float(fitted[chosen].score(*splits["test"]))
    return float(search(TEST_CS).fit(*splits["train"]).score(*splits["test"]))


def _features(part: Sentences, embed: Embed) -> np.ndarray:
    """What a classifier takes, `(N, d)`: embeddings, or of pairs |u − v| and u · v by dimension."""
    left = embed(part.left)
    if part.right:
        right = embed(part.right)
        left = torch.cat([(left - right).abs(), left * right], dim=1)
    return left.double().numpy()


def read_task(name: str) -> Parts:
    """The sources of a task of similarity, or the splits of one of classes: "all", or "train", "valid" and "test".

    Raises:
        UnknownNameError: no such task.
        DataNotFoundError: its files are not on disk; the message says where they are looked for.
        PullPushError: they are not as published.
    """
    if name not in TASKS:
        raise unknown("task of SentEval", name, TASKS)
    home = datasets_home()
    place = next((home / folder for folder in FOLDERS if (home / folder).is_dir()), None)
    if place is None:
        raise DataNotFoundError(
            f"SentEval is not at {home / FOLDERS[0]}: run data/downstream/get_transfer_data.bash of "
            f"github.com/facebookresearch/SentEval there, or set ${DATA} to the folder that holds SentEval"
        )
    try:
        rows = TASKS[name](place)
    except (IndexError, ValueError) as error:
        raise PullPushError(f"the files of {name} in {place} are not as SentEval has them: {error}") from error
    if empty := [part for part, each in rows.items() if not each]:
        raise PullPushError(f"{name} has no sentences for {', '.join(empty)} in {place}")
    return {part: _sentences(each) for part, each in rows.items()}


Rows = dict[str, list[tuple[Any, ...]]]  # of a source or split: one or two sentences, and the judgement or class


def _sts(year: str, place: Path) -> Rows:
    """Pairs of one year, source by source; those that were not judged, an empty line in STS.gs, are left out."""
    folder, parts = place / "STS" / f"{year}-en-test", {}
    for source in SOURCES[year]:
        pairs = [line.split("\t") for line in _lines(folder / f"STS.input.{source}.txt")]
        gold = _lines(folder / f"STS.gs.{source}.txt")
        parts[source] = [(pair[0], pair[1], float(value)) for pair, value in zip(pairs, gold, strict=True) if value]
    return parts


def _table(files: Mapping[str, str], columns: tuple[int, int, int], head: int, place: Path) -> Rows:
    """Pairs of tables, whose `columns` hold both sentences and the judgement or class; head: lines above them."""
    lines = {split: _lines(place / name)[head:] for split, name in files.items()}
    left, right, gold = columns
    rows = {split: [line.split("\t") for line in each] for split, each in lines.items()}
    return {split: [(row[left], row[right], float(row[gold])) for row in each] for split, each in rows.items()}


def _two_files(positive: str, negative: str, place: Path) -> Rows:
    """Sentences of two classes, one file each."""
    texts = [_lines(place / name, "latin-1") for name in (negative, positive)]
    return {"all": [(text, number) for number, lines in enumerate(texts) for text in lines if text.strip()]}


def _sst(place: Path) -> Rows:
    files = {"train": "sentiment-train", "valid": "sentiment-dev", "test": "sentiment-test"}
    rows = {
        split: [line.rpartition("\t") for line in _lines(place / "SST/binary" / file)] for split, file in files.items()
    }
    return {split: [(text, int(label)) for text, _, label in each] for split, each in rows.items()}


def _trec(place: Path) -> Rows:
    """Questions and what they want to know: the first of two labels, "DESC:manner How …", numbered by name."""
    files = {"train": "train_5500.label", "test": "TREC_10.label"}
    rows = {}
    for split, file in files.items():
        lines = [line.partition(" ") for line in _lines(place / "TREC" / file, "latin-1")]
        rows[split] = [(text, label.partition(":")[0]) for label, _, text in lines]
    classes = sorted({label for _, label in rows["train"]})
    return {split: [(text, classes.index(label)) for text, label in each] for split, each in rows.items()}


def _sentences(rows: Sequence[tuple[Any, ...]]) -> Sentences:
    """Rows by column, each sentence with one blank between words."""
    texts = [[" ".join(text.split()) for text in row[:-1]] for row in rows]
    right = [text[1] for text in texts if len(text) > 1]
    return Sentences([text[0] for text in texts], right, [row[-1] for row in rows])


def _lines(path: Path, encoding: str = "utf-8-sig") -> list[str]:
    """A file's lines; other marks that Python takes for ends of lines are none here."""
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: is SentEval complete?")
    lines = path.read_text(encoding=encoding).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


MRPC = {split: f"MRPC/msr_paraphrase_{split}.txt" for split in ("train", "test")}
TASKS: Mapping[str, Callable[[Path], Rows]] = {
    **{year: partial(_sts, year) for year in SOURCES},
    "STS-B": partial(_table, {"test": "STS/STSBenchmark/sts-test.csv"}, (5, 6, 4), 0),
    "SICKR": partial(_table, {"test": "SICK/SICK_test_annotated.txt"}, (1, 2, 3), 1),
    "MR": partial(_two_files, "MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": partial(_two_files, "CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": partial(_two_files, "SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": partial(_two_files, "MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "SST2": _sst,
    "TREC": _trec,
    "MRPC": partial(_table, MRPC, (3, 4, 0), 1),
}
INTRINSIC, EXTRINSIC = tuple(TASKS)[:7], tuple(TASKS)[7:]
