"""Figures of the terms seen as forces."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pullpush.metrics import difference
from pullpush.show.layout import dodge, finish, mark_zero, name_places, panels, signed
from pullpush.show.marks import dots
from pullpush.show.palette import BLUE, GREEN, ORANGE, PURPLE, SKY
from pullpush.studies.language_encoder.forces import force_name
from pullpush.training.recipes import title

# Part of a force → its name and colour.
PARTS: Mapping[str, tuple[str, str]] = {
    "along": ("along the pull, towards the partner", GREEN),
    "across": ("across it", PURPLE),
    "from_mean": ("away from the mean of the side", SKY),
}
NAMES = {"text": "on a text", "clip": "on a clip"}


def forces_by_term(table: pd.DataFrame) -> Figure:
    """What each weighted term does to a text and to a clip: along the pull, across it, away from the mean.

    table: of `term_forces`; marks are means over samples with 95 % intervals.
    """
    forces = list(table.groupby(["term", "part"], sort=False).groups)
    fig, axes = panels(len(NAMES), height=0.5 + 0.5 * len(forces), sharex=True, sharey=True)
    for ax, (side, name) in zip(axes, NAMES.items(), strict=True):
        for number, (column, (label, colour)) in enumerate(PARTS.items()):
            found = table[table["side"] == side].groupby(["term", "part"], sort=False)[column]
            rows = pd.DataFrame([_mean(found.get_group(force)) for force in forces])
            dots(ax, rows, np.arange(len(forces)) + dodge(number, len(PARTS)), label=label, colour=colour)
        mark_zero(ax)
        ax.set(title=name, xlabel="force, logarithmic beyond ±1")
    most = max(10.0, table[list(PARTS)].abs().max(axis=None))
    ticks = [sign * 10.0**power for sign in (-1, 1) for power in range(int(np.log10(most)) + 1)]
    axes[0].set_xscale("symlog", linthresh=1, linscale=1)  # terms differ by orders of magnitude
    axes[0].set_xticks([*ticks, 0], [signed(tick) for tick in (*ticks, 0)])
    axes[0].set_xlim(-1.5 * most, 1.5 * most)
    axes[0].minorticks_off()
    name_places(axes[0], [force_name(*force) for force in forces])
    return finish(fig)


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
            means = pd.DataFrame([_mean(found.get_group(term)) for term in terms])
            dots(ax, means, np.arange(len(terms)) + dodge(number, len(models)), label=model, colour=colour)
    mark_zero(axes[0])
    axes[0].set(xlabel=f"cosine with the gradient of {title(of)}", xlim=(-1.02, 1.02))
    axes[1].set(xlabel="norm / norm of that gradient", xlim=(0, None))
    name_places(axes[0], [title(term) for term in terms])
    return finish(fig)


def _mean(values: pd.Series) -> dict[str, float]:
    """The mean of independent numbers with its 95 % interval."""
    found = difference(values.to_numpy(float)[None])
    return {"value": found.value, "low": found.value - found.half_width, "high": found.value + found.half_width}
