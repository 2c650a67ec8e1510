"""Pictures on disk that are decoded when they are asked for: files, members of tar archives, arrays of bytes.

`square` makes one size of them as CLIP does: the shorter side is resized to S by bicubic interpolation, and the S × S
pixels in the middle are kept. Values are x / 127.5 − 1, in [−1, 1], without CLIP's mean and spread of each colour.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import joblib
import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pullpush.cache import cached_file, content_key
from pullpush.data.decoding import fingerprint
from pullpush.errors import PullPushError

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
WHITE = 127.5  # half of what a byte holds


class PictureError(PullPushError, ValueError):
    """A picture cannot be used: corrupt, cut short, or of no known format; the message names it."""


class Pictures(Protocol):
    """Pictures by their numbers."""

    @property
    def key(self) -> Any:
        """Plain data that tell them from others, without reading all of them."""

    def __len__(self) -> int: ...

    def picture(self, number: int) -> Image.Image:
        """One picture, as Pillow opens it; not decoded yet."""

    def name(self, number: int) -> str:
        """What errors call it."""


@dataclass(frozen=True, eq=False)
class Files:
    """Pictures that are files of a folder; names: their paths below it.

    >>> len(Files(Path("."), ["a.jpg", "b.jpg"])), Files(Path("pictures"), ["a.jpg"]).name(0)
    (2, 'pictures/a.jpg')
    """

    folder: Path
    names: Sequence[str]

    @property
    def key(self) -> Any:
        """Names and sizes."""
        return [[name, os.stat(self.folder / name).st_size] for name in self.names]

    def __len__(self) -> int:
        return len(self.names)

    def picture(self, number: int) -> Image.Image:
        """See `Pictures`."""
        return Image.open(self.folder / self.names[number])

    def name(self, number: int) -> str:
        """See `Pictures`."""
        return (self.folder / self.names[number]).as_posix()


@dataclass(frozen=True, eq=False)
class Members:
    """Pictures within tar archives.

    archives: the archives; places: `(N, 3)` int64: which archive, where a picture's bytes begin, how many they are.
    """

    archives: Sequence[Path]
    places: np.ndarray

    @property
    def key(self) -> Any:
        """The archives' fingerprints."""
        return [fingerprint(path) for path in self.archives]

    def __len__(self) -> int:
        return len(self.places)

    def picture(self, number: int) -> Image.Image:
        """See `Pictures`."""
        archive, start, size = self.places[number].tolist()
        with open(self.archives[archive], "rb") as file:
            file.seek(start)
            return Image.open(io.BytesIO(file.read(size)))

    def name(self, number: int) -> str:
        """See `Pictures`."""
        archive, start, _ = self.places[number].tolist()
        return f"{self.archives[archive]}, byte {start}"


@dataclass(frozen=True, eq=False)
class Planes:
    """Pictures in one file of bytes, a record each, as CIFAR's binary version: labels, then 3 × side × side bytes.

    records: `(N, skip + 3 · side · side)` uint8, memory-mapped; skip: bytes of labels before the pixels.
    """

    path: Path
    records: np.ndarray
    skip: int
    side: int = 32

    @property
    def key(self) -> Any:
        """The file's fingerprint."""
        return fingerprint(self.path)

    def __len__(self) -> int:
        return len(self.records)

    def picture(self, number: int) -> Image.Image:
        """See `Pictures`."""
        planes = np.asarray(self.records[number, self.skip :]).reshape(3, self.side, self.side)
        return Image.fromarray(np.ascontiguousarray(planes.transpose(1, 2, 0)))

    def name(self, number: int) -> str:
        """See `Pictures`."""
        return f"{self.path}, record {number}"


def square(picture: Image.Image, size: int) -> np.ndarray:
    """A picture of Pillow → `(3, size, size)` uint8: in RGB, shorter side resized to `size`, the middle kept.

    Rounding is that of CLIP's `Resize` and `CenterCrop`. A palette and transparency become RGB before the picture is
    resized; CLIP does so afterwards, which differs for these alone.
    """
    picture = picture.convert("RGB")
    width, height = picture.size
    short = min(width, height)
    width, height = (size if side == short else int(size * side / short) for side in (width, height))
    if (width, height) != picture.size:
        picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return np.asarray(picture.crop((left, top, left + size, top + size))).transpose(2, 0, 1)


def pixels(pictures: Pictures, numbers: Iterable[int], size: int) -> Tensor:
    """Some pictures, `(B, 3 · size · size)` float32 in [−1, 1]: red, green and blue one after the other, line by line.

    Raises:
        PictureError: a picture cannot be decoded; the message names it.
    """
    numbers = list(numbers)
    jobs = max(1, min(len(numbers), joblib.cpu_count()))
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads")  # Pillow's decoders release the GIL
    planes = parallel(joblib.delayed(_decoded)(pictures, number, size) for number in numbers)
    if not planes:
        return torch.empty(0, 3 * size * size)
    return torch.from_numpy(np.stack(planes).reshape(len(planes), -1).astype(np.float32) / WHITE - 1)


def readable(pictures: Pictures) -> list[int]:
    """The numbers of the pictures that can be decoded: each is tried once, and the answer is kept in the cache."""

    def build(path: Path) -> None:
        parallel = joblib.Parallel(n_jobs=joblib.cpu_count(), prefer="threads", batch_size=64, return_as="generator")
        found = parallel(joblib.delayed(_is_whole)(pictures, number) for number in range(len(pictures)))
        np.save(path, np.flatnonzero(np.fromiter(found, bool, len(pictures))))

    return np.load(cached_file("pictures", f"{content_key(['whole', pictures.key])}.npy", build)).tolist()


def _decoded(pictures: Pictures, number: int, size: int) -> np.ndarray:
    try:
        with pictures.picture(number) as picture:
            return square(picture, size)
    except FileNotFoundError:
        raise
    except Exception as error:  # Pillow's decoders raise errors of many kinds
        raise PictureError(
            f"cannot read the picture {pictures.name(number)}: {error}; remove it, or load the set with verify=True, "
            "which leaves such pictures out"
        ) from error


def _is_whole(pictures: Pictures, number: int) -> bool:
    try:
        with pictures.picture(number) as picture:
            picture.convert("RGB")
    except Exception:  # of many kinds, see above
        return False
    return True
