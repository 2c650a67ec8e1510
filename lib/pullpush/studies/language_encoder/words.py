"""How rich and how flat the words of caption sets are: the paper's Figure 3 in numbers.

sets = {name: captions_of(ground.view(name).data) for name in ("freesound", "clotho", "audiocaps")}
statistics({**sets, **published_captions()})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pullpush.cache import home
from pullpush.data.clips import World
from pullpush.data.language.vocabulary import word_frequencies
from pullpush.data.recordings.registry import listing
from pullpush.data.sets.folder import read_captions
from pullpush.errors import PullPushError

PUBLISHED = ("audiocaps", "clotho", "wavcaps")
RANKS = 100  # of the commonest words, for the slope


def captions_of(world: World, *, split: str = "train", language: str = "eng") -> list[str]:
    """All captions of a split, clip by clip.

    >>> from pullpush.data.scenes.world import WorldConfig
    >>> world = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1).load()
    >>> len(captions_of(world))
    20
    """
    return [caption for several in world.split(split).captions(language) for caption in several]


def published_captions(*, split: str = "train") -> dict[str, list[str]]:
    """The captions of those published sets that are here, by name; of the others nothing.

    A set's captions are in the folder `captions` of the cache, as `clotho_train.csv` (see `tables.read_captions`), or
    with its recordings (see `registry.listing`).
    """
    found = {}
    for name in PUBLISHED:
        path = home() / "captions" / f"{name}_{split}.csv"
        try:
            groups = list(read_captions(path).values()) if path.is_file() else listing(name, split).captions
        except PullPushError:  # not here, or the library that reads it is not
            continue
        found[name] = [caption for captions in groups for caption in captions]
    return found


def statistics(sets: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The words of several caption sets, a row a set; mind that a larger set has more different words.

    sets: name → captions.

    Returns:
        captions, different captions, words, different words, words a caption; share of top 10, share of top 100: how
        much of all words the commonest make up; bits a word: the entropy of a word drawn from the captions; slope: of
        the logarithm of the frequency over that of the rank of the RANKS commonest, by least squares: −1 is Zipf's law.

    >>> table = statistics({"one": ["a frog croaks", "a bird calls"]})
    >>> table[["words", "different words", "bits a word"]].iloc[0].round(2).tolist()
    [6.0, 5.0, 2.25]
    """
    rows = {name: counted(captions) for name, captions in sets.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("set").reset_index()


def counted(captions: Sequence[str]) -> dict[str, float]:
    """One row of `statistics`."""
    table = word_frequencies(captions, vocabulary=np.iinfo(np.int64).max)
    share, count = table["frequency"].to_numpy(), int(table["count"].sum())
    return {
        "captions": len(captions),
        "different captions": len(set(captions)),
        "words": count,
        "different words": len(table),
        "words a caption": count / max(1, len(captions)),
        "share of top 10": share[:10].sum(),
        "share of top 100": share[:100].sum(),
        "bits a word": float(-(share * np.log2(share)).sum()),
        "slope": zipf_slope(share[:RANKS]),
    }


def zipf_slope(frequencies: Sequence[float] | np.ndarray) -> float:
    """The slope of log frequency over log rank, of frequencies by falling rank; NaN for fewer than two.

    >>> round(zipf_slope([1, 1 / 2, 1 / 3, 1 / 4]), 6)
    -1.0
    """
    if len(frequencies) < 2:
        return float("nan")
    ranks = np.log(np.arange(1, len(frequencies) + 1))
    return float(np.polyfit(ranks, np.log(np.asarray(frequencies)), 1)[0])
