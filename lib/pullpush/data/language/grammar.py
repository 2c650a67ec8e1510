"""Captions in many languages, written from the scene graph by a small grammar.

The forms and the words live in the files of the languages (`languages/eng.yaml` …); what forms cannot say (word
order, case, contraction, agreement with an article) is done here. A caption never claims what the scene does not hold:
distance, repetition and noise are mentioned about half of the time when they are there, never when they are not. Words
take the forms that a slot asks for: cases of German, the connective form of Japanese.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from pullpush.checks import check_count
from pullpush.data.draws import number
from pullpush.data.language.vocabulary import Clause, Event, Phrases, load_labels
from pullpush.data.languages import language as find_language, load_languages
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.errors import looked_up

# English words that begin with another sound than their letter has.
CONSONANT = re.compile(r"on(e|ce)(\b|s\b|self|ness)|u(ni(?!n|m|d|s(s|ol))|s(e|ual|ab|ur)|ti|k|ra|rol|bi)|eu|ewe|ouija")
SILENT_H = re.compile(r"hour|hono[ur]|heir|honest")
LETTER = re.compile(r"8\d*|1[18]|[fhlmnrsx]|[flmnrsx]\d+")  # "an 8 sound", "an s"
KINDS = ("sentences", "titles")  # of forms
P_MENTION = 0.5  # how often distance, repetition and noise are told where they are there
PATIENCE = 300  # draws in a row that bring nothing new, before the ways to tell a scene count as exhausted
T = TypeVar("T")

_SLOT = re.compile(r"\{(?:(\d+):)?(\w+)\}")
_BETWEEN = re.compile(r"\[(.*)\]")


def article_of(noun: str) -> tuple[str, str]:
    """The first word and the rest; "l'" counts as a word.

    >>> article_of("l'aboiement d'un chien")
    ("l'", "aboiement d'un chien")
    """
    first, rest = re.findall(r"^(\w+['’]|\S+) ?(.*)", noun)[0]
    return first.replace("’", "'"), rest


def _accusative(noun: str) -> str:
    """German: only the masculine article shows the case: der tiefe Klang → den tiefen Klang."""
    article, rest = article_of(noun)
    return f"den {_weak(rest)}" if article == "der" else noun


def _dative(noun: str) -> str | None:
    """German: das, der → dem. None for "die", which may be feminine (der) or plural (den)."""
    article, rest = article_of(noun)
    return f"dem {_weak(rest)}" if article in ("das", "der") else None


def dative_of(noun: str) -> str:
    """German: a noun with the indefinite article in the dative, "einer großen Trommel"; others as they are."""
    article, rest = article_of(noun)
    forms = {"ein": "einem", "eine": "einer"}
    return f"{forms[article]} {_weak(rest)}" if article in forms else noun


def _weak(rest: str) -> str:
    """German: adjectives up to the noun (the first capital) end in -en behind "den" and "dem"."""
    before, noun = re.findall(r"^([^A-ZÄÖÜ]*)(.*)", rest)[0]
    return re.sub(r"e\b", "en", before) + noun


CASES: dict[str, Callable[[str], str | None]] = {"noun": str, "accusative": _accusative, "dative": _dative}


def connective(text: str) -> str:
    """Japanese: 鳴いている → 鳴いていて, so that another clause can follow."""
    return text.removesuffix("る") + "て" if text.endswith("る") else text


def indefinite(words: str) -> str:
    """English: words with the indefinite article that they sound like, not the one that they are spelt like.

    >>> indefinite("one"), indefinite("hour bell"), indefinite("unicorn"), indefinite("umbrella")
    ('a one', 'an hour bell', 'a unicorn', 'an umbrella')
    """
    first = words.split(maxsplit=1)[0].lower() if words.split() else ""
    vowel = first[:1] in tuple("aeiou") and not CONSONANT.match(first)
    return f"{'an' if vowel or SILENT_H.match(first) or LETTER.fullmatch(first) else 'a'} {words}"


@dataclass(frozen=True)
class Form:
    """One way to tell a scene: literal text and slots `(position of the sound, kind of phrase)` in order.

    title: it is a noun phrase, not a sentence.
    """

    pieces: tuple[str | tuple[int, str], ...]
    title: bool


@dataclass(frozen=True)
class Grammar:
    """The entry `grammar` of one language, with regular expressions compiled."""

    prompt: str
    end: str
    space: str
    orders: Mapping[str, str]
    adverbs: Mapping[str, Sequence[str]]
    nouns: Mapping[str, Sequence[str]]
    noise: Sequence[str]
    noise_titles: Sequence[str]
    agree: Mapping[str, Mapping[str, str]]
    contractions: tuple[tuple[re.Pattern[str], str], ...]
    progressive: re.Pattern[str] | None
    forms: Mapping[str, Mapping[str, Sequence[str]]]

    def contract(self, text: str) -> str:
        """`text` with its contractions made: "de le" → "du", "que une" → "qu'une"."""
        for pattern, replacement in self.contractions:
            text = pattern.sub(replacement, text)
        return text


def captions(
    scene: Scene,
    events: Sequence[Event],
    *,
    language: str,
    n: int = 5,
    seed: int = 0,
    kinds: Sequence[str] = KINDS,
) -> list[str]:
    """`n` captions of a scene, all different as long as the language has that many ways to tell it.

    The same scene, language and seed give the same captions on every machine. Sounds that overlap are named in any
    order; a sequence is told in its order, or in words that turn it round ("after", "before"). kinds: "sentences"
    ("a bell rings"), "titles" ("the ringing of a bell"), or both.

    Raises:
        UnknownNameError: there is no such language, or an event has no phrases in it.
        ValueError: n < 1.

    >>> from pullpush.data.banks.synthetic import synthetic_events
    >>> scene = Scene((Sound(1, 0, onset=0.0),), "single", None, 2.0)
    >>> captions(scene, synthetic_events(), language="eng", n=1)
    ['You can hear the ringing of a bell.']
    """
    grammar = load_grammar(language)
    phrases = [phrases_in(events[sound.event], language) for sound in scene.sounds]
    dice = Dice(entropy_of(scene, language, seed))
    forms = dice.shuffled(forms_of(language, scene.relation, len(scene.sounds), tuple(kinds)))

    def draw(attempt: int) -> tuple[str, str] | None:
        text = caption_of(forms[attempt % len(forms)], scene, phrases, grammar, dice)
        return None if text is None else (text, text)

    return distinct(draw, n)


def distinct(draw: Callable[[int], tuple[Hashable, T] | None], n: int, *, patience: int = PATIENCE) -> list[T]:
    """`n` values with different names, again from the first where there are fewer.

    draw: number of the draw → a name and a value, None for nothing; asked until `patience` draws in a row bring
    nothing new.

    >>> distinct(lambda number: (number % 2, "ab"[number % 2]), 3)
    ['a', 'b', 'a']
    """
    check_count("n", n)
    found: dict[Hashable, T] = {}
    attempt = fruitless = 0
    while len(found) < n and fruitless < patience:
        drawn = draw(attempt)
        attempt += 1
        fruitless = fruitless + 1 if drawn is None or drawn[0] in found else 0
        if drawn is not None:
            found.setdefault(*drawn)
    values = list(found.values())
    return [values[i % len(values)] for i in range(n)]


def prompts(events: Sequence[Event], language: str, template: str | None = None) -> list[str]:
    """One sentence per event that names its label, for zero-shot classification: a template, or the grammar's own; in
    English that of SupCLAP.

    >>> from pullpush.data.banks.synthetic import synthetic_events
    >>> prompts(synthetic_events(), "fra")[0], prompts(synthetic_events(), "ita")[0]
    ('Ceci est un son de réveil.', 'Questo è un suono: sveglia.')
    """
    if language not in load_languages():
        return load_labels().prompts([event.name for event in events], language, template)
    grammar = load_grammar(language)
    prompt = template or grammar.prompt
    return [grammar.contract(prompt.format(label=phrases_in(event, language).label)) for event in events]


def phrases_in(event: Event, language: str) -> Phrases:
    """What the event is called; `UnknownNameError` for events that lack the language, as a reader's own may."""
    return looked_up(f"language of the event {event.name!r}", language, event.phrases)


