"""Figures of chapter 4: what sentence terms and cyclic terms do to both spaces and to scores.

Their colours and marks are those of plane.py.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from pullpush.metrics.cards import METRICS
from pullpush.show.layout import dodge, finish, limits, mark_zero, name_places, panels, scale_points, signed
from pullpush.show.marks import dots, matrix
from pullpush.show.palette import BLACK, BLUE, GREY, ORANGE, SKY, VERMILION
from pullpush.studies.language_encoder.force_figures import (
    forces_by_term as forces_by_term,
    gradient_cosine_figure as gradient_cosine_figure,
)
from pullpush.studies.language_encoder.gains import base_of
from pullpush.studies.language_encoder.geometry import asymmetry
from pullpush.studies.language_encoder.plane import arrow, arrow_keys, cross, keys, system_style, write_beside
from pullpush.studies.world.figures import word_frequencies as word_frequencies

DIRECTIONS = {"A2T R@1": ORANGE, "T2A R@1": BLUE, "R@1": BLACK}
LINE = 26  # characters of a name beside a row
PRINTED: dict[str, Any] = {"marker": "D", "mfc": "none", "mec": BLACK, "markersize": 4.5, "linestyle": "none"}


def similarity_matrices(matrices: Mapping[str, ArrayLike]) -> Figure:
    """Figure 1 measured: cosines of captions (rows) and clips (columns) above, and what they lack in symmetry below.

    matrices: system → `(n, n)`, row and column i a pair. Below stands S − Sᵀ, above it the mean square of that off the
    diagonal as a share of the variance of S there.
    """
    found = {system: np.asarray(values, float) for system, values in matrices.items()}
    odd = {system: values - values.T for system, values in found.items()}
    fig, axes = panels(len(found), 2, height=min(2.5, 0.5 + 6.2 / len(found)), sharex=True, sharey=True)
    span = (min(values.min() for values in found.values()), max(values.max() for values in found.values()))
    reach = max(np.abs(values).max() for values in odd.values()) or 1.0
    for number, system in enumerate(found):
        above, below = axes[number], axes[number + len(found)]
        shown = (
            matrix(above, found[system], limits=span),
            matrix(below, odd[system], limits=(-reach, reach), colours="PuOr"),
        )
        above.set_title(system)
        below.set_title(f"asymmetry {asymmetry(found[system]):.3f}")
        below.set_xlabel("clip")
        for ax in (above, below):
            ax.set(aspect="equal", xticks=[], yticks=[])
    for start, image, label in ((0, shown[0], "cosine S"), (len(found), shown[1], "S − Sᵀ")):
        axes[start].set_ylabel("caption")
        fig.colorbar(image, ax=list(axes[start : start + len(found)]), label=label, shrink=0.9)
    return finish(fig)


def space_plane(
    table: pd.DataFrame, panels_of: Mapping[str, tuple[str, str]], *, ylabel: str = "alignment loss"
) -> Figure:
    """Figures 2 and 4: alignment against uniformity, lower is better in both; arrows show what a term does.

    Args:
        table: columns panel, system, x, y, their 95 % intervals "x low" … "y high"; see `comparisons.places`.
        panels_of: panel → its title and the name of its x-axis.
    """
    columns = min(2, len(panels_of))
    fig, axes = panels(columns, -(-len(panels_of) // columns), height=2.7)
    for ax, (panel, (title, xlabel)) in zip(axes, panels_of.items(), strict=False):
        rows = {row["system"]: row for _, row in table[table["panel"] == panel].iterrows()}
        for system, row in rows.items():
            cross(ax, row)
            if base_of(system) in rows:
                arrow(ax, rows[base_of(system)], row)
        _plane(ax, title, xlabel)
    for ax in axes[::columns]:
        ax.set_ylabel(ylabel)
    for ax in axes[len(panels_of) :]:
        ax.remove()
    return finish(fig, f"95 % intervals{_counts(table)}", handles=[*keys(table["system"]), *arrow_keys()])


def trade_off(
    table: pd.DataFrame, panels_of: Mapping[str, tuple[str, str]], *, ylabel: str = "alignment loss"
) -> Figure:
    """The curve that a weight or a temperature draws in the plane of alignment and uniformity; its value at each mark.

    Args:
        table: columns panel, system, value and those of `space_plane`.
        panels_of: panel → its title and the name of its x-axis.
    """
    fig, axes = panels(len(panels_of), height=3.2)
    written = []
    for ax, (panel, (title, xlabel)) in zip(axes, panels_of.items(), strict=True):
        for system, rows in table[table["panel"] == panel].sort_values("value").groupby("system", sort=False):
            for _, row in rows.iterrows():
                cross(ax, row)
                written.append((ax, row, signed(row["value"])))
            if len(rows) > 2:
                line = "--" if str(system).startswith("Cy") else "-"
                ax.plot(rows["x"], rows["y"], line, color=system_style(str(system))["colour"], linewidth=1.2, zorder=1)
        _plane(ax, title, xlabel)
    axes[0].set_ylabel(ylabel)
    finish(fig, f"95 % intervals{_counts(table)}", handles=keys(table["system"]))
    write_beside(fig, written)
    return fig


def gains_by_world(table: pd.DataFrame, names: Mapping[str, str] | None = None) -> Figure:
    """What terms add in each world, a panel a score: 95 % intervals, and the paper's number as a diamond.

    Args:
        table: see `comparisons.gains`. Scores without a unit are fractions, shown in points on one scale.
        names: point → what stands beside its row, in the order of the rows.
    """
    names = names or {point: point for point in dict.fromkeys(table["point"])}
    points = [point for point in names if point in set(table["point"])]
    pairs = list(dict.fromkeys(zip(table["system"], table["baseline"], strict=True)))
    metrics = list(dict.fromkeys(table["metric"]))
    row = max(0.16 + 0.14 * len(pairs), 0.16 * max(-(-len(names[point]) // LINE) for point in points))
    fig, axes = panels(len(metrics), height=1.3 + row * len(points), sharey=True)
    shared = table[[not _unit(metric) for metric in table["metric"]]]
    remark = ""
    for ax, metric in zip(axes, metrics, strict=True):
        unit = _unit(metric)
        for number, (system, baseline) in enumerate(pairs):
            rows = table[(table["metric"] == metric) & (table["system"] == system) & (table["baseline"] == baseline)]
            own = rows.set_index("point").reindex(points)
            at, scale = np.arange(len(points)) + dodge(number, len(pairs), 0.7), 1 if unit else 100
            dots(ax, own, at, scale=scale, **system_style(system) | {"label": f"{system} − {baseline}"})
            ax.plot(scale * own["paper"], at, label="paper" if own["paper"].notna().any() else "", **PRINTED)
        name_places(ax, [textwrap.fill(names[point], LINE) for point in points])
        mark_zero(ax)
        if not unit:
            remark = scale_points(ax, *limits(100 * shared[["low", "high", "paper"]]))
        ax.set(xlabel=f"change ({unit})" if unit else "gain (points)", title=metric)
    return finish(fig, f"95 % intervals{_counts(table)}" + f"; points{remark[1:]}" * bool(remark))


def prompt_accuracies(table: pd.DataFrame, *, chance: float | None = None) -> Figure:
    """Zero-shot accuracy with each prompt and with their ensemble; 95 % intervals over seeds and classes.

    table: columns template, system, value, low, high (fractions); templates from the top.
    """
    templates, systems = list(dict.fromkeys(table["template"])), list(dict.fromkeys(table["system"]))
    fig, (ax,) = panels(1, height=1.2 + (0.1 + 0.06 * len(systems)) * len(templates))
    for number, system in enumerate(systems):
        rows = table[table["system"] == system].set_index("template").reindex(templates)
        dots(ax, rows, np.arange(len(templates)) + dodge(number, len(systems)), scale=100, **system_style(system))
    if chance is not None:
        ax.axvline(100 * chance, color=BLACK, linestyle=":", linewidth=1, label="chance")
    name_places(ax, templates)
    ax.set(xlabel="zero-shot accuracy (%)", ylabel="prompt")
    return finish(fig, f"95 % intervals{_counts(table, 'classes')}")


def retrieval_points(
    table: pd.DataFrame, panels_of: Mapping[str, str], metrics: Sequence[str] = ("A2T R@1", "T2A R@1")
) -> Figure:
    """Scores of every system, a panel a modality or world; 95 % intervals over seeds and clips.

    Args:
        table: columns point, system, metric, value, low, high (fractions); see `comparisons.levels`.
        panels_of: point → title.
    """
    counts = [table[table["point"] == point]["system"].nunique() for point in panels_of]
    fig, axes = panels(len(panels_of), height=1.1 + 0.3 * max(counts))
    for ax, (point, title) in zip(axes, panels_of.items(), strict=True):
        rows = table[table["point"] == point]
        systems = list(dict.fromkeys(rows["system"]))
        for number, metric in enumerate(metrics):
            own = rows[rows["metric"] == metric].set_index("system").reindex(systems)
            at = np.arange(len(systems)) + dodge(number, len(metrics), 0.4)
            colour = DIRECTIONS.get(metric, SKY)
            dots(ax, own, at, scale=100, label=metric, colour=colour, marker="o^sv"[number % 4])
        name_places(ax, systems)
        ax.set(xlabel="%", title=title)
    return finish(fig, f"95 % intervals{_counts(table)}")


def predicted_gains(table: pd.DataFrame) -> Figure:
    """What rules predict of conditions and what was measured of them, a panel a rule; on the line both agree.

    table: columns rule, condition, predicted, value, low, high (fractions), held out (bool); see `decision`.
    """
    rules = list(dict.fromkeys(table["rule"]))
    fig, axes = panels(len(rules), height=3.3, sharey=True)
    low, high = limits(100 * table[["low", "high", "predicted"]])
    for ax, rule in zip(axes, rules, strict=True):
        ax.plot(np.linspace(low, high, 3), np.linspace(low, high, 3), "--", color=GREY, linewidth=1)
        for held_out, style in {
            False: {"label": "fitted on", "colour": SKY, "marker": "o"},
            True: {"label": "held out", "colour": VERMILION, "marker": "s"},
        }.items():
            rows = table[(table["rule"] == rule) & (table["held out"] == held_out)]
            if len(rows):
                dots(ax, rows, 100 * rows["predicted"], scale=100, upright=True, **style)
        mark_zero(ax)
        mark_zero(ax, "y")
        ax.set(xlabel="predicted gain (points)", title=rule)
    axes[0].set_ylabel("measured gain (points)")
    return finish(fig, "95 % intervals over seeds and clips; a mark a condition")


def _plane(ax: Axes, title: str, xlabel: str) -> None:
    ax.set(title=title, xlabel=xlabel)
    ax.margins(0.14)
    ax.xaxis.set_major_locator(MaxNLocator(5))


def _unit(metric: str) -> str:
    """What a score of an experiment is measured in, "" for fractions."""
    return next((score.unit for card in METRICS.values() for score in card.scores if score.name == metric), "")


def _counts(table: pd.DataFrame, items: str = "clips") -> str:
    """ " over 3 seeds and 400 clips" where the table says it."""
    if "seeds" not in table or table.empty:
        return ""
    return f" over {table['seeds'].max():.0f} seeds and {table['clips'].max():.0f} {items}"
