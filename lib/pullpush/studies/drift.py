"""Drift, SupCLAP Figure 1: the cosine of an update and the pull, over training."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import finish, panels, spread_note
from pullpush.show.marks import band
from pullpush.show.palette import method_styles


def drift_curves(table: pd.DataFrame, readings: Mapping[str, str]) -> Figure:
    """SupCLAP Figure 1: cosine of update and pull over training, a panel for each reading and family of losses.

    Args:
        table: columns recipe, seed, step and the readings. Recipes of one family, such as those that add to InfoNCE,
            share a row of panels where more than three are compared.
        readings: column → title.
    """
    family = table["recipe"].str.partition("+")[0]
    families = list(dict.fromkeys(family)) if table["recipe"].nunique() > 3 else [""]
    styles = method_styles(table["recipe"])
    fig, axes = panels(
        len(readings), len(families), height=2.8 if len(families) < 2 else 2.2, sharex=True, sharey="row"
    )
    for number, ax in enumerate(axes):
        name, (column, title) = families[number // len(readings)], list(readings.items())[number % len(readings)]
        for recipe, rows in table[(family == name) | (name == "")].groupby("recipe", sort=False):
            band(ax, rows, "step", column, **styles[recipe])
        ax.set(title=title if number < len(readings) else "")
        ax.set_xlabel("step" if number >= len(axes) - len(readings) else "")
        ax.set_ylabel("cosine with the pull" if number % len(readings) == 0 else "")
    return finish(fig, spread_note(table, within=("recipe",)))
