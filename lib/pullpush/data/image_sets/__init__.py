"""Published sets of pictures, with captions or labels, one file a source: what its files say, and where they lie.

They lie below `$PULLPUSH_DATA` as recordings do, and stay apart from `data.sets`, whose clips are heard. A file adds a
set by a card, `CARD = ImageCard(name=…, make=read, …)`, and `IMAGES` finds it; a reader's own files lie in
`$PULLPUSH_EXTRA/image_sets/`.
"""

from __future__ import annotations

from pullpush.catalogue import Catalogue
from pullpush.data.image_listing import ImageCard

__all__ = ["IMAGES", "ImageCard"]

IMAGES: Catalogue[ImageCard] = Catalogue("pullpush.data.image_sets", ImageCard, "set of pictures")
