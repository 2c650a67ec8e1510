"""Figures of chapter 3's stages: what schemes gain by where they start, and how far beside they aim."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import dodge, finish, limits, mark_zero, name_places, panels, scale_points, spread_note
from pullpush.show.marks import band, dots
from pullpush.show.palette import BLUE, VERMILION, method_name, method_styles

STARTS: Mapping[str, tuple[str, str]] = {"ml-clap": ("on from ML-CLAP", BLUE), "nothing": ("from nothing", VERMILION)}
TELLINGS: Mapping[str, str] = {"aligned": "translated captions", "retold": "retold captions"}


def gains_by_stage(table: pd.DataFrame) -> Figure:
    """What schemes have over each other, a colour a start and a panel a telling, with 95 % intervals.

    table: columns telling, start, system, baseline, metric (one for all), value, low, high (fractions); see
        `comparisons.stage_gains`.
    """
    pairs = list(dict.fromkeys(zip(table["system"], table["baseline"], strict=True)))
    tellings = list(dict.fromkeys(table["telling"]))
    fig, axes = panels(len(tellings), height=1.4 + 0.4 * len(pairs), sharex=True, sharey=True)
    remark = ""
    for ax, telling in zip(axes, tellings, strict=True):
        for number, (start, (label, colour)) in enumerate(STARTS.items()):
            rows = table[(table["telling"] == telling) & (table["start"] == start)]
            if rows.empty:
                continue
            places = np.arange(len(rows)) + dodge(number, len(STARTS), 0.5)
            dots(ax, rows, places, scale=100, label=label, colour=colour, marker="os"[number])
        name_places(ax, [f"{method_name(system)} over {method_name(base)}" for system, base in pairs])
        mark_zero(ax)
        ax.set_title(TELLINGS[telling])
        remark = scale_points(ax, *limits(100 * table[["low", "high"]]))
    for ax in axes:
        ax.set_xlabel(f"{table['metric'].iloc[0]} (points{remark})")
    return finish(fig, "95 % intervals over seeds and clips")


def aim_history(table: pd.DataFrame) -> Figure:
    """Direction error over training, as an angle and per unit of spread, a colour a scheme.

    table: `direction.direction_history`.
    """
    fig, (left, right) = panels(2, height=3)
    styles = method_styles(table["recipe"])
    for ax, column in ((left, "one"), (right, "one aim")):
        for recipe, rows in table.groupby("recipe", sort=False):
            band(ax, rows, "step", column, **styles[recipe])
        ax.set(xlabel="step", ylim=(0, None))
    left.set(ylabel="angle (°)", title="angle at the clip")
    right.set(ylabel="beside the mean / spread", title="per unit of spread")
    return finish(fig, spread_note(table))
