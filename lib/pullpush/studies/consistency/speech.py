"""Spoken captions as queries: one trunk trained on speech, the three schemes' heads on it, ranks in every language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.speech import SPOKEN, SpeechSplit, SpeechWorld, load_speech
from pullpush.data.vocabulary import LANGUAGES
from pullpush.lab import common
from pullpush.lab.session import Session
from pullpush.metrics import Difference, difference, rank_variance
from pullpush.parallel import one_thread
from pullpush.studies.consistency.consistency import SCHEMES, Runs, contrasts
from pullpush.training.evaluate import embed_audio, embed_texts
from pullpush.training.frozen import encoded, on_features
from pullpush.training.loop import Result
from pullpush.training.runs import Plan

BATCH = 32
TRUNK_EPOCHS, HEAD_EPOCHS = 5, 6  # what two cores do within a minute, not what is best
SETS = {"test": "caption never heard", "crossed": "caption heard in other languages"}
TEXTS = (*LANGUAGES, "ru", "bg")  # the last two are never trained on
UNTRAINED = "sounds only"  # the system that never heard speech
LENGTH = "length only"  # the system that hears only how long somebody speaks
LIKE = 20  # texts of like length that the right one is ranked among


def speech_trunk(book: Session, data: SpeechWorld) -> Result:
    """The trunk that all schemes share: InfoNCE between recordings and English captions."""
    return Plan(data, common.sized(book, "infonce", epochs=TRUNK_EPOCHS, batch_size=BATCH), book.seed).train()


def prepare(book: Session) -> None:
    """Fill the caches with the recordings and their trunk's features, as in another process while others train."""
    voices = load_speech()
    encoded(voices, speech_trunk(book, voices))


def train_heads(book: Session, heard: SpeechWorld, seeds: Sequence[int], systems: Sequence[str] = SCHEMES) -> Runs:
    """Each scheme's projections on the trunk's features, with each seed: (system, seed) → run."""
    own = {**on_features(heard), "epochs": HEAD_EPOCHS, "batch_size": BATCH}
    plans = [(name, seed) for name in systems for seed in seeds]
    return common.train_all(book, heard, plans, diagnostics=None, **dict.fromkeys(systems, own))


def complete(split: SpeechSplit, languages: Sequence[str] = TEXTS) -> SpeechSplit:
    """The recordings of stamps with a caption in every language, so that ranks are among the same texts in all."""
    has = split.recordings["stamp"].map(lambda stamp: all(stamp in split.texts[language] for language in languages))
    return split.select(np.flatnonzero(has))


def query_ranks(model: nn.Module, split: SpeechSplit, languages: Sequence[str] = TEXTS) -> pd.DataFrame:
    """Rank of the right text for every recording, in each language; see `ranks_among`."""
    asked = complete(split, languages)

    with one_thread():
        audio = embed_audio(model, asked, batch_size=BATCH)

        def similarity(texts: Sequence[str], language: str) -> Tensor:
            return audio @ embed_texts(model, texts, language=language).T

        return ranks_among(asked, similarity, languages)


def length_ranks(data: SpeechWorld, split: SpeechSplit, languages: Sequence[str] = TEXTS) -> pd.DataFrame:
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
            heard = data.train.recordings
            heard = heard[(heard["spoken"] == spoken) & heard["stamp"].isin(set(data.train.texts[language]))]
            own = characters([data.train.texts[language][stamp] for stamp in heard["stamp"]])
            line = np.polyfit(np.log(heard["length"]), own, 1)
            rows = (asked.recordings["spoken"] == spoken).to_numpy()
            expected[rows] = np.polyval(line, np.log(asked.recordings["length"][rows]))
        apart = np.abs(expected[:, None] - characters(texts)[None])
        noise = np.random.default_rng(0).random(apart.shape)  # many texts are of one length: their order is drawn
        return torch.from_numpy(-apart - 1e-9 * noise)

    return ranks_among(asked, similarity, languages)


