"""The seven factors of chapter 7, the recipe of any combination of them, and the experiments that train these."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from IPython.display import Markdown

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.scores import Scores
from pullpush.lab.tuning import points_table
from pullpush.training.recipes import CYCLIC, recipe
from pullpush.training.terms import Term

Tuned = Mapping[str, Mapping[str, Any]]  # "softmax" or "sigmoid" → options
SIGMOID, SVR, CYCLES, SIMCSE, ALL, SOFT, TOPICS = NAMES = (
    "sigmoid", "SVR", "cycles", "SimCSE", "all languages", "soft labels", "topics",
)  # fmt: skip
NONE = "InfoNCE"  # the run in which all are low
ROOM = 128  # topics that the heads have room for; the captions have fewer
HEADS = 0.05  # λ₂
# The losses with what they learn beside the encoders, and the summands with the weights that their papers give. KCL is
# half of InfoNCE where there is one language.
SOFTMAX_LOSS = Term("kcl", 2.0, {"learnable": True})
SIGMOID_LOSS = Term("siglip-languages", 1.0, {"form": "siglip"})
SUMMANDS: Mapping[str, tuple[Term, ...]] = {
    SVR: (Term("svr", options={"modelling": "dynamic", "direction": "both", "beta": 0.01}),),
    CYCLES: CYCLIC,
    SIMCSE: (Term("simcse", 0.1),),
    SOFT: (Term("distillation"),),
}
# InfoNCE in the place of a summand that is a softmax: SVR at a radius of zero, and labels that know the pairs alone.
STAND_INS: Mapping[str, Term] = {
    SVR: Term(
        "svr", options={"modelling": "static", "direction": "both", "radius": 0.0, "learnable": False, "beta": 0.0}
    ),
    SOFT: Term("infonce"),
}
# A sigmoid in the same places: what a second contrast adds that is no softmax.
SECOND_SIGMOIDS: Mapping[str, Term] = {SVR: SIGMOID_LOSS, SOFT: Term("siglip", options={"form": "siglip"})}
# Generators: 64 runs of resolution VII, in which main effects and two-way interactions are clear; 32 of resolution IV,
# in which main effects are, and interactions with the loss, SVR or all languages; 16 of resolution IV, in which all
# interactions are aliased in groups of three; and 16 and 8 of fewer factors, for a profile that only tries all out.
HALF: tuple[Sequence[str], Mapping[str, Sequence[str]]] = (NAMES, {TOPICS: NAMES[:-1]})
QUARTER = (NAMES, {SOFT: (SIGMOID, SVR, CYCLES, ALL), TOPICS: (SIGMOID, SVR, SIMCSE, ALL)})
EIGHTH = (NAMES, {ALL: NAMES[:3], SOFT: NAMES[1:4], TOPICS: (SIGMOID, CYCLES, SIMCSE)})
SMALL = ((SIGMOID, SVR, ALL, SOFT, TOPICS), {TOPICS: (SIGMOID, SVR, ALL, SOFT)})
SMALL_QUARTER = ((SIGMOID, SVR, ALL, SOFT), {SOFT: (SIGMOID, SVR, ALL)})
FROZEN, VALID, UPPER = "frozen", "valid", "upper"  # views, see data.py
# Rates by view; the temperature is learnt, and this its start.
RATES, TAU = {FROZEN: (1e-3, 3e-3), UPPER: (1e-4, 3e-4, 1e-3, 3e-3)}, 0.07
BESIDE: Mapping[str, tuple[str, ...]] = {"nothing": (), "everything": NAMES[1:]}
OTHER_SEEDS = 500  # the recipe is tested with seeds that chose nothing


def label(high: Collection[str]) -> str:
    """What tables call a run.

    >>> label({"SimCSE", "SVR"}), label(set())
    ('SVR + SimCSE', 'InfoNCE')
    """
    return " + ".join(name for name in NAMES if name in high) or NONE


def high_of(system: str) -> frozenset[str]:
    """The factors that a label names.

    >>> sorted(high_of("SVR + SimCSE")), high_of("InfoNCE")
    (['SVR', 'SimCSE'], frozenset())
    """
    return frozenset(system.split(" + ")) & set(NAMES)


def system(high: Collection[str], *, dim: int, tuned: Tuned | None = None) -> System:
    """The recipe of a combination; dim: of the joint space, for the heads of topics; tuned: options that the search of
    its loss chose.

    One language means one that is drawn anew for every clip and epoch, as in ML-CLAP; all of them are there at every
    step, as in KCL. SVR and the loss see all that there are, and the other summands the main text of a clip.
    """
    loss = SIGMOID_LOSS if SIGMOID in high else SOFTMAX_LOSS
    summands = [term for name, terms in SUMMANDS.items() if name in high for term in terms]
    heads = [Term("clusters", HEADS, {"topics": ROOM, "dim": dim})] if TOPICS in high else []
    sampling = "all" if ALL in high else "random"
    options = (tuned or {}).get(SIGMOID if SIGMOID in high else "softmax", {})
    return "kcl", {"terms": (loss, *summands, *heads), "sampling": sampling, **options}


def written(high: Collection[str], *, dim: int, tuned: Tuned) -> str:
    """A combination as Python: what a reader pastes; encoders, data and columns are the reader's own.

    >>> print(written({"SVR"}, dim=256, tuned={}))
    from pullpush.training import Term, recipe
    <BLANKLINE>
    terms = (
        Term('kcl', 2.0, {'learnable': True}),
        Term('svr', 1.0, {'direction': 'both'}),
    )
    start_from = recipe("kcl", terms=terms, sampling='random')
    """
    name, overrides = system(high, dim=dim, tuned=tuned)
    terms = recipe(name, **overrides).terms  # with the temperature in its place
    lines = [f"    Term({term.name!r}, {term.weight!r}, {dict(term.options)!r})," for term in terms]
    fields = {key: value for key, value in overrides.items() if key not in ("terms", "tau")}
    given = "".join(f", {key}={value!r}" for key, value in fields.items())
    head = ["from pullpush.training import Term, recipe", "", "terms = ("]
    return "\n".join([*head, *lines, ")", f'start_from = recipe("{name}", terms=terms{given})'])


def shown(high: Collection[str], *, dim: int, tuned: Tuned) -> Markdown:
    """`written` for a page, under the combination's name."""
    return Markdown(f"**{label(high)}**\n\n```python\n{written(high, dim=dim, tuned=tuned)}\n```")


