"""Spoken captions as queries: one trunk trained on speech, and the schemes' projections on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pullpush.data.clips import Clips, World
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.speech.stamps import SPOKEN, load_speech
from pullpush.lab import common, trunks
from pullpush.lab.session import Session
from pullpush.studies.consistency.schemes import SCHEMES, Runs
from pullpush.studies.consistency.speech_ranks import (
    BATCH,
    length_ranks,
    over_stamps,
    query_ranks,
    scored,
    speech_table,
)
from pullpush.training.frozen import Base, encoded, on_features
from pullpush.training.loop import Result
from pullpush.training.runs import Plan

TRUNK_EPOCHS, HEAD_EPOCHS = 5, 6  # what two cores do within a minute, not what is best
SETS = {"test": "caption never heard", "crossed": "caption heard in other languages"}
UNTRAINED = "sounds only"  # the system that never heard speech
LENGTH = "length only"  # the system that hears only how long somebody speaks


def spoken_trunk(book: Session, voices: World | None = None) -> Plan:
    """The trunk of chapter 3's spoken captions, which all schemes share: InfoNCE between recordings and English.

    voices: the recordings; default: those of `load_speech`.
    """
    data = load_speech() if voices is None else voices
    return Plan(data, common.sized(book, "infonce", epochs=TRUNK_EPOCHS, batch_size=BATCH), book.seed)


# It travels with the book, see lab/trunks.py.
TRUNKS: Mapping[str, Callable[[Session], Plan]] = {"spoken": spoken_trunk}


def speech_trunk(book: Session, voices: World) -> Base:
    """`spoken_trunk`: that of the book, or, of other recordings, trained here."""
    return trunks.trained(spoken_trunk(book, voices))


def prepare(book: Session) -> None:
    """Fill the caches with the recordings and their trunk's features, as in another process while others train."""
    voices = load_speech()
    encoded(voices, speech_trunk(book, voices))


def train_heads(book: Session, heard: World, seeds: Sequence[int], systems: Sequence[str] = SCHEMES) -> Runs:
    """Each scheme's projections on the trunk's features, with each seed: (system, seed) → run."""
    overrides = {**on_features(heard), "epochs": HEAD_EPOCHS, "batch_size": BATCH}
    plans = [(name, seed) for name in systems for seed in seeds]
    return common.train_all(book, heard, plans, diagnostics=None, **dict.fromkeys(systems, overrides))


def study(book: Session, voices: World, sounds: Mapping[int, Result], base: Base) -> pd.DataFrame:
    """All systems' ranks: what length alone tells, a model of sounds that never heard speech, SCHEMES trained on it.

    Args:
        book: the session; its seeds are the heads'.
        voices: the recordings.
        sounds: seed → run on the features of `base`.
        base: the trunk that was trained on sounds.

    Returns:
        See `all_ranks`; systems LENGTH, UNTRAINED and SCHEMES.
    """
    heard = encoded(voices, speech_trunk(book, voices))
    strangers = {(UNTRAINED, seed): run for seed, run in sounds.items()}
    tables = [
        all_length_ranks(voices),
        all_ranks(strangers, encoded(voices, base)),
        all_ranks(train_heads(book, heard, list(book.seeds)), heard),
    ]
    return pd.concat(tables, ignore_index=True)


def all_ranks(runs: Runs, data: World) -> pd.DataFrame:
    """`query_ranks` of runs on both sets of queries: columns system, seed, set and those of `ranks_among`."""
    return _by_set(
        (system, seed, title, query_ranks(run.model, data.split(name)))
        for (system, seed), run in runs.items()
        for name, title in SETS.items()
    )


def all_length_ranks(data: World, seed: int = 0) -> pd.DataFrame:
    """`length_ranks` on both sets, in the form of `all_ranks`."""
    return _by_set((LENGTH, seed, title, length_ranks(data, data.split(name))) for name, title in SETS.items())


def _by_set(tables: Iterable[tuple[Any, int, str, pd.DataFrame]]) -> pd.DataFrame:
    parts = [table.assign(system=system, seed=seed, set=title) for system, seed, title, table in tables]
    first = ["system", "seed", "set"]
    table = pd.concat(parts, ignore_index=True)
    return table[[*first, *(column for column in table if column not in first)]]


# ---------------------------------------------------------------- what is shown


class Query(NamedTuple):
    """A recording to show: its number in the `complete` split, and each system's ranks in LANGUAGES."""

    row: int
    ranks: dict[str, list[int]]


def example(ranks: pd.DataFrame, asked: Clips, spoken: str, quantile: float, *, seed: int) -> Query:
    """The recording in a language whose mean log rank after KCL stands at a quantile of all: 0 the best, ½ a typical.

    asked: `complete` split of which the set "caption never heard" was asked.
    """
    queries = ranks[(ranks["set"] == SETS["test"]) & (ranks["spoken"] == spoken) & ranks["text"].isin(LANGUAGES)]
    queries = queries[queries["seed"] == seed]
    order = queries[queries["system"] == "kcl"].groupby("stamp")["rank"].agg(lambda rank: np.log(rank).mean())
    stamp = order.sort_values(kind="stable").index[round(quantile * (len(order) - 1))]
    row = list(zip(asked.columns["stamp"], asked.columns["spoken"], strict=True)).index((stamp, spoken))
    wide = queries[queries["stamp"] == stamp].pivot(index="system", columns="text", values="rank")
    return Query(row, {name: wide.loc[name, list(LANGUAGES)].astype(int).tolist() for name in SCHEMES})


def answers(ranks: pd.DataFrame) -> pd.DataFrame:
    """The numbers that answer whether speech finds its text, and in which languages: columns question, share.

    ranks: see `study`. Of captions that were never heard; over the eight trained languages unless another is named.
    """
    fresh = ranks[ranks["set"] == SETS["test"]]
    eight = fresh[fresh["text"].isin(LANGUAGES)]
    found = speech_table(eight, ("system",)).set_index("system")
    like = over_stamps(scored(eight[eight["system"] == "kcl"]), "ahead of like")
    share = speech_table(fresh[fresh["system"].isin(SCHEMES)], ("spoken", "text"))
    share = share.set_index(["spoken", "text"])["ahead of like"]
    items = int(found.loc["kcl", "items"])
    rows = {
        f"caption among the first ten of {items} texts, KCL": f"{found.loc['kcl', 'R@10']:.1%}",
        "the same by length alone": f"{found.loc[LENGTH, 'R@10']:.1%}",
        "the same by chance": f"{min(10 / items, 1):.1%}",
        "wrong texts of like length before the right one, KCL": f"{like.value:.1%} ± {like.half_width:.1%}",
    }
    for code, title in SPOKEN.items():
        rows[f"the same for {title}, mean of the schemes"] = f"{share.loc[(code, list(LANGUAGES))].mean():.0%}"
        rows[f"the same for {title}, texts of its own language"] = f"{share[code, code]:.0%}"
    return pd.DataFrame(rows.items(), columns=["of captions that were never heard", "share"])
