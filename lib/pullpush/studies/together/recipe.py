"""The recipe that a practitioner should start from: chosen by a rule, trained, and written so that it can be pasted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd
from IPython.display import Markdown

from pullpush.lab import common
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import holm
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


def surface(scores: Scores, design: Design) -> pd.DataFrame:
    """What every combination would score; see `pareto.Surface.predicted`. Empty without scores.

    scores: of the design's runs, on validation: mean over directions, languages and clips.
    """
    if not scores:
        return pd.DataFrame({"system": [], "terms": [], "value": [], "error": []})
    return pareto.fitted(design, responses(scores, design, "R@1").mean(axis=2)).predicted()


def chosen(scores: Scores, design: Design) -> frozenset[str]:
    """The factors that are high in the combination of `pareto.chosen`; none without scores."""
    table = surface(scores, design)
    return high_of(pareto.chosen(table)) if len(table) else frozenset()


def best(scores: Scores, design: Design) -> frozenset[str]:
    """The factors that are high where the prediction is highest; none without scores."""
    table = surface(scores, design)
    return high_of(table.loc[table["value"].idxmax(), "system"]) if len(table) else frozenset()


def gains(protocols: Mapping[str, Scores], metrics: Sequence[str] = ("R@1", "T2A R@1", "A2T R@1")) -> pd.DataFrame:
    """What combinations have over those before them, InfoNCE first, of several experiments: `Scores.gains` of each,
    with a column protocol in front; p is adjusted within an experiment. Empty where there are no scores.
    """
    tables = []
    for name, scores in protocols.items():
        systems = dict.fromkeys(trial.system for trial in scores.experiment.trials)
        pairs = [(later, earlier) for earlier, later in combinations(systems, 2)]
        if pairs:
            tables.append(scores.gains(pairs, metrics).assign(protocol=name))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def by_language(protocols: Mapping[str, Scores]) -> pd.DataFrame:
    """What the last combination has over InfoNCE in R@1 of every language and of their mean, p adjusted by Holm within
    an experiment: columns protocol, system (the language), value, low, high. Empty where there are no scores.
    """
    tables = []
    for name, scores in protocols.items():
        system = scores.experiment.trials[-1].system
        places: dict[str, Any] = {"mean": None, **{language_name(one): one for one in scores.experiment.languages}}
        found = holm(
            {
                place: scores.contrast(system, NONE, "R@1", {"language": one} if one else None)
                for place, one in places.items()
            }
        )
        rows = [(name, place, one.value, one.low, one.high, one.p_holm) for place, one in found.items()]
        tables.append(pd.DataFrame(rows, columns=["protocol", "system", "value", "low", "high", "p"]))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def by_protocol(table: pd.DataFrame) -> pd.DataFrame:
    """`gains` as `tables.gains` shows it, a row a system and protocol, a column a metric."""
    return table.assign(baseline=table["baseline"] + ", " + table["protocol"]).drop(columns=["seeds", "clips"])


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
