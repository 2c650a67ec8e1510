"""Figures to play with: self-contained pages that work in JupyterLab and in the published book alike."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.book.display import Markup

TITLE = "Forces on a text embedding, interactive"


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
    page = files("pullpush.book").joinpath("force_lab.html").read_text(encoding="utf-8")
    shown = [_anchor(text.double(), audio.double(), captions, i, negatives) for i in anchors]
    # No "<" in a caption may end the script element that the data stands in, or open another.
    data = json.dumps({"tau": tau, "anchors": shown}, ensure_ascii=False).replace("<", "\\u003c")
    page = html.escape(page.replace("/*DATA*/", data), quote=True)
    style = f"width:100%;height:{height}px;border:0"
    return Markup(f'<div><iframe srcdoc="{page}" title="{TITLE}" style="{style}"></iframe></div>', TITLE)


def _anchor(text: Tensor, audio: Tensor, captions: Sequence[str], i: int, negatives: int) -> dict:
    others = [j for j in range(len(audio)) if j != i][:negatives]
    anchor, partner, rest = text[i], audio[i], audio[others]
    unit = F.normalize(partner - anchor, dim=0)
    points = torch.cat([anchor[None], rest])
    across = points - (points @ unit)[:, None] * unit
    return {
        "caption": captions[i],
        "names": [captions[j] for j in others],
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
