"""What questions to a paid model cost: estimated before they are asked, and never more than a budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

BYTES = 4  # of English text, a token
OVERHEAD = 16  # tokens around a conversation, at most


class BudgetError(Exception):
    """The next question might cost more than is left."""


@dataclass(frozen=True)
class Prices:
    """In any currency, for a million tokens: of what is asked, and of what is answered."""

    asked: float
    answered: float

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Of so many tokens.

        >>> Prices(2.0, 8.0).cost(1_000_000, 500_000)
        6.0
        """
        return (tokens_in * self.asked + tokens_out * self.answered) / 1e6


def tokens(text: str) -> int:
    """About how many tokens a text has.

    >>> tokens("A bell rings.")
    4
    """
    return -(-len(text.encode()) // BYTES)


def most_tokens(texts: Iterable[str]) -> int:
    """At most how many tokens texts have in a conversation: none is shorter than a byte."""
    return sum(len(text.encode()) for text in texts) + OVERHEAD


@dataclass
class Account:
    """What one rewriter has spent and may still spend; safe between threads.

    spent: so far; held: what questions under way cost at most.
    """

    spent: float = 0.0
    held: float = 0.0
    _changed: Condition = field(default_factory=Condition, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes get what was spent, and a condition of their own."""
        return Account, (self.spent,)

    def hold(self, most: float, budget: float | None) -> None:
        """Set aside what a question costs at most; waits for questions under way that may turn out cheaper.

        Raises:
            BudgetError: that is more than is left.
        """
        with self._changed:
            while budget is not None and self.spent + self.held + most > budget:
                if self.spent + most > budget:
                    raise BudgetError
                self._changed.wait()
            self.held += most

    def settle(self, most: float, cost: float) -> None:
        """Take what it did cost for what was set aside."""
        with self._changed:
            self.held -= most
            self.spent += cost
            self._changed.notify_all()
