"""What a chapter trains and tests on: the book's scenes with a trunk trained on them, or a real dataset.

    ground = material.of(book, dataset)        # the profile's own dataset, unless one is named
    data, trunk = ground.data(), ground.trunk()

Both kinds answer the same questions (see `Material`), so that a chapter reads the same on either.
"""

from __future__ import annotations

from pullpush.lab.datasets import Real
from pullpush.lab.scenes import SCENES, Scenes, categories
from pullpush.lab.session import Session
from pullpush.lab.views import Labelled, Material

__all__ = ["Labelled", "Material", "Real", "Scenes", "categories", "of"]


def of(book: Session, dataset: str = "", *, compute_long: bool = False) -> Material:
    """The profile's material, or that of the dataset that is named; "scenes" are the book's own.

    compute_long: whether experiments that are long are computed where nothing was kept of them.

    Raises:
        UnknownNameError: no such dataset.
    """
    name = dataset or book.settings.dataset or SCENES
    return Scenes(book, compute_long) if name == SCENES else Real(book, name, compute_long)
