"""Pictures as squares of pixels: PNG and SVG files composed on white, padded to a square, and compared.

A store keeps them as waveforms are kept, one row a picture, so that all that takes clips takes pictures: 3 S² numbers
in [-1, 1], red, green and blue one after the other, each row by row; 1 is white.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pullpush.data.store import Waveforms
from pullpush.errors import AudioError, DataNotFoundError

FILE = "pixels.npy"
MIDDLE = 127.5  # of the 256 values of a channel
DPI = 96  # pixels of an inch, for drawings that give their size in points or millimetres
THUMBNAIL = 24  # pixels, that pictures are compared by


@dataclass(frozen=True, eq=False)
class Pixels(Waveforms):
    """Pictures of one size in one array; samples: all of them, uint8.

    >>> pictures = Pixels.of(np.full((2, 12), 255, np.uint8))
    >>> len(pictures), pictures.audio([1])[0].shape, float(pictures.audio([1])[0][0, 0])
    (2, torch.Size([1, 12]), 1.0)
    """

    @classmethod
    def of(cls, rows: np.ndarray) -> Pixels:
        """`(N, 3 S²)` uint8 as a store."""
        return cls(rows.reshape(-1), np.arange(1, len(rows) + 1, dtype=np.int64) * rows.shape[1])

    def audio(self, rows: Iterable[int], *, sample_rate: int | None = None) -> tuple[Tensor, Tensor]:
        """Some pictures, `(B, 3 S²)` float32 in [-1, 1], and the numbers in each, `(B,)` int64."""
        if sample_rate is not None:
            raise AudioError(
                f"pictures have no sample rate, got {sample_rate}: take an encoder of pictures, such as 'picture-cnn'"
            )
        found = [torch.from_numpy(self[row].astype(np.float32) / MIDDLE - 1) for row in rows]
        lengths = torch.tensor([len(picture) for picture in found], dtype=torch.int64)
        return (torch.stack(found) if found else torch.zeros(0, 0)), lengths


def write(folder: Path, paths: Sequence[str], size: int) -> None:
    """Write pictures of files, `size` pixels wide and high, to a folder, in their order."""
    np.save(folder / FILE, np.stack([flat(square(opened(path, size), size)) for path in paths]))


def read(folder: Path) -> Pixels:
    """The pictures that `write` wrote, memory-mapped."""
    return Pixels.of(np.asarray(np.load(folder / FILE, mmap_mode="r")))


def opened(path: str, size: int) -> Image.Image:
    """A PNG as it is, or an SVG drawn `size` pixels high, in RGBA."""
    try:
        source = io.BytesIO(drawn(path, size)) if path.endswith(".svg") else path
        with Image.open(source) as image:
            return image.convert("RGBA")
    except (OSError, ValueError) as error:
        raise DataNotFoundError(f"{path} cannot be read as a picture ({error}): fetch it again") from error


def drawn(path: str, height: int) -> bytes:
    """An SVG as a PNG; fonts of this computer do not count, so that it looks the same everywhere."""
    import resvg_py  # as large as all else here, and needed once

    return bytes(resvg_py.svg_to_bytes(svg_path=path, height=height, dpi=DPI, skip_system_fonts=True))


def square(image: Image.Image, size: int) -> Image.Image:
    """A picture scaled to fit a white square of `size` pixels, in its middle; what is transparent around it is cut off.

    >>> square(Image.new("RGBA", (4, 2), "black"), 4).getpixel((0, 0)), square(Image.new("RGBA", (1, 1)), 2).size
    ((255, 255, 255), (2, 2))
    """
    image = image.crop(image.getchannel("A").getbbox())
    scale = size / max(image.size)
    # Transparent pixels have a colour, too, which would bleed into the edge: white before scaling.
    paper = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    width, height = (max(1, round(side * scale)) for side in image.size)
    found = Image.new("RGB", (size, size), "white")
    found.paste(paper.resize((width, height), Image.Resampling.BICUBIC), ((size - width) // 2, (size - height) // 2))
    return found


def flat(image: Image.Image) -> np.ndarray:
    """The pixels of a picture, `(3 S²,)` uint8, a channel after the other.

    >>> flat(Image.new("RGB", (1, 1), "red")).tolist()
    [255, 0, 0]
    """
    return np.asarray(image, dtype=np.uint8).transpose(2, 0, 1).reshape(-1)


def likeness(pictures: Pixels) -> np.ndarray:
    """How alike pictures look, `(N, N)` float32 in [-1, 1]: the correlation of their grey values at 24×24 pixels, as
    they are or with one seen in a mirror, whichever is higher. A picture of one colour is like no other.
    """
    side = round((pictures.lengths[0] / 3) ** 0.5)
    rows = np.stack([pictures[row] for row in range(len(pictures))]).reshape(-1, 3, side, side)
    images = [Image.fromarray(row.transpose(1, 2, 0)).convert("L") for row in rows]
    small = [image.resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX) for image in images]
    grey = np.stack([np.asarray(image, dtype=np.float32) for image in small])
    grey -= grey.mean(axis=(1, 2), keepdims=True)
    grey /= np.maximum(np.linalg.norm(grey, axis=(1, 2), keepdims=True), 1e-6)
    flipped = grey[:, :, ::-1].reshape(len(grey), -1)
    grey = grey.reshape(len(grey), -1)
    return np.maximum(grey @ grey.T, grey @ flipped.T)
