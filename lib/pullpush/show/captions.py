"""Figures with a number, a caption and an anchor, for JupyterLab and for the site alike.

A lesson numbers its figures 2.1, 2.2 … (chapter, then order on the page) and its lab 2L.1, 2L.2 …; a chapter's second
lesson has a letter of its own (0E.1 on the page 00-ears). Equations carry `\\tag{2.1}` and `\\tag{2L.1}` by the same
rule. Numbers are written out, so that the source reads as the page does, and a test holds them to be consecutive. Prose
refers to a figure by `[figure 2.3](#fig-2-3)`. A caption says what is drawn and over how many seeds; what was found
stands in the text below.
"""

import io
import re
from html import escape

import matplotlib.pyplot as plt
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image

from pullpush.show.markup import Markup, address, compress_png

NUMBER = re.compile(r"(\d+[A-Z]?)\.([1-9]\d*)")
LOOK = "color:inherit;font-weight:normal;font-size:0.92em"  # the site's theme prints captions too pale to be read


def figure(fig: Figure, number: str, caption: str, *, alt: str, paper: str = "") -> None:
    """Display a figure with "Figure 2.3 (paper: Figure 5). caption" below it, and close it.

    Args:
        fig: what a study's `figures.py` returns.
        number: "2.3" is the third of lesson 2, "2L.1" the first of its lab.
        caption: what is drawn, over how many seeds; mathematics between dollars.
        alt: what the picture shows, for who cannot see it.
        paper: the figure or table of the paper that this one re-measures, if any.

    Raises:
        ValueError: a number of another form; an empty caption or alt text.
    """
    if not caption.strip() or not alt.strip():
        raise ValueError(f"figure {number} needs a caption and an alt text, got {caption!r} and {alt!r}: write both")
    title = f"Figure {number}" + (f" (paper: {paper})" if paper else "")
    place = anchor(number)  # before the figure is closed, so that a wrong number can be corrected in place
    drawn = io.BytesIO()
    fig.savefig(drawn, format="png", bbox_inches="tight")  # cut to what is drawn, as notebooks do
    data = compress_png(drawn.getvalue())
    plt.close(fig)
    display(
        Markup(
            f'<figure id="{place}" class="numbered" style="margin:1em 0">'
            f'<img src="{address(data)}" alt="{escape(alt)}" '
            f'style="width:{Image.open(io.BytesIO(data)).width}px;max-width:100%;height:auto">'
            f'<figcaption style="{LOOK}"><strong>{escape(title)}.</strong> {_inline(caption)}</figcaption></figure>',
            f"{title}. {caption}",
        )
    )


def anchor(number: str) -> str:
    """Where a link to a figure leads: "fig-2-3" for "2.3".

    Raises:
        ValueError: a number of another form.

    Example:
        >>> anchor("2L.1")
        'fig-2L-1'
    """
    match = NUMBER.fullmatch(number)
    if match is None:
        raise ValueError(f'a figure\'s number is "2.3" in lesson 2 and "2L.3" in its lab, got {number!r}')
    return f"fig-{match[1]}-{match[2]}"


def _inline(text: str) -> str:
    """Plain text as HTML; `$x$` in the form that MathJax reads in JupyterLab and on the site."""
    pieces = re.split(r"\$([^$]+)\$", text)
    return "".join(
        rf'<span class="math notranslate">\({escape(piece)}\)</span>' if odd % 2 else escape(piece)
        for odd, piece in enumerate(pieces)
    )
