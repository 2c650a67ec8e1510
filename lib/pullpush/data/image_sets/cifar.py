"""CIFAR-10 and CIFAR-100: tiny photographs in ten or a hundred classes.

Their binary version is read. The Python version holds pickles, which can run any code when they are opened.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from pullpush.data.image_files import Planes
from pullpush.data.image_listing import ImageCard, PictureListing
from pullpush.errors import DataNotFoundError, PullPushError

PIXELS = 3 * 32 * 32


def read(place: Path, split: str, *, files: dict[str, tuple[str, ...]], names: str, labels: int) -> PictureListing:
    """CIFAR's binary version: records of `labels` bytes (the last is the class) and 3,072 of red, green and blue.

    files: of each split; names: the file with the classes' names.
    """
    paths = [place / name for name in files[split]]
    for path in [*paths, place / names]:
        if not path.is_file():
            raise DataNotFoundError(f"no {path}: take the binary version of CIFAR; pickles of the other are not opened")
    classes = tuple(name.strip() for name in (place / names).read_text(encoding="ascii").split())
    (path,) = paths
    if not path.stat().st_size or path.stat().st_size % (labels + PIXELS):
        raise PullPushError(f"{path} does not hold whole records of {labels + PIXELS} bytes: unpack it again")
    records = np.memmap(path, np.uint8, mode="r").reshape(-1, labels + PIXELS)
    numbers = np.asarray(records[:, labels - 1]).tolist()
    if max(numbers) >= len(classes):
        raise PullPushError(f"{path} has a class {max(numbers)}, but {place / names} names {len(classes)}")
    return PictureListing(
        Planes(path, records, labels), [f"{row:05d}" for row in range(len(records))], [], numbers, classes
    )


ABOUT = {
    "source": "Krizhevsky 2009, Learning multiple layers of features from tiny images",
    "authors": "Krizhevsky, Nair and Hinton; the pictures' owners",
    "licence": "none is given; the pictures are of the web",
    "labelled": True,
    "splits": ("test",),
}
CARDS = (
    ImageCard(
        name="cifar10",
        make=partial(read, files={"test": ("test_batch.bin",)}, names="batches.meta.txt", labels=1),
        title="CIFAR-10",
        about="10,000 test pictures of 32 × 32 pixels in ten classes.",
        folder="cifar-10-batches-bin",
        how="take cifar-10-binary.tar.gz from www.cs.toronto.edu/~kriz/cifar.html",
        **ABOUT,
    ),
    ImageCard(
        name="cifar100",
        make=partial(read, files={"test": ("test.bin",)}, names="fine_label_names.txt", labels=2),
        title="CIFAR-100",
        about="10,000 test pictures of 32 × 32 pixels in a hundred classes.",
        folder="cifar-100-binary",
        how="take cifar-100-binary.tar.gz from www.cs.toronto.edu/~kriz/cifar.html",
        **ABOUT,
    ),
)
