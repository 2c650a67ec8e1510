"""What questions to a paid model cost: estimated before they are asked, and never more than a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

Paid = Callable[[int | None, int | None], None]  # is told tokens asked and answered, None where nobody counted them


class BudgetError(Exception):
    """The next question might cost more than is left."""


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
    """What one rewriter has spent and may still spend; safe between threads.

    spent: so far; held: what questions under way cost at most.
    """

    spent: float = 0.0
    held: float = 0.0
    _changed: Condition = field(default_factory=Condition, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes get what was spent, and a condition of their own."""
        return Account, (self.spent,)

    @contextmanager
    def bill(self, most: float, budget: float | None, prices: Prices | None) -> Iterator[Paid]:
        """Around one attempt: sets aside its highest cost, which is spent unless what this yields is told the tokens.

        Waits for questions under way that may turn out cheaper.

        Raises:
            BudgetError: that is more than is left.
        """
        with self._changed:
            while budget is not None and self.spent + self.held + most > budget:
                if self.spent + most > budget:
                    raise BudgetError
                self._changed.wait()
            self.held += most
        cost = most

        def paid(asked: int | None, answered: int | None) -> None:
            nonlocal cost
            if prices is not None and asked is not None and answered is not None:
                cost = prices.cost(asked, answered)

        try:
            yield paid
        finally:
            with self._changed:
                self.held -= most
                self.spent += cost
                self._changed.notify_all()