def search(
    name: str = "search",
    *,
    dim: int,
    languages: Sequence[str] = LANGUAGES,
    seeds: Iterable[int],
    data: str = FROZEN,
) -> Experiment:
    """A view's RATES of both losses, alone and with all other terms beside them; scored, too, in all languages, though
    validation decides.
    """
    trials = []
    for loss in ("softmax", SIGMOID):
        for beside, others in BESIDE.items():
            of_recipe, overrides = system({loss, *others} & set(NAMES), dim=dim)
            points = [{"lr": lr, "tau": TAU} for lr in RATES[data]]
            trials += [Trial(loss, of_recipe, {**overrides, **point}, {"beside": beside, **point}) for point in points]
    return _long(name, trials, seeds, data, languages)


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


def stand_ins(of: Experiment, name: str = "stand-ins", instead: Mapping[str, Term] = STAND_INS) -> Experiment:
    """The runs that have a factor of `instead`, once for each that they have, with that in its place (`replaced`)."""
    trials = []
    for trial in of.trials:
        for factor in (each for each in instead if each in high_of(trial.system)):
            (term,) = SUMMANDS[factor]
            terms = tuple(instead[factor] if one == term else one for one in trial.overrides["terms"])
            trials.append(replace(trial, overrides={**trial.overrides, "terms": terms}, where={"replaced": factor}))
    return replace(of, name=name, trials=tuple(trials))


def on_validation(of: Experiment) -> Experiment:
    """The same runs, scored on the validation clips in all languages; training itself looks at English there."""
    trials = tuple(replace(one, test=VALID) for one in of.trials)
    return replace(of, name=f"{of.name}-validation", trials=trials, evaluations=("recall-at-1",))


def _long(name: str, trials: Iterable[Trial], seeds: Iterable[int], data: str, languages: Sequence[str]) -> Experiment:
    scored: dict[str, Any] = {"languages": tuple(languages), "evaluations": ("recall-at-1", "rank-agreement")}
    return Experiment(name, tuple(trials), tuple(seeds), data=data, long=True, **scored)
