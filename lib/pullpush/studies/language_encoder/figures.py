"""Figures of chapter 4: what sentence terms and cyclic terms do to both spaces, to scores, and as forces.

A system's colour says which sentence term it has, its mark whether it has the cyclic terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from pullpush.show.curves import word_frequencies as word_frequencies
from pullpush.show.intervals import note
from pullpush.show.layout import dodge, finish, limits, mark_zero, name_places, panels
from pullpush.show.marks import density, dots, matrix
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from pullpush.studies.language_encoder.geometry import asymmetry
from pullpush.studies.language_encoder.lesson import PAIRS, TEXTS
from pullpush.studies.language_encoder.systems import base_of, systems
from pullpush.studies.term_forces import forces_by_term as forces_by_term, mean_of
from pullpush.training.recipes import title

TERMS = {  # by a system's last letter
    "": (BLUE, "no sentence term"),
    "s": (VERMILION, "s: SimCSE on captions"),
    "n": (GREEN, "n: NLI triples"),
    "e": (PURPLE, "e: SimCSE on NLI sentences"),
}
CYCLIC = {False: ("o", "without cyclic terms"), True: ("s", "Cy: with cyclic terms")}
SUMMARIES = {PAIRS: "dashed: their mean, the alignment", TEXTS: "dashed: −½ of the uniformity"}
# Where a number may stand beside its mark: points to the right and up, and how it is aligned there.
PLACES = (
    (6, 5, "left", "bottom"), (-6, 5, "right", "bottom"), (6, -5, "left", "top"), (-6, -5, "right", "top"),
    (0, 8, "center", "bottom"), (0, -8, "center", "top"), (12, 14, "left", "bottom"), (-12, -14, "right", "top"),
)  # fmt: skip
THIN: dict[str, Any] = {"color": GREY, "linewidth": 1}  # of arrows
MARK = 5  # pixels from the middle of a mark to its edge


def term(system: str) -> str:
    """The letter of a system's sentence term, "" without one.

    >>> term("CyCLAPs"), term("CLIP")
    ('s', '')
    """
    return system[-1] if system[-1] in TERMS else ""


def look(system: str) -> tuple[str, str]:
    """Colour and marker of a system.

    >>> look("CyCLAPs")
    ('#D55E00', 's')
    """
    return TERMS[term(system)][0], CYCLIC[system.startswith("Cy")][0]


LOOKS = {system: look(system) for name in ("CLAP", "CLIP") for system in systems(name, tuple(TERMS))}

# ---------------------------------------------------------------- spaces


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
    for ax, (panel, (heading, xlabel)) in zip(axes, panels_of.items(), strict=False):
        rows = {row["system"]: row for _, row in table[table["panel"] == panel].iterrows()}
        for system, row in rows.items():
            _cross(ax, row)
            if base_of(system) in rows:
                _arrow(ax, rows[base_of(system)], row)
        _plane(ax, heading, xlabel)
    for ax in axes[::columns]:
        ax.set_ylabel(ylabel)
    for ax in axes[len(panels_of) :]:
        ax.remove()
    return finish(fig, note(table), handles=[*_keys(table["system"]), *_arrow_keys()])


def trade_off(
    table: pd.DataFrame, panels_of: Mapping[str, tuple[str, str]], *, ylabel: str = "alignment loss"
) -> Figure:
    """The curve that a weight or a temperature draws in the plane of alignment and uniformity; its value at each mark.

    Args:
        table: those of `space_plane`, and point, the value as text.
        panels_of: panel → its title and the name of its x-axis.
    """
    fig, axes = panels(len(panels_of), height=3.2)
    written = []
    for ax, (panel, (heading, xlabel)) in zip(axes, panels_of.items(), strict=True):
        own = table[table["panel"] == panel].sort_values("point", key=lambda points: points.astype(float))
        for system, rows in own.groupby("system", sort=False):
            for _, row in rows.iterrows():
                _cross(ax, row)
                written.append((ax, row, row["point"]))
            if len(rows) > 2:
                line = "--" if str(system).startswith("Cy") else "-"
                ax.plot(rows["x"], rows["y"], line, color=look(str(system))[0], linewidth=1.2, zorder=1)
        _plane(ax, heading, xlabel)
    axes[0].set_ylabel(ylabel)
    finish(fig, note(table), handles=_keys(table["system"]))
    _write_beside(fig, written)
    return fig


def _plane(ax: Axes, title: str, xlabel: str) -> None:
    ax.set(title=title, xlabel=xlabel)
    ax.margins(0.14)
    ax.xaxis.set_major_locator(MaxNLocator(5))


def _cross(ax: Axes, row: pd.Series) -> None:
    """A system's mark with its intervals in both directions: system, x, "x low", "x high", y …"""
    colour, marker = look(row["system"])
    spans: dict[str, Any] = {
        f"{axis}err": [[row[axis] - row[f"{axis} low"]], [row[f"{axis} high"] - row[axis]]] for axis in "xy"
    }
    ax.errorbar(row["x"], row["y"], fmt=marker, color=colour, markersize=6, elinewidth=1.2, **spans)


