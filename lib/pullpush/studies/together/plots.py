"""Figures of chapter 7: the design, its effects, what they cost, and the front."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from pullpush.show.layout import finish, name_places, panels, signed
from pullpush.show.marks import matrix, scatter
from pullpush.show.palette import BLACK, BLUE, GREY, ORANGE, VERMILION
from pullpush.studies.together.experiments import NAMES
from pullpush.studies.together.science import TIMES, Design

LOW_HIGH = ("#E6E6E6", BLUE)  # of a factor in a design


def design_figure(design: Design) -> Figure:
    """Which factors are high in which run; a column a run, a row a factor, in Yates' order."""
    fig, (ax,) = panels(1, height=0.9 + 0.28 * len(design.factors))
    matrix(ax, (design.signs.T > 0).astype(float), colours=ListedColormap(LOW_HIGH))  # pyrefly: ignore[bad-argument-type]
    ax.set_xticks(np.arange(len(design)) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(design.factors)) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="minor", length=0)
    names = [f"{'ABCDEFG'[NAMES.index(name)]}  {name}" for name in design.factors]
    ax.set_yticks(range(len(names)), names)
    runs = [1, *range(8, len(design) + 1, 8)]
    ax.set_xticks([run - 1 for run in runs], runs)
    ax.set_xlabel("run")
    handles = [Patch(color=colour, label=word) for word, colour in zip(("low", "high"), LOW_HIGH, strict=True)]
    return finish(fig, handles=handles)


def interaction_matrix(table: pd.DataFrame, factors: Sequence[str], stands: Sequence[str] = ()) -> Figure:
    """Two-way interactions in points; main effects, on the diagonal, are framed.

    Args:
        table: of `science.effects`, fractions.
        stands: names of the effects that stand after Holm's adjustment; they are written in bold letters.
    """
    value = 100 * table.set_index("effect")["value"]
    pairs = [[TIMES.join(sorted({one, other}, key=list(factors).index)) for other in factors] for one in factors]
    points = np.array([[value[pair] for pair in row] for row in pairs])
    beside = np.abs(points[~np.eye(len(factors), dtype=bool)]).max()
    fig, (ax,) = panels(1, height=1.6 + 0.42 * len(factors), width=7.0)
    matrix(ax, points, limits=(-beside, beside), label="effect (points of R@1)", colours="PuOr_r")
    for (i, j), point in np.ndenumerate(points):
        look = {"color": "white" if abs(point) > 0.6 * beside else BLACK, "fontsize": 9}
        look["fontweight"] = "bold" if pairs[i][j] in stands else "normal"
        ax.text(j, i, signed(point, "+z.1f"), ha="center", va="center", **look)
    for i in range(len(factors)):
        ax.add_patch(Rectangle((i - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=BLACK, linewidth=1.5))
    name_places(ax, list(factors), axis="x", rotation=35)
    name_places(ax, list(factors))
    return finish(fig)


def half_normal_plot(table: pd.DataFrame, error: float, margin: float) -> Figure:
    """Sizes of all contrasts over the quantiles of a half-normal; the line is noise alone.

    table: columns effect, factors, size (fractions) and quantile; those beyond the margin bear their names.
    """
    fig, (ax,) = panels(1, height=3.8)
    looks = (("main effects", BLUE, "o"), ("two-way interactions", ORANGE, "s"), ("of more factors", GREY, "."))
    for factors, (label, colour, marker) in enumerate(looks, start=1):
        rows = table[table["factors"].clip(upper=3) == factors]
        scatter(ax, rows["quantile"], 100 * rows["size"], colours=colour, label=label, marker=marker, sizes=30)
    reach = table["quantile"].max() * 1.1
    ax.plot([0, reach], [0, 100 * error * reach], color=BLACK, linewidth=1, label="Lenth's error")
    ax.axhline(100 * margin, color=BLACK, linestyle="--", linewidth=1, label="margin of all together")
    above, apart = -np.inf, 7 * table["size"].max()  # points between two names
    for row in table[table["size"] > margin].to_dict("records"):
        above = max(100 * row["size"], above + apart)
        at = (row["quantile"], 100 * row["size"])
        text = (row["quantile"] - 0.12, above)
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6}
        ax.annotate(row["effect"], at, text, ha="right", va="center", fontsize=8, arrowprops=line)
    ax.set(xlabel="quantile of the half-normal", ylabel="|effect| (points of R@1)", xlim=(0, reach), ylim=(0, None))
    return finish(fig)


def pareto_front(table: pd.DataFrame, *, marked: Mapping[str, str]) -> Figure:
    """Recall over the time of a step: of all runs of the design, and of combinations that it predicts; the front of the
    runs is connected by steps.

    Args:
        table: of `science.priced`.
        marked: system → what to call it in the figure.
    """
    fig, (ax,) = panels(1, height=4.0)
    runs = table[table["measured"]]
    rest, on = runs[~runs["front"]], runs[runs["front"]].sort_values("time")
    span = 100 * np.abs(runs[["low", "high"]].to_numpy().T - runs["value"].to_numpy())
    ax.errorbar(runs["time"], 100 * runs["value"], yerr=span, fmt="none", ecolor="#BBBBBB", elinewidth=0.8, zorder=1)
    scatter(ax, rest["time"], 100 * rest["value"], colours=GREY, label="runs of the design", sizes=18)
    ax.step(on["time"], 100 * on["value"], where="post", color=BLUE, linewidth=1.2, zorder=2)
    scatter(ax, on["time"], 100 * on["value"], colours=BLUE, label="on the front", sizes=36)
    for system, name in marked.items():
        for row in table[table["system"] == system].tail(1).to_dict("records"):
            how = "" if row["measured"] else ", as predicted"
            at = (row["time"], 100 * row["value"])
            scatter(ax, at[:1], at[1:], colours=VERMILION, sizes=60, marker="D")
            back = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
            ax.annotate(f"{name}{how}", at, (9, -8), textcoords="offset points", fontsize=9, va="top", bbox=back)
    ax.set(xlabel="time of a step, as a multiple of InfoNCE's", ylabel="R@1 (%), mean of directions and languages")
    ax.margins(x=0.12)
    return finish(fig)
