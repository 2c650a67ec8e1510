"""One colour and one name for each method, language and part of a force; colour-blind safe (Okabe & Ito)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import seaborn as sns

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = [
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
]
# InfoNCE and its two SVR versions have the colours of SupCLAP's own Figure 4.
METHOD_COLOURS = {
    "infonce": BLUE,
    "infonce+bi-static-svr": GREEN,
    "infonce+bi-dynamic-svr": ORANGE,
    "siglip": VERMILION,
    "siglip+bi-static-svr": SKY,
    "siglip+bi-dynamic-svr": PURPLE,
    "simple-reweight": BLACK,
}
# By what each scheme takes of a clip's languages; beside InfoNCE at most.
SCHEME_COLOURS = {"ml-clap": PURPLE, "cacl": ORANGE, "kcl": GREEN}
# By ISO 639-3 code, for no font can be relied on to write all scripts.
LANGUAGE_COLOURS = {
    "eng": BLACK,
    "fra": BLUE,
    "deu": VERMILION,
    "spa": ORANGE,
    "nld": GREEN,
    "cat": YELLOW,
    "jpn": PURPLE,
    "zho": SKY,
}
METHOD_NAMES = {
    "ml-clap": "ML-CLAP",
    "cacl": "CACL",
    "kcl": "KCL",
    "infonce": "InfoNCE",
    "siglip": "SigLIP",
    "simple-reweight": "Simple Reweight",
    **{
        f"{way}-{modelling}-svr{suffix}": f"{way}-{modelling.title()}SVR{remark}"
        for way in ("uni", "bi")
        for modelling in ("static", "dynamic")
        for suffix, remark in (("", ""), ("-constrained", ", constrained"), ("-unconstrained", ", unconstrained"))
    },
}
PART_COLOURS = {"pull": GREEN, "push": BLACK, "parallel": ORANGE, "perpendicular": PURPLE, "sideways": SKY}
PART_NAMES = {
    "pull": "pull",
    "push": "push",
    "parallel": "push, parallel",
    "perpendicular": "push, perpendicular",
    "sideways": "push, sideways",
}


def use_style() -> None:
    """Set the book's look for all figures that follow."""
    sns.set_theme(context="notebook", style="ticks", palette=[BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK])
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#E6E6E6",
            "legend.frameon": False,
            "lines.linewidth": 2.0,
        }
    )


def method_name(recipe: str) -> str:
    """The name that figures and tables print for a recipe, or for a sum of recipes."""
    parts = (part.strip() for part in recipe.split("+"))
    return " + ".join(METHOD_NAMES.get(part, part) for part in parts)


def method_style(recipe: str) -> dict[str, str]:
    """Label and colour of a recipe in every figure."""
    colour = METHOD_COLOURS.get(recipe, SCHEME_COLOURS.get(recipe, BLACK))
    return {"label": method_name(recipe), "colour": colour}
