"""The experiments of chapter 3 that have stages: two starts, a text side that is trained; see grounds.py.

each = starts(range(3))
found = stages(compute.run(ground, each), compute.run(ground, on_validation(each)))
found["aligned", "ml-clap"].contrast("kcl", "ml-clap", "T2A R@1")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores
from pullpush.studies.consistency.grounds import ALIGNED, ML_CLAP, NOTHING, VALID, WORDS
from pullpush.studies.consistency.schemes import SCHEMES

HALVED: Mapping[str, Any] = {"alpha": 0.5}  # as the losses of ATRI are
# By the start, for every scheme alike: what goes on from a long run may want smaller steps.
RATES: Mapping[str, tuple[float, ...]] = {ML_CLAP: (1e-4, 1e-3), NOTHING: (1e-3,)}
Stages = Mapping[tuple[str, str], Scores]  # (telling, start) → scores of the schemes
ENDS = 2  # passes from random weights, as a multiple of the profile's


def scored(languages: Sequence[str] = LANGUAGES) -> dict[str, Any]:
    """How schemes are scored: in these languages, by recall and by consistency."""
    return {"languages": tuple(languages), "evaluations": ("retrieval", "consistency")}


def starts(seeds: Iterable[int], languages: Sequence[str] = LANGUAGES) -> Experiment:
    """Each scheme on from ML-CLAP and from nothing, at several RATES, on translated captions; see grounds.py."""
    trials = [
        Trial(scheme, scheme, {"lr": lr}, {"telling": ALIGNED, "start": start.split("/")[1], "lr": lr}, start)
        for start, rates in RATES.items()
        for lr in rates
        for scheme in SCHEMES
    ]
    return Experiment("starts", tuple(trials), tuple(seeds), long=True, **scored(languages))


def text_side(seeds: Iterable[int], languages: Sequence[str] = LANGUAGES) -> Experiment:
    """Each scheme on from ML-CLAP on translated captions, with a transformer over words that is trained throughout."""
    systems: Mapping[str, System] = {scheme: (scheme, {}) for scheme in SCHEMES}
    return Experiment.of("text-side", systems, seeds=seeds, data=WORDS, long=True, **scored(languages))


def on_validation(of: Experiment) -> Experiment:
    """The runs of `starts`, scored on the validation clips in all languages; training itself looks at English there."""
    trials = tuple(replace(one, test=VALID) for one in of.trials)
    return replace(of, name=f"{of.name}-validation", trials=trials, evaluations=("recall-at-1",))


def language_order(seed: int, languages: Sequence[str] = LANGUAGES) -> tuple[str, ...]:
    """English, then the other languages in an order of the seed's own: KCL with K languages takes the first K."""
    return ("eng", *map(str, np.random.default_rng(seed).permutation(list(languages[1:]))))


def by_count(scores: Scores) -> pd.DataFrame:
    """Scores apart for languages that were trained on and those that were not: columns K, seed, group and the metrics.

    scores: of an experiment whose trials differ by K, train on `overrides["languages"]`, and have a seed each.
    """
    rows, metrics = [], list(next(iter(scores.clips.values())))
    for trial in scores.experiment.trials:
        found = scores.table[(scores.table["K"] == trial.where["K"]) & (scores.table["order"] == trial.where["order"])]
        found, trained = found.set_index("language")[metrics], trial.overrides["languages"]
        groups = {
            "English": ["eng"],
            "trained on": list(trained[1:]),
            "never trained on": [code for code in found.index if code not in trained],
            "all eight": list(found.index),
        }
        head = {"K": trial.where["K"], "seed": trial.where["order"]}
        rows += [{**head, "group": name, **found.loc[codes].mean()} for name, codes in groups.items() if codes]
    return pd.DataFrame(rows)


def rates_table(validation: Scores) -> pd.DataFrame:
    """A row a telling, start, scheme and rate of `on_validation`: telling, start, system, lr, `valid R@1` (a fraction:
    mean over languages and seeds) and `chosen`: the best of its telling, start and scheme.

    English alone must not choose: a scheme that reads it more often than others would get the rate that suits English.
    """
    keys = ["telling", "start", "system"]
    table = validation.table.groupby([*keys, "lr"], sort=False)["R@1"].mean().rename("valid R@1").reset_index()
    return table.assign(chosen=table.index.isin(table.groupby(keys, sort=False)["valid R@1"].idxmax()))


def stages(scores: Scores, validation: Scores) -> Stages:
    """Of `starts` each telling and start, those of the paper first, every scheme at the rate that did best on
    validation: experiments in which nothing varies. None where either was not computed.

    validation: of `on_validation`.
    """
    if not (scores and validation):
        return {}
    found: dict[tuple[str, str], Scores] = {}
    best = rates_table(validation).query("chosen")
    for (telling, start), rows in best.groupby(["telling", "start"], sort=False):
        where = {"telling": telling, "start": start}
        chosen = [scores.trial(row.system, {**where, "lr": row.lr}) for row in rows.itertuples()]
        found[telling, start] = _alone(scores, chosen)
    return found


def _alone(scores: Scores, trials: Sequence[Trial]) -> Scores:
    """Some trials, one a system, without what varied."""
    cells = [(trial, seed) for trial in trials for seed in scores.seeds(trial.system, trial.where)]
    clips = {(trial.system, seed): scores.clips[str(trial), seed] for trial, seed in cells}
    tables = {
        name: pd.concat([scores.rows(getattr(scores, name), *cell) for cell in cells]).drop(columns=[*trials[0].where])
        for name in ("history", "steps")
    }
    plain = replace(scores.experiment, trials=tuple(replace(trial, where={}) for trial in trials))
    return replace(scores, experiment=plain, clips=clips, plans={}, **tables)


def svr_end_to_end(seeds: Iterable[int], epochs: int, languages: Sequence[str] = LANGUAGES) -> Experiment:
    """SVR in eight languages where the audio encoder is trained from random weights: beside InfoNCE on random languages
    and CACL, and beside InfoNCE counted twice, which is SVR with a radius of zero.

    epochs: the profile's.
    """
    random: dict[str, Any] = {"languages": tuple(languages), "sampling": "random"}
    twice = {"radius": 0.0, "learnable": False, "beta": 0.0}
    systems = {
        "infonce": ("infonce", random),
        "twice": ("infonce+bi-static-svr", {**random, **twice}),
        "infonce+bi-static-svr": ("infonce+bi-static-svr", random),
        "infonce+bi-dynamic-svr": ("infonce+bi-dynamic-svr", random),
        "cacl": ("cacl", {}),
        "cacl+bi-dynamic-svr": ("cacl+bi-dynamic-svr", HALVED),
    }
    longer = {name: (recipe, {**options, "epochs": ENDS * epochs}) for name, (recipe, options) in systems.items()}
    return Experiment.of("svr-whole", longer, seeds=seeds, data="whole", languages=tuple(languages), long=True)
