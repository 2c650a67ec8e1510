"""The forest of claims: what was measured of each, beside what the paper prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pullpush.show.layout import PAGE_WIDTH
from pullpush.show.palette import BLACK, BLUE, SKY, VERMILION

# Verdict → marker, colour, fill; beside what papers print, which is an open diamond.
VERDICT_STYLES = {
    "holds": ("o", BLUE, BLUE),
    "smaller than in the paper": ("v", SKY, SKY),
    "cannot tell": ("o", BLACK, "white"),
    "reversed": ("s", VERMILION, VERMILION),
}
# Inches, but for `linear`: points up to which an axis is linear.
FOREST = {"label": 2.5, "gap": 0.15, "legend": 0.45, "axis": 0.5, "title": 0.12, "line": 0.15, "row": 0.08, "linear": 3}
LABEL_WIDTH = 40  # characters


def claim_forest(table: pd.DataFrame, *, columns: int = 2) -> Figure:
    """What was measured of claims, with 95 % intervals, beside what the paper prints, by where the claims stand.

    Differences in points share their axis; other units have one a source. What lies far outside of all that was
    measured stands at the edge, with its number.

    Args:
        table: rows of `Ledger.table`; those without a value are left out.
        columns: of panels.
    """
    rows = table[np.isfinite(table["value"].astype(float))]
    panels = _forest_panels(rows, columns)
    heights = [[_forest_height(panel) for panel in column] for column in panels]
    height = max([sum(column) for column in heights if column], default=0.3) + FOREST["legend"]
    fig = plt.figure(figsize=(PAGE_WIDTH, height), layout="none")
    limits = {unit: _forest_limits(own) for unit, own in rows.groupby("unit")}
    for column, (own, tall) in enumerate(zip(panels, heights, strict=True)):
        width = PAGE_WIDTH / columns
        top = height - FOREST["legend"]
        for panel, size in zip(own, tall, strict=True):
            left, bottom = column * width + FOREST["label"], top - size + FOREST["axis"]
            box = (left, bottom, width - FOREST["label"] - FOREST["gap"], size - FOREST["axis"] - FOREST["title"])
            ax = fig.add_axes([box[0] / PAGE_WIDTH, box[1] / height, box[2] / PAGE_WIDTH, box[3] / height])
            unit = panel["unit"].iloc[0]
            _forest_panel(ax, panel, limits[unit] if unit == "points" else _forest_limits(panel))
            top -= size
    _forest_legend(fig, rows)
    return fig


def _forest_labels(panel: pd.DataFrame) -> list[tuple[str, int | None]]:
    """Labels from top to bottom: sources (no row), and the claims under them with their rows."""
    labels: list[tuple[str, int | None]] = []
    for source, own in panel.groupby("group", sort=False):
        labels.append((source, None))
        for number, claim in own["claim"].items():
            short = claim.removesuffix(".").replace("text-to-audio", "T2A").replace("audio-to-text", "A2T")
            labels.append((textwrap.fill(short, LABEL_WIDTH, break_on_hyphens=False), number))
    return labels


def _forest_height(panel: pd.DataFrame) -> float:
    lines = [label.count("\n") + 1 for label, _ in _forest_labels(panel)]
    return sum(lines) * FOREST["line"] + len(lines) * FOREST["row"] + FOREST["axis"] + FOREST["title"]


def _forest_panels(rows: pd.DataFrame, columns: int) -> list[list[pd.DataFrame]]:
    """Panels of one unit each, column by column: in points of several sources, otherwise of one."""
    several = rows["paper"].nunique() > 1
    places = zip(rows["source"], rows["paper"], strict=True)
    rows = rows.assign(group=[f"{s.partition(', ')[0]}{f' of {paper}' if several else ''}" for s, paper in places])
    units = sorted(rows["unit"].unique(), key=lambda unit: unit != "points")  # the others keep their order
    blocks = [own for unit in units for _, own in rows[rows["unit"] == unit].groupby("group", sort=False)]
    height = max(map(_forest_height, blocks), default=0.0)
    while len(panels := _forest_columns(blocks, height)) > columns:
        height *= 1.02
    return panels


def _forest_columns(blocks: Sequence[pd.DataFrame], height: float) -> list[list[pd.DataFrame]]:
    """Blocks in their order, in columns of at most this height; neighbours in points become one panel."""
    panels: list[list[pd.DataFrame]] = [[]]
    for block in blocks:
        own = panels[-1]
        shared = bool(own) and own[-1]["unit"].iloc[0] == block["unit"].iloc[0] == "points"
        longer = [*own[:-1], pd.concat([own[-1], block])] if shared else [*own, block]
        if sum(map(_forest_height, longer)) > height and own:
            panels.append([block])
        else:
            panels[-1] = longer
    return panels


def _forest_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """All intervals, zero, and what the paper prints, unless that is farther off than one and a half of their span."""
    low, high = min(0.0, rows["low"].min()), max(0.0, rows["high"].max())
    span = (high - low) or 1.0
    printed = rows["paper_value"].dropna().astype(float)
    printed = printed[(printed > low - 1.5 * span) & (printed < high + 1.5 * span)]
    low, high = min([low, *printed]), max([high, *printed])
    return low - 0.06 * (high - low or 1), high + 0.06 * (high - low or 1)


def _forest_panel(ax: Axes, panel: pd.DataFrame, limits: tuple[float, float]) -> None:
    labels = _forest_labels(panel)
    sizes = [(text.count("\n") + 1) * FOREST["line"] + FOREST["row"] for text, _ in labels]
    places = np.cumsum(sizes) - np.array(sizes) / 2
    ax.axvline(0, color=BLACK, linewidth=0.8)
    for place, (_, number) in zip(places, labels, strict=True):
        if number is None:
            continue
        row = panel.loc[number]
        marker, colour, face = VERDICT_STYLES[row["verdict"]]
        ax.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row["value"], place, marker, color=colour, mfc=face, markersize=6)
        if np.isfinite(row["paper_value"]):
            _forest_printed(ax, float(row["paper_value"]), place, limits)
    ax.set_yticks(places, [text for text, _ in labels], fontsize=8)
    for tick, (_, number) in zip(ax.get_yticklabels(), labels, strict=True):
        if number is None:
            tick.set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.set(xlim=limits, ylim=(sum(sizes), 0))
    unit = panel["unit"].iloc[0]
    if unit == "points" and max(map(abs, limits)) > 4 * FOREST["linear"]:  # one large gain must not flatten the others
        ax.set_xscale("symlog", linthresh=FOREST["linear"], linscale=1)
        ticks = [sign * size for sign in (-1, 1) for size in (0, 1, 3, 10, 30) if limits[0] <= sign * size <= limits[1]]
        ax.set_xticks(sorted(set(ticks)), [f"{tick:g}".replace("-", "−") for tick in sorted(set(ticks))])
        ax.minorticks_off()
        unit += f", logarithmic beyond ±{FOREST['linear']}"
    else:
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
        ax.xaxis.get_offset_text().set_fontsize(8)
    ax.set_xlabel(unit, fontsize=8, labelpad=1)


def _forest_printed(ax: Axes, value: float, place: float, limits: tuple[float, float]) -> None:
    """The paper's number as an open diamond; beyond the limits at the edge, with an arrow and the number."""
    diamond = {"marker": "D", "mfc": "none", "mec": BLACK, "markersize": 4.5, "linestyle": "none", "zorder": 3}
    if limits[0] <= value <= limits[1]:
        ax.plot(value, place, **diamond)
        return
    left = bool(value < limits[0])
    edge = limits[0] if left else limits[1]
    ax.plot(edge, place, **diamond | {"marker": "<" if left else ">", "clip_on": False})
    text = f"{value:+.3g}".replace("-", "−")
    ax.annotate(
        text, (edge, place), (6 if left else -6, 0), textcoords="offset points",
        fontsize=7, va="center", ha="left" if left else "right",
    )  # fmt: skip


def _forest_legend(fig: Figure, rows: pd.DataFrame) -> None:
    """Above all panels: the verdicts that occur, and the paper's diamond."""
    handles = [
        Line2D([], [], marker=marker, color=colour, mfc=face, markersize=6, linewidth=1.6, label=f"ours: {verdict}")
        for verdict, (marker, colour, face) in VERDICT_STYLES.items()
        if (rows["verdict"] == verdict).any()
    ]
    if rows["paper_value"].notna().any():
        diamond = {"marker": "D", "mfc": "none", "mec": BLACK, "markersize": 4.5, "linestyle": "none"}
        handles.append(Line2D([], [], label="paper", **diamond))
    if handles:
        fig.legend(handles=handles, loc="upper center", ncols=len(handles), fontsize=8)
    else:
        fig.text(0.5, 0.5, "nothing was measured of these claims", ha="center")
