"""Spoken captions as queries: one trunk trained on speech, the schemes' projections on it, ranks of the right text."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips, World
from pullpush.data.speech.stamps import load_speech
from pullpush.lab import common, trunks
from pullpush.lab.session import Session
from pullpush.metrics import rank_variance
from pullpush.metrics.inference import Difference, difference
from pullpush.parallel import one_thread
from pullpush.show.palette import method_name
from pullpush.studies.consistency.data import SCHEMES, TEXTS, Runs, complete
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import Base, encoded, on_features
from pullpush.training.loop import Result
from pullpush.training.runs import Plan, train_all

TRUNK_EPOCHS, HEAD_EPOCHS = 5, 6  # what two cores do within a minute, not what is best
BATCH = 32
LIKE = 20  # texts of like length that the right one is ranked among
SETS = {"test": "caption never heard", "crossed": "caption heard in other languages"}
UNTRAINED = "sounds only"  # the system that never heard speech
LENGTH = "length only"  # the system that hears only how long somebody speaks
METRICS = ("R@10", "ahead", "ahead of like")
Similarity = Callable[[Sequence[str], str], Tensor]  # of all recordings and texts of a language, (N, M)


def spoken_trunk(book: Session, voices: World | None = None) -> Plan:
    """The trunk of chapter 3's spoken captions, which all schemes share: InfoNCE between recordings and English.

    voices: the recordings; default: those of `load_speech`.
    """
    data = load_speech() if voices is None else voices
    return Plan(data, common.sized(book, "infonce", epochs=TRUNK_EPOCHS, batch_size=BATCH), book.seed)


# It travels with the book, see lab/trunks.py.
TRUNKS: Mapping[str, Callable[[Session], Plan]] = {"spoken": spoken_trunk}


def train_heads(book: Session, heard: World, systems: Sequence[str] = SCHEMES) -> Runs:
    """Each scheme's projections on the trunk's features, with each seed of the session: (system, seed) → run."""
    options: dict[str, Any] = {**on_features(heard), "epochs": HEAD_EPOCHS, "batch_size": BATCH, "diagnostics": None}
    keys = [(name, seed) for name in systems for seed in book.seeds]
    plans = [common.plan(book, heard, name, seed=seed, **options) for name, seed in keys]
    return dict(zip(keys, train_all(plans), strict=True))


def study(book: Session, voices: World, sounds: Mapping[int, Result], base: Base) -> pd.DataFrame:
    """Ranks of what length alone tells, of a model of sounds that was not trained on speech, and of SCHEMES that were.

    sounds: seed → run on the features of `base`, the trunk that was trained on sounds.

    Returns:
        Columns system (LENGTH, UNTRAINED, SCHEMES), seed, set (see SETS) and those of `ranks_among`.
    """
    heard, before = encoded(voices, trunks.trained(spoken_trunk(book, voices))), encoded(voices, base)
    ask = {(LENGTH, 0): (voices, partial(length_ranks, voices))}
    ask |= {(UNTRAINED, seed): (before, partial(query_ranks, run.model)) for seed, run in sounds.items()}
    ask |= {key: (heard, partial(query_ranks, run.model)) for key, run in train_heads(book, heard).items()}
    tables = [
        ranks(data.split(part)).assign(system=system, seed=seed, set=title)
        for (system, seed), (data, ranks) in ask.items()
        for part, title in SETS.items()
    ]
    return pd.concat(tables, ignore_index=True)


def query_ranks(model: nn.Module, split: Clips) -> pd.DataFrame:
    """Rank of the right text for every recording, in each language; see `ranks_among`."""
    asked = complete(split)
    with one_thread():
        audio = embed_audio(model, asked, batch_size=BATCH)
        return ranks_among(asked, lambda texts, code: audio @ embed_texts(model, texts, language=code).T)


def length_ranks(data: World, split: Clips) -> pd.DataFrame:
    """The same for a system that knows only how long somebody speaks: the text whose length fits best is first, by a
    line fitted to the training recordings of each spoken language (logarithms of characters and seconds).
    """
    asked = complete(split)

    def characters(texts: Sequence[str]) -> np.ndarray:
        return np.log([len(text) for text in texts])

    def similarity(texts: Sequence[str], language: str) -> Tensor:
        expected, captions = np.zeros(len(asked)), data.train.captions(language)
        for spoken in data.config.spoken:
            rows = [n for n, voice in enumerate(data.train.columns["spoken"]) if voice == spoken and captions[n]]
            sizes = characters([captions[row][0] for row in rows])
            line = np.polyfit(np.log(data.train.lengths[rows].numpy()), sizes, 1)
            of_voice = np.array(asked.columns["spoken"]) == spoken
            expected[of_voice] = np.polyval(line, np.log(asked.lengths.numpy()[of_voice]))
        apart = np.abs(expected[:, None] - characters(texts)[None])
        noise = np.random.default_rng(0).random(apart.shape)  # many texts are of one length: their order is drawn
        return torch.from_numpy(-apart - 1e-9 * noise)

    return ranks_among(asked, similarity)


def ranks_among(asked: Clips, similarity: Similarity, languages: Sequence[str] = TEXTS) -> pd.DataFrame:
    """Ranks of the right text among the texts of all stamps of some complete recordings, and among the LIKE texts of
    that language that are nearest to it in characters, where how long somebody speaks hardly helps. Ties count against
    the system.

    Returns:
        Columns stamp, spoken, text (language), rank (from 1), items, like (rank from 1), like items, and METRICS: R@10,
        and the share of wrong texts, or of those of like length, before the right one (chance one half).
    """
    stamps = list(dict.fromkeys(asked.columns["stamp"]))
    numbers = {stamp: number for number, stamp in enumerate(stamps)}
    right_text = torch.tensor([numbers[stamp] for stamp in asked.columns["stamp"]])  # (N,)
    like = min(LIKE, len(stamps) - 1)
    tables = []
    for language in languages:
        captions = dict(zip(asked.columns["stamp"], asked.captions(language), strict=True))
        texts = [captions[stamp][0] for stamp in stamps]
        values = similarity(texts, language)
        right = values.gather(1, right_text[:, None])
        size = torch.tensor([len(text) for text in texts])
        apart = (size[:, None] - size[None]).abs()
        near = apart.fill_diagonal_(int(apart.max()) + 1).argsort(dim=1, stable=True)[:, :like]
        table = pd.DataFrame({name: asked.columns[name] for name in ("stamp", "spoken")}).assign(text=language)
        table = table.assign(rank=(values >= right).sum(1).numpy(), items=len(stamps))
        table["like"] = 1 + (values.gather(1, near[right_text]) >= right).sum(1).numpy()
        tables.append(table.assign(**{"like items": like + 1}))
    ranks = pd.concat(tables, ignore_index=True)
    ranks["R@10"] = (ranks["rank"] <= 10).astype(float)
    ranks["ahead"] = (ranks["rank"] - 1) / (ranks["items"] - 1)
    ranks["ahead of like"] = (ranks["like"] - 1) / (ranks["like items"] - 1)
    return ranks


def speech_table(ranks: pd.DataFrame, by: Sequence[str] = ("set", "system", "spoken", "text")) -> pd.DataFrame:
    """Means over stamps (of a stamp's recordings and texts) and seeds, with 95 % intervals: the columns `by`, queries
    (recordings), items, seeds, stamps, and for each of METRICS the value, low, high.
    """
    rows = []
    for key, group in ranks.groupby(list(by), sort=False):
        queries = group[["stamp", "spoken"]].drop_duplicates()
        row = dict(zip(by, key, strict=True)) | {"queries": len(queries), "items": int(group["items"].iloc[0])}
        for metric in METRICS:
            mean = over_stamps(group, metric)
            row |= {"seeds": mean.seeds, "stamps": mean.clips}
            row |= {metric: mean.value, f"{metric} low": mean.low, f"{metric} high": mean.high}
        rows.append(row)
    return pd.DataFrame(rows)


def over_stamps(ranks: pd.DataFrame, metric: str, baseline: pd.DataFrame | None = None) -> Difference:
    """The mean of a metric over seeds and stamps, of a stamp's recordings and texts; baseline: ranks to subtract."""
    sides = [ranks] if baseline is None else [ranks, baseline]
    return difference(*(side.pivot_table(index="seed", columns="stamp", values=metric).to_numpy() for side in sides))


def rank_spread(ranks: pd.DataFrame) -> pd.DataFrame:
    """Consistency over the texts' languages: columns set, system, MRV, log (MRV of log ranks), and both by chance, of
    ranks drawn for each language independently.
    """
    keys = ["set", "system", "seed", "stamp", "spoken"]
    wide = ranks.pivot_table(index=keys, columns="text", values="rank", sort=False)
    items, part = ranks.groupby("set")["items"].first(), 1 - 1 / len(wide.columns)  # a variance around the mean of K
    rows = []
    for (name, system), group in wide.groupby(["set", "system"], sort=False):
        values, chance = torch.tensor(group.to_numpy()), torch.arange(1, int(items[name]) + 1).double()
        measured = [rank_variance(each).mean().item() for each in (values, values.log())]
        by_chance = [part * each.var(correction=0).item() for each in (chance, chance.log())]
        rows.append((name, system, *measured, *by_chance))
    return pd.DataFrame(rows, columns=["set", "system", "MRV", "log", "MRV by chance", "log by chance"])


def example(ranks: pd.DataFrame, spoken: str, quantile: float) -> tuple[str, dict[str, list[int]]]:
    """The stamp whose recording in a language has its mean log rank after KCL at a quantile of all (0 the best), and
    the schemes' ranks of it, by their printed names; ranks: of one seed and set.
    """
    queries = ranks[ranks["spoken"] == spoken]
    order = np.log(queries[queries["system"] == "kcl"].set_index("stamp")["rank"]).groupby("stamp").mean()
    stamp = order.sort_values(kind="stable").index[round(quantile * (len(order) - 1))]
    found = queries[queries["stamp"] == stamp].groupby("system")["rank"].apply(list)
    return stamp, {method_name(name): found[name] for name in SCHEMES}
