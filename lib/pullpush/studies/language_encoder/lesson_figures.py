"""Figures of lesson 4: those that it shares with the lab, and one of its own."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import finish, panels
from pullpush.show.marks import density
from pullpush.show.palette import BLUE, GREY, SKY, VERMILION
from pullpush.studies.language_encoder.figures import forces_by_term, similarity_matrices, space_plane
from pullpush.studies.language_encoder.lesson import PAIRS, TEXTS

__all__ = ["distance_densities", "forces_by_term", "similarity_matrices", "space_plane"]
COLOURS = (GREY, BLUE, VERMILION, SKY)
SUMMARIES = {PAIRS: "dashed: their mean, the alignment", TEXTS: "dashed: −½ of the uniformity"}


def distance_densities(table: pd.DataFrame) -> Figure:
    """Densities of squared distances, a panel for pairs and one for captions; a dashed line is what sums each up.

    table: see `lesson.squared_distances`; four models at most.
    """
    fig, axes = panels(len(SUMMARIES), height=3.0)
    colours = dict(zip(dict.fromkeys(table["model"]), COLOURS, strict=False))
    for ax, (between, about) in zip(axes, SUMMARIES.items(), strict=True):
        for model, rows in table[table["between"] == between].groupby("model", sort=False):
            density(ax, rows["squared"], label=str(model), colour=colours[model], limits=(0, 4))
            ax.axvline(rows["summary"].iloc[0], color=colours[model], linestyle="--", linewidth=1.2)
        ax.set(xlabel=f"squared distance of {between}", ylim=(0, None), title=about)
    axes[0].set_ylabel("density")
    return finish(fig)
