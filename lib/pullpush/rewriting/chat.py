"""One question to a chat endpoint that speaks OpenAI's protocol, asked again until it is answered in full.

What passes by itself is asked again, after waits that double, with jitter: time-outs, broken connections, 408, 409, 429
(after what Retry-After says), 5xx, answers that are no JSON, cut off, empty, or more than one. What does not pass (a
wrong key, a model that is not there) is said at once. The key is in the header of requests and nowhere else.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Event, Lock
from typing import Any, NamedTuple

import requests

from pullpush.data.rewriter import RewritingError

AGAIN = {408, 409, 429, *range(500, 600)}  # status codes that pass
LONGEST = 300.0  # seconds that are waited at most
SHOWN = 200  # characters of what a server says in an error
NEVER_SENT = {"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"}  # causes of urllib3's

Paid = Callable[[int | None, int | None], None]  # is told tokens asked and answered, None where nobody counted them
Bill = Callable[[], AbstractContextManager[Paid]]  # around one attempt


class Answer(NamedTuple):
    """What a model said, and what it counted: tokens in and out, None where it does not tell."""

    text: str
    asked: int | None
    answered: int | None


class Refused(RewritingError):
    """The endpoint refuses what is asked; asking again would not help."""


class Unanswered(RewritingError):
    """No answer in full after all attempts."""


class _Passing(Exception):
    """What was wrong with one attempt; wait: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Pace:
    """When the next request may go: so many a minute, over all threads, and not before a server says so."""

    def __init__(self, a_minute: float | None) -> None:
        self._apart, self._next = 60 / a_minute if a_minute else 0.0, 0.0
        self._lock, self._ended = Lock(), Event()

    def wait(self) -> None:
        """Return when it is this caller's turn; `Unanswered` after `end`."""
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + self._apart
        self.rest(turn - time.monotonic())

    def rest(self, seconds: float) -> None:
        """Return after some seconds; `Unanswered` after `end`."""
        if self._ended.wait(max(0.0, seconds)):
            raise Unanswered("stopped")

    def end(self) -> None:
        """Nobody begins anything any more."""
        self._ended.set()

    def hold(self, seconds: float) -> None:
        """Nobody's turn before so many seconds have passed."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)


class _Bearer(requests.auth.AuthBase):
    """The key in the header; an object of its own, so that no netrc file puts another there."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


@dataclass(frozen=True)
class Chat:
    """An endpoint. url: ends in /v1 or the like; key: "" for none; timeout: seconds without a byte; attempts: at most.

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
            self.pace.wait()
            try:
                with bill() as paid:
                    return self._attempt(payload, paid)
            except _Passing as fault:
                last = fault
            if attempt + 1 < self.attempts:
                backed = self.first_wait * 2**attempt * random.uniform(0.5, 1.5)
                if last.wait is not None:
                    self.pace.hold(min(last.wait, LONGEST))
                self.pace.rest(min(max(backed, last.wait or 0.0), LONGEST))
        raise Unanswered(f"no answer after {self.attempts} attempts ({last})")

    def _attempt(self, payload: Mapping[str, Any], paid: Paid) -> Answer:
        address = f"{self.url.rstrip('/')}/chat/completions"
        options: dict[str, Any] = {"auth": _Bearer(self.key), "timeout": self.timeout, "allow_redirects": False}
        try:
            reply = requests.post(address, json=dict(payload), **options)
        except requests.RequestException as error:
            if type(getattr(next(iter(error.args), None), "reason", None)).__name__ in NEVER_SENT:
                paid(0, 0)
            if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.MissingSchema):
                raise Refused(f"OPENAI_BASE_URL is no address: {self._shown(error)}") from None
            raise _Passing(f"{type(error).__name__}: {self._shown(error)}") from None
        if reply.status_code != 200:
            paid(0, 0)
        if reply.status_code in AGAIN:
            raise _Passing(f"status {reply.status_code}: {self._shown(reply.text)}", _retry_after(reply))
        if reply.status_code != 200:
            raise Refused(
                f"{self.url} refuses (status {reply.status_code}): {self._shown(reply.text)}; "
                "check the model's name, OPENAI_API_KEY and OPENAI_BASE_URL"
            )
        return _read(reply, paid)

    def _shown(self, said: object) -> str:
        """The start of what a server or a library says, without the key."""
        text = " ".join(str(said).split())
        return (text.replace(self.key, "…") if self.key else text)[:SHOWN]


def _read(reply: requests.Response, paid: Paid) -> Answer:
    """The one answer in a reply, whole and not empty."""
    try:
        body = reply.json()
        usage = body.get("usage") or {}
        counts = usage.get("prompt_tokens"), usage.get("completion_tokens")
        paid(*counts)
        (choice,) = body["choices"]
        text, end = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Passing(f"an answer that is no single completion in JSON ({type(error).__name__})") from None
    if not isinstance(text, str) or not text.strip():
        raise _Passing("an empty answer")
    if end == "length":
        raise _Passing("an answer that is cut off: raise max_tokens")
    return Answer(text, *counts)


def _retry_after(reply: requests.Response) -> float | None:
    """Seconds that a server asks to wait, be they a number or a date; None where it does not, or not clearly."""
    said = reply.headers.get("Retry-After", "")
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
