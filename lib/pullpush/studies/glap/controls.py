"""What stands beside scores: what there is to learn from, what length alone tells, which bias was learnt, and when."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import Clips
from pullpush.data.mixture import Mixed
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import difference
from pullpush.studies.glap.comparisons import tests_of
from pullpush.studies.glap.grounds import Grounds
from pullpush.studies.glap.measures import KEYWORDS, spotted
from pullpush.studies.glap.test_sets import ISO

SPELT = ("spoken", "language")  # columns that say in which language a clip is spoken


def contents(clips: Clips) -> pd.DataFrame:
    """Clips and hours of each group: columns group, domains, clips, hours."""
    table = pd.DataFrame({name: clips.columns[name] for name in ("group", "domain")})
    table["hours"] = clips.lengths.numpy() / SAMPLE_RATE / 3600
    told = {"domains": ("domain", lambda found: ", ".join(dict.fromkeys(found))), "clips": ("domain", "size")}
    return table.groupby("group", sort=False).agg(**told, hours=("hours", "sum")).reset_index()


def spoken_in(clips: Mixed) -> dict[str, int]:
    """How many clips of a mixture are spoken in each language."""
    found: list[str] = []
    for source in clips.sources:
        column = next((name for name in SPELT if name in source.columns), "")
        found += [ISO.get(each, each) for each in source.columns[column]] if column else []
    return pd.Series(found, dtype=object).value_counts().to_dict()


def keywords(scores: Scores, ground: Grounds, learnt: Mixed) -> pd.DataFrame:
    """Accuracy of spoken words by language, beside chance and what length alone tells.

    Args:
        scores: of the experiment that asks by the bare label.
        learnt: what was learnt from.

    Returns:
        Columns language, words, clips (of training in it), heard, value, low, high, chance, length, seeds; fractions.
    """
    counts, rows = spoken_in(learnt), []
    for language, accuracy in spotted(scores, "GLAP").items():
        one, clips, words = difference(accuracy), counts.get(language, 0), accuracy.shape[1]
        alone = by_length(ground.test(f"{KEYWORDS}{language}").singles, language)
        span = (one.value, max(one.low, 0.0), min(one.high, 1.0))
        rows.append((language, words, clips, clips > 0, *span, 1 / words, alone, one.seeds))
    names = ["language", "words", "clips", "heard", "value", "low", "high", "chance", "length", "seeds"]
    return pd.DataFrame(rows, columns=names)


def by_length(clips: Clips, language: str) -> float:
    """Accuracy of matching words by length alone: the clip that is longer than a share of all clips is taken for the
    word that is longer, in letters, than that share of all words.
    """
    words = np.array([len(word) for word in clips.prompts(language, "{label}")])
    labels, lengths = clips.labels.numpy(), clips.lengths.numpy()
    return length_accuracy(lengths, words[labels], labels)


def length_accuracy(lengths: np.ndarray, letters: np.ndarray, labels: np.ndarray) -> float:
    """`by_length` of clips' lengths, their words' letters and classes, `(N,)` each; ties are right by their chance.

    >>> length_accuracy(np.array([1.0, 3.0, 2.0]), np.array([2, 9, 4]), np.array([0, 1, 2]))
    1.0
    """
    by_letters = np.sort(letters)[np.argsort(np.argsort(lengths, kind="stable"), kind="stable")]  # a clip's guess
    alike = {count: len(set(labels[letters == count].tolist())) for count in set(letters.tolist())}
    return float(np.mean([(guess == own) / alike[own] for guess, own in zip(by_letters, letters, strict=True)]))


# ---------------------------------------------------------------- what training did


def learnt_biases(scores: Scores, system: str) -> pd.DataFrame:
    """Bias beside s/τ and temperature at the end of training, once a run: system, batch, seed, bias, tau."""
    steps = _once(scores, scores.steps).query("system == @system").sort_values("step")
    return steps.groupby(["system", "batch", "seed"], sort=False)[["bias", "tau"]].last().sort_index().reset_index()


def best_epochs(scores: Mapping[str, Scores]) -> pd.DataFrame:
    """Where in training each run was best on validation: experiment, share, runs (that share it)."""
    parts = []
    for name, found in scores.items():
        history = _once(found, found.history).sort_values("epoch").reset_index()
        told = {key for trial in found.experiment.trials for key in trial.where if key != "test"}
        runs = history.groupby(["system", *told, "seed"])
        best = history.loc[runs["R@1"].idxmax(), "epoch"].to_numpy()
        counts = pd.Series((best / runs["epoch"].max().to_numpy()).round(3)).value_counts().sort_index()
        parts.append(pd.DataFrame({"experiment": name, "share": counts.index, "runs": counts.to_numpy()}))
    return pd.concat(parts, ignore_index=True)


def _once(scores: Scores, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of one test: a run that is tested several times is trained once."""
    return table[table["test"] == tests_of(scores)[0]]
