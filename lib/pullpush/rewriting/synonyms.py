"""One word replaced by a synonym of WordNet, in the form that the word has: barks → yelps, barking → yelping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from pullpush.data.clips import Clips
from pullpush.data.draws import number as draw, share
from pullpush.data.language.grammar import indefinite
from pullpush.data.language.vocabulary import Event
from pullpush.data.recordings import debian
from pullpush.data.scenes.augmented import RewritingError
from pullpush.rewriting.contract import RewriterCard
from pullpush.rewriting.deletion import WORD, OneWord
from pullpush.rewriting.wordnet import PACKAGE, PARTS, WordNet, load_wordnet

ARTICLES = {"a", "an", "the"}
BE = {"is", "are", "was", "were", "be", "been", "being"}
LINKS = {"of", "in", "on", "at", "by", "to", "from", "with", "into", "over", "under", "through", "for", "near", "like"}
LINKS |= {"and", "or", "but", "as", "while", "then", "after", "before", "both", "first", "next", "finally", "followed"}
PRONOUNS = {"i", "you", "he", "she", "it", "we", "they", "its", "his", "her", "their", "this", "that", "there", "some"}
VERBS = {"can", "could", "will", "would", "may", "might", "must", "do", "does", "has", "have", "had", "not", "no", "so"}
FUNCTION = ARTICLES | BE | LINKS | PRONOUNS | VERBS  # words that have no synonyms, whatever WordNet says
ENDINGS = {"noun": ("", "s"), "verb": ("", "s", "ing")}  # of forms that are replaced, by part of speech; else none


@dataclass(frozen=True)
class Synonyms(OneWord):
    """Replaces one word of an English caption by a synonym, with probability p: the number of words stays.

    Each word that has synonyms is as likely, and each of its synonyms, of all its senses (as in EDA) or the `senses`
    most frequent ones: a word of another sense may come in, since nothing here tells a bark from a bark. Synonyms of
    several words, names and irregular plurals are left out; "a" and "an" are put right.

    seed: of the draws, with the caption and the number; folder: of WordNet's files; default: Debian's package.

    `Synonyms(p=1.0).rewrite(["A dog barks."])` may be `["A hound barks."]`.

    Raises:
        DataNotFoundError: (`rewrite`) WordNet cannot be had; the message says what to do.
    """

    senses: int | None = None
    folder: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.senses is not None and self.senses < 1:
            raise ValueError(f"senses must be at least 1, got {self.senses}")

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Synonyms:
        """See `Rewriter`.

        Raises:
            RewritingError: captions in another language than English.
        """
        if language != "eng":
            raise RewritingError(f"WordNet knows English alone, got {language!r}: leave out the rewriter 'synonyms'")
        return self

    def rewritten(self, caption: str, asked: tuple) -> str:
        """See `OneWord`."""
        if share(("replace", *asked)) >= self.p:
            return caption
        words = list(WORD.finditer(caption))
        before = ["", *(word[0].lower() for word in words)]
        choices = [self._choices(word[0].lower(), last) for word, last in zip(words, before, strict=False)]
        places = [place for place, found in enumerate(choices) if found]
        if not places:
            return caption
        place = places[draw(("which", *asked)) % len(places)]
        new = choices[place][draw(("synonym", *asked)) % len(choices[place])]
        word = words[place]
        head = _with_article(caption[: word.start()], new)
        return head + (new[0].upper() + new[1:] if word[0][0].isupper() else new) + caption[word.end() :]

    def _choices(self, word: str, before: str) -> tuple[str, ...]:
        """What may stand for a word after the word before it."""
        wordnet = _wordnet(self.folder)
        return () if word in FUNCTION else _synonyms(wordnet, word, _parts(word, before), self.senses)


@cache
def _wordnet(folder: str) -> WordNet:
    return WordNet(Path(folder)) if folder else load_wordnet()


def _parts(word: str, before: str) -> tuple[str, ...]:
    """Parts of speech that a word may be after the word before it, as far as its neighbour tells."""
    if before in ARTICLES:
        return "noun", "adj"
    if word.endswith("ing") and before in BE:
        return ("verb",)
    if word.endswith("s") and before and before not in FUNCTION:
        return ("verb",)  # a dog barks
    return tuple(PARTS)


@cache
def _synonyms(wordnet: WordNet, word: str, parts: tuple[str, ...], senses: int | None) -> tuple[str, ...]:
    """Single words that share a sense with the word, as the part of speech and in the form that it most often is."""
    readings = [
        (wordnet.count(lemma, part), lemma, part, ending)
        for part in parts
        for ending in ENDINGS.get(part, ("",))
        for lemma in _lemmas(wordnet, word, part, ending)
        if wordnet.senses(lemma, part)
    ]
    if not readings:
        return ()
    _, lemma, part, ending = max(readings)
    found = {other for sense in wordnet.senses(lemma, part)[:senses] for other in sense}
    named = [other for other in sorted(found - {lemma}) if other.isalpha() and other.islower()]
    return tuple(form for other in named if (form := _form(wordnet, other, part, ending)))


def _lemmas(wordnet: WordNet, word: str, part: str, ending: str) -> Iterator[str]:
    """The lemmas whose form with this ending is the word."""
    stem = word.removesuffix(ending)
    for lemma in dict.fromkeys([stem, f"{stem}e", stem[:-1], f"{stem[:-2]}y"]):
        if len(lemma) > 1 and _form(wordnet, lemma, part, ending) == word:
            yield lemma


def _form(wordnet: WordNet, lemma: str, part: str, ending: str) -> str | None:
    """A form of a lemma; None for irregular plurals."""
    if ending and part == "noun" and wordnet.forms(lemma, part):
        return None
    listed = [form for form in wordnet.forms(lemma, part) if ending == "ing" and form.endswith(ending)]
    return listed[0] if listed else inflected(lemma, ending)


def inflected(lemma: str, ending: str) -> str:
    """A regular English form: the plural or third person ("s"), the present participle ("ing").

    >>> inflected("buzz", "s"), inflected("cry", "s"), inflected("whine", "ing"), inflected("hum", "ing")
    ('buzzes', 'cries', 'whining', 'humming')
    """
    if ending == "s":
        if re.search(r"[^aeiou]y$", lemma):
            return f"{lemma[:-1]}ies"
        return lemma + ("es" if re.search(r"(s|x|z|ch|sh)$", lemma) else "s")
    if ending == "ing":
        if re.search(r"[^eoy]e$", lemma):
            return f"{lemma[:-1]}ing"
        short = re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", lemma)
        return lemma + (lemma[-1] if short else "") + "ing"
    return lemma


def _with_article(head: str, word: str) -> str:
    """The text before a word with its last "a" or "an" as the word needs it."""
    article = indefinite(word).split()[0]
    return re.sub(r"\b([Aa])n?(\s+)$", lambda match: match[1] + article[1:] + match[2], head)


CARD = RewriterCard(
    name="synonyms",
    make=Synonyms,
    title="Synonyms",
    about="Replaces one word of an English caption by a synonym of WordNet, with probability 0.8.",
    source="EDA; Distillation & clusters §3",
    citation="distill_cluster",
    needs=f"Debian's {PACKAGE.name}",
    authors="Princeton University, WordNet 3.0",
    licence="WordNet License",
    version=f"{PACKAGE.name} {PACKAGE.version}",
    fetch=partial(debian.tree, PACKAGE),
    megabytes=PACKAGE.megabytes,
)
