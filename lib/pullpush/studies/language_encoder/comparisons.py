"""Scores beside the paper's tables.

Systems have the paper's names: "CyCLAPs" is compared with "CyCLAP", and that with "CLAP". The paper's I2T and T2I are
A2T and T2A here: text is retrieved, or what it describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab.experiments import ExperimentError, Where
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import Difference, difference, holm
from pullpush.studies.language_encoder.gains import RECALLS, Pair, base_of, gain, values

PAPER = "language_encoder"


@dataclass(frozen=True)
class Printed:
    """Where a table of the paper holds what we measure.

    cells: our score → columns of the paper's table. blocks: name of a point → columns that its rows share; the column
    "note" is searched, others are equal.
    """

    cells: Mapping[str, Mapping[str, str]]
    blocks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _recalls(a2t: str, t2a: str) -> dict[str, dict[str, str]]:
    tasks = {"A2T": a2t, "T2A": t2a}
    cells = {name: {"task": tasks[name[:3]], "metric": name[4:]} for name in RECALLS}
    return cells | {"R@1": {"metric": "R@1"}}


_SETS = {"freesound": "FreeSound", "clotho": "Clotho", "audiocaps": "AudioCaps"}
_SOUNDS = {world: {"dataset": name} for world, name in _SETS.items()}
_QUALITY = {
    "intrinsic": {"task": "sts", "dataset": "SentEval"},
    "extrinsic": {"task": "transfer", "dataset": "SentEval"},
}
PRINTED: Mapping[int, Printed] = {
    3: Printed(_recalls("I2T", "T2I"), {"pictures": {"dataset": "MSCOCO"}}),
    4: Printed(_recalls("A2T", "T2A"), _SOUNDS),
    5: Printed({"accuracy": {"metric": "accuracy"}}, {"pictures": {}}),
    6: Printed({"accuracy": {"metric": "accuracy"}}, {w: {"note": f"pretrained_on={n}"} for w, n in _SETS.items()}),
    7: Printed(_QUALITY, {"pictures": {}}),
    11: Printed(_recalls("A2T", "T2A"), _SOUNDS),
    12: Printed(_recalls("A2T", "T2A"), _SOUNDS),
    13: Printed(_recalls("I2T", "T2I"), {"pictures": {}}),
    14: Printed(_QUALITY, {"pictures": {}}),
    15: Printed(_recalls("A2T", "T2A"), {"music": {}}),
    16: Printed(_QUALITY, {"pictures": {}}),
}


def printed(table: int | None) -> Callable[[str, str, str], tuple[float, float]]:
    """Looks up what a table of the paper prints, in %: (block, system, metric) → value and its standard deviation.

    Several cells, such as both directions of "R@1", are averaged. NaN where the paper has nothing, always for None; all
    but Table 12 have no standard deviation.
    """
    where = PRINTED[table] if table else Printed({})
    rows = paper_table(PAPER, table).to_dict("records") if table else []

    def look_up(block: str, system: str, metric: str) -> tuple[float, float]:
        if block not in where.blocks or metric not in where.cells:
            return float("nan"), float("nan")
        wanted = {**where.blocks[block], **where.cells[metric], "system": system}
        note = wanted.pop("note", "")
        own = [row for row in rows if wanted.items() <= row.items() and note in str(row["note"])]
        value, std = (np.array([row[column] for row in own], float) for column in ("value", "std"))
        return (float(value.mean()), float(std.mean())) if own else (float("nan"), float("nan"))

    return look_up


def beside_paper(
    scores: Scores,
    table: int,
    blocks: Mapping[str, Where],
    metrics: Sequence[str] = (),
) -> pd.DataFrame:
    """Our scores beside a table of the paper, a row a block, system and metric; in %.

    Args:
        table: a key of PRINTED.
        blocks: name → our point; those that the table has (see PRINTED) bring its numbers.
        metrics: default: those of the table.

    Returns:
        Columns block, system, metric, here, over (the system without its last term), gain, low, high, half width, p
        (Holm, within the table), seeds, clips, paper, paper std, paper gain; NaN where nothing is compared or printed.
    """
    heads, found, look_up = [], [], printed(table)
    chosen = metrics or [name for name in PRINTED[table].cells if not (name == "R@1" and len(PRINTED[table].cells) > 1)]
    for block, where in blocks.items():
        trained = _systems(scores, where)
        for system, metric in ((system, metric) for system in trained for metric in chosen):
            over = base_of(system) if base_of(system) in trained else ""
            paper, std = look_up(block, system, metric)
            heads.append(
                {"block": block, "system": system, "metric": metric, "over": over, "paper": paper, "paper std": std}
                | {"here": 100 * float(values(scores, system, metric, where).mean())}
                | {"paper gain": paper - look_up(block, over, metric)[0]}
            )
            if over:
                found.append(gain(scores, (system, over), metric, where).difference)
    adjusted = iter(holm(found))
    rows = [head | (_points(next(adjusted)) if head["over"] else {}) for head in heads]
    order = ["block", "system", "metric", "here", "over", "gain", "low", "high", "half width", "p", "seeds", "clips"]
    return pd.DataFrame(rows, columns=[*order, "paper", "paper std", "paper gain"])


def _systems(scores: Scores, where: Where) -> list[str]:
    """The systems that were trained at a point, in the order of the experiment."""
    if not scores:
        return []
    at = [t for t in scores.experiment.trials if all(t.where.get(key) == value for key, value in where.items())]
    return list(dict.fromkeys(trial.system for trial in at if scores.seeds(trial.system, where)))


def _points(one: Difference) -> dict[str, Any]:
    percent = {"gain": one.value, "low": one.low, "high": one.high, "half width": one.half_width}
    return {name: 100 * x for name, x in percent.items()} | {"p": one.p_holm, "seeds": one.seeds, "clips": one.clips}


def readable(table: pd.DataFrame, *, digits: int = 1) -> pd.DataFrame:
    """What `beside_paper` gives, to print: two rows a system, what was measured here and what the paper prints.

    A cell is the score in % and, after a comma, what it has over the system without its last term, in points.
    """
    rows = []
    for (block, system), group in table.groupby(["block", "system"], sort=False):
        head = {"data": block, "system": system}
        rows.append(head | {"": "here"} | {row["metric"]: _ours(row, digits) for row in group.to_dict("records")})
        if group["paper"].notna().any():
            paper = {row["metric"]: _theirs(row) for row in group.to_dict("records")}
            rows.append(head | {"": "paper"} | paper)
    shown = pd.DataFrame(rows)
    return shown if len(shown) and shown["data"].nunique() > 1 else shown.drop(columns="data", errors="ignore")


def _ours(row: Mapping[str, Any], digits: int) -> str:
    difference = f", {row['gain']:+z.{digits}f} ± {row['half width']:.{digits}f}" if row["over"] else ""
    return f"{row['here']:z.{digits}f}{difference}".replace("-", "−")


def _theirs(row: Mapping[str, Any]) -> str:
    if np.isnan(row["paper"]):
        return "–"
    spread = "" if np.isnan(row["paper std"]) else f" (SD {row['paper std']:.1f})"
    difference = "" if np.isnan(row["paper gain"]) else f", {row['paper gain']:+z.2f}"
    return f"{row['paper']:.2f}{spread}{difference}".replace("-", "−")


def levels(
    scores: Scores, metrics: Sequence[str], points: Mapping[str, Where], *, seeds: Sequence[int] = ()
) -> pd.DataFrame:
    """Where every system stands at several points: means with 95 % intervals over seeds and test items.

    points: name → where, one system a trial; points that were not trained have no rows.

    Returns:
        Columns point, system, metric, value, low, high, seeds, clips; in the units of the scores.
    """
    rows = [
        (point, system, metric, difference(values(scores, system, metric, where, seeds=seeds)))
        for point, where in points.items()
        for system in _systems(scores, where)
        for metric in metrics
    ]
    columns = ["point", "system", "metric", "value", "low", "high", "seeds", "clips"]
    spread = [(*head, one.value, one.low, one.high, one.seeds, one.clips) for *head, one in rows]
    return pd.DataFrame(spread, columns=columns)


def places(levels: pd.DataFrame, x: str = "text uniformity", y: str = "alignment") -> pd.DataFrame:
    """`levels` of two scores as places in their plane: point, system, seeds, clips, x, "x low", "x high", y …"""
    sides = []
    for side, metric in (("x", x), ("y", y)):
        own = levels[levels["metric"] == metric].set_index(["point", "system"])
        names = {"value": side, "low": f"{side} low", "high": f"{side} high"}
        sides.append(own.rename(columns=names)[list(names.values())])
    counts = levels.groupby(["point", "system"], sort=False)[["seeds", "clips"]].first()
    return pd.concat([counts, *sides], axis=1).dropna().reset_index()


def gains(
    scores: Scores,
    pairs: Iterable[Pair],
    points: Mapping[str, Where],
    metrics: Sequence[str] = ("R@1",),
    *,
    table: int | None = None,
) -> pd.DataFrame:
    """What systems have over their baselines at several points, as fractions; p is adjusted by Holm within the table.

    Args:
        points: name → where, such as "freesound" → {"world": "freesound"}. Points at which a pair was not trained are
            left out; names that PRINTED has have the paper's gain, too.
        table: the paper's, a key of PRINTED.

    Returns:
        Columns point, system, baseline, metric, value, low, high, half width, p, seeds, clips, paper.
    """
    heads, found, look_up = [], [], printed(table)
    for (system, baseline), (point, where) in ((pair, item) for pair in pairs for item in points.items()):
        for metric in metrics:
            try:
                found.append(gain(scores, (system, baseline), metric, where).difference)
            except ExperimentError:
                continue
            ours, theirs = (look_up(point, name, metric)[0] for name in (system, baseline))
            heads.append((point, system, baseline, metric, (ours - theirs) / 100))
    rows = [
        (*head, one.value, one.low, one.high, one.half_width, one.p_holm, one.seeds, one.clips)
        for (*head, _), one in zip(heads, holm(found), strict=True)
    ]
    names = ["point", "system", "baseline", "metric", "value", "low", "high", "half width", "p", "seeds", "clips"]
    return pd.DataFrame(rows, columns=names).assign(paper=[head[-1] for head in heads])