def ranks_among(
    asked: SpeechSplit, similarity: Callable[[Sequence[str], str], Tensor], languages: Sequence[str] = TEXTS
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
    stamps = asked.recordings["stamp"].drop_duplicates().tolist()
    own = torch.tensor(asked.recordings["stamp"].map({stamp: i for i, stamp in enumerate(stamps)}).to_numpy())
    like = min(LIKE, len(stamps) - 1)
    tables = []
    for language in languages:
        texts = [asked.texts[language][stamp] for stamp in stamps]
        values = similarity(texts, language)
        right = values.gather(1, own[:, None])
        size = torch.tensor([len(text) for text in texts])
        apart = (size[:, None] - size[None]).abs()
        near = apart.fill_diagonal_(int(apart.max()) + 1).argsort(dim=1, stable=True)[:, :like]
        table = asked.recordings[["stamp", "spoken"]].assign(text=language)
        table = table.assign(rank=(values >= right).sum(1).numpy(), items=len(stamps))
        table["like"] = 1 + (values.gather(1, near[own]) >= right).sum(1).numpy()
        tables.append(table.assign(**{"like items": like + 1}))
    return pd.concat(tables, ignore_index=True)


def all_ranks(runs: Runs, data: SpeechWorld) -> pd.DataFrame:
    """`query_ranks` of runs on both sets of queries: columns system, seed, set and those of `ranks_among`."""
    return _by_set(
        (system, seed, title, query_ranks(run.model, getattr(data, name)))
        for (system, seed), run in runs.items()
        for name, title in SETS.items()
    )


def all_length_ranks(data: SpeechWorld, seed: int = 0) -> pd.DataFrame:
    """`length_ranks` on both sets, in the form of `all_ranks`."""
    return _by_set((LENGTH, seed, title, length_ranks(data, getattr(data, name))) for name, title in SETS.items())


def _by_set(tables: Iterable[tuple[Any, int, str, pd.DataFrame]]) -> pd.DataFrame:
    parts = [table.assign(system=system, seed=seed, set=title) for system, seed, title, table in tables]
    first = ["system", "seed", "set"]
    table = pd.concat(parts, ignore_index=True)
    return table[[*first, *(column for column in table if column not in first)]]


METRICS = ("R@10", "ahead", "ahead of like")


def scored(ranks: pd.DataFrame) -> pd.DataFrame:
    """Ranks with METRICS: recall, and the share of wrong texts, or of wrong texts of like length, ranked before the
    right one (chance one half).
    """
    own = {"R@10": (ranks["rank"] <= 10).astype(float)}
    own["ahead"] = (ranks["rank"] - 1) / (ranks["items"] - 1)
    own["ahead of like"] = (ranks["like"] - 1) / (ranks["like items"] - 1)
    return ranks.assign(**own)


def speech_table(ranks: pd.DataFrame, by: Sequence[str] = ("set", "system", "spoken", "text")) -> pd.DataFrame:
    """Means over stamps (of a stamp's recordings and texts) and seeds, with 95 % intervals.

    Returns:
        The columns `by`, then queries (recordings), items, seeds, stamps, and for each of METRICS the value, low, high.
    """
    rows = []
    for key, own in scored(ranks).groupby(list(by), sort=False):
        queries = own[["stamp", "spoken"]].drop_duplicates()
        row = dict(zip(by, key, strict=True)) | {"queries": len(queries), "items": int(own["items"].iloc[0])}
        for metric in METRICS:
            one = over_stamps(own, metric)
            row |= {"seeds": one.seeds, "stamps": one.clips}
            row |= {metric: one.value, f"{metric} low": one.low, f"{metric} high": one.high}
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
    `language_study.contrasts`.
    """
    table = scored(ranks[ranks["text"].isin(LANGUAGES)])
    plans = []
    for name, part in table.groupby("set", sort=False):
        values = {system: _by_seed_and_stamp(own, metric) for system, own in part.groupby("system")}
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
    for (name, system), own in wide.groupby(["set", "system"], sort=False):
        values = torch.tensor(own.to_numpy())
        any_rank = torch.arange(1, int(items[name]) + 1).double()
        part = (len(LANGUAGES) - 1) / len(LANGUAGES)  # a variance around the mean of K is that much smaller
        chance = (part * any_rank.var(correction=0).item(), part * any_rank.log().var(correction=0).item())
        measured = (rank_variance(values).mean().item(), rank_variance(values.log()).mean().item())
        rows.append((name, system, *measured, *chance))
    return pd.DataFrame(rows, columns=["set", "system", "MRV", "log", "MRV by chance", "log by chance"])


def study(book: Session, voices: SpeechWorld, sounds: Mapping[int, Result], base: Result) -> pd.DataFrame:
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


class Query(NamedTuple):
    """A recording to show: its number in the `complete` split, and each system's ranks in LANGUAGES."""

    row: int
    ranks: dict[str, list[int]]


def example(ranks: pd.DataFrame, asked: SpeechSplit, spoken: str, quantile: float, *, seed: int) -> Query:
    """The recording in a language whose mean log rank after KCL stands at a quantile of all: 0 the best, ½ a typical.

    asked: `complete` split of which the set "caption never heard" was asked.
    """
    own = ranks[(ranks["set"] == SETS["test"]) & (ranks["spoken"] == spoken) & ranks["text"].isin(LANGUAGES)]
    own = own[own["seed"] == seed]
    order = own[own["system"] == "kcl"].groupby("stamp")["rank"].agg(lambda rank: np.log(rank).mean())
    stamp = order.sort_values(kind="stable").index[round(quantile * (len(order) - 1))]
    table = asked.recordings
    row = int(np.flatnonzero((table["stamp"] == stamp) & (table["spoken"] == spoken))[0])
    wide = own[own["stamp"] == stamp].pivot(index="system", columns="text", values="rank")
    return Query(row, {name: wide.loc[name, list(LANGUAGES)].astype(int).tolist() for name in SCHEMES})


def answers(ranks: pd.DataFrame) -> str:
    """The numbers that answer the section's questions, as Markdown; what they mean is the reader's to say.

    ranks: see `study`.
    """
    fresh = ranks[ranks["set"] == SETS["test"]]
    eight = fresh[fresh["text"].isin(LANGUAGES)]
    found = speech_table(eight, ("system",)).set_index("system")
    items = int(found.loc["kcl", "items"])
    like = over_stamps(scored(eight[eight["system"] == "kcl"]), "ahead of like")
    share = speech_table(fresh[fresh["system"].isin(SCHEMES)], ("spoken", "text"))
    share = share.set_index(["spoken", "text"])["ahead of like"]
    french, russian, bulgarian = (share.loc[(code, list(LANGUAGES))].mean() for code in SPOKEN)
    itself = {code: f"{share[code, code]:.0%}" for code in SPOKEN}
    return (
        f"**Does speech find its text?** After KCL a caption that was never heard is among the first ten of {items} "
        f"texts for {found.loc['kcl', 'R@10']:.1%} of the queries; by chance for {min(10 / items, 1):.1%}, by length "
        f"alone for {found.loc[LENGTH, 'R@10']:.1%}. Of the wrong texts of like length {like.value:.1%} ± "
        f"{like.half_width:.1%} come before the right one: an interval wholly below one half says that words are "
        f"heard, and not only their number.\n\n"
        f"**Does it carry over?** Over the eight languages that share is {french:.0%} for French speech, {russian:.0%} "
        f"for Russian and {bulgarian:.0%} for Bulgarian. Texts that none was trained on: {itself['ru']} for Russian "
        f"speech with Russian texts, {itself['bg']} for Bulgarian with Bulgarian; French with French, which was "
        f"trained on, {itself['fra']}. Less is better, and half is chance."
    )
