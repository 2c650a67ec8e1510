"""Words of captions: those of the world beside those of real sets."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from pullpush.cache import home
from pullpush.data.clips import World
from pullpush.data.language.vocabulary import word_frequencies
from pullpush.data.sets.folder import read_captions


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


def richness(frequencies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """How varied the words of caption sets are, a row a set: how many, how many different, share of the commonest.

    frequencies: name of the set → see `caption_words`.
    """
    rows = [
        (name, len(table), table["count"].sum(), table["frequency"].head(10).sum())
        for name, table in frequencies.items()
    ]
    return pd.DataFrame(rows, columns=["captions", "different words", "words in all", "share of the ten most frequent"])
