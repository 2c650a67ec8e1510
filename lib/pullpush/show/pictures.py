"""Pictures in few bytes."""

from __future__ import annotations

import io

from PIL import Image

COLOURS = 256


def compress_png(data: bytes) -> bytes:
    """A PNG with a palette of 256 colours if that is smaller, else as it was."""
    image = Image.open(io.BytesIO(data))
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        image = image.convert("RGB")
    method = Image.Quantize.FASTOCTREE if image.mode == "RGBA" else Image.Quantize.MEDIANCUT
    buffer = io.BytesIO()
    image.quantize(COLOURS, method=method, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return min(buffer.getvalue(), data, key=len)
