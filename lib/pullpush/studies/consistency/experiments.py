"""The experiments of chapter 3 that have stages: two starts, two tellings, a text side that is trained; see grounds.py.

each = starts(range(3))
scores = tuned(compute.run(ground, each), compute.run(ground, on_validation(each)))
scores.contrast("kcl", "ml-clap", "T2A R@1", {"telling": "aligned", "start": "ml-clap"})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores
from pullpush.studies.consistency.grounds import ALIGNED, ML_CLAP, NOTHING, VALID, WORDS, Stage
from pullpush.studies.consistency.schemes import SCHEMES

HALVED: Mapping[str, Any] = {"alpha": 0.5}  # as the losses of ATRI are
# By the start, for every scheme alike: what goes on from a long run may want smaller steps.
RATES: Mapping[str, tuple[float, ...]] = {ML_CLAP: (1e-4, 1e-3), NOTHING: (1e-3,)}
ENDS = 2  # passes from random weights, as a multiple of the profile's


def scored(languages: Sequence[str] = LANGUAGES) -> dict[str, Any]:
    """How schemes are scored: in these languages, by recall and by consistency."""
    return {"languages": tuple(languages), "evaluations": ("retrieval", "consistency")}


def starts(
    seeds: Iterable[int],
    grid: Mapping[str, Sequence[float]] = RATES,
    tellings: Sequence[str] = (ALIGNED,),
    languages: Sequence[str] = LANGUAGES,
) -> Experiment:
    """Each scheme on from ML-CLAP and from nothing, at several rates; grid: start → rates; tellings: see grounds.py."""
    trials = [
        Trial(
            scheme,
            scheme,
            {"lr": lr},
            {"telling": telling, "start": start, "lr": lr},
            data=Stage(telling, start).named,
        )
        for telling in tellings
        for start, several in grid.items()
        for lr in several
        for scheme in SCHEMES
    ]
    return Experiment("starts", tuple(trials), tuple(seeds), long=True, **scored(languages))


def text_side(seeds: Iterable[int], languages: Sequence[str] = LANGUAGES) -> Experiment:
    """Each scheme on from ML-CLAP on translated captions, with a transformer over words that is trained throughout."""
    stage = Stage(ALIGNED, ML_CLAP, WORDS)
    systems: Mapping[str, System] = {scheme: (scheme, {}) for scheme in SCHEMES}
    return Experiment.of("text-side", systems, seeds=seeds, data=stage.named, long=True, **scored(languages))


def on_validation(of: Experiment) -> Experiment:
    """The runs of `starts`, scored on the validation clips in all languages; training itself looks at English there."""
    trials = tuple(replace(one, test=f"{one.where['telling']}/{VALID}") for one in of.trials)
    return replace(of, name=f"{of.name}-validation", trials=trials, evaluations=("recall-at-1",))


def rates_table(validation: Scores) -> pd.DataFrame:
    """A row a telling, start, scheme and rate of `on_validation`: telling, start, system, lr, `valid R@1` (a fraction:
    mean over languages and seeds) and `chosen`: the best of its telling, start and scheme.
    """
    keys = ["telling", "start", "system"]
    table = validation.table.groupby([*keys, "lr"], sort=False)["R@1"].mean().rename("valid R@1").reset_index()
    return table.assign(chosen=table.index.isin(table.groupby(keys, sort=False)["valid R@1"].idxmax()))


def tuned(scores: Scores, validation: Scores) -> Scores:
    """`starts` with the rate of every scheme, start and telling that did best on validation, and no other; empty
    where either was not computed.

    validation: of `on_validation`. English alone must not choose: a scheme that reads it more often than others would
    get the rate that suits English.
    """
    if not scores:
        return scores
    if not validation:
        return replace(scores, clips={})
    table = rates_table(validation)
    best = {tuple(row) for row in table[table["chosen"]][["system", "telling", "start", "lr"]].itertuples(index=False)}
    kept = [trial for trial in scores.experiment.trials if (trial.system, *trial.where.values()) in best]
    return replace(scores, experiment=replace(scores.experiment, trials=tuple(kept)))


def stage(scores: Scores, telling: str, start: str) -> Scores:
    """Of `tuned` scores the part of one telling and one start, in which systems are schemes and nothing varies; empty
    where there is none.
    """
    asked = {"telling": telling, "start": start}
    here = [trial for trial in scores.experiment.trials if asked.items() <= trial.where.items()]
    if not scores or not here:
        return replace(scores, clips={})
    clips = {
        (trial.system, seed): scores.clips[str(trial), seed]
        for trial, seed in scores.experiment.cells
        if trial in here and (str(trial), seed) in scores.clips
    }

    def of_schemes(table: pd.DataFrame) -> pd.DataFrame:
        rows = [scores.rows(table, trial, seed) for trial in here for seed in trial.seeds or scores.experiment.seeds]
        return pd.concat(rows, ignore_index=True).drop(columns=list(here[0].where))

    plain = replace(scores.experiment, trials=tuple(replace(trial, where={}) for trial in here))
    tables = {"history": of_schemes(scores.history), "steps": of_schemes(scores.steps)}
    return replace(scores, experiment=plain, clips=clips, plans={}, **tables)


def stages(scores: Scores) -> dict[tuple[str, str], Scores]:
    """`stage` of every telling and start, those of the paper first: (telling, start) → scores."""
    found = dict.fromkeys((trial.where["telling"], trial.where["start"]) for trial in scores.experiment.trials)
    return {each: stage(scores, *each) for each in found} if scores else {}


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
