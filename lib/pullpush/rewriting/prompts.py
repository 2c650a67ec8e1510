"""What models are asked and what that costs, as data; what all rewriters that ask a model share."""

import json
import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from pullpush.cache import content_key
from pullpush.data.clips import Clips
from pullpush.data.draws import number as draw
from pullpush.data.language.vocabulary import Event
from pullpush.data.scenes.augmented import Merger, Rewriter, RewritingError, check_pairs

LANGUAGES = ("French", "German", "Spanish", "Italian", "Portuguese", "Dutch", "Russian", "Chinese", "Japanese")
SLOT = re.compile(r"\{(caption|through|first|second)\}")
HOW: dict[str, Any] = {"kw_only": True, "compare": False}  # fields that change no answer: no part of a key either
QUOTES = "\"'“”„«»‘’ \t"


@dataclass(frozen=True)
class Prompts:
    """What a model is asked. The paper's prompts are not published: these are this book's.

    system: before everything, "" for nothing; rewrite: holds {caption}, and {through}, a language, where it is drawn;
    merge: holds {first} and {second}.

    Raises:
        ValueError: a slot is missing.

    >>> Prompts(rewrite="Say it otherwise: {caption}").rewrite
    'Say it otherwise: {caption}'
    """

    system: str = "You write captions of sound recordings. Reply with one caption alone, in a single line."
    rewrite: str = (
        "Translate this caption into {through}, then translate the result back into English in other words. Keep every "
        "sound and the order of sounds; add nothing. Reply with the English caption alone.\nCaption: {caption}"
    )
    merge: str = (
        "Two recordings are played at the same time. Merge their captions into one English caption of what is then "
        "heard. Keep every sound; add nothing. Reply with the caption alone.\nFirst: {first}\nSecond: {second}"
    )

    def __post_init__(self) -> None:
        for name, slots in (("rewrite", ["caption"]), ("merge", ["first", "second"])):
            for slot in slots:
                if f"{{{slot}}}" not in getattr(self, name):
                    raise ValueError(f"the prompt {name!r} needs the slot {{{slot}}}, got {getattr(self, name)!r}")


class Question(NamedTuple):
    """What a model is asked: the whole prompt, what it is about, and the number of the copy."""

    prompt: str
    caption: str
    number: int


@dataclass(frozen=True)
class Prompted(Rewriter, Merger):
    """Rewrites and merges by asking a model; a subclass answers.

    prompts: what it is asked; through: names of languages, one drawn for each caption; seed: of these draws.
    """

    prompts: Prompts = field(default_factory=Prompts, kw_only=True)
    through: tuple[str, ...] = field(default=LANGUAGES, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "through", (self.through,) if isinstance(self.through, str) else tuple(self.through))
        if not self.through:
            raise ValueError("through needs at least one language")

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Self:
        """See `Rewriter`; `RewritingError` for other captions than English ones by the prompts that ask for these."""
        if language != "eng" and self.prompts == Prompts():
            raise RewritingError(f"these prompts ask for English captions, got {language!r}: give prompts of your own")
        return self

    @abstractmethod
    def answers(self, questions: Sequence[Question]) -> list[str]:
        """What the model says to each question, not empty."""

    def messages(self, prompt: str) -> list[dict[str, str]]:
        """A prompt as a conversation, in which the system speaks first."""
        system = [{"role": "system", "content": self.prompts.system}] if self.prompts.system else []
        return [*system, {"role": "user", "content": prompt}]

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        questions = []
        for caption in captions:
            through = self.through[draw(("through", self.seed, caption, number)) % len(self.through)]
            questions.append(Question(filled(self.prompts.rewrite, caption=caption, through=through), caption, number))
        return [cleaned(text) for text in self.answers(questions)]

    def merge(self, first: Sequence[str], second: Sequence[str], *, number: int = 0) -> list[str]:
        check_pairs(first, second)
        questions = [
            Question(filled(self.prompts.merge, first=one, second=other), f"{one} | {other}", number)
            for one, other in zip(first, second, strict=True)
        ]
        return [cleaned(text) for text in self.answers(questions)]


def filled(prompt: str, **values: str) -> str:
    """A prompt with its slots filled, in one go: a caption may hold braces."""
    return SLOT.sub(lambda match: values.get(match[1], match[0]), prompt)


def cleaned(text: str) -> str:
    """The caption in what a model said: its first line, without quotation marks and without "Caption:".

    >>> cleaned('Caption: "A bell rings." ' + chr(10) + "I hope this helps!")
    'A bell rings.'
    """
    line = next((line for line in text.splitlines() if line.strip()), "")
    bare = re.sub(r"^\s*(english )?caption:\s*", "", line, flags=re.IGNORECASE).strip(QUOTES)
    return bare or line.strip()


@dataclass(frozen=True)
class Prices:
    """In any currency, for a million tokens: of what is asked, and of what is answered.

    Raises:
        ValueError: a price is negative, infinite or no number, which no budget could bound.
    """

    asked: float
    answered: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(price) and price >= 0 for price in (self.asked, self.answered)):
            raise ValueError(f"prices for a million tokens are finite and at least 0, got {self}")

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Of so many tokens.

        >>> Prices(2.0, 8.0).cost(1_000_000, 500_000)
        6.0
        """
        return (tokens_in * self.asked + tokens_out * self.answered) / 1e6


@dataclass
class Account:
    """What one rewriter has spent; reserved: what questions under way cost at most."""

    spent: float = 0.0
    reserved: float = 0.0


def stored(path: Path) -> str:
    """The answer that a file holds, as it was written."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        digest = content_key(row["answer"], length=64)
        if row.get("sha256", digest) != digest:  # earlier versions wrote none
            raise ValueError("its answer is not what was written")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RewritingError(f"{path}, a paid answer, is damaged ({error}): restore or remove it") from None
    return row["answer"]
