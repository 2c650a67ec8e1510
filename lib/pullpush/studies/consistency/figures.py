"""Figures of chapter 3 that marks of `show` do not draw in one call: pulls, both sides of the bound, maps."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pullpush.show.curves import curves
from pullpush.show.layout import finish, panels
from pullpush.show.marks import scatter
from pullpush.show.palette import BLACK, GREY, language_colour, language_name, method_styles
from pullpush.studies.consistency.schemes import SAMPLINGS, SCHEMES
from pullpush.studies.consistency.speech import LENGTH, UNTRAINED

LOOKS = {  # of systems, for `intervals`
    name: (str(style["colour"]), marker)
    for (name, style), marker in zip(method_styles([*SCHEMES, "infonce"]).items(), "os^v", strict=True)
} | {LENGTH: (BLACK, "D"), UNTRAINED: (GREY, "X")}
SHAPES = "osv^<>DphX"  # of the items of a map
SIDES = {"left": "‖w − w′‖", "stepwise": "Eq. 18, each step", "right": "Eq. 21", "expanded": "Eq. 21, unrolled"}


def pull_plane(table: pd.DataFrame) -> Figure:
    """ATRI Figure 2 measured: the pull of each of a clip's texts on it, and in black their mean.

    table: columns language ("all" for the mean), along, across; see `direction.pull_plane`.
    """
    styles: dict[str, dict[str, Any]] = {
        code: {"label": language_name(code), "color": language_colour(code)} for code in table["language"]
    }
    styles["all"] = {"label": "mean of all eight", "color": BLACK, "linestyle": "--", "linewidth": 2.5}
    fig, (ax,) = panels(1, height=3.2, width=5.5)
    for row in table.itertuples():
        ax.plot((0, row.along), (0, row.across), marker="o", markevery=[1], markersize=4, **styles[row.language])
    ax.set(xlabel="along the mean", ylabel="across it")
    ax.margins(0.1)
    ax.set_aspect("equal", adjustable="datalim")
    return finish(fig)


def weight_bound(table: pd.DataFrame) -> Figure:
    """Both sides of ATRI's bound over epochs, left the error alone, right with its bounds on a logarithmic axis.

    table: see `tiny.bound_table`; the sampling that never errs has nothing to show.
    """
    table = table[table["sampling"] != "all"]
    table = table.assign(system=table["sampling"].map(SAMPLINGS))
    both = table.melt(["system", "seed", "epoch"], list(SIDES), "side").assign(panel="allowed")
    both = pd.concat([both[both["side"] == "left"].assign(panel="happened"), both])
    both["side"] = both["side"].map(SIDES)
    titles = {"happened": "what happened", "allowed": "what the bound allows"}
    labels = {"happened": SIDES["left"], "allowed": f"{SIDES['left']} and its bounds"}
    look: dict[str, Any] = {"xlabel": "epoch", "ylabel": labels, "titles": titles, "log_y": ("allowed",)}
    return curves(both, "epoch", lines="side", panels="panel", **look)


def language_map(table: pd.DataFrame, title: str = "") -> Figure:
    """ATRI Figures 3 and 4: captions in the colour of their language and the shape of their item, a panel a map.

    table: columns method (of the map), item, language ("audio" is a cross), x, y. Lines join an item's captions to
    their centre; shapes repeat after ten items.
    """
    methods = list(dict.fromkeys(table["method"]))
    fig, axes = panels(len(methods), height=4)
    for ax, method in zip(axes, methods, strict=True):
        for item, rows in table[table["method"] == method].groupby("item"):
            _map_item(ax, rows[rows["language"] != "audio"], SHAPES[item % len(SHAPES)])
            clip = rows[rows["language"] == "audio"]
            scatter(ax, clip["x"], clip["y"], sizes=36, colours=BLACK, marker="+")
        ax.set(xlabel=f"{method} 1", ylabel=f"{method} 2", xticks=[], yticks=[], title=f"{title}, {method}".strip(", "))
    codes = [code for code in dict.fromkeys(table["language"]) if code != "audio"]
    looks = [(language_name(code), language_colour(code), "o") for code in codes] + [("clip", BLACK, "+")]
    keys = [Line2D([], [], linestyle="", marker=shape, color=colour, label=name) for name, colour, shape in looks]
    return finish(fig, handles=keys)


def _map_item(ax: Axes, texts: pd.DataFrame, shape: str) -> None:
    for x, y in zip(texts["x"], texts["y"], strict=True):
        ax.plot([texts["x"].mean(), x], [texts["y"].mean(), y], color="#BBBBBB", linewidth=0.7, zorder=1)
    colours = [language_colour(language) for language in texts["language"]]
    scatter(ax, texts["x"], texts["y"], sizes=26, colours=colours, marker=shape)
