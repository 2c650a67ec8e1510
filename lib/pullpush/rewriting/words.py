"""One word less, or one replaced by a synonym of WordNet in the form that it has: barks → yelps, barking → yelping.

WordNet 3.0 comes from Debian's package `wordnet-base`. Its files are read as their manual `wndb(5WN)` says:
`index.noun` has a line a lemma, with the byte offsets of its synsets in `data.noun`, the most frequent sense first;
`cntlist.rev` counts how often each was met in tagged text. `nltk` reads them, too, but looks up lemmas and forms in
one: exact ones and the irregular, which captions need here, lie in what it keeps private, for 18 MB with its `regex`.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

from pullpush.checks import check_count, check_number
from pullpush.data.clips import Clips
from pullpush.data.draws import number as draw, share
from pullpush.data.language.grammar import indefinite
from pullpush.data.language.vocabulary import Event
from pullpush.data.recordings import debian
from pullpush.data.scenes.augmented import Rewriter, RewritingError
from pullpush.errors import DataNotFoundError
from pullpush.rewriting import RewriterCard

WORD = re.compile(r"[^\s.,;:!?()\"“”]+")  # apostrophes and hyphens belong to a word
ARTICLES = {"a", "an", "the"}
BE = {"is", "are", "was", "were", "be", "been", "being"}
LINKS = {"of", "in", "on", "at", "by", "to", "from", "with", "into", "over", "under", "through", "for", "near", "like"}
LINKS |= {"and", "or", "but", "as", "while", "then", "after", "before", "both", "first", "next", "finally", "followed"}
PRONOUNS = {"i", "you", "he", "she", "it", "we", "they", "its", "his", "her", "their", "this", "that", "there", "some"}
VERBS = {"can", "could", "will", "would", "may", "might", "must", "do", "does", "has", "have", "had", "not", "no", "so"}
FUNCTION = ARTICLES | BE | LINKS | PRONOUNS | VERBS  # words that have no synonyms, whatever WordNet says
ENDINGS = {"noun": ("", "s"), "verb": ("", "s", "ing")}  # of forms that are replaced, by part of speech; else none
PACKAGE = debian.packages()["wordnet-base"]
PARTS = {"noun": "1", "verb": "2", "adj": "3", "adv": "4"}  # of speech, with their numbers in sense keys
SATELLITE = "5"  # in sense keys, an adjective, too


@dataclass(frozen=True)
class OneWord(Rewriter):
    """Changes one word of a caption, with probability p; seed: of the draws, with the caption and the number."""

    p: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("p", self.p, least=0, most=1)

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        return [self.rewritten(caption, (self.seed, caption, number)) for caption in captions]

    @abstractmethod
    def rewritten(self, caption: str, drawn_by: tuple) -> str:
        """A caption with a word changed, or as it is; drawn_by: what draws depend on."""


@dataclass(frozen=True)
class WordDeletion(OneWord):
    """Deletes one word of a caption, each as likely, with probability p; a single word stays.

    The comma that would be left alone goes with its word, and a sentence begins with a capital again. Languages that
    write no spaces have words as long as what stands between two marks.

    seed: of the draws, with the caption and the number.

    >>> WordDeletion(p=1.0).rewrite(["First a frog croaks, then rain falls."])
    ['First frog croaks, then rain falls.']
    """

    def rewritten(self, caption: str, drawn_by: tuple) -> str:
        words = list(WORD.finditer(caption))
        if len(words) < 2 or share(("delete", *drawn_by)) >= self.p:
            return caption
        word = words[draw(("which", *drawn_by)) % len(words)]
        before, after = caption[: word.start()], caption[word.end() :]
        if not before.strip():
            after = after.lstrip(" ,;:")
            return after[0].upper() + after[1:] if word[0][0].isupper() else after
        return before + after.lstrip() if after[:1].isspace() else before.rstrip(" ,;:") + after


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
        if self.senses is not None:
            check_count("senses", self.senses)

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> "Synonyms":
        """See `Rewriter`.

        Raises:
            RewritingError: captions in another language than English.
        """
        if language != "eng":
            raise RewritingError(f"WordNet knows English alone, got {language!r}: leave out the rewriter 'synonyms'")
        return self

    def rewritten(self, caption: str, drawn_by: tuple) -> str:
        if share(("replace", *drawn_by)) >= self.p:
            return caption
        words = list(WORD.finditer(caption))
        before = ["", *(word[0].lower() for word in words)]
        choices = [self._choices(word[0].lower(), last) for word, last in zip(words, before, strict=False)]
        places = [place for place, found in enumerate(choices) if found]
        if not places:
            return caption
        place = places[draw(("which", *drawn_by)) % len(places)]
        new = choices[place][draw(("synonym", *drawn_by)) % len(choices[place])]
        word = words[place]
        head = _with_article(caption[: word.start()], new)
        return head + (new[0].upper() + new[1:] if word[0][0].isupper() else new) + caption[word.end() :]

    def _choices(self, word: str, before: str) -> tuple[str, ...]:
        """What may stand for a word after the word before it."""
        wordnet = load_wordnet(self.folder)
        return () if word in FUNCTION else _synonyms(wordnet, word, _parts(word, before), self.senses)


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
def _synonyms(wordnet: "WordNet", word: str, parts: tuple[str, ...], senses: int | None) -> tuple[str, ...]:
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


def _lemmas(wordnet: "WordNet", word: str, part: str, ending: str) -> Iterator[str]:
    """The lemmas whose form with this ending is the word."""
    stem = word.removesuffix(ending)
    for lemma in dict.fromkeys([stem, f"{stem}e", stem[:-1], f"{stem[:-2]}y"]):
        if len(lemma) > 1 and _form(wordnet, lemma, part, ending) == word:
            yield lemma


def _form(wordnet: "WordNet", lemma: str, part: str, ending: str) -> str | None:
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


@dataclass(frozen=True)
class WordNet:
    """The files of one folder, read when they are first asked for; `DataNotFoundError` where it has none."""

    folder: Path

    def senses(self, lemma: str, part: str) -> tuple[tuple[str, ...], ...]:
        """The words of every sense of a lemma as one part of speech, the most frequent sense first.

        `load_wordnet().senses("dog", "noun")[0]` is `("dog", "domestic_dog", "Canis_familiaris")`: words that are
        several are joined by an underscore.
        """
        offsets = self._index[part].get(lemma, ())
        found = []
        with (self.folder / f"data.{part}").open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                found.append(_words(file.readline()))
        return tuple(found)

    def count(self, lemma: str, part: str) -> int:
        """How often a lemma was met as this part of speech, in any sense."""
        return self._counts[lemma, PARTS[part]]

    def forms(self, lemma: str, part: str) -> tuple[str, ...]:
        """The forms of a lemma that no rule gives: mice; abetted and abetting."""
        return tuple(self._forms[part].get(lemma, ()))

    @cached_property
    def _forms(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Part → lemma → irregular forms, from lines `form lemma …`."""
        found: dict[str, dict[str, list[str]]] = {part: {} for part in PARTS}
        for part in PARTS:
            for form, *lemmas in map(str.split, _lines(self.folder / f"{part}.exc")):
                for lemma in lemmas:
                    found[part].setdefault(lemma, []).append(form)
        return found

    @cached_property
    def _index(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Part → lemma → offsets. The first lines, the licence, begin with a space."""
        found: dict[str, dict[str, tuple[int, ...]]] = {}
        for part in PARTS:
            rows = (line.split() for line in _lines(self.folder / f"index.{part}") if not line.startswith(" "))
            found[part] = {row[0]: tuple(map(int, row[-int(row[2]) :])) for row in rows}
        return found

    @cached_property
    def _counts(self) -> Counter[tuple[str, str]]:
        counts: Counter[tuple[str, str]] = Counter()
        for line in _lines(self.folder / "cntlist.rev"):
            key, _, times = line.split()
            lemma, _, sense = key.partition("%")
            counts[lemma, sense[0].replace(SATELLITE, PARTS["adj"])] += int(times)
        return counts


@cache
def load_wordnet(folder: str = "") -> WordNet:
    """WordNet in a folder; by default as Debian has it, fetched once by apt (6 MB)."""
    return WordNet(Path(folder) if folder else debian.tree(PACKAGE) / PACKAGE.place)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise DataNotFoundError(f"WordNet has no {path.name} in {path.parent}: delete this folder to fetch it again")
    return path.read_text(encoding="utf-8").splitlines()


def _words(line: bytes) -> tuple[str, ...]:
    """The words of a synset: `offset file type count word number word number …`, the count in hexadecimal."""
    fields = line.decode().split()
    return tuple(word.partition("(")[0] for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2])  # galore(ip)


CARDS = (
    RewriterCard(
        name="deletion",
        make=WordDeletion,
        title="Word deletion",
        about="Deletes one word of a caption at random, with probability 0.8.",
        source="EDA; Distillation & clusters §3",
        citation="distill_cluster",
    ),
    RewriterCard(
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
    ),
)
