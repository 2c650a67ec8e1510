"""What a chat endpoint of OpenAI's protocol replies, and what is wrong with it; what its answers cost."""

from __future__ import annotations

import asyncio
import json
import math
import reprlib
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST = 300.0  # seconds of a wait at most
MOST_TOKENS = 10**9  # of one answer, by any count that is believed


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


class Passing(Exception):
    """What was wrong with one attempt, where another may help; wait: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = min(wait, LONGEST)


class Unsent(Passing):
    """The question did not reach the endpoint."""


def parsed(body: bytes) -> dict[str, Any]:
    """What a reply holds."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _no_completion(error) from None
    return answer if isinstance(answer, dict) else {}


def counted(answer: Mapping[str, Any]) -> tuple[int | None, int | None, str]:
    """Tokens in and out, None where they are not counted or make no sense, and the latter for a message.

    >>> counted({"usage": {"prompt_tokens": 9, "completion_tokens": -1}})
    (9, None, '-1')
    """
    usage = answer.get("usage")
    given = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    counts = [count if type(count) is int and 0 <= count <= MOST_TOKENS else None for count in given]
    odd = [count for count in given if count is not None and count not in counts]
    named = [reprlib.repr(count) if isinstance(count, int | float) else type(count).__name__ for count in odd]
    return counts[0], counts[1], ", ".join(named)


def text_of(answer: Mapping[str, Any]) -> str:
    """The one answer in a reply, whole and not empty."""
    try:
        (choice,) = answer["choices"]
        text, end = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_completion(error) from None
    if not isinstance(text, str) or not text.strip():
        raise Passing("an empty answer")
    if end == "length":
        raise Passing("an answer that is cut off: raise max_tokens")
    if not writable(text):
        raise Passing("an answer with half a character, a lone surrogate")
    return text


def _no_completion(error: Exception) -> Passing:
    return Passing(f"an answer that is no single completion in JSON ({type(error).__name__})")


def writable(text: str) -> bool:
    """Whether a text can be written and sent: half a character, a lone surrogate, cannot.

    >>> writable("bell"), writable(chr(0xD800))
    (True, False)
    """
    return text.encode(errors="ignore") == text.encode(errors="replace")


def retry_after(value: str) -> float:
    """Seconds that a server asks to wait, be they a number or a date; 0 where it does not, or not clearly."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run to its end what awaits, in a loop and a thread of its own: a notebook has a loop in this one already.

    An interrupt cancels the work, and waits for what it does then.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run() -> None:
        try:
            loop.run_until_complete(task)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(run)
        try:
            done.result()
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(task.cancel)
            raise