def _arrow(ax: Axes, start: pd.Series, end: pd.Series) -> None:
    """From a system to what has one term more; dotted where that is the cyclic terms."""
    style: dict[str, Any] = {"arrowstyle": "->", "linestyle": "-" if term(end["system"]) else ":", **THIN}
    ax.annotate(
        "", (end["x"], end["y"]), (start["x"], start["y"]), arrowprops={"shrinkA": 5, "shrinkB": 5, **style}, zorder=1
    )


def _keys(systems: Sequence[str]) -> list[Line2D]:
    """Entries of a legend: what a colour and what a mark say."""
    terms, cyclic = ({kind(system) for system in systems} for kind in (term, lambda system: system.startswith("Cy")))
    colours = [_key("o", colour, text) for letter, (colour, text) in TERMS.items() if letter in terms]
    marks = [_key(mark, BLACK, text) for has, (mark, text) in CYCLIC.items() if has in cyclic]
    return colours + marks


def _arrow_keys() -> list[Line2D]:
    """Entries of a legend: what an arrow says."""
    dotted = Line2D([], [], linestyle=":", label="adds the cyclic terms", **THIN)
    return [Line2D([], [], label="adds a sentence term", **THIN), dotted]


def _write_beside(fig: Figure, texts: Sequence[tuple[Axes, Mapping[str, Any], str]]) -> None:
    """Text beside each place (Axes, row with system, x and y, text), where it covers no other and no mark, if it can.

    fig: finished, for its panels must stand where they will.
    """
    fig.canvas.draw()
    taken = []
    for ax, row, _ in texts:
        x, y = ax.transData.transform((row["x"], row["y"]))
        taken.append(Bbox([[x - MARK, y - MARK], [x + MARK, y + MARK]]))
    for ax, row, text in texts:
        colour = look(row["system"])[0]
        for number, (x, y, across, up) in enumerate(PLACES):
            label = ax.annotate(
                text, (row["x"], row["y"]), (x, y), textcoords="offset points", ha=across, va=up, color=colour,
                fontsize="small",
            )  # fmt: skip
            box = label.get_window_extent()
            if number == len(PLACES) - 1 or not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            label.remove()


def _key(marker: str, colour: str, label: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label)


def distance_densities(table: pd.DataFrame) -> Figure:
    """Densities of squared distances, a panel for pairs and one for captions; a dashed line is what sums each up.

    table: see `lesson.squared_distances`; four models at most.
    """
    fig, axes = panels(len(SUMMARIES), height=3.0)
    colours = dict(zip(dict.fromkeys(table["model"]), (GREY, BLUE, VERMILION, SKY), strict=False))
    for ax, (between, about) in zip(axes, SUMMARIES.items(), strict=True):
        for model, rows in table[table["between"] == between].groupby("model", sort=False):
            density(ax, rows["squared"], label=str(model), colour=colours[model], limits=(0, 4))
            ax.axvline(rows["summary"].iloc[0], color=colours[model], linestyle="--", linewidth=1.2)
        ax.set(xlabel=f"squared distance of {between}", ylim=(0, None), title=about)
    axes[0].set_ylabel("density")
    return finish(fig)


# ---------------------------------------------------------------- rules


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


# ---------------------------------------------------------------- gradients


def gradient_cosine_figure(table: pd.DataFrame, *, of: str = "infonce", encoder: str = "text") -> Figure:
    """How far each term's gradient of the shared weights goes the way of one term's, and how long it is beside it.

    table: of `gradient_cosines`; with a column model, such as "untrained" and "trained", a colour for each. Marks are
    means over batches with 95 % intervals; a term that does not reach the encoder has no mark.
    """
    rows = table[table["encoder"] == encoder]
    rows = rows if "model" in rows else rows.assign(model="")
    reference = rows[rows["term"] == of].drop_duplicates(["model", "batch"]).set_index(["model", "batch"])["norm"]
    rows = rows[(rows["other"] == of) & rows["cosine"].notna()]
    over = reference.loc[list(zip(rows["model"], rows["batch"], strict=True))].to_numpy()
    rows = rows.assign(ratio=rows["norm"] / over)
    terms, models = list(dict.fromkeys(rows["term"])), list(dict.fromkeys(rows["model"]))
    fig, axes = panels(2, height=0.9 + 0.4 * len(terms), sharey=True)
    for ax, column in zip(axes, ("cosine", "ratio"), strict=True):
        for number, (model, colour) in enumerate(zip(models, (BLUE, ORANGE, GREEN, PURPLE), strict=False)):
            found = rows[rows["model"] == model].groupby("term")[column]
            means = pd.DataFrame([mean_of(found.get_group(term)) for term in terms])
            dots(ax, means, np.arange(len(terms)) + dodge(number, len(models)), label=model, colour=colour)
    mark_zero(axes[0])
    axes[0].set(xlabel=f"cosine with the gradient of {title(of)}", xlim=(-1.02, 1.02))
    axes[1].set(xlabel="norm / norm of that gradient", xlim=(0, None))
    name_places(axes[0], [title(term) for term in terms])
    return finish(fig)
