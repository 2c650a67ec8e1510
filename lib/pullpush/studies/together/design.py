"""Two-level factorial designs as data: full ones, regular fractions of them, and what is aliased with what.

A run sets every factor low (−1) or high (+1). A *regular fraction* takes 2^(k−p) of the 2^k runs: p factors are set by
generators, products of the others (Box, Hunter & Hunter, *Statistics for Experimenters*, ch. 6). What a generator
equates can be told apart by no analysis: the products of generators, multiplied out, are the *defining words*, the
shortest of them has the length that is called the *resolution*, and an effect times a word is its *alias*.

    half = fraction("ABCDEFG", {"G": "ABCDEF"})   # 64 runs of 128
    half.resolution                               # 7: two-way interactions are aliased with five-way ones
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from pullpush.errors import PullPushError, unknown

Effect = tuple[str, ...]  # of one factor, or the interaction of several; in the order of the design's factors
ROMAN = ("0", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


class DesignError(PullPushError, ValueError):
    """A design that cannot be made as it was described."""


@dataclass(frozen=True)
class Design:
    """Runs of a two-level design.

    Attributes:
        factors: their names, each once.
        generators: factor → the factors whose product it is; none in a full factorial.

    >>> fraction(["loss", "SVR", "cycles"], {"cycles": ["loss", "SVR"]}).signs
    array([[-1, -1,  1],
           [ 1, -1, -1],
           [-1,  1, -1],
           [ 1,  1,  1]])
    """

    factors: tuple[str, ...]
    generators: Mapping[str, Effect]

    @cached_property
    def signs(self) -> np.ndarray:
        """`(runs, factors)` int64 of −1 and +1, in Yates' order: the first factor changes fastest."""
        basic = [name for name in self.factors if name not in self.generators]
        rows = np.array([levels[::-1] for levels in product((-1, 1), repeat=len(basic))], dtype=np.int64)
        column = {name: rows[:, place] for place, name in enumerate(basic)}
        for name, parts in self.generators.items():
            column[name] = np.prod([column[part] for part in parts], axis=0)
        return np.stack([column[name] for name in self.factors], axis=1)

    def __len__(self) -> int:
        return len(self.signs)

    @property
    def runs(self) -> list[frozenset[str]]:
        """The factors that are high in each run."""
        return [frozenset(np.array(self.factors)[row > 0].tolist()) for row in self.signs]

    @cached_property
    def words(self) -> tuple[Effect, ...]:
        """The defining words: effects that are constant over all runs, shortest first; none of a full factorial."""
        found = []
        for count in range(1, len(self.generators) + 1):
            for chosen in combinations(self.generators.items(), count):
                word: set[str] = set()
                for name, parts in chosen:
                    word ^= {name, *parts}  # a factor times itself is 1
                found.append(self._effect(word))
        return tuple(sorted(found, key=self._order))

    @property
    def resolution(self) -> int | None:
        """Length of the shortest defining word; None of a full factorial, where nothing is aliased."""
        return len(self.words[0]) if self.words else None

    def aliases(self, *effect: str, up_to: int | None = None) -> list[Effect]:
        """The effects that no analysis tells apart from one, shortest first.

        Args:
            effect: names of factors.
            up_to: of so many factors at most.

        Raises:
            UnknownNameError: no such factor.

        >>> fraction("ABCD", {"D": "ABC"}).aliases("A", "B")
        [('C', 'D')]
        """
        found = [self._effect(set(self._effect(effect)) ^ set(word)) for word in self.words]
        kept = [other for other in found if up_to is None or len(other) <= up_to]
        return sorted(kept, key=self._order)

    def effects(self, order: int = 2) -> list[Effect]:
        """All effects of up to so many factors: main effects first, then interactions.

        >>> fraction("AB", {}).effects()
        [('A',), ('B',), ('A', 'B')]
        """
        return [effect for size in range(1, order + 1) for effect in combinations(self.factors, size)]

    def contrast(self, *effect: str) -> np.ndarray:
        """`(runs,)` of −1 and +1: the half of the runs that an effect is taken over, and the other half.

        Raises:
            UnknownNameError: no such factor.
        """
        columns = [self.factors.index(name) for name in self._effect(effect)]
        return np.prod(self.signs[:, columns], axis=1)

    def model(self, order: int = 2) -> np.ndarray:
        """`(runs, 1 + effects)` of −1 and +1: an intercept and the contrast of each of `effects(order)`."""
        return np.stack([np.ones(len(self), np.int64), *(self.contrast(*one) for one in self.effects(order))], axis=1)

    def saturated(self) -> list[Effect]:
        """As many effects as there are runs, less one: every contrast that can be taken, each by its shortest name.

        They are orthogonal and use the design up. Of a fraction with clear main effects and interactions the others
        are what is hardly ever large, and show how large an effect is by chance.

        >>> fraction("ABC", {"C": "AB"}).saturated()
        [('A',), ('B',), ('C',)]
        """
        basic = [name for name in self.factors if name not in self.generators]
        found = [effect for size in range(1, len(basic) + 1) for effect in combinations(basic, size)]
        return sorted((min([one, *self.aliases(*one)], key=self._order) for one in found), key=self._order)

    def _order(self, effect: Effect) -> tuple[int, list[int]]:
        """Shorter effects first, then by the order of the factors."""
        return len(effect), [self.factors.index(name) for name in effect]

    def _effect(self, names: Iterable[str]) -> Effect:
        """Factors in the design's order, each once."""
        wanted = set(names)
        if wrong := wanted - set(self.factors):
            raise unknown("factor", min(wrong), self.factors)
        return tuple(name for name in self.factors if name in wanted)


def full(factors: Sequence[str]) -> Design:
    """All 2^k runs.

    >>> len(full("ABC")), full("ABC").resolution
    (8, None)
    """
    return fraction(factors, {})


def fraction(factors: Sequence[str], generators: Mapping[str, Iterable[str]]) -> Design:
    """A regular fraction: those of the 2^k runs in which every generated factor is the product of its own.

    Args:
        factors: names, in an order that runs and effects keep; a string is one factor a letter.
        generators: factor → at least two others, none of which is generated itself.

    Raises:
        DesignError: a name twice, or a generator of fewer than two factors or of generated ones.
        UnknownNameError: a generator names no factor of the design.

    >>> resolution_name(fraction("ABCDEFG", {"G": "ABCDEF"}))
    'VII'
    """
    names = tuple(factors)
    if len(set(names)) < len(names) or not names:
        raise DesignError(f"factors need names, each its own, got {names}")
    kept: dict[str, Effect] = {}
    for name, parts in generators.items():
        for each in (name, *(chosen := tuple(parts))):
            if each not in names:
                raise unknown("factor", each, names)
        if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen) or set(chosen) & set(generators):
            raise DesignError(
                f"the generator of {name!r} is {chosen}: give it two factors or more, each once, none generated"
            )
        kept[name] = chosen
    return Design(names, kept)


def resolution_name(design: Design) -> str:
    """The resolution as it is written, "VII"; "full" where nothing is aliased."""
    return "full" if design.resolution is None else ROMAN[design.resolution]
