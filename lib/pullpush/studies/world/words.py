"""Words of captions: those of the world beside those of real sets."""

from __future__ import annotations

import pandas as pd

from pullpush.cache import home
from pullpush.data.tables import read_captions
from pullpush.data.words import word_frequencies
from pullpush.data.world import World


def caption_words(world: World) -> dict[str, pd.DataFrame]:
    """Word frequencies of the world's training captions, and of real datasets whose captions are in the cache.

    These are CSV tables in the folder `captions` of the cache (see `tables.read_captions`); `clotho_train.csv` and
    `clotho_test.csv` count as one set, "clotho".
    """
    sets = {"scenes": [caption for several in world.train.captions("eng") for caption in several]}
    for path in sorted((home() / "captions").glob("*.csv")):
        texts = sets.setdefault(path.stem.split("_")[0], [])
        texts += [caption for captions in read_captions(path).values() for caption in captions]
    return {name: word_frequencies(captions) for name, captions in sets.items()}
