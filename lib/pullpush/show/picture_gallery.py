"""Pictures to see and read: cards with a picture, its caption and what is to be told of it.

A page that shows them names their source in the text beside them, as one with sounds does: "[Tux Paint](sources.md)".
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

import numpy as np
from PIL import Image

from pullpush.data import languages
from pullpush.data.clips import Clips
from pullpush.encoders.pictures import as_images
from pullpush.show.markup import Markup, compress_png

GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(8em,1fr));gap:0.8em"
FIGURE = "margin:0;text-align:center"
PAPER = "background:#fff;max-width:100%;border-radius:4px"  # pictures are on white, in dark pages too


def pictures(
    clips: Clips, rows: Sequence[int], *, language: str = "eng", notes: Sequence[str] = (), title: str = ""
) -> Markup:
    """Some pictures beside each other, each with its first caption in a language.

    Args:
        clips: with pictures, such as `PictureConfig().load().test`, not with their features.
        rows: their numbers, in the order in which they are shown.
        language: ISO 639-3, of the captions; a picture that has none in it goes without.
        notes: a line below each, such as the rank that it got.
        title: a line above all.

    Raises:
        AudioError: the clips hold no pictures.
        ValueError: not as many notes as rows.
    """
    if notes and len(notes) != len(rows):
        raise ValueError(f"{len(rows)} pictures need as many notes, got {len(notes)}")
    captions, images = clips.captions(language), as_images(clips.audio(rows)[0]).permute(0, 2, 3, 1).numpy()
    texts = [(captions[row] or [""])[0] for row in rows]
    lines = notes or [""] * len(rows)
    cards = [_card(image, text, line, language) for image, text, line in zip(images, texts, lines, strict=True)]
    head = f"<p><b>{escape(title)}</b></p>" if title else ""
    plain = [" · ".join(filter(None, told)) for told in zip(texts, lines, strict=True)]
    return Markup(
        f'{head}<div style="{GRID}">{"".join(cards)}</div>', "\n".join(text for text in [title, *plain] if text)
    )


def _card(image: np.ndarray, caption: str, note: str, language: str) -> str:
    """HTML of one picture, `(S, S, 3)` in [-1, 1]."""
    lang = languages.language(language).html
    told = f'<figcaption lang="{lang}">{escape(caption)}</figcaption>' if caption else ""
    below = f"<small>{escape(note)}</small>" if note else ""
    alt = escape(caption or "a picture without a caption in this language", quote=True)
    size = image.shape[0]
    return (
        f'<figure style="{FIGURE}"><img src="{_source(image)}" alt="{alt}" width="{size}" height="{size}" '
        f'style="{PAPER}">{told}{below}</figure>'
    )


def _source(image: np.ndarray) -> str:
    """A picture as a PNG that lies in the page."""
    buffer = io.BytesIO()
    Image.fromarray(((image + 1) * 127.5).round().clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(compress_png(buffer.getvalue())).decode('ascii')}"
