"""One colour and one name for each thing that figures compare.

Colours are those of Okabe & Ito (2008), which all kinds of colour vision tell apart, and go by names: a card or a
language names its colour.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

import matplotlib.pyplot as plt
import seaborn as sns
from cycler import cycler

from pullpush.data.languages import load_languages
from pullpush.training.recipes import colour, title as method_name

ROLES: Mapping[str, str] = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
}
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = ROLES.values()
GREY = "#767676"
# For methods whose card names no colour: from Tol's muted palette, none of them near a role.
FURTHER = ("#332288", "#882255", "#999933", GREY)

# Part of the force on an embedding → its name and colour.
PARTS: Mapping[str, tuple[str, str]] = {
    "pull": ("pull", GREEN),
    "push": ("push", BLACK),
    "parallel": ("push, parallel", ORANGE),
    "perpendicular": ("push, perpendicular", PURPLE),
    "sideways": ("push, sideways", SKY),
}
# Verdict on a claim → marker, colour, fill; beside what papers print, which is an open diamond.
VERDICTS: Mapping[str, tuple[str, str, str]] = {
    "holds": ("o", BLUE, BLUE),
    "holds, smaller": ("v", SKY, SKY),
    "no effect": ("X", BLACK, BLACK),
    "reversed": ("s", VERMILION, VERMILION),
    "cannot tell": ("o", BLACK, "white"),
}


def use_style() -> None:
    """Set the book's look for all figures that follow."""
    sns.set_theme(context="notebook", style="ticks")
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "figure.constrained_layout.w_pad": 0.06,
            "figure.facecolor": "white",
            "font.size": 10,
            "axes.titlesize": 10,
            "axes.labelsize": 10,
            "axes.edgecolor": "#333333",
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.prop_cycle": cycler(color=[BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK]),
            "grid.color": "#E6E6E6",
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.frameon": False,
            "legend.fontsize": 9,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "patch.linewidth": 0,
            "text.parse_math": False,  # a "$" in a class name is one
        }
    )


def method_styles(recipes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Label and colour of each method of one figure, no colour twice.

    A method has the colour that its card names, a sum that of recipes.py. One without, or whose colour the figure has
    given to another already, has a colour that follows from its name, and the next free one where that is taken.

    Args:
        recipes: names, in the order in which they choose; a name may come more than once.

    Returns:
        name → keyword arguments of a mark.

    Raises:
        ValueError: more methods than there are colours.

    Example:
        >>> method_styles(["infonce"])
        {'infonce': {'label': 'InfoNCE', 'colour': '#0072B2'}}
    """
    names = list(dict.fromkeys(recipes))
    if len(names) > (most := len(FURTHER) + len(ROLES)):
        raise ValueError(f"{len(names)} methods in one figure, but only {most} colours: draw fewer, or panels")
    colours: dict[str, str] = {}
    for name in names:
        wanted = ROLES.get(colour(name))
        if wanted and wanted not in colours.values():
            colours[name] = wanted
    for name in (name for name in names if name not in colours):
        start = crc32(name.encode()) % len(FURTHER)
        order = (*FURTHER[start:], *FURTHER[:start], *ROLES.values())
        colours[name] = next(each for each in order if each not in colours.values())
    return {name: {"label": method_name(name), "colour": colours[name]} for name in names}


def language_name(code: str) -> str:
    """A language in English, for no font can be relied on to write all scripts; a code without a file is its own name.

    Example:
        >>> language_name("jpn")
        'Japanese'
    """
    return load_languages()[code].name if code in load_languages() else code


def language_colour(code: str) -> str:
    """The colour that a language's file names; black without one."""
    return ROLES[load_languages()[code].colour] if code in load_languages() else BLACK
