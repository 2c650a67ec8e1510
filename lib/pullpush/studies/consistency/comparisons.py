"""Scores in many languages, compared and summed up as the papers' tables are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab import common
from pullpush.lab.scores import Scores
from pullpush.metrics import Difference, holm
from pullpush.show.palette import method_name

Stages = Mapping[tuple[str, str], Scores]  # (telling, start) → scores of schemes, see `experiments.stages`
CONSISTENCY = ("Gap", "Dis", "relative distance", "MRV", "log rank variance")


def by_run(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `Scores` with a row a run: means over the languages."""
    keys = list(table.columns[: table.columns.get_loc("seed") + 1])  # system, what varies, seed
    means = table.groupby(keys, sort=False).mean(numeric_only=True).reset_index()
    return means.astype({"steps": int})


def language_table(table: pd.DataFrame, metrics: Sequence[str], systems: Sequence[str]) -> pd.DataFrame:
    """Table 1: a row a language and their average, a column a (metric, system); means over seeds."""
    mean = table[table["system"].isin(systems)].groupby(["language", "system"], sort=False)[list(metrics)].mean()
    wide = mean.unstack("system")
    wide = wide[[(metric, system) for metric in metrics for system in systems]]
    wide.loc["avg"] = wide.mean()
    return wide


def contrasts(plans: Iterable[tuple[Mapping[str, Any], Difference]]) -> pd.DataFrame:
    """Differences as one table, within which p is adjusted by Holm.

    Args:
        plans: what to say of each in front, such as its system and baseline, and the difference.

    Returns:
        The columns in front, then value, low, high, half width, p (Holm), seeds, clips.
    """
    heads, found = zip(*plans, strict=True)
    numbers = [
        {"value": gain.value, "low": gain.low, "high": gain.high, "half width": gain.half_width}
        | {"p": gain.p_holm, "seeds": gain.seeds, "clips": gain.clips}
        for gain in holm(found)
    ]
    return pd.DataFrame([{**head, **row} for head, row in zip(heads, numbers, strict=True)])


def gains_by_language(scores: Scores, pairs: Iterable[tuple[str, str]], metric: str) -> pd.DataFrame:
    """What systems have over their baselines in each language; see `contrasts`."""
    return contrasts(
        (
            {"system": system, "baseline": base, "language": language, "metric": metric},
            scores.contrast(system, base, metric, {"language": language}),
        )
        for system, base in pairs
        for language in scores.experiment.languages
    )


def behind(gains: pd.DataFrame) -> pd.DataFrame:
    """Of `gains_by_language` the rows in which a system is behind its baseline, by an interval wholly below zero."""
    return gains[gains["high"] < 0].reset_index(drop=True)


def stage_standings(stages: Stages, metrics: Sequence[str]) -> pd.DataFrame:
    """`standings` of the systems in each telling and from each start."""
    return pd.concat(
        standings(by_run(scores.table), "system", metrics).assign(telling=telling, start=start)
        for (telling, start), scores in stages.items()
    ).pipe(lambda table: table[["telling", "start", *table.columns[:-2]]])


def stage_gains(stages: Stages, pairs: Iterable[tuple[str, str]], metric: str) -> pd.DataFrame:
    """What systems have over their baselines in each telling and from each start; see `contrasts`."""
    pairs = list(pairs)
    return contrasts(
        (
            {"telling": telling, "start": start, "system": system, "baseline": base, "metric": metric},
            scores.contrast(system, base, metric),
        )
        for (telling, start), scores in stages.items()
        for system, base in pairs
    )


