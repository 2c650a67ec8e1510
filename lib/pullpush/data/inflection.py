"""Words in the forms that a slot of a caption asks for: cases of German, the connective form of Japanese."""

from __future__ import annotations

import re

# English words that begin with another sound than their letter has.
CONSONANT = re.compile(r"on(e|ce)(\b|s\b|self|ness)|u(ni(?!n|m|d|s(s|ol))|s(e|ual|ab|ur)|ti|k|ra|rol|bi)|eu|ewe|ouija")
SILENT_H = re.compile(r"hour|hono[ur]|heir|honest")
LETTER = re.compile(r"8\d*|1[18]|[fhlmnrsx]|[flmnrsx]\d+")  # "an 8 sound", "an s"


def article_of(noun: str) -> tuple[str, str]:
    """The first word and the rest; "l'" counts as a word.

    >>> article_of("l'aboiement d'un chien")
    ("l'", "aboiement d'un chien")
    """
    first, rest = re.findall(r"^(\w+['’]|\S+) ?(.*)", noun)[0]
    return first.replace("’", "'"), rest


def _nominative(noun: str) -> str:
    return noun


def _accusative(noun: str) -> str:
    """German: only the masculine article shows the case: der tiefe Klang → den tiefen Klang."""
    article, rest = article_of(noun)
    return f"den {_weak(rest)}" if article == "der" else noun


def _dative(noun: str) -> str | None:
    """German: das, der → dem. None for "die", which may be feminine (der) or plural (den)."""
    article, rest = article_of(noun)
    return f"dem {_weak(rest)}" if article in ("das", "der") else None


def dative_of(noun: str) -> str:
    """German: a noun with the indefinite article in the dative; others as they are.

    >>> dative_of("eine große Trommel"), dative_of("ein Horn"), dative_of("a horn")
    ('einer großen Trommel', 'einem Horn', 'a horn')
    """
    article, rest = article_of(noun)
    forms = {"ein": "einem", "eine": "einer"}
    return f"{forms[article]} {_weak(rest)}" if article in forms else noun


def _weak(rest: str) -> str:
    """German: adjectives up to the noun (the first capital) end in -en behind "den" and "dem"."""
    before, noun = re.findall(r"^([^A-ZÄÖÜ]*)(.*)", rest)[0]
    return re.sub(r"e\b", "en", before) + noun


CASES = {"noun": _nominative, "accusative": _accusative, "dative": _dative}


def connective(text: str) -> str:
    """Japanese: 鳴いている → 鳴いていて, so that another clause can follow.

    >>> connective("鳴いている")
    '鳴いていて'
    """
    return text.removesuffix("る") + "て" if text.endswith("る") else text


def indefinite(words: str) -> str:
    """English: words with the indefinite article that they sound like, not the one that they are spelt like.

    >>> indefinite("one"), indefinite("hour bell"), indefinite("unicorn"), indefinite("umbrella")
    ('a one', 'an hour bell', 'a unicorn', 'an umbrella')
    """
    first = words.split(maxsplit=1)[0].lower() if words.split() else ""
    vowel = first[:1] in tuple("aeiou") and not CONSONANT.match(first)
    return f"{'an' if vowel or SILENT_H.match(first) or LETTER.fullmatch(first) else 'a'} {words}"
