"""Scores beside the paper's tables.

Systems have the paper's names: "CyCLAPs" is compared with "CyCLAP", and that with "CLAP". The paper's I2T and T2I are
A2T and T2A here: text is retrieved, or what it describes.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from pullpush.lab import comparisons, paper
from pullpush.lab.contrasts import Experiments, contrast
from pullpush.lab.experiments import Where
from pullpush.lab.scores import Scores
from pullpush.studies.language_encoder.data import base_of

RECALLS = tuple(f"{side} R@{k}" for side in ("A2T", "T2A") for k in (1, 5, 10))
POINTS = ("here", "gain", "low", "high", "half width")  # times 100 beside the paper
NOTHING = (float("nan"), float("nan"))


def _recalls(**tasks: str) -> dict[str, dict[str, str]]:
    """Our directions → the paper's."""
    cells = {name: {"task": tasks.get(name[:3], name[:3]), "metric": name[4:]} for name in RECALLS}
    return cells | {"R@1": {"metric": "R@1"}}


EFFECTS: Mapping[str, Mapping[str, Any]] = {  # of the four systems as a 2 × 2
    "cyclic terms": {"system": ["CyCLAP", "CyCLAPs"], "baseline": ["CLAP", "CLAPs"]},
    "SimCSE": {"system": ["CLAPs", "CyCLAPs"], "baseline": ["CLAP", "CyCLAP"]},
    "SimCSE, more beside cyclic terms": {
        "system": "CyCLAPs", "baseline": "CyCLAP", "less": {"system": "CLAPs", "baseline": "CLAP"},
    },
}  # fmt: skip
SETS = {"freesound": "FreeSound", "clotho": "Clotho", "audiocaps": "AudioCaps"}
SOUNDS = (_recalls(), {world: {"dataset": name} for world, name in SETS.items()})
QUALITY = {
    name: {"task": task, "dataset": "SentEval"} for name, task in (("intrinsic", "sts"), ("extrinsic", "transfer"))
}
# Table → our score → columns of the paper's table; name of a point → columns that its rows share.
PRINTED: Mapping[int, tuple[Mapping[str, Mapping[str, str]], Mapping[str, Mapping[str, str]]]] = {
    4: SOUNDS,
    5: ({"accuracy": {"metric": "accuracy"}}, {"pictures": {}}),
    11: SOUNDS,
    12: SOUNDS,
    13: (_recalls(A2T="I2T", T2A="T2I"), {"pictures": {}}),
    15: (_recalls(), {"music": {}}),
    16: (QUALITY, {"pictures": {}}),
}


def printed(table: int, point: str, system: str, metric: str) -> tuple[float, float]:
    """What a table of the paper prints, in %: value and its standard deviation, which all but Table 12 have not.

    NaN where the paper has nothing.
    """
    cells, points = PRINTED[table]
    if point not in points or metric not in cells:
        return NOTHING
    return paper.printed("language_encoder", table, {**points[point], **cells[metric], "system": system})


def beside_paper(scores: Scores, table: int, points: Mapping[str, Where]) -> pd.DataFrame:
    """Our scores beside a table of the paper, a row a point, system and metric; in %.

    Args:
        table: a key of PRINTED, which says which metrics there are.
        points: name → our point; those that the table has (see PRINTED) bring its numbers.

    Returns:
        Columns block (the point), system, metric, here, over (the system without its last term), gain, low, high,
        half width, p (Holm, within the table), seeds, clips, paper, paper std, paper gain; NaN where nothing is
        compared or printed.
    """
    metrics = [name for name in PRINTED[table][0] if len(PRINTED[table][0]) == 1 or name != "R@1"]
    here = comparisons.levels(scores, metrics, points).rename(columns={"value": "here"})
    pairs = [(system, base_of(system)) for system in dict.fromkeys(here["system"]) if base_of(system)]
    gained = comparisons.gains(scores, pairs, metrics, points).rename(columns={"baseline": "over", "value": "gain"})
    first = ["point", "system", "metric"]
    both = here[[*first, "here"]].merge(gained, "left", first)
    both["over"] = both["over"].fillna("")
    both[[*POINTS]] *= 100
    rows = both.to_dict("records")
    theirs = [printed(table, *(row[name] for name in first)) for row in rows]
    without = [printed(table, row["point"], row["over"], row["metric"])[0] for row in rows]
    both[["paper", "paper std"]] = np.reshape(theirs, (-1, 2))
    both["paper gain"] = both["paper"] - without
    ours = [*first, "here", "over", *POINTS[1:], "p", "seeds", "clips"]
    return both[[*ours, "paper", "paper std", "paper gain"]].rename(columns={"point": "block"})


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """What `beside_paper` gives, to print: two rows a system, what was measured here and what the paper prints.

    A cell is the score in % and, after a comma, what it has over the system without its last term, in points.
    """
    rows = []
    for (block, system), group in table.groupby(["block", "system"], sort=False):
        cells = group.to_dict("records")
        head = {"data": block, "system": system}
        rows.append(head | {"": "here"} | {row["metric"]: _ours(row) for row in cells})
        if group["paper"].notna().any():
            rows.append(head | {"": "paper"} | {row["metric"]: _theirs(row) for row in cells})
    shown = pd.DataFrame(rows)
    return shown if len(shown) and shown["data"].nunique() > 1 else shown.drop(columns="data", errors="ignore")


def _ours(row: Mapping[str, Any]) -> str:
    difference = f", {row['gain']:+z.1f} ± {row['half width']:.1f}" if row["over"] else ""
    return f"{row['here']:z.1f}{difference}".replace("-", "−")


def _theirs(row: Mapping[str, Any]) -> str:
    if np.isnan(row["paper"]):
        return "–"
    spread = "" if np.isnan(row["paper std"]) else f" (SD {row['paper std']:.1f})"
    difference = "" if np.isnan(row["paper gain"]) else f", {row['paper gain']:+z.2f}"
    return f"{row['paper']:.2f}{spread}{difference}".replace("-", "−")


def main_effects(
    scores: Experiments, protocols: Mapping[str, Mapping[str, Where]], metrics: Sequence[str]
) -> pd.DataFrame:
    """What each of EFFECTS adds, pooled over the worlds of a protocol: `lab.scores.GAIN`, p by Holm within each.

    scores: by the names of experiments; protocols: name → experiment → its points.
    """
    tables = []
    for metric, (protocol, points) in product(metrics, protocols.items()):
        of_worlds: Mapping[str, Any] = {"experiment": [*points], "pooled": points, "metric": metric}
        found = comparisons.differences(
            ({"effect": effect}, contrast(scores, {**EFFECTS[effect], **of_worlds})) for effect in EFFECTS
        )
        tables.append(found.assign(protocol=protocol, metric=metric))
    return pd.concat(tables, ignore_index=True)


def places(levels: pd.DataFrame, x: str = "text uniformity", y: str = "alignment") -> pd.DataFrame:
    """`levels` of two scores as places in their plane: point, system, seeds, clips, x, "x low", "x high", y …"""
    sides = []
    for side, metric in (("x", x), ("y", y)):
        rows = levels[levels["metric"] == metric].set_index(["point", "system"])
        names = {"value": side, "low": f"{side} low", "high": f"{side} high"}
        sides.append(rows.rename(columns=names)[list(names.values())])
    counts = levels.groupby(["point", "system"], sort=False)[["seeds", "clips"]].first()
    return pd.concat([counts, *sides], axis=1).dropna().reset_index()
