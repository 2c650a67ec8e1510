"""Figures to play with: self-contained pages that work in JupyterLab and in the published book alike."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.show.markup import Markup

TITLE = "Forces on a text embedding, interactive"
RADIUS_TITLE = "The semantic radius of SVR, interactive"


def force_lab(
    text: Tensor,
    audio: Tensor,
    captions: Sequence[str],
    anchors: Sequence[int],
    *,
    tau: float = 0.07,
    negatives: int = 60,
    height: int = 640,
) -> Markup:
    """SupCLAP Figure 2 from real embeddings, with a slider for τ and a choice of anchors.

    Positions and forces are computed from similarities and a Gram matrix, so that they are exact in d dimensions
    for every temperature; the plane shown is that of û and of the perpendicular force.

    Args:
        text: `(N, d)` L2-normalised anchors.
        audio: `(N, d)` their positives; for each anchor the others' first `negatives` are its negatives.
        captions: N captions.
        anchors: rows to choose from.
        tau: temperature at which the page opens.
        negatives: negatives per anchor.
        height: of the frame, CSS pixels.
    """
    shown = [_anchor(text.double(), audio.double(), captions, i, negatives) for i in anchors]
    return _frame("force_lab.html", {"tau": tau, "anchors": shown}, TITLE, height)


def radius_lab(
    text: Tensor,
    audio: Tensor,
    captions: Sequence[str],
    anchors: Sequence[int],
    *,
    tau: float = 0.07,
    negatives: int = 60,
    height: int = 640,
) -> Markup:
    """What SVR makes of each negative's push (SupCLAP Eq. 17–18), with sliders for R and τ; arguments of `force_lab`.

    The parts are those of the dot product, α = 1; with "cosine" the probabilities follow the renormalised t_sup.
    """
    shown = []
    for i in anchors:
        anchor, partner, rest, unit, names = _around(text.double(), audio.double(), captions, i, negatives)
        along = rest @ unit
        shown.append(
            {
                "caption": captions[i],
                "names": names,
                "distance": round((partner - anchor).norm().item(), 5),
                "positive": round((anchor @ partner).item(), 5),
                "similarity": _rounded(rest @ anchor),
                "withPositive": _rounded(rest @ partner),
                "along": _rounded(along),
                "across": _rounded((rest - along[:, None] * unit).norm(dim=1)),
            }
        )
    return _frame("radius_lab.html", {"tau": tau, "anchors": shown}, RADIUS_TITLE, height)


def _frame(page: str, data: dict, title: str, height: int) -> Markup:
    """A page of this package with its data, in a frame of its own."""
    document = files("pullpush.show").joinpath(page).read_text(encoding="utf-8")
    # No "<" in a caption may end the script element that the data stands in, or open another.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    document = html.escape(document.replace("/*DATA*/", text), quote=True)
    style = f"width:100%;height:{height}px;border:0"
    return Markup(f'<div><iframe srcdoc="{document}" title="{title}" style="{style}"></iframe></div>', title)


def _around(
    text: Tensor, audio: Tensor, captions: Sequence[str], i: int, negatives: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, list[str]]:
    """An anchor, its positive, its negatives `(M, d)`, û, and the negatives' captions."""
    others = [j for j in range(len(audio)) if j != i][:negatives]
    unit = F.normalize(audio[i] - text[i], dim=0)
    return text[i], audio[i], audio[others], unit, [captions[j] for j in others]


def _anchor(text: Tensor, audio: Tensor, captions: Sequence[str], i: int, negatives: int) -> dict:
    anchor, partner, rest, unit, names = _around(text, audio, captions, i, negatives)
    points = torch.cat([anchor[None], rest])
    across = points - (points @ unit)[:, None] * unit
    return {
        "caption": captions[i],
        "names": names,
        "distance": round((partner - anchor).norm().item(), 5),
        "positive": round((anchor @ partner).item(), 5),
        "positiveAlong": round((partner @ unit).item(), 5),
        "similarity": _rounded(rest @ anchor),
        "along": _rounded(rest @ unit),
        "position": _rounded((rest - anchor) @ unit),
        "withPositive": _rounded(rest @ partner),
        "gram": [_rounded(row) for row in across @ across.T],
    }


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 5) for value in values.tolist()]
