"""The forest of claims: what was measured of each, beside what the paper prints."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pullpush.show.intervals import PAPER
from pullpush.show.layout import PAGE_WIDTH, limits, mark_zero, scale_points, signed
from pullpush.show.palette import VERDICTS

# Inches from a figure's left edge to the source, the claim and the axis, and what is left beside that for numbers.
SOURCE, CLAIM, PLOT, EDGE = 0.05, 0.95, 4.55, 0.55
LEGEND, LINE, GAP, AXIS = 0.4, 0.132, 0.07, 0.47  # inches from the top: of a line of text, and below each panel
CLAIM_LENGTH = 60  # characters of a line
ALIKE = 6  # how many times farther from zero the numbers of a panel may reach than those of one of its sources
SHORT = {"text-to-audio": "T2A", "audio-to-text": "A2T", "T2A recall at one": "T2A R@1", "A2T recall at one": "A2T R@1"}
SMALL = 8  # points, of letters


def claim_forest(table: pd.DataFrame) -> Figure:
    """Each claim's number with its 95 % interval, beside what the paper prints, by where the claims stand.

    A panel holds the claims of one unit, in points first. What a paper prints far outside of all that was measured
    stands as a number at the right edge.

    Args:
        table: rows of `Ledger.table`; those without a value are left out, and those that cannot fail.

    Returns:
        A figure as wide as the page and as high as its rows ask.
    """
    rows = table[np.isfinite(table["value"].astype(float)) & table["verdict"].isin(VERDICTS)]
    if rows.empty:
        fig = plt.figure(figsize=(PAGE_WIDTH, 0.6), layout="none")
        fig.text(0.5, 0.5, "nothing was measured of these claims", ha="center")
        return fig
    blocks = _panels(rows)
    heights = [block["height"].sum() for block in blocks]
    whole = LEGEND + sum(heights) + AXIS * len(blocks)
    fig = plt.figure(figsize=(PAGE_WIDTH, whole), layout="none")
    top = whole - LEGEND
    for block, height in zip(blocks, heights, strict=True):
        box = (PLOT / PAGE_WIDTH, (top - height) / whole, (PAGE_WIDTH - PLOT - EDGE) / PAGE_WIDTH, height / whole)
        _draw(fig.add_axes(box), block)
        top -= height + AXIS
    _explain(fig, rows)
    return fig


def _panels(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The claims of each panel: of one unit, in points first; in other units of sources whose numbers are alike."""
    papers = "\n" + rows["paper"].str.replace("_", "\n") if rows["paper"].nunique() > 1 else ""
    rows = rows.assign(place=rows["source"].str.partition(", ")[0] + papers)
    panels: list[list[pd.DataFrame]] = []
    for unit in sorted(rows["unit"].unique(), key=lambda unit: unit != "points"):  # the others keep their order
        reaches: list[float] = []  # of the sources of the last panel, without those that are zero throughout
        for number, (_, source) in enumerate(rows[rows["unit"] == unit].groupby("place", sort=False)):
            reach = source[["low", "high"]].abs().to_numpy(dtype=float).max()
            longer = [*reaches, reach] if reach else reaches
            alike = unit == "points" or not longer or max(longer) <= ALIKE * min(longer)
            if number == 0 or not alike:
                panels.append([])
                longer = longer[-1:]
            panels[-1].append(source)
            reaches = longer
    return [_with_texts(pd.concat(sources)) for sources in panels]


def _with_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """The claims of a panel with the text of each, and its height and middle in inches."""
    rows["text"] = rows["claim"].map(_shortened)
    lines = rows["text"].str.count("\n") + 1
    first = ~rows["place"].duplicated()
    lines = lines.where(~first, np.maximum(lines, rows["place"].str.count("\n") + 1))
    rows["height"] = LINE * lines + GAP + 0.6 * GAP * first
    rows["middle"] = rows["height"].cumsum() - rows["height"] / 2
    return rows


def _shortened(claim: str) -> str:
    claim = claim.removesuffix(".")
    for words, letters in SHORT.items():
        claim = claim.replace(words, letters)
    return textwrap.fill(claim, CLAIM_LENGTH, break_on_hyphens=False)


def _draw(ax: Axes, block: pd.DataFrame) -> None:
    low, high = _span(block)
    remark = _scale(ax, block["unit"].iloc[0], low, high)
    mark_zero(ax)
    for row in block.to_dict("records"):
        marker, colour, face = VERDICTS[row["verdict"]]
        ax.plot([row["low"], row["high"]], [row["middle"]] * 2, color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row["value"], row["middle"], marker, color=colour, mfc=face, markersize=6)
        if low <= row["paper_value"] <= high:
            ax.plot(row["paper_value"], row["middle"], zorder=3, **PAPER)
        elif np.isfinite(row["paper_value"]):
            _write(ax, PAGE_WIDTH - EDGE + 0.05, row["middle"], f"◇ {signed(row['paper_value'], '+.3g')}")
        _write(ax, CLAIM, row["middle"], row["text"])
    for _, group in block.groupby("place", sort=False):
        _write(ax, SOURCE, group["middle"].iloc[0], group["place"].iloc[0], weight="bold")
        edge = group["middle"].iloc[0] - group["height"].iloc[0] / 2
        ax.axhline(edge, xmin=_across(SOURCE), color="#DDDDDD", linewidth=0.8, clip_on=False, zorder=0)
    ax.set(ylim=(block["height"].sum(), 0), yticks=[])
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"{block['unit'].iloc[0] or 'no unit'}{remark}", fontsize=SMALL, labelpad=1)


def _scale(ax: Axes, unit: str, low: float, high: float) -> str:
    """Limits and ticks of the x-axis; what its label says of the scale."""
    if unit == "points":
        return scale_points(ax, low, high)
    pad = 0.06 * (high - low or 1)
    ax.set_xlim(low - pad, high + pad)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
    ax.xaxis.get_offset_text().set_fontsize(SMALL)
    return ""


def _across(inches: float) -> float:
    """Inches from the figure's left edge as a fraction of the axes' width, as matplotlib wants it."""
    return (inches - PLOT) / (PAGE_WIDTH - PLOT - EDGE)


def _write(ax: Axes, inches: float, height: float, text: str, weight: str = "normal") -> None:
    ax.annotate(
        text, (_across(inches), height), xycoords=("axes fraction", "data"), annotation_clip=False,
        va="center", ha="left", fontsize=SMALL, fontweight=weight, linespacing=1.1,
    )  # fmt: skip


def _span(rows: pd.DataFrame) -> tuple[float, float]:
    """All intervals, zero, and what the paper prints, unless that is farther off than one and a half of their span."""
    low, high = limits(rows["low"], rows["high"])
    span = (high - low) or 1.0
    printed = rows["paper_value"].dropna().astype(float)
    printed = printed[(printed > low - 1.5 * span) & (printed < high + 1.5 * span)]
    return min([low, *printed]), max([high, *printed])


def _explain(fig: Figure, rows: pd.DataFrame) -> None:
    """Above all panels: the verdicts that occur, and the paper's diamond."""
    handles = [
        Line2D([], [], marker=marker, color=colour, mfc=face, markersize=6, linewidth=1.6, label=f"ours: {verdict}")
        for verdict, (marker, colour, face) in VERDICTS.items()
        if (rows["verdict"] == verdict).any()
    ]
    if rows["paper_value"].notna().any():
        handles.append(Line2D([], [], label="paper", **PAPER))
    fig.legend(handles=handles, loc="upper center", ncols=len(handles), fontsize=SMALL, columnspacing=1.2)
