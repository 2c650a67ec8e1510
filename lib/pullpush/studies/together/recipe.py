"""The recipe that a practitioner should start from: chosen by a rule, trained, and written so that it can be pasted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import pandas as pd
from IPython.display import Markdown

from pullpush.lab import common, comparisons
from pullpush.lab.scores import Scores
from pullpush.show.palette import language_name
from pullpush.studies.together import pareto
from pullpush.studies.together.design import Design
from pullpush.studies.together.effects import responses
from pullpush.studies.together.experiments import FROZEN, Tuned
from pullpush.studies.together.grounds import Grounds
from pullpush.studies.together.terms import NONE, high_of, label, system
from pullpush.training.frozen import on_features
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan


def chosen(scores: Scores, design: Design) -> frozenset[str]:
    """The factors that are high in the combination of `pareto.chosen`; none without scores.

    scores: of the design's runs, on validation: mean over directions, languages and clips.
    """
    if not scores:
        return frozenset()
    surface = pareto.fitted(design, responses(scores, design, "R@1").mean(axis=2))
    return high_of(pareto.chosen(surface.predicted()))


def gains(protocols: Mapping[str, Scores], metrics: Sequence[str] = ("R@1", "T2A R@1", "A2T R@1")) -> pd.DataFrame:
    """What combinations have over those before them, InfoNCE first, of several experiments: `Scores.gains` of each,
    with a column protocol; p is adjusted within an experiment.
    """
    tables = []
    for name, scores in protocols.items():
        systems = dict.fromkeys(trial.system for trial in scores.experiment.trials)
        pairs = [(later, earlier) for earlier, later in combinations(systems, 2)]
        tables.append(scores.gains(pairs, metrics).assign(protocol=name))
    return pd.concat(tables, ignore_index=True)


def by_language(protocols: Mapping[str, Scores]) -> pd.DataFrame:
    """What the last combination has over InfoNCE in R@1 of every language and of their mean: `lab.comparisons.gains` of
    each experiment, point the language, with a column protocol in front.
    """
    tables = {}
    for name, scores in protocols.items():
        points = {"mean": {}} | {language_name(one): {"language": one} for one in scores.experiment.languages}
        tables[name] = comparisons.gains(scores, [(scores.experiment.trials[-1].system, NONE)], ["R@1"], points)
    return pd.concat(tables, names=["protocol"]).reset_index("protocol")


def plan(ground: Grounds, high: Collection[str], *, tuned: Tuned, seed: int, data: str = FROZEN) -> Plan:
    """The run of a combination of terms."""
    view = ground.view(data)
    name, overrides = system(high, dim=ground.dim, tuned=tuned)
    fields = common.merged(on_features(view.data), view.overrides, overrides)
    return Plan(view.data, common.sized(view.session, name, **fields), seed)


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
