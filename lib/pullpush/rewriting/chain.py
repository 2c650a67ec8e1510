"""Several rewriters as one: one after the other, or one of them for each caption."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from pullpush.data.clips import Clips
from pullpush.data.draws import number as draw
from pullpush.data.language.vocabulary import Event
from pullpush.data.scenes.augmented import Rewriter
from pullpush.rewriting import RewriterCard


@dataclass(frozen=True)
class Several(Rewriter):
    """At least one rewriter, made for the clips that it is made for."""

    rewriters: tuple[Rewriter, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rewriters", tuple(self.rewriters))
        if not self.rewriters:
            raise ValueError("at least one rewriter is needed")

    def of(self, clips: Clips, language: str, events: Sequence[Event] = ()) -> Self:
        return replace(self, rewriters=tuple(each.of(clips, language, events) for each in self.rewriters))


@dataclass(frozen=True)
class Chain(Several):
    """Each rewriter takes what the one before it gave: a caption comes back from another language and loses a word.

    >>> from pullpush.rewriting.words import WordDeletion
    >>> Chain((WordDeletion(p=1.0), WordDeletion(p=1.0, seed=1))).rewrite(["Rain falls on a roof."])
    ['Rain a roof.']
    """

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        texts = list(captions)
        for rewriter in self.rewriters:
            texts = rewriter.rewrite(texts, number=number)
        return texts


@dataclass(frozen=True)
class OneOf(Several):
    """One of the rewriters for each caption, each as likely: a caption loses a word, or has one replaced.

    seed: of the draws, with the caption and the number.

    >>> from pullpush.rewriting.words import WordDeletion
    >>> OneOf((WordDeletion(p=1.0), WordDeletion(p=0.0)), seed=3).rewrite(["Rain falls.", "A bell rings."])
    ['Rain.', 'A bell rings.']
    """

    seed: int = 0

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        drawn = [draw(("one of", self.seed, caption, number)) % len(self.rewriters) for caption in captions]
        texts = list(captions)
        for which, rewriter in enumerate(self.rewriters):
            rows = [row for row, chosen in enumerate(drawn) if chosen == which]
            for row, text in zip(rows, rewriter.rewrite([texts[row] for row in rows], number=number), strict=True):
                texts[row] = text
        return texts


CARDS = (
    RewriterCard(
        name="chain",
        make=Chain,
        title="One after the other",
        about="Each rewriter takes what the one before it gave.",
        source="ours",
    ),
    RewriterCard(
        name="one-of",
        make=OneOf,
        title="One of several",
        about="One of several rewriters, drawn for each caption.",
        source="ours",
    ),
)
