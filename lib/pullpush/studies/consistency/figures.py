"""Figures of chapter 3 that marks of `show` do not draw in one call: pulls, both sides of the bound, maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.show.curves import curves
from pullpush.show.layout import finish, panels, plain_logarithm
from pullpush.show.marks import scatter
from pullpush.show.palette import BLACK, GREY, language_colour, language_name, method_styles
from pullpush.studies.consistency.data import SAMPLINGS, SCHEMES
from pullpush.studies.consistency.speech import LENGTH, UNTRAINED

LOOKS = {  # of systems, for `intervals`
    name: (str(style["colour"]), marker)
    for (name, style), marker in zip(method_styles([*SCHEMES, "infonce"]).items(), "os^v", strict=True)
} | {LENGTH: (BLACK, "D"), UNTRAINED: (GREY, "X")}
SHAPES = "osv^<>DphX"  # of the items of a map
SIDES = {"left": "‖w − w′‖", "stepwise": "Eq. 18, each step", "right": "Eq. 21", "expanded": "Eq. 21, unrolled"}


def pull_plane(pulls: Tensor, languages: Sequence[str] = LANGUAGES) -> Figure:
    """ATRI Figure 2 measured: the pulls `(K, d)` of a clip's texts on it, a text a row, in the plane of their mean (in
    black) and of what they differ in most (up for the first language).
    """
    unit = F.normalize(pulls.mean(dim=0), dim=0)
    along = pulls @ unit
    rest = pulls - along[:, None] * unit
    across = rest @ torch.linalg.svd(rest, full_matrices=False).Vh[0]
    across = across if across[0] >= 0 else -across
    fig, (ax,) = panels(1, height=3.2, width=5.5)
    ray: dict[str, Any] = {"marker": "o", "markevery": [1], "markersize": 4}
    for code, x, y in zip(languages, along.tolist(), across.tolist(), strict=True):
        ax.plot((0, x), (0, y), label=language_name(code), color=language_colour(code), **ray)
    mean = {"label": f"mean of all {len(languages)}", "color": BLACK, "linestyle": "--", "linewidth": 2.5}
    ax.plot((0, along.mean()), (0, 0), **mean, **ray)
    ax.set(xlabel="along the mean", ylabel="across it")
    ax.margins(0.1)
    ax.set_aspect("equal", adjustable="datalim")
    return finish(fig)


def weight_bound(table: pd.DataFrame) -> Figure:
    """Both sides of ATRI's bound over epochs, left the error alone, right with its bounds on a logarithmic axis.

    table: see `bound.bound_table`.
    """
    table = table.assign(system=table["sampling"].map(SAMPLINGS))
    both = table.melt(["system", "seed", "epoch"], list(SIDES), "side").assign(panel="allowed")
    both = pd.concat([both[both["side"] == "left"].assign(panel="happened"), both])
    both["side"] = both["side"].map(SIDES)
    titles = {"happened": "what happened", "allowed": "what the bound allows"}
    labels = {"happened": SIDES["left"], "allowed": f"{SIDES['left']} and its bounds"}
    look: dict[str, Any] = {"xlabel": "epoch", "ylabel": labels, "titles": titles, "log_y": ("allowed",)}
    return curves(both, "epoch", lines="side", panels="panel", **look)


def rank_line(runs: pd.DataFrame) -> Figure:
    """MRV over the mean rank, a mark a run, a colour a scheme, and the line through ML-CLAP's; both logarithmic."""
    fig, (ax,) = panels(1, height=3.2, width=5.5)
    for (system, style), marker in zip(method_styles(runs["system"]).items(), "os^v", strict=False):
        rows = runs[runs["system"] == system]
        scatter(
            ax, rows["mean rank"], rows["MRV"], sizes=26, colours=style["colour"], marker=marker, label=style["label"]
        )
    line = np.log(runs[runs["system"] == "ml-clap"][["mean rank", "MRV"]].to_numpy())
    along = np.log(np.geomspace(runs["mean rank"].min(), runs["mean rank"].max(), 9))
    fitted = np.polynomial.Polynomial.fit(line[:, 0], line[:, 1], 1)
    ax.plot(np.exp(along), np.exp(fitted(along)), color=GREY, linestyle="--", linewidth=1, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="mean rank", ylabel="mean rank variance")
    for axis in (ax.xaxis, ax.yaxis):
        plain_logarithm(axis)
    return finish(fig, "A mark a run; dashed: the line through ML-CLAP's")


def language_map(table: pd.DataFrame, title: str = "") -> Figure:
    """ATRI Figures 3 and 4: captions in the colour of their language and the shape of their item, a panel a map.

    table: columns method (of the map), item, language ("audio" is a cross), x, y. Lines join an item's captions to
    their centre; shapes repeat after ten items.
    """
    methods = list(dict.fromkeys(table["method"]))
    fig, axes = panels(len(methods), height=4)
    for ax, method in zip(axes, methods, strict=True):
        for item, rows in table[table["method"] == method].groupby("item"):
            clip, texts = rows[rows["language"] == "audio"], rows[rows["language"] != "audio"]
            for x, y in zip(texts["x"], texts["y"], strict=True):
                ax.plot([texts["x"].mean(), x], [texts["y"].mean(), y], color="#BBBBBB", linewidth=0.7, zorder=1)
            colours = [language_colour(language) for language in texts["language"]]
            scatter(ax, texts["x"], texts["y"], sizes=26, colours=colours, marker=SHAPES[item % len(SHAPES)])
            scatter(ax, clip["x"], clip["y"], sizes=36, colours=BLACK, marker="+")
        ax.set(xlabel=f"{method} 1", ylabel=f"{method} 2", xticks=[], yticks=[], title=f"{title}, {method}".strip(", "))
    codes = [code for code in dict.fromkeys(table["language"]) if code != "audio"]
    looks = [(language_name(code), language_colour(code), "o") for code in codes] + [("clip", BLACK, "+")]
    keys = [Line2D([], [], linestyle="", marker=shape, color=colour, label=name) for name, colour, shape in looks]
    return finish(fig, handles=keys)
