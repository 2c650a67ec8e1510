"""One question to a chat endpoint that speaks OpenAI's protocol, asked again until it is answered in full.

What passes by itself is asked again, after waits that double, with jitter: time-outs, broken connections, 408, 409, 429
(after what Retry-After says), 5xx, answers that are no JSON, cut off, empty, or more than one. What does not pass (a
wrong key, a model that is not there) is said at once. The key is in the header of requests and nowhere else.

`openai` retries without a word to who pays and bounds neither size nor whole time of an answer: all below would stay,
for 16 MB and a second of import. `tenacity` would take six lines and want seven for Retry-After and the common pace.
"""

from __future__ import annotations

import asyncio
import json
import random
import reprlib
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from threading import Event, Lock
from typing import Any, NamedTuple

import httpx2

from pullpush.data.scenes.augmented import RewritingError
from pullpush.rewriting.costs import Paid

AGAIN = {408, 409, 429, *range(500, 600)}  # status codes that pass
LONGEST = 300.0  # seconds that are waited at most
SHOWN = 200  # characters of what a server says in an error
LARGEST = 1_000_000  # bytes of a reply
MOST_TOKENS = 10**9  # that one answer may be said to have taken

Bill = Callable[[], AbstractContextManager[Paid]]  # around one attempt


class Answer(NamedTuple):
    """What a model said, and what it counted: tokens in and out, None where it does not tell; odd: senseless ones."""

    text: str
    tokens: tuple[int | None, int | None]
    odd: str


class Refused(RewritingError):
    """The endpoint refuses what is asked; asking again would not help."""


class Unanswered(RewritingError):
    """No answer in full after all attempts."""


class _Passing(Exception):
    """What was wrong with one attempt; wait: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = min(wait, LONGEST)


class Pace:
    """When the next request may go: so many a minute, over all threads, and not before a server says so."""

    def __init__(self, a_minute: float | None) -> None:
        self._apart, self._next = 60 / a_minute if a_minute else 0.0, 0.0
        self._lock, self._ended = Lock(), Event()
        self.end = self._ended.set  # nobody begins anything any more

    def turn(self) -> None:
        """Return when it is this caller's turn; `Unanswered` after `end`."""
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + self._apart
        self.rest(turn - time.monotonic())

    def hold(self, seconds: float) -> None:
        """Nobody's turn before so many seconds have passed."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def rest(self, seconds: float) -> None:
        """Return after some seconds; `Unanswered` after `end`."""
        if self._ended.wait(max(0.0, seconds)):
            raise Unanswered("stopped")


@dataclass(frozen=True)
class Chat:
    """An endpoint. url: ends in /v1 or the like; key: "" for none; timeout: seconds of an attempt; attempts: at most.

    first_wait: seconds after the first failure, doubled with each; pace: shared by all threads.
    """

    url: str
    key: str = field(repr=False)
    timeout: float
    attempts: int
    first_wait: float
    pace: Pace = field(repr=False)

    def ask(self, payload: Mapping[str, Any], bill: Bill) -> Answer:
        """The answer to one conversation.

        bill: entered before each attempt, where it may raise; what it gives is told the tokens of what came back, none
            where nothing was done, and is not called where nobody knows, as after a time-out.

        Raises:
            Refused: the endpoint refuses the key, the model or the question.
            Unanswered: no attempt was answered in full.
        """
        for attempt in range(self.attempts):
            self.pace.turn()
            try:
                with bill() as paid:
                    return self._attempt(payload, paid)
            except _Passing as fault:
                last = fault
                self.pace.hold(fault.wait)
            if attempt + 1 < self.attempts:
                self.pace.rest(min(self.first_wait * 2**attempt * random.uniform(0.5, 1.5), LONGEST))
        raise Unanswered(f"no answer after {self.attempts} attempts ({last})")

    def _attempt(self, payload: Mapping[str, Any], paid: Paid) -> Answer:
        try:
            reply, body = asyncio.run(self._post(payload))
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            paid(0, 0)
            raise Refused(f"OPENAI_BASE_URL is no address: {self._shown(error)}") from None
        except (httpx2.HTTPError, TimeoutError) as error:
            if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):  # nothing was sent
                paid(0, 0)
            why = self._shown(error) or f"no whole answer in {self.timeout:g} s: raise timeout"
            raise _Passing(f"{type(error).__name__}: {why}") from None
        said = self._shown(body.decode(errors="replace"))
        if reply.status_code != 200:
            paid(0, 0)
        if reply.status_code in AGAIN:
            raise _Passing(f"status {reply.status_code}: {said}", _retry_after(reply.headers.get("Retry-After", "")))
        if reply.status_code != 200:
            raise Refused(
                f"{self.url} refuses (status {reply.status_code}): {said}; "
                "check the model's name, OPENAI_API_KEY and OPENAI_BASE_URL"
            )
        answer = _read(body, paid)
        return answer._replace(text=self._safe(answer.text))  # what repeats the key must not be kept

    async def _post(self, payload: Mapping[str, Any]) -> tuple[httpx2.Response, bytes]:
        """A reply with its body; its own loop is what bounds the whole time, whatever drips in."""
        address = f"{self.url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        limits = httpx2.Timeout(self.timeout, connect=self.timeout / 2)  # known before the whole time has passed
        body = b""
        async with (
            asyncio.timeout(self.timeout),
            httpx2.AsyncClient(timeout=limits, verify=_trusted()) as client,
            client.stream("POST", address, json=dict(payload), headers=headers) as reply,
        ):
            async for part in reply.aiter_bytes():
                body += part
                if len(body) > LARGEST:
                    raise _Passing(f"an answer without an end, over {LARGEST} bytes: is this a chat endpoint?")
        return reply, body

    def _safe(self, text: str) -> str:
        return text.replace(self.key, "…") if self.key else text

    def _shown(self, said: object) -> str:
        """The start of what a server or a library says, without the key."""
        return self._safe(" ".join(str(said).split()))[:SHOWN]


@cache
def _trusted() -> Any:
    """Certificates, read once: that takes longer than the rest of a request."""
    return httpx2.create_ssl_context()


def _read(body: bytes, paid: Paid) -> Answer:
    """The one answer in a reply, whole and not empty."""
    try:
        found = json.loads(body)
        usage = found.get("usage")
        told = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
        counts = [count if type(count) is int and 0 <= count <= MOST_TOKENS else None for count in told]
        paid(*counts)
        (choice,) = found["choices"]
        text, end = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _Passing(f"an answer that is no single completion in JSON ({type(error).__name__})") from None
    if not isinstance(text, str) or not text.strip():
        raise _Passing("an empty answer")
    if end == "length":
        raise _Passing("an answer that is cut off: raise max_tokens")
    if not writable(text):
        raise _Passing("an answer with half a character, a lone surrogate")
    odd = [count for count in told if count is not None and count not in counts]
    named = [reprlib.repr(count) if isinstance(count, int | float) else type(count).__name__ for count in odd]
    return Answer(text, (counts[0], counts[1]), ", ".join(named))


def writable(text: str) -> bool:
    """Whether a text can be written and sent: half a character, a lone surrogate, cannot.

    >>> writable("bell"), writable(chr(0xD800))
    (True, False)
    """
    return text.encode(errors="ignore") == text.encode(errors="replace")


def _retry_after(said: str) -> float:
    """Seconds that a server asks to wait, be they a number or a date; 0 where it does not, or not clearly."""
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
