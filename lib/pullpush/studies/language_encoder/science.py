"""The words of captions, of worlds and of published sets."""

from collections.abc import Sequence

import numpy as np

from pullpush.data.clips import World
from pullpush.data.language.vocabulary import word_frequencies
from pullpush.data.sets.captioned import published_captions as published_captions
from pullpush.studies.taught import flat

RANKS = 100  # of the commonest words, for the slope


def captions_of(world: World) -> list[str]:
    """All English captions that a world trains on, clip by clip."""
    return flat(world.train.captions("eng"))


def statistics(captions: Sequence[str]) -> dict[str, float]:
    """The words of a caption set (the paper's Figure 3); mind that a larger set has more different words.

    Returns:
        captions, different captions, words, different words, words a caption; share of top 10, share of top 100: how
        much of all words the commonest make up; bits a word: the entropy of a word drawn from the captions; slope: of
        the logarithm of the frequency over that of the rank of the RANKS commonest, by least squares: −1 is Zipf's law.

    >>> found = statistics(["a frog croaks", "a bird calls"])
    >>> found["words"], found["different words"], round(found["bits a word"], 2)
    (6, 5, 2.25)
    """
    table = word_frequencies(captions, vocabulary=np.iinfo(np.int64).max)
    share, count = table["frequency"].to_numpy(), int(table["count"].sum())
    ranks, first = np.log(np.arange(1, len(share) + 1))[:RANKS], np.log(share[:RANKS])
    return {
        "captions": len(captions),
        "different captions": len(set(captions)),
        "words": count,
        "different words": len(table),
        "words a caption": count / max(1, len(captions)),
        "share of top 10": share[:10].sum(),
        "share of top 100": share[:100].sum(),
        "bits a word": float(-(share * np.log2(share)).sum()),
        "slope": float(np.polyfit(ranks, first, 1)[0]) if len(ranks) > 1 else float("nan"),
    }
