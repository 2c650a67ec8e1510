"""One word less, drawn at random."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from pullpush.data.draws import number as draw, share
from pullpush.data.scenes.augmented import Rewriter
from pullpush.rewriting.contract import RewriterCard

WORD = re.compile(r"[^\s.,;:!?()\"“”]+")  # apostrophes and hyphens belong to a word


@dataclass(frozen=True)
class OneWord(Rewriter):
    """Changes one word of a caption, with probability p; seed: of the draws, with the caption and the number."""

    p: float = 0.8
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"p is a probability, got {self.p}")

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        """See `Rewriter`."""
        return [self.rewritten(caption, (self.seed, caption, number)) for caption in captions]

    @abstractmethod
    def rewritten(self, caption: str, asked: tuple) -> str:
        """A caption with a word changed, or as it is; asked: what draws depend on."""


@dataclass(frozen=True)
class WordDeletion(OneWord):
    """Deletes one word of a caption, each as likely, with probability p; a single word stays.

    The comma that would be left alone goes with its word, and a sentence begins with a capital again. Languages that
    write no spaces have words as long as what stands between two marks.

    seed: of the draws, with the caption and the number.

    >>> WordDeletion(p=1.0).rewrite(["First a frog croaks, then rain falls."])
    ['First frog croaks, then rain falls.']
    """

    def rewritten(self, caption: str, asked: tuple) -> str:
        """See `OneWord`."""
        words = list(WORD.finditer(caption))
        if len(words) < 2 or share(("delete", *asked)) >= self.p:
            return caption
        word = words[draw(("which", *asked)) % len(words)]
        before, after = caption[: word.start()], caption[word.end() :]
        if not before.strip():
            after = after.lstrip(" ,;:")
            return after[0].upper() + after[1:] if word[0][0].isupper() else after
        return before + after.lstrip() if after[:1].isspace() else before.rstrip(" ,;:") + after


CARD = RewriterCard(
    name="deletion",
    make=WordDeletion,
    title="Word deletion",
    about="Deletes one word of a caption at random, with probability 0.8.",
    source="EDA; Distillation & clusters §3",
    citation="distill_cluster",
)