@cache
def load_grammar(language: str) -> Grammar:
    entry: dict[str, Any] = {"agree": {}, "contractions": {}, "progressive": None, **find_language(language).grammar}
    forms = {relation: entry.pop(relation) for relation in ("single", "sequence", "overlap")}
    contractions = tuple((re.compile(pattern), text) for pattern, text in entry.pop("contractions").items())
    progressive = re.compile(entry.pop("progressive")) if entry["progressive"] else entry.pop("progressive")
    return Grammar(**entry, contractions=contractions, progressive=progressive, forms=forms)


@cache
def forms_of(language: str, relation: str, count: int, kinds: tuple[str, ...] = KINDS) -> tuple[Form, ...]:
    """The forms that can tell `count` sounds in this relation."""
    entry = load_grammar(language).forms[relation]
    return tuple(
        create_form(text, count, title=kind == "titles")
        for kind in kinds
        for text in entry[kind]
        if is_long(text) == (count > 2)
    )


def create_form(text: str, count: int, *, title: bool) -> Form:
    """A form as files write it, for `count` sounds; the part in brackets once for each but the first and the last.

    >>> create_form("{main}[, then {main}] and finally {noun}", 3, title=False).pieces
    ((0, 'main'), ', then ', (1, 'main'), ' and finally ', (2, 'noun'))
    """

    def repeat(match: re.Match[str]) -> str:
        turns = match[1].split("|")
        return "".join(turns[min(i, len(turns) - 1)] for i in range(count - 2))

    text = _BETWEEN.sub(repeat, text)
    pieces: list[str | tuple[int, str]] = []
    end = following = 0
    for match in _SLOT.finditer(text):
        if match[1] is None:
            position, following = following, following + 1
        else:
            position = int(match[1]) - 1
        pieces += [text[end : match.start()], (position, match[2])]
        end = match.end()
    return Form(tuple(piece for piece in (*pieces, text[end:]) if piece), title)


