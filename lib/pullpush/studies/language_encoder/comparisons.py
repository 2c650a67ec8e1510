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

from pullpush.lab import comparisons
from pullpush.lab.comparisons import Pair, levels as levels
from pullpush.lab.experiments import Where
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.studies.language_encoder.systems import base_of

PAPER = "language_encoder"
RECALLS = tuple(f"{side} R@{k}" for side in ("A2T", "T2A") for k in (1, 5, 10))
POINTS = ("here", "gain", "low", "high", "half width")  # times 100 beside the paper
COUNTS = ("p", "seeds", "clips")


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
    4: Printed(_recalls("A2T", "T2A"), _SOUNDS),
    5: Printed({"accuracy": {"metric": "accuracy"}}, {"pictures": {}}),
    11: Printed(_recalls("A2T", "T2A"), _SOUNDS),
    12: Printed(_recalls("A2T", "T2A"), _SOUNDS),
    13: Printed(_recalls("I2T", "T2I"), {"pictures": {}}),
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
        cells = [row for row in rows if wanted.items() <= row.items()]
        value, std = (np.array([row[column] for row in cells], float) for column in ("value", "std"))
        return (float(value.mean()), float(std.mean())) if cells else (float("nan"), float("nan"))

    return look_up


def beside_paper(scores: Scores, table: int, blocks: Mapping[str, Where]) -> pd.DataFrame:
    """Our scores beside a table of the paper, a row a block, system and metric; in %.

    Args:
        table: a key of PRINTED, which says which metrics there are.
        blocks: name → our point; those that the table has (see PRINTED) bring its numbers.

    Returns:
        Columns block, system, metric, here, over (the system without its last term), gain, low, high, half width, p
        (Holm, within the table), seeds, clips, paper, paper std, paper gain; NaN where nothing is compared or printed.
    """
    cells, look_up = PRINTED[table].cells, printed(table)
    metrics = [name for name in cells if len(cells) == 1 or name != "R@1"]
    here = levels(scores, metrics, blocks).rename(columns={"value": "here"})
    pairs = [(system, base_of(system)) for system in dict.fromkeys(here["system"]) if base_of(system)]
    gained = comparisons.gains(scores, pairs, metrics, blocks).rename(columns={"baseline": "over", "value": "gain"})
    first = ["point", "system", "metric"]
    both = here[[*first, "here"]].merge(gained, "left", first).rename(columns={"point": "block"})
    both["over"] = both["over"].fillna("")
    both[[*POINTS]] *= 100
    rows = both.to_dict("records")
    paper = [look_up(row["block"], row["system"], row["metric"]) for row in rows]
    without = [look_up(row["block"], row["over"], row["metric"])[0] for row in rows]
    both[["paper", "paper std"]] = np.reshape(paper, (-1, 2))
    both["paper gain"] = both["paper"] - without
    ours = ["block", "system", "metric", "here", "over", *POINTS[1:], *COUNTS]
    return both[[*ours, "paper", "paper std", "paper gain"]]


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


def gains(
    scores: Scores,
    pairs: Iterable[Pair],
    points: Mapping[str, Where],
    metrics: Sequence[str] = ("R@1",),
    *,
    table: int | None = None,
) -> pd.DataFrame:
    """`lab.comparisons.gains` at points with names, and in a column paper the gain that a table of the paper has there.

    table: the paper's, a key of PRINTED; None for none.
    """
    found, look_up = comparisons.gains(scores, pairs, metrics, points), printed(table)
    ours, theirs = (
        np.array([look_up(row["point"], row[side], row["metric"])[0] for row in found.to_dict("records")])
        for side in ("system", "baseline")
    )
    return found.assign(paper=(ours - theirs) / 100)


def places(levels: pd.DataFrame, x: str = "text uniformity", y: str = "alignment") -> pd.DataFrame:
    """`levels` of two scores as places in their plane: point, system, seeds, clips, x, "x low", "x high", y …"""
    sides = []
    for side, metric in (("x", x), ("y", y)):
        own = levels[levels["metric"] == metric].set_index(["point", "system"])
        names = {"value": side, "low": f"{side} low", "high": f"{side} high"}
        sides.append(own.rename(columns=names)[list(names.values())])
    counts = levels.groupby(["point", "system"], sort=False)[["seeds", "clips"]].first()
    return pd.concat([counts, *sides], axis=1).dropna().reset_index()