def evenness(stages: Stages, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Relative changes of CONSISTENCY, in %, ± half of the interval: a row a telling, start and pair."""
    rows, pairs = [], list(pairs)
    for (telling, start), scores in stages.items():
        for system, base in pairs:
            row = {"telling": telling, "start": start, "system": system, "baseline": base}
            for metric in CONSISTENCY:
                change = scores.contrast(system, base, metric, relative=True)
                row[metric] = f"{100 * change.value:+.1f} ± {100 * change.half_width:.1f}".replace("-", "−")
            rows.append(row)
    return pd.DataFrame(rows)


def points(table: pd.DataFrame) -> pd.DataFrame:
    """`contrasts` to print: what stands in front, then the difference in points, its p and what it was taken from."""
    numbers = ["value", "low", "high", "half width", "p", "seeds", "clips"]
    cells = [
        f"{100 * row['value']:+.1f} ± {100 * row['half width']:.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
        for _, row in table.iterrows()
    ]
    size = [f"{seeds} × {clips}" for seeds, clips in zip(table["seeds"], table["clips"], strict=True)]
    shown = named(table.drop(columns=numbers)).rename(columns={"baseline": "over"})
    return shown.assign(**{"difference (points)": cells, "p (Holm)": table["p"].map("{:.3f}".format), "n": size})


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Its systems by the names that a page prints: "ml-clap ×8" is "ML-CLAP ×8"."""
    columns = [column for column in ("system", "baseline", "label") if column in table]
    return table.assign(**{column: table[column].map(_name) for column in columns})


def _name(system: str) -> str:
    scheme, *rest = system.split(" ")
    return " ".join([method_name(scheme), *rest])


def compared(gains: pd.DataFrame) -> pd.DataFrame:
    """`Scores.gains` for a figure: the column system says "KCL over ML-CLAP"."""
    names = named(gains)
    return gains.assign(system=names["system"] + " over " + names["baseline"])


def standings(table: pd.DataFrame, by: str, metrics: Sequence[str]) -> pd.DataFrame:
    """Who stands where, in %: mean ± standard deviation over the runs of each value of a column, such as "system".

    The last column is what R@1 on the validation clips rose by in the last quarter of training.
    """
    means = common.mean_and_spread(table, by, [*metrics, "unconverged"], percent=True)
    return named(means.rename(columns={"unconverged (%)": "still gained (%)"}))


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """A table of columns (metric, system) to save: columns "Gap KCL", the index a column."""
    return table.set_axis([f"{metric} {method_name(system)}" for metric, system in table.columns], axis=1).reset_index()


def titled(table: pd.DataFrame) -> pd.DataFrame:
    """A table of columns (metric, system) to print: with the systems' printed names, the index without one."""
    names = [(metric, method_name(system)) for metric, system in table.columns]
    return table.set_axis(pd.MultiIndex.from_tuples(names), axis=1).rename_axis(index=None)


def distance_table(table: pd.DataFrame, reference: str = "eng") -> pd.DataFrame:
    """Table 2: a row a language, then their average and the reference's own second caption; means over seeds.

    Columns: (metric, system), of Gap, Dis and the relative distance to the reference's first captions.
    """
    metrics = ["Gap", "Dis", "relative distance"]
    within = {f"{metric} within {reference}": metric for metric in metrics}
    mean = table.groupby(["language", "system"], sort=False)
    wide = mean[metrics].mean().unstack("system").rename(index={reference: "avg"})  # see `scoring.consistency`
    wide = wide.loc[[*(language for language in wide.index if language != "avg"), "avg"]]
    if set(within) <= set(table.columns):
        yardstick = mean[list(within)].mean().rename(columns=within).unstack("system")
        wide.loc[f"{reference}, second caption"] = yardstick.loc[reference]
    return wide


def rank_table(scores: Scores) -> pd.DataFrame:
    """Table 3, a row a run: system, seed, unconverged, MRV, median (over clips), worst (share of MRV that the worst 5 %
    of the clips bring), log rank variance, mean rank.
    """
    table, rows = by_run(scores.table).set_index(["system", "seed"]), []
    for (system, seed), row in table.iterrows():
        variance = np.sort(scores.clips[system, seed]["MRV"])[::-1]
        count = max(1, round(0.05 * len(variance)))
        worst = variance[:count].sum() / max(variance.sum(), 1e-12)
        summary = {"MRV": row["MRV"], "median": np.median(variance), "worst": worst}
        summary |= {name: row[name] for name in ("log rank variance", "mean rank")}
        rows.append({"system": system, "seed": seed, "unconverged": row["unconverged"], **summary})
    return pd.DataFrame(rows)
