"""Ranks of the right text for spoken queries, among texts of all languages and among texts of like length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips, World
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.metrics import Difference, difference, rank_variance
from pullpush.parallel import one_thread
from pullpush.studies.consistency.comparisons import contrasts
from pullpush.training.evaluate import embed_audio, embed_texts

BATCH = 32
TEXTS = (*LANGUAGES, "ru", "bg")  # the last two are never trained on
LIKE = 20  # texts of like length that the right one is ranked among
METRICS = ("R@10", "ahead", "ahead of like")


def complete(split: Clips, languages: Sequence[str] = TEXTS) -> Clips:
    """The recordings of stamps with a caption in every language, so that ranks are among the same texts in all."""
    has = zip(*(split.captions(language) for language in languages), strict=True)
    return split.select([row for row, texts in enumerate(has) if all(texts)])


def query_ranks(model: nn.Module, split: Clips, languages: Sequence[str] = TEXTS) -> pd.DataFrame:
    """Rank of the right text for every recording, in each language; see `ranks_among`."""
    asked = complete(split, languages)

    with one_thread():
        audio = embed_audio(model, asked, batch_size=BATCH)

        def similarity(texts: Sequence[str], language: str) -> Tensor:
            return audio @ embed_texts(model, texts, language=language).T

        return ranks_among(asked, similarity, languages)


def length_ranks(data: World, split: Clips, languages: Sequence[str] = TEXTS) -> pd.DataFrame:
    """The same for a system that hears only how long somebody speaks: the text whose length fits best is first.

    A line fitted to the training recordings of each spoken language gives the characters for the seconds (logarithms
    of both).
    """
    asked = complete(split, languages)

    def characters(texts: Sequence[str]) -> np.ndarray:
        return np.log([len(text) for text in texts])

    def similarity(texts: Sequence[str], language: str) -> Tensor:
        expected = np.zeros(len(asked))
        for spoken in data.config.spoken:
            captions = data.train.captions(language)
            voices = data.train.columns["spoken"]
            heard = [row for row, voice in enumerate(voices) if voice == spoken and captions[row]]
            sizes = characters([captions[row][0] for row in heard])
            line = np.polyfit(np.log(data.train.lengths[heard].numpy()), sizes, 1)
            rows = np.array(asked.columns["spoken"]) == spoken
            expected[rows] = np.polyval(line, np.log(asked.lengths.numpy()[rows]))
        apart = np.abs(expected[:, None] - characters(texts)[None])
        noise = np.random.default_rng(0).random(apart.shape)  # many texts are of one length: their order is drawn
        return torch.from_numpy(-apart - 1e-9 * noise)

    return ranks_among(asked, similarity, languages)


def ranks_among(
    asked: Clips, similarity: Callable[[Sequence[str], str], Tensor], languages: Sequence[str] = TEXTS
) -> pd.DataFrame:
    """Ranks of the right text among the texts of all stamps asked for, and among texts of like length.

    How long somebody speaks tells how long the text is; among the right text and the LIKE texts of that language that
    are nearest to it in characters this hardly helps. Ties count against the system.

    Args:
        asked: recordings whose stamps have captions in all languages.
        similarity: of all recordings and given texts of one language, `(N, M)`.
        languages: of the texts.

    Returns:
        Columns stamp, spoken, text (language), rank (from 1), items, like (rank from 1), like items.
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
    return pd.concat(tables, ignore_index=True)


# ---------------------------------------------------------------- scores


def scored(ranks: pd.DataFrame) -> pd.DataFrame:
    """Ranks with METRICS: recall, and the share of wrong texts, or of wrong texts of like length, ranked before the
    right one (chance one half).
    """
    metrics = {"R@10": (ranks["rank"] <= 10).astype(float)}
    metrics["ahead"] = (ranks["rank"] - 1) / (ranks["items"] - 1)
    metrics["ahead of like"] = (ranks["like"] - 1) / (ranks["like items"] - 1)
    return ranks.assign(**metrics)


def speech_table(ranks: pd.DataFrame, by: Sequence[str] = ("set", "system", "spoken", "text")) -> pd.DataFrame:
    """Means over stamps (of a stamp's recordings and texts) and seeds, with 95 % intervals.

    Returns:
        The columns `by`, then queries (recordings), items, seeds, stamps, and for each of METRICS the value, low, high.
    """
    rows = []
    for key, group in scored(ranks).groupby(list(by), sort=False):
        queries = group[["stamp", "spoken"]].drop_duplicates()
        row = dict(zip(by, key, strict=True)) | {"queries": len(queries), "items": int(group["items"].iloc[0])}
        for metric in METRICS:
            mean = over_stamps(group, metric)
            row |= {"seeds": mean.seeds, "stamps": mean.clips}
            row |= {metric: mean.value, f"{metric} low": mean.low, f"{metric} high": mean.high}
        rows.append(row)
    return pd.DataFrame(rows)


def over_stamps(table: pd.DataFrame, metric: str) -> Difference:
    """The mean of a metric of one system over seeds and stamps; table: see `scored`."""
    return difference(_by_seed_and_stamp(table, metric))


def _by_seed_and_stamp(table: pd.DataFrame, metric: str) -> np.ndarray:
    """Means over a stamp's recordings and texts, `(seeds, stamps)`."""
    return table.pivot_table(index="seed", columns="stamp", values=metric).to_numpy()


def speech_gains(ranks: pd.DataFrame, pairs: Sequence[tuple[str, str]], metric: str = "R@10") -> pd.DataFrame:
    """What a system adds to another in the eight trained languages: columns set, system, baseline, metric, and those of
    `comparisons.contrasts`.
    """
    table = scored(ranks[ranks["text"].isin(LANGUAGES)])
    plans = []
    for name, part in table.groupby("set", sort=False):
        values = {system: _by_seed_and_stamp(rows, metric) for system, rows in part.groupby("system")}
        for system, base in pairs:
            head = {"set": name, "system": system, "baseline": base, "metric": metric}
            plans.append((head, difference(values[system], values[base])))
    return contrasts(plans)


def rank_spread(ranks: pd.DataFrame) -> pd.DataFrame:
    """Consistency over the eight trained languages: columns set, system, MRV, log (MRV of log ranks), chance of both.

    Chance: ranks drawn for each language independently.
    """
    table = ranks[ranks["text"].isin(LANGUAGES)]
    wide = table.pivot_table(
        index=["set", "system", "seed", "stamp", "spoken"], columns="text", values="rank", sort=False
    )
    items = table.groupby("set")["items"].first()
    rows = []
    for (name, system), group in wide.groupby(["set", "system"], sort=False):
        values = torch.tensor(group.to_numpy())
        any_rank = torch.arange(1, int(items[name]) + 1).double()
        part = (len(LANGUAGES) - 1) / len(LANGUAGES)  # a variance around the mean of K is that much smaller
        chance = (part * any_rank.var(correction=0).item(), part * any_rank.log().var(correction=0).item())
        measured = (rank_variance(values).mean().item(), rank_variance(values.log()).mean().item())
        rows.append((name, system, *measured, *chance))
    return pd.DataFrame(rows, columns=["set", "system", "MRV", "log", "MRV by chance", "log by chance"])
