"""Figures of chapter 4 that no general one draws: both spaces of a model, and where systems lie in their plane.

A system's colour says which sentence term it has, its mark whether it has the cyclic terms.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from scipy.cluster.hierarchy import leaves_list, linkage
from torch import Tensor

from pullpush.metrics.geometry import alignment, space, uniformity
from pullpush.show.intervals import note
from pullpush.show.layout import finish, panels
from pullpush.show.marks import density, matrix
from pullpush.show.palette import BLACK, BLUE, GREEN, GREY, PURPLE, SKY, VERMILION
from pullpush.studies.language_encoder.data import base_of, systems

Pairs = tuple[Tensor, Tensor]  # clips and their captions, (n, d) each, of unit length
TERMS = {  # by a system's last letter
    "": (BLUE, "no sentence term"),
    "s": (VERMILION, "s: SimCSE on captions"),
    "n": (GREEN, "n: NLI triples"),
    "e": (PURPLE, "e: SimCSE on NLI sentences"),
}
CYCLIC = {False: ("o", "without cyclic terms"), True: ("s", "Cy: with cyclic terms")}
# Where a number may stand beside its mark: points to the right and up, and how it is aligned there.
PLACES = (
    (6, 5, "left", "bottom"), (-6, 5, "right", "bottom"), (6, -5, "left", "top"), (-6, -5, "right", "top"),
    (0, 8, "center", "bottom"), (0, -8, "center", "top"), (12, 14, "left", "bottom"), (-12, -14, "right", "top"),
)  # fmt: skip
THIN: dict[str, Any] = {"color": GREY, "linewidth": 1}  # of arrows
MARK = 5  # pixels from the middle of a mark to its edge
T = 2.0  # of uniformity


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


def similarity_matrices(placed: Mapping[str, Pairs]) -> Figure:
    """Figure 1 measured: cosines of captions (rows) and clips (columns) above, and what they lack in symmetry below.

    placed: system → the same pairs, three at least. Captions that the first system has near each other stand side by
    side. Below stands S − Sᵀ, above it the mean square of that off the diagonal as a share of the variance of S there.
    """
    pairs = {system: (audio.double(), text.double()) for system, (audio, text) in placed.items()}
    order = leaves_list(linkage(next(iter(pairs.values()))[1].numpy(), "average", optimal_ordering=True))
    cosines = {system: (text @ audio.T).numpy()[order][:, order] for system, (audio, text) in pairs.items()}
    span = (min(values.min() for values in cosines.values()), max(values.max() for values in cosines.values()))
    reach = max(abs(values - values.T).max() for values in cosines.values()) or 1.0
    count = len(cosines)
    fig, axes = panels(count, 2, height=min(2.5, 0.5 + 6.2 / count), sharex=True, sharey=True)
    for number, (system, values) in enumerate(cosines.items()):
        above, below = axes[number], axes[number + count]
        upper = matrix(above, values, limits=span)
        lower = matrix(below, values - values.T, limits=(-reach, reach), colours="PuOr")
        above.set(title=system, aspect="equal", xticks=[], yticks=[])
        asymmetry = float(space(*pairs[system])["asymmetry"].mean())
        below.set(title=f"asymmetry {asymmetry:.3f}", xlabel="clip", aspect="equal")
        if not number:
            above.set_ylabel("caption")
            below.set_ylabel("caption")
    for row, image, label in ((axes[:count], upper, "cosine S"), (axes[count:], lower, "S − Sᵀ")):
        fig.colorbar(image, ax=list(row), label=label, shrink=0.9)
    return finish(fig)


def distance_densities(placed: Mapping[str, Pairs]) -> Figure:
    """Densities of squared distances, a panel for pairs and one for captions; a dashed line is what sums each up: the
    alignment, and −U/2 with the uniformity U, the one distance that all would have in an equally uniform space.

    placed: model → pairs; four at most.
    """
    fig, (left, right) = panels(2, height=3.0)
    for (model, (audio, text)), colour in zip(placed.items(), (GREY, BLUE, VERMILION, SKY), strict=False):
        of_pairs = (audio - text).square().sum(dim=1), alignment(audio, text)
        of_texts = torch.nn.functional.pdist(text).square(), -uniformity(text, t=T) / T
        for ax, (squared, summary) in ((left, of_pairs), (right, of_texts)):
            density(ax, squared.numpy(), label=model, colour=colour, limits=(0, 4))
            ax.axvline(float(summary), color=colour, linestyle="--", linewidth=1.2)
    left.set(xlabel="squared distance of a caption and its clip", title="dashed: their mean, the alignment")
    right.set(xlabel="squared distance of two captions", title="dashed: −½ of the uniformity")
    left.set(ylabel="density", ylim=(0, None))
    right.set(ylim=(0, None))
    return finish(fig)


def space_plane(table: pd.DataFrame, panels_of: Mapping[str, tuple[str, str]], *, traced: bool = False) -> Figure:
    """Figures 2 and 4: alignment against uniformity, lower is better in both.

    Args:
        table: columns panel, system, x, y, their intervals "x low" … "y high", and point; see `comparisons.places`.
        panels_of: panel → its title and the name of its x-axis.
        traced: each system at several points, such as weights, as a curve with the number at each mark; otherwise
            arrows lead from a system to what has one term more.
    """
    columns = len(panels_of) if traced else min(2, len(panels_of))
    fig, axes = panels(columns, -(-len(panels_of) // columns), height=3.2 if traced else 2.7)
    for ax, (panel, (heading, xlabel)) in zip(axes, panels_of.items(), strict=False):
        rows = table[table["panel"] == panel]
        for row in rows.to_dict("records"):
            spans: dict[str, Any] = {
                f"{axis}err": [[row[axis] - row[f"{axis} low"]], [row[f"{axis} high"] - row[axis]]] for axis in "xy"
            }
            colour, marker = look(row["system"])
            ax.errorbar(row["x"], row["y"], fmt=marker, color=colour, markersize=6, elinewidth=1.2, **spans)
        (_curves if traced else _arrows)(ax, rows)
        ax.set(title=heading, xlabel=xlabel)
        ax.margins(0.14)
        ax.xaxis.set_major_locator(MaxNLocator(5))
    for ax in axes[::columns]:
        ax.set_ylabel("alignment loss")
    for ax in axes[len(panels_of) :]:
        ax.remove()
    terms, cyclic = {term(name) for name in table["system"]}, {name.startswith("Cy") for name in table["system"]}
    keys = [_key(text, "o", colour) for letter, (colour, text) in TERMS.items() if letter in terms]
    keys += [_key(text, mark) for has, (mark, text) in CYCLIC.items() if has in cyclic]
    if not traced:
        keys += [Line2D([], [], label="adds a sentence term", **THIN)]
        keys += [Line2D([], [], linestyle=":", label="adds the cyclic terms", **THIN)]
    finish(fig, note(table), handles=keys)
    if traced:
        _write_beside(fig, axes, [table[table["panel"] == panel].to_dict("records") for panel in panels_of])
    return fig


def _arrows(ax: Axes, rows: pd.DataFrame) -> None:
    """From a system to what has one term more; dotted where that is the cyclic terms."""
    places = rows.set_index("system")[["x", "y"]]
    for system, end in places.iterrows():
        if base_of(str(system)) in places.index:
            style = {"arrowstyle": "->", "linestyle": "-" if term(str(system)) else ":", "shrinkA": 5, "shrinkB": 5}
            ax.annotate("", tuple(end), tuple(places.loc[base_of(str(system))]), arrowprops=style | THIN, zorder=1)


def _curves(ax: Axes, rows: pd.DataFrame) -> None:
    """Through three points or more of a system."""
    for system, several in rows.sort_values("point", key=lambda point: point.astype(float)).groupby("system"):
        if len(several) > 2:
            line = "--" if str(system).startswith("Cy") else "-"
            ax.plot(several["x"], several["y"], line, color=look(str(system))[0], linewidth=1.2, zorder=1)


def _write_beside(fig: Figure, axes: Sequence[Axes], rows: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    """The point of each row beside its place, where it covers no other and no mark, if it can; fig: finished."""
    fig.canvas.draw()
    marks = [(ax, row) for ax, several in zip(axes, rows, strict=False) for row in several]
    taken = []
    for ax, row in marks:
        x, y = ax.transData.transform((row["x"], row["y"]))
        taken.append(Bbox([[x - MARK, y - MARK], [x + MARK, y + MARK]]))
    for ax, row in marks:
        style: dict[str, Any] = {"textcoords": "offset points", "color": look(row["system"])[0], "fontsize": "small"}
        for number, (x, y, across, up) in enumerate(PLACES):
            label = ax.annotate(row["point"], (row["x"], row["y"]), (x, y), ha=across, va=up, **style)
            box = label.get_window_extent()
            if number == len(PLACES) - 1 or not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            label.remove()


def _key(label: str, marker: str, colour: str = BLACK) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label)
