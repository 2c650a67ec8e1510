"""Tables of an experiment's scores: where systems stand, what they have over others, and both as a page shows it.

    levels(scores, ["R@1"])                              # a row a trial and metric
    gains(scores, [("KCL", "ML-CLAP")], ["R@1"])         # a row a pair, point and metric; p by Holm over all rows
    shown(gains(...))                                    # "+1.2 ± 0.8", metrics side by side
    listed(gains(...))                                   # "+1.2 ± 0.8 [0.4, 2.0]", p and n, a row a difference
    standings(scores, ["R@1"])                           # "46.6 ± 0.4", over seeds, and what runs still gained

A *point* is what varies beside the system, such as {"world": "freesound"}; see `Trial.where`. Points that are given by
names, such as {"many clips": {"world": "freesound"}}, have their names in a column point instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from pullpush.lab.common import mean_and_spread
from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.scores import GAIN, LEVEL, Scores, numbers
from pullpush.metrics.inference import Difference, difference, holm
from pullpush.show.palette import method_name

Pair = tuple[str, str]  # a system and its baseline
Wheres = Iterable[Where] | Mapping[str, Where]
MORE = ("wins", "seed", "clip", "interaction")  # what `Scores.gains` says besides


def levels(scores: Scores, metrics: Sequence[str], wheres: Wheres | None = None) -> pd.DataFrame:
    """Where systems stand, with 95 % intervals over seeds and clips, in the units of the scores.

    Args:
        metrics: names of scores.
        wheres: the points, or their names → points; default: each trial at its own.

    Returns:
        Columns: what varies, system, metric, and those of LEVEL. Empty of scores that are not there.
    """
    rows = []
    for head, system, where in _cells(scores, wheres):
        for metric in metrics:
            with suppress(ExperimentError):  # a system that lacks this score has no row of it
                found = difference(scores.values(system, metric, where))
                rows.append({**head, "system": system, "metric": metric, **numbers(found)})
    named = ["point"] if isinstance(wheres, Mapping) else []
    return pd.DataFrame(rows, columns=None if rows else [*named, "system", "metric", *LEVEL])


def gains(scores: Scores, pairs: Iterable[Pair], metrics: Sequence[str], wheres: Wheres = ({},)) -> pd.DataFrame:
    """What systems have over baselines, as fractions; p is adjusted by Holm over all rows.

    Args:
        pairs: (system, baseline).
        wheres: the points, or their names → points; a pair that was not trained at one has no row there.

    Returns:
        Columns: what varies, system, baseline, metric, and those of GAIN. Empty of scores that are not there.
    """
    found, points = [], _points(wheres)
    plans = [(pair, *point, metric) for pair in pairs for point in points for metric in metrics] if scores else []
    for (system, baseline), head, where, metric in plans:
        with suppress(ExperimentError):  # a pair that was not trained there has no row
            one = scores.contrast(system, baseline, metric, where)
            found.append(({**head, "system": system, "baseline": baseline, "metric": metric}, one))
    table = differences(found)
    return table if found or not isinstance(wheres, Mapping) else table.reindex(columns=["point", *table])


def differences(named: Iterable[tuple[Mapping[str, object], Difference]]) -> pd.DataFrame:
    """Differences as one table with p by Holm within it: what stands in front of each, by no name of GAIN, and GAIN."""
    heads, found = zip(*named, strict=True) if (named := list(named)) else ((), ())
    rows = [dict(**head, **numbers(one, GAIN)) for head, one in zip(heads, holm(list(found)), strict=True)]
    return pd.DataFrame(rows, columns=None if rows else ["system", "baseline", "metric", *GAIN])


def shown(table: pd.DataFrame, *, across: str = "metric") -> pd.DataFrame:
    """`levels` or `gains` as a page prints them: "+1.2 ± 0.8" in points, or "46.6" in %; across: what is in columns."""
    is_gain = "half width" in table
    cells = [
        f"{100 * row['value']:+.1f} ± {100 * row['half width']:.1f}" if is_gain else f"{100 * row['value']:.1f}"
        for row in table.to_dict("records")
    ]
    first = [name for name in ("system", "baseline", "metric") if name in table and name != across]
    rest = [name for name in table if name not in (*GAIN, *MORE, *first, across)]
    wide = table.assign(cell=cells).pivot_table(
        index=[*first, *rest], columns=across, values="cell", aggfunc="first", sort=False
    )
    return wide.reset_index().rename_axis(columns=None).rename(columns={"baseline": "over"})


def listed(table: pd.DataFrame, *, scale: float = 100, digits: int = 1) -> pd.DataFrame:
    """Differences as a page lists them: what stands in front, "+1.2 ± 0.8 [+0.4, +2.0]", p, and seeds × clips.

    table: of `gains` or `differences`.
    """
    spec = f".{digits}f"  # of an end that is rounded to zero the sign says whether zero is within
    cells = [
        f"{scale * row['value']:+z{spec}} ± {scale * row['half width']:z{spec}} "
        f"[{scale * row['low']:+{spec}}, {scale * row['high']:+{spec}}]".replace("-", "−")
        for row in table.to_dict("records")
    ]
    front = table.drop(columns=[name for name in (*GAIN, *MORE) if name in table]).rename(columns={"baseline": "over"})
    size = table["seeds"].astype(str) + " × " + table["clips"].astype(str)
    return front.assign(**{"difference [95 %]": cells, "p (Holm)": table["p"].map("{:.3f}".format), "n": size})


def by_run(scores: Scores) -> pd.DataFrame:
    """`Scores.table` with a row a run: means over the languages."""
    table = scores.table
    keys = list(table.columns[: table.columns.get_loc("seed") + 1])  # system, what varies, seed
    return table.groupby(keys, sort=False, dropna=False).mean(numeric_only=True).reset_index().astype({"steps": int})


def standings(
    runs: Scores | pd.DataFrame, metrics: Sequence[str], by: Sequence[str] = ("system",), **named_by: Any
) -> pd.DataFrame:
    """Where systems stand, in %: mean ± standard deviation over seeds, and what validation R@1 still gained at the end.

    Args:
        runs: scores, or some rows of `by_run`.
        metrics: columns of it.
        by: columns that name a row together, such as ("clips", "system").
        named_by: options of `named`.
    """
    table = runs if isinstance(runs, pd.DataFrame) else by_run(runs)
    label = ", ".join(by)
    parts = named(table, **named_by)[list(by)].astype(str).agg(", ".join, axis=1)
    table = table.assign(**{label: parts}).rename(columns={"unconverged": "still gained"})
    return mean_and_spread(table, label, [*metrics, "still gained"], percent=True)


def named(table: pd.DataFrame, names: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The table with its systems as a page prints them: "ml-clap ×8" is "ML-CLAP ×8".

    names: of those that go by another name than that of their recipe.
    """

    def name_of(system: str) -> str:
        recipe, times, factor = system.partition(" ×")
        return (names or {}).get(system) or method_name(recipe) + times + factor

    columns = [column for column in ("system", "baseline", "over", "label") if column in table]
    return table.assign(**{column: table[column].map(name_of) for column in columns})


def paired(gains: pd.DataFrame, names: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Differences for a figure: the column pair says "KCL over ML-CLAP"; names: see `named`."""
    both = named(gains, names)
    return gains.assign(pair=both["system"] + " over " + both["baseline"])


def _cells(scores: Scores, wheres: Wheres | None) -> list[tuple[Where, str, Where]]:
    """What stands in front, systems and points, in the order of the points and then of the experiment."""
    trials = scores.experiment.trials if scores else ()
    if wheres is None:
        return [(trial.where, trial.system, trial.where) for trial in trials]
    found = []
    for head, where in _points(wheres):
        of_trial = {name: value for name, value in where.items() if name != "language"}.items()
        systems = dict.fromkeys(trial.system for trial in trials if of_trial <= trial.where.items())
        found += [(head, system, where) for system in systems]
    return found


def _points(wheres: Wheres) -> list[tuple[Where, Where]]:
    """What a table writes of each point, and the point."""
    if isinstance(wheres, Mapping):
        return [({"point": name}, where) for name, where in wheres.items()]
    return [(where, where) for where in wheres]
