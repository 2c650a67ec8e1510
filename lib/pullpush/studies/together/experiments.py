"""The experiments of chapter 7: a search of rates for both losses, the factorial design, a smaller one with the audio
encoder in training, and the recipe against what it is made of.

found = compute.run(ground, search(dim=ground.dim, seeds=(1000,)))
tuned = chosen(found)                                   # "softmax", "sigmoid" → rate and temperature
of_all = combined("factorial", half().runs, dim=ground.dim, tuned=tuned, seeds=(0, 1))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.scores import Scores
from pullpush.lab.tuning import points_table
from pullpush.studies.together.terms import NAMES, SIGMOID, label, system

Tuned = Mapping[str, Mapping[str, Any]]  # "softmax" or "sigmoid" → options
FROZEN, VALID, UPPER = "frozen", "valid", "upper"  # views, see grounds.py
EVALUATIONS = ("recall-at-1", "rank-agreement")
RATES, TAUS = (1e-3, 3e-3), (0.07,)  # the temperature is learnt, so that only its start could be searched
BESIDE: Mapping[str, tuple[str, ...]] = {"nothing": (), "everything": NAMES[1:]}
OTHER_SEEDS = 500  # the recipe is tested with seeds that chose nothing


def search(
    rates: Sequence[float] = RATES,
    taus: Sequence[float] = TAUS,
    *,
    dim: int,
    languages: Sequence[str] = LANGUAGES,
    seeds: Iterable[int],
) -> Experiment:
    """Rates (and temperatures to start from) of both losses, alone and with all other terms beside them; scored, too,
    in all languages, though validation decides. Eight runs.
    """
    trials = []
    for loss in ("softmax", SIGMOID):
        for beside, others in BESIDE.items():
            recipe, overrides = system({loss, *others} & set(NAMES), dim=dim)
            trials += [
                Trial(loss, recipe, {**overrides, "lr": lr, "tau": tau}, {"beside": beside, "lr": lr, "tau": tau})
                for lr in rates
                for tau in taus
            ]
    return _long("search", trials, seeds, FROZEN, languages)


def tried(scores: Scores) -> pd.DataFrame:
    """A row a loss and point: system, lr, tau, `valid R@1` alone and with everything, their mean, and `chosen`."""
    if not scores:
        return pd.DataFrame({"system": [], "lr": [], "tau": [], "chosen": []})
    table = points_table(scores).drop(columns="chosen")
    wide = table.pivot_table(index=["system", "lr", "tau"], columns="beside", values="valid R@1", sort=False)
    wide = wide[[name for name in BESIDE if name in wide]].assign(mean=wide.mean(axis=1)).rename_axis(columns=None)
    wide = wide.reset_index()
    return wide.assign(chosen=wide.index.isin(wide.groupby("system", sort=False)["mean"].idxmax()))


def chosen(scores: Scores) -> dict[str, dict[str, Any]]:
    """Loss → the rate and the temperature that did best on validation, as a mean of both companies; empty where nothing
    was searched.
    """
    table = tried(scores)
    best = table[table["chosen"].astype(bool)]
    return {row["system"]: {"lr": row["lr"], "tau": row["tau"]} for row in best.to_dict("records")}


def combined(
    name: str,
    combinations: Iterable[Collection[str]],
    *,
    dim: int,
    tuned: Tuned,
    languages: Sequence[str] = LANGUAGES,
    seeds: Iterable[int],
    data: str = FROZEN,
) -> Experiment:
    """A trial a combination of terms, each once; seeds are blocks: every run is trained with each."""
    trials = {label(high): Trial(label(high), *system(high, dim=dim, tuned=tuned)) for high in combinations}
    return _long(name, trials.values(), seeds, data, languages)


def on_validation(of: Experiment) -> Experiment:
    """The same runs, scored on the validation clips in all languages; training itself looks at English there."""
    trials = tuple(replace(one, test=VALID) for one in of.trials)
    return replace(of, name=f"{of.name}-validation", trials=trials, evaluations=("recall-at-1",))


def _long(name: str, trials: Iterable[Trial], seeds: Iterable[int], data: str, languages: Sequence[str]) -> Experiment:
    asked = {"languages": tuple(languages), "evaluations": EVALUATIONS}
    return Experiment(name, tuple(trials), tuple(seeds), data=data, long=True, **asked)


def without_rates(tuned: Tuned) -> dict[str, dict[str, Any]]:
    """What was searched, but the rates: an audio encoder that is trained, too, has one of its own.

    >>> without_rates({"softmax": {"lr": 0.003, "tau": 0.1}})
    {'softmax': {'tau': 0.1}}
    """
    return {loss: {name: value for name, value in options.items() if name != "lr"} for loss, options in tuned.items()}
