"""What a chapter trains and tests on: the book's scenes with a trunk trained on them, or a real dataset.

    ground = material.of(book, dataset)        # the profile's own dataset, unless one is named
    data, trunk = ground.data(), ground.trunk()
    ground = material.of(book, published=True) # heard through a published encoder: views "frozen", "upper", "whole"

Both kinds answer the same questions (see `Material`), so that a chapter reads the same on either.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from IPython.display import display

from pullpush.errors import PullPushError
from pullpush.lab import gaps, shared_texts
from pullpush.lab.datasets import Real
from pullpush.lab.scenes import SCENES, PublishedScenes, Scenes, categories
from pullpush.lab.session import Session
from pullpush.lab.views import Labelled, Material

__all__ = ["Labelled", "Material", "PublishedScenes", "Real", "Scenes", "categories", "of"]


def of(book: Session, dataset: str = "", *, compute_long: bool = False, published: bool = False) -> Material:
    """The profile's material, or that of the dataset that is named; "scenes" are the book's own.

    compute_long: whether experiments that are long are computed where nothing was kept of them; published: whether
    clips are heard through the profile's published audio encoder (`Profile.listening`), as in chapters 4 and on,
    rather than through one that is trained here on scenes.

    Raises:
        UnknownNameError: no such dataset.
    """
    name = dataset or book.settings.dataset or SCENES
    if published:
        book = replace(book, settings=book.settings.listening)
    if name == SCENES:
        ground: Material = PublishedScenes(book, compute_long) if published else Scenes(book, compute_long)
    else:
        ground = Real(book, name, compute_long)
        gaps.allow(f"the dataset {' and '.join(ground.pair_names)}")
    if gaps.allowed():
        with suppress(PullPushError):  # where the data are used, it is told what they lack
            if (note := shared_texts.note(ground.data().test)).data:
                display(note)
    return ground
