"""HTML that a page shows and a terminal can read; pictures in few bytes."""

import base64
import io
from html import escape

from IPython.display import HTML
from PIL import Image

COLOURS = 256
LONGEST = 1000  # characters of a text that is not the book's; a page with a million stops browsers and search
TURNS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])  # marks that turn the direction of what follows


def brief(text: str) -> str:
    """A text of whoever brought the data as it can stand among others: cut where it is long, its direction its own.

    >>> brief("a" * 2000)[-2:], brief("\u202ea dog")
    ('a…', 'a dog')
    """
    return (text if len(text) <= LONGEST else text[: LONGEST - 1] + "…").translate(TURNS)


def safe(text: str) -> str:
    """The same as HTML, in an element's text or in a quoted attribute.

    >>> safe("<b>")
    '&lt;b&gt;'
    """
    return escape(brief(text))


class Markup(HTML):
    """HTML with a short text form, for terminals and for diffs of executed notebooks.

    Example:
        >>> Markup("<b>a dog barks</b>", "a dog barks")
        a dog barks
    """

    def __init__(self, data: str, text: str) -> None:
        super().__init__(data)
        self.text = text

    def __repr__(self) -> str:
        return self.text


def address(data: bytes, kind: str = "image/png") -> str:
    """The address that holds a file itself, so that a page needs no other.

    >>> address(b"abc", "text/plain")
    'data:text/plain;base64,YWJj'
    """
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def compress_png(data: bytes) -> bytes:
    """A PNG with a palette of 256 colours if that is smaller, else as it was."""
    image = Image.open(io.BytesIO(data))
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        image = image.convert("RGB")
    method = Image.Quantize.FASTOCTREE if image.mode == "RGBA" else Image.Quantize.MEDIANCUT
    buffer = io.BytesIO()
    image.quantize(COLOURS, method=method, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return min(buffer.getvalue(), data, key=len)
