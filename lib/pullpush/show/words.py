"""How often captions use their words."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from pullpush.show.layout import finish, panels
from pullpush.show.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION


def word_frequencies(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 3 of the language-encoder paper: relative word frequency over rank, one curve a caption set."""
    fig, (ax,) = panels(1, height=3.3, width=6)
    for (name, table), colour in zip(tables.items(), [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY], strict=False):
        ax.loglog(table["rank"], table["frequency"], color=colour, label=f"{name} ({len(table):,} words)")
    ax.set(xlabel="rank of the word, from frequent to rare", ylabel="share of all words")
    return finish(fig)