def is_long(text: str) -> bool:
    """Whether a form is for three sounds and more: it has a part in brackets."""
    return bool(_BETWEEN.search(text))


def caption_of(form: Form, scene: Scene, phrases: list[Phrases], grammar: Grammar, dice: "Dice") -> str | None:
    """One caption, or None where the form does not fit the phrases (a case that cannot be told from the article)."""
    order = range(len(phrases))
    if scene.relation == "overlap":
        order = dice.shuffled(order)
    nouns = [dice.pick(phrases[i].nouns) for i in order]
    parts: list[str] = []
    for piece in form.pieces:
        if isinstance(piece, str):
            parts.append(piece)
            continue
        position, kind = piece
        sound, phrase = scene.sounds[order[position]], phrases[order[position]]
        if kind in grammar.agree:
            part = grammar.agree[kind].get(article_of(nouns[position])[0].lower())
        elif kind in CASES:
            part = _noun(nouns[position], kind, sound, grammar, dice)
        else:
            part = _clause(phrase.clauses, kind, sound, grammar, dice)
        if part is None:
            return None
        parts.append(part)
    noise = ""
    if scene.snr_db is not None and dice.chance(P_MENTION):
        noise = dice.pick(grammar.noise_titles if form.title else grammar.noise)
    return sentence("".join(parts), noise, grammar)


def sentence(text: str, noise: str, grammar: Grammar) -> str:
    """Words as a sentence: with the noise by its pattern, if any, contracted, with a capital and its end."""
    text = grammar.contract(noise.format(s=text, te=connective(text)) if noise else text)
    return text[0].upper() + text[1:] + grammar.end


def _clause(clauses: Sequence[Clause], kind: str, sound: Sound, grammar: Grammar, dice: "Dice") -> str | None:
    """A clause in the order that `kind` names; simple: not progressive; te: in the Japanese connective form."""
    if kind == "simple":  # "after a frog is croaking" is no English
        clauses = [clause for clause in clauses if not (grammar.progressive and grammar.progressive.match(clause.verb))]
        if not clauses:
            return None
    clause = dice.pick(clauses)
    adverb = dice.pick(grammar.adverbs.get(_told(sound, dice), ("",)))
    return clause_in(clause, adverb, kind, grammar)


def clause_in(clause: Clause, adverb: str, order: str, grammar: Grammar) -> str:
    """The words of a clause in one of the grammar's orders."""
    words = {"S": clause.subject, "V": clause.verb, "A": adverb}
    text = grammar.space.join(word for letter in grammar.orders[order] if (word := words[letter]))
    return connective(text) if order == "te" else text


def _noun(noun: str, case: str, sound: Sound, grammar: Grammar, dice: "Dice") -> str | None:
    """The noun phrase in its case, with distance and repetition where the language can add them to its article."""
    patterns = grammar.nouns.get(_told(sound, dice))
    if patterns:
        pattern = dice.pick(patterns)
        article, rest = article_of(noun)
        repeated = grammar.agree.get("repeated", {}).get(article)
        if repeated or "{repeated}" not in pattern:
            noun = pattern.format(noun=noun, article=article, repeated=repeated, rest=rest)
    return CASES[case](noun)


def _told(sound: Sound, dice: "Dice") -> str:
    """What of a sound's distance and repetition is told: a key of `adverbs` and `nouns`."""
    far = sound.far and dice.chance(P_MENTION)
    often = sound.repeats > 1 and dice.chance(P_MENTION)
    return "both" if far and often else "far" if far else "often" if often else "plain"


class Dice:
    """Choices drawn from one stream of uniform numbers; blocks, since single draws would take most of the time."""

    def __init__(self, entropy: int) -> None:
        self._generator = np.random.default_rng(entropy)
        self._left: list[float] = []

    def _draw(self) -> float:
        if not self._left:
            self._left = self._generator.random(64).tolist()
        return self._left.pop()

    def chance(self, probability: float) -> bool:
        return self._draw() < probability

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self._draw() * len(options))] if len(options) > 1 else options[0]

    def shuffled(self, options: Sequence[Any]) -> list[Any]:
        keys = [self._draw() for _ in options]
        return [options[i] for i in sorted(range(len(options)), key=keys.__getitem__)]


def entropy_of(scene: Scene, language: str, seed: int) -> int:
    """128 bits from the scene's values, the language and the seed; the same in every process."""
    sounds = [
        (int(s.event), int(s.clip), float(s.onset), int(s.semitones), float(s.gain_db), bool(s.far), int(s.repeats))
        for s in scene.sounds
    ]
    snr_db = None if scene.snr_db is None else float(scene.snr_db)
    return number((sounds, scene.relation, snr_db, float(scene.duration), language, int(seed)), size=16)
