"""Word statistics of captions, as in Figure 3 of the language-encoder paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pandas as pd

# Chinese and Japanese write no spaces: each such character counts as a word of its own, which needs no dictionary.
_UNSPACED = r"[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
_WORD = re.compile(rf"{_UNSPACED}|(?:(?!{_UNSPACED})\w)+(?:['’·-](?:(?!{_UNSPACED})\w)+)*")


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation; apostrophes and hyphens within a word stay.

    >>> words("A dog's bark, 犬が")
    ['a', "dog's", 'bark', '犬', 'が']
    """
    return _WORD.findall(text.lower())


def word_frequencies(captions: Iterable[str], *, vocabulary: int = 20_000) -> pd.DataFrame:
    """Words by falling count: the figure plots frequency against rank, both on logarithmic axes.

    captions: texts. vocabulary: most words to return; the paper cuts at 20,000.

    Returns:
        One row a word: rank (from 1), word, count, and frequency, the count divided by the number of all words in the
        captions (also of those beyond the cut). Ties are in alphabetical order.

    >>> word_frequencies(["A frog croaks.", "a frog"]).head(2)["word"].tolist()
    ['a', 'frog']
    """
    if isinstance(captions, str):
        raise TypeError("captions must be several texts, got one string")
    counts = Counter(word for caption in captions for word in words(caption))
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:vocabulary]
    table = pd.DataFrame(ranked, columns=["word", "count"]).astype({"word": str, "count": "int64"})
    table.insert(0, "rank", range(1, len(table) + 1))
    table["frequency"] = table["count"] / max(1, sum(counts.values()))
    return table
