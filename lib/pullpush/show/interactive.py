"""Figures to play with: self-contained pages that work in JupyterLab and in the published book alike."""

import html
import json
from collections.abc import Sequence
from importlib.resources import files

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.show.markup import Markup, brief

FORCE_TITLE = "Forces on a text embedding, interactive"
RADIUS_TITLE = "The semantic radius of SVR, interactive"
PAGES = {FORCE_TITLE: "force_lab.html", RADIUS_TITLE: "radius_lab.html"}
DIGITS = 5  # of the numbers in a page
NEGATIVES = 60  # of an anchor


def force_lab(
    text: Tensor,
    audio: Tensor,
    captions: Sequence[str],
    anchors: Sequence[int],
    *,
    tau: float = 0.07,
) -> Markup:
    """SupCLAP Figure 2 from real embeddings, with a slider for τ and a choice of anchors.

    Positions and forces are computed from similarities and a Gram matrix, so that they are exact in d dimensions
    for every temperature; the plane shown is that of û and of the perpendicular force.

    Args:
        text: `(N, d)` L2-normalised anchors.
        audio: `(N, d)` their positives; for each anchor the others' first `NEGATIVES` are its negatives.
        captions: N captions.
        anchors: rows to choose from.
        tau: temperature at which the page opens.

    Returns:
        A frame that holds page and data, and needs neither a server nor a network.

    Example:
        >>> force_lab(torch.eye(3), torch.eye(3).flip(0), ["a dog", "a cat", "rain"], [0])
        Forces on a text embedding, interactive
    """
    shown = [_force_data(text.double(), audio.double(), captions, i) for i in anchors]
    return _frame(FORCE_TITLE, {"tau": tau, "anchors": shown})


def radius_lab(
    text: Tensor,
    audio: Tensor,
    captions: Sequence[str],
    anchors: Sequence[int],
    *,
    tau: float = 0.07,
) -> Markup:
    """What SVR makes of each negative's push (SupCLAP Eq. 17–18), with sliders for R and τ; arguments of `force_lab`.

    The parts are those of the dot product, α = 1; with "cosine" the probabilities follow the renormalised t_sup.

    Example:
        >>> radius_lab(torch.eye(3), torch.eye(3).flip(0), ["a dog", "a cat", "rain"], [0])
        The semantic radius of SVR, interactive
    """
    shown = [_radius_data(text.double(), audio.double(), captions, i) for i in anchors]
    return _frame(RADIUS_TITLE, {"tau": tau, "anchors": shown})


def _frame(title: str, data: dict) -> Markup:
    """A page of this package with its data, in a frame of its own."""
    page, style, shared = (
        files("pullpush.show").joinpath(name).read_text("utf-8") for name in (PAGES[title], "frame.css", "frame.js")
    )
    document = page.replace("/*STYLE*/", style).replace("/*SHARED*/", shared)
    # No "<" in a caption may end the script element that the data stands in, or open another.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    document = html.escape(document.replace("/*DATA*/", text), quote=True)
    look = "width:100%;height:760px;border:0"
    return Markup(f'<div><iframe srcdoc="{document}" title="{title}" style="{look}"></iframe></div>', title)


def _surroundings(text: Tensor, audio: Tensor, captions: Sequence[str], row: int):
    """An anchor, its positive, its negatives `(M, d)`, û from it to its positive, and what both pages hold of it."""
    others = [other for other in range(len(audio)) if other != row][:NEGATIVES]
    anchor, positive, negatives = text[row], audio[row], audio[others]
    unit = F.normalize(positive - anchor, dim=0)
    shared = {
        "caption": brief(captions[row]),
        "names": [brief(captions[other]) for other in others],
        "distance": round((positive - anchor).norm().item(), DIGITS),
        "positive": round((anchor @ positive).item(), DIGITS),
        "similarity": _rounded(negatives @ anchor),
        "along": _rounded(negatives @ unit),
        "withPositive": _rounded(negatives @ positive),
    }
    return anchor, positive, negatives, unit, shared


def _force_data(text: Tensor, audio: Tensor, captions: Sequence[str], row: int) -> dict:
    anchor, positive, negatives, unit, shared = _surroundings(text, audio, captions, row)
    points = torch.cat([anchor[None], negatives])
    across = points - (points @ unit)[:, None] * unit
    return shared | {
        "positiveAlong": round((positive @ unit).item(), DIGITS),
        "position": _rounded((negatives - anchor) @ unit),
        "gram": [_rounded(products) for products in across @ across.T],
    }


def _radius_data(text: Tensor, audio: Tensor, captions: Sequence[str], row: int) -> dict:
    _, _, negatives, unit, shared = _surroundings(text, audio, captions, row)
    across = negatives - (negatives @ unit)[:, None] * unit
    return shared | {"across": _rounded(across.norm(dim=1))}


def _rounded(values: Tensor) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]
