"""Test clips that share a caption word for word, and what that leaves of recall.

    shared_texts.note(world.test)  # "**12 of the 500 test clips share …**", or nothing

A caption counts as right for its own clip alone, and ties count against a system (metrics/retrieval.py). So where one
text is the caption of several clips, no system finds them all first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from IPython.display import Markdown

from pullpush.data.clips import Clips

Captions = Sequence[Sequence[str]]  # of every clip


def note(clips: Clips, language: str = "eng") -> Markdown:
    """How many clips share a caption with another, and the highest R@1 that is left; or that there is one clip alone;
    nothing else.
    """
    captions = clips.captions(language)
    if len(captions) == 1:
        return Markdown(f"**There is one {clips.name} clip:** among one, recall is 100 % whatever a system has learnt.")
    shared = sharing(captions)
    if not shared:
        return Markdown("")
    from_text, from_audio = ceilings(captions)
    return Markdown(
        f"**{shared} of the {len(captions)} {clips.name} clips share a caption with another, word for word.** A "
        "caption counts as right for its own clip alone, and ties count against a system, so that R@1 of no system "
        f"can pass {from_text:.1%} from text to audio and {from_audio:.1%} from audio to text: compare systems with "
        "one another and with these numbers."
    )


def sharing(captions: Captions) -> int:
    """How many clips have a caption that another has, too.

    >>> sharing([["a dog"], ["a dog", "a bark"], ["a cat"]])
    2
    """
    owners = _owners(captions)
    return sum(any(owners[text] > 1 for text in own) for own in captions)


def ceilings(captions: Captions) -> tuple[float, float]:
    """The highest R@1 from text to audio, a query a caption, and from audio to text, a query a clip; fractions.

    >>> ceilings([["a dog"], ["a dog"], ["a cat"], ["a cow"]])
    (0.75, 0.5)
    """
    owners, most = _owners(captions), defaultdict(int)
    for own in captions:
        for text, times in Counter(own).items():
            most[text] = max(most[text], times)  # one clip comes first for all queries of one text
    queries = sum(len(own) for own in captions)
    found = sum(any(owners[text] == 1 for text in own) for own in captions)
    return sum(most.values()) / max(queries, 1), found / max(len(captions), 1)


def _owners(captions: Captions) -> Counter[str]:
    """Text → how many clips have it."""
    return Counter(text for own in captions for text in set(own))
