"""Captions rewritten by any endpoint that speaks OpenAI's protocol, paid or one's own.

    export OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_API_KEY=…
    create("endpoint", model="qwen2.5-7b-instruct", prices=Prices(0.15, 0.6), budget=2.0)

Every answer is on disk before anything else is done with it, one file each: what is paid for is asked once, a killed
run goes on where it stopped, and who has the files needs neither key nor network.

What passes by itself is asked again, after waits that double, with jitter: time-outs, broken connections, 408, 409, 429
(after what Retry-After says), 5xx, answers that are no JSON, cut off, empty, or more than one. What does not pass (a
wrong key, a model that is not there) ends the run at once. The key is in the header of requests and nowhere else.

`openai` bounds neither size nor whole time of an answer and takes any count of tokens for true: of what is below, the
request alone would go, for 16 MB and a second of import. `tenacity` puts eight lines of settings in place of eight of
retries. `diskcache` keeps a database of pickles, which cannot be read, merged by copying or opened without trust.
"""

import asyncio
import json
import math
import os
import random
import re
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

from pullpush.cache import atomic_path, content_key, locked
from pullpush.data.scenes.augmented import RewritingError
from pullpush.progress import tell
from pullpush.rewriting import RewriterCard
from pullpush.rewriting.prompts import HOW, Account, Prices, Prompted, Question, stored

KIND = "answers"
URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
BYTES = 4  # of English text, a token
OVERHEAD = 16  # tokens around a conversation, at most
AGAIN = {408, 409, 429, *range(500, 600)}  # status codes that pass
SHOWN = 200  # characters of what a server says in an error
LARGEST = 1_000_000  # bytes of a reply
LONGEST = 300.0  # seconds of a wait at most
NO_COMPLETION = "an answer that is no single completion in JSON ({})"
MOST_TOKENS = 10**9  # of one answer, by any count that is believed
_trusted = cache(httpx2.create_ssl_context)  # certificates, read once: that takes longer than the rest of a request


class Passing(Exception):
    """What was wrong with one attempt, where another may help; wait: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float = 0.0, *, sent: bool = True) -> None:
        super().__init__(reason)
        self.wait, self.sent = min(wait, LONGEST), sent


def counted(answer: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens in and out, None where they are not counted or the count makes no sense."""
    usage = answer.get("usage")
    given = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    asked, answered = (count if type(count) is int and 0 <= count <= MOST_TOKENS else None for count in given)
    return asked, answered


def text_of(answer: Mapping[str, Any]) -> str:
    """The one answer in a reply, whole and not empty."""
    try:
        (choice,) = answer["choices"]
        text, end = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Passing(NO_COMPLETION.format(type(error).__name__)) from None
    if not isinstance(text, str) or not text.strip():
        raise Passing("an empty answer")
    if end == "length":
        raise Passing("an answer that is cut off: raise max_tokens")
    if not writable(text):
        raise Passing("an answer with half a character, a lone surrogate")
    return text


def writable(text: str) -> bool:
    """Whether a text can be written and sent: half a character, a lone surrogate, cannot."""
    return text.encode(errors="ignore") == text.encode(errors="replace")


def retry_after(value: str) -> float:
    """Seconds that a server asks to wait, be they a number or a date; 0 where it does not, or not clearly."""
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return 0.0


@dataclass(frozen=True)
class EndpointRewriter(Prompted):
    """Asks a chat endpoint, whose address and key are in $OPENAI_BASE_URL and $OPENAI_API_KEY.

    Attributes:
        model: as the endpoint names it.
        temperature: 0 is as near to the same answer each time as endpoints come; None leaves it out.
        max_tokens: of an answer; limit: what the endpoint calls that.
        prices: in any currency, for what costs are shown in.
        budget: the most that this object may spend, in the same currency; a question is asked only if its highest cost
            is left.
        confirm: go ahead at the cost shown, without a budget.
        a_minute: requests a minute at most; parallel: requests under way at once.
        timeout: seconds of one attempt, in all; attempts: for each question.
        first_wait: seconds, doubled after each failure.

    Raises:
        ValueError: no model, a budget without prices, numbers that make no sense.
        RewritingError: (`rewrite`, `merge`) the cost was neither confirmed nor covered by a budget; the budget is
            spent; there is no key; the endpoint refuses; captions that were not answered, by name.
        CacheError: (`rewrite`, `merge`) the cache cannot be written.
    """

    model: str = ""
    temperature: float | None = field(default=0.0, kw_only=True)
    max_tokens: int = field(default=200, kw_only=True)
    limit: str = field(default="max_tokens", **HOW)
    prices: Prices | None = field(default=None, **HOW)
    budget: float | None = field(default=None, **HOW)
    confirm: bool = field(default=False, **HOW)
    a_minute: float | None = field(default=60, **HOW)
    parallel: int = field(default=4, **HOW)
    timeout: float = field(default=60.0, **HOW)
    attempts: int = field(default=6, **HOW)
    first_wait: float = field(default=1.0, **HOW)
    account: Account = field(default_factory=Account, **HOW)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise ValueError("the rewriter 'endpoint' needs a model, as the endpoint names it: model='…'")
        if self.budget is not None and self.prices is None:
            raise ValueError("a budget needs prices for a million tokens, such as prices=Prices(0.15, 0.6)")
        if self.budget is not None and not 0 <= self.budget < math.inf:
            raise ValueError(f"a budget is finite and at least 0, got {self.budget}")
        for name in ("max_tokens", "parallel", "attempts", "timeout", "a_minute"):
            if not (name == "a_minute" and self.a_minute is None) and not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")

    def answers(self, questions: Sequence[Question]) -> list[str]:
        """See `Prompted`: from disk what was answered before, the rest from the endpoint."""
        if broken := [each.caption for each in questions if not writable(self.prompts.system + each.prompt)]:
            raise RewritingError(f"half a character, a lone surrogate, cannot be sent: mend the caption {broken[0]!r}")
        with locked(KIND, content_key(self.model)) as folder:  # of two processes the second reads what the first paid
            missing = [each for each in dict.fromkeys(questions) if not self.file(folder, each).is_file()]
            if missing:
                self._announce(missing)
                run_apart(_Asking(self, folder).all_of(missing))
            return [stored(self.file(folder, each)) for each in questions]

    def estimate(self, questions: Sequence[Question]) -> tuple[int, int]:
        """About how many tokens are asked and answered: an answer is taken to be half as long again as its caption."""
        asked = sum(_tokens(self.prompts.system) + _tokens(each.prompt) for each in questions)
        return asked, sum(_tokens(each.caption) * 3 // 2 for each in questions)

    def most(self, question: Question) -> float:
        """What an attempt at a question costs at most."""
        asked = len((self.prompts.system + question.prompt).encode()) + OVERHEAD  # no token is shorter than a byte
        return self.prices.cost(asked, self.max_tokens) if self.prices else 0.0

    def file(self, folder: Path, question: Question) -> Path:
        """Where the answer to a question is kept."""
        shaped = [self.model, self.temperature, self.max_tokens, self.prompts.system, list(question)]
        key = content_key(shaped, length=32)
        return folder / key[:2] / f"{key}.json"

    def _announce(self, questions: Sequence[Question]) -> None:
        """Say what the questions cost, and stop where nobody agreed to that."""
        asked, answered = self.estimate(questions)
        cost = "unknown, as no prices are given"
        if self.prices:
            most = sum(map(self.most, questions))
            cost = f"about {self.prices.cost(asked, answered):.4g}, at most {most:.4g} if nothing is asked twice"
        what = f"{len(questions)} questions to {self.model}, about {asked} tokens asked and {answered} answered: {cost}"
        if not self.confirm and self.budget is None:
            raise RewritingError(f"{what}. Agree by confirm=True, or by prices=Prices(…) with a budget=…")
        tell(what)


class _Asking:
    """The questions of one run: several at once, at a pace, within the budget; each answer is kept as it comes."""

    def __init__(self, rewriter: EndpointRewriter, folder: Path) -> None:
        self.rewriter, self.folder = rewriter, folder
        url, self.key = os.environ.get(URL, "").strip(), os.environ.get(KEY, "").strip()
        if not url and not self.key:
            raise RewritingError(
                f"the rewriter 'endpoint' needs a key in ${KEY}, or in ${URL} the address of one without"
            )
        if not (self.key.isascii() and self.key.isprintable()):
            raise RewritingError(f"${KEY} has characters that no key has: copy it anew")
        self.url = url or OPENAI
        if not re.match(r"https?://[^/\s]", self.url):
            raise RewritingError(f"{URL} is no address: {self._shown(self.url)}")
        self.next = 0.0  # when the next request may go
        self.settled = asyncio.Event()  # an attempt is over, and may have cost less than was reserved
        self.unanswered: list[str] = []

    async def all_of(self, questions: Sequence[Question]) -> None:
        """Ask them all; what cannot pass, such as a wrong key, ends the run, and says how many answers are kept."""
        queue, refusal = iter(questions), None

        async def work_off() -> None:
            for question in queue:
                await self._ask(question)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.rewriter.parallel):
                    group.create_task(work_off())
        except ExceptionGroup as errors:
            refusal = errors.exceptions[0]
        had = sum(self.rewriter.file(self.folder, each).is_file() for each in questions)
        kept = f"{had} of {len(questions)} answers are kept: what is missing is asked when this runs again"
        if refusal:
            raise RewritingError(f"{refusal}; {kept}") if isinstance(refusal, RewritingError) else refusal
        if self.unanswered:
            some = "; ".join(self.unanswered[:3])
            raise RewritingError(f"{len(self.unanswered)} captions were not answered, {some}; {kept}")

    async def _ask(self, question: Question) -> None:
        """Attempts, until one is answered in full; where none is, that is noted, and says nothing of the others."""
        rewriter, last = self.rewriter, None
        for attempt in range(rewriter.attempts):
            if attempt:
                wait = rewriter.first_wait * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
                await asyncio.sleep(min(wait, LONGEST))
            turn = max(self.next, time.monotonic())
            self.next = turn + (60 / rewriter.a_minute if rewriter.a_minute else 0.0)
            await asyncio.sleep(turn - time.monotonic())
            await self._reserve(rewriter.most(question))
            under_way = asyncio.create_task(self._attempt(question))
            try:
                return await asyncio.shield(under_way)
            except asyncio.CancelledError:  # the run ends, but this is paid: its answer is kept
                await asyncio.wait([under_way])
                raise
            except Passing as fault:
                last = fault
                self.next = max(self.next, time.monotonic() + fault.wait)
        self.unanswered.append(f"{question.caption!r}: no answer after {rewriter.attempts} attempts ({last})")

    async def _reserve(self, most: float) -> None:
        """Set aside the highest cost of an attempt; wait for those under way, which may turn out cheaper."""
        account, budget = self.rewriter.account, self.rewriter.budget
        while budget is not None and account.spent + account.reserved + most > budget:
            if account.spent + most > budget:
                spent = f"({account.spent:.4g} are spent)"
                raise RewritingError(
                    f"the next question may cost more than is left of the budget of {budget:g} {spent}: raise it"
                )
            self.settled.clear()
            await self.settled.wait()
        account.reserved += most

    async def _attempt(self, question: Question) -> None:
        """Ask once, keep the answer before anything else, and settle what it cost: the most, where nobody knows."""
        account, prices, most = self.rewriter.account, self.rewriter.prices, self.rewriter.most(question)
        cost = most
        try:
            reply, body = await self._post(question)
            if reply.status_code != 200:
                cost = 0.0
                raise self._refusal(reply, body)
            try:
                answer = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise Passing(NO_COMPLETION.format(type(error).__name__)) from None
            answer = answer if isinstance(answer, dict) else {}
            asked, answered = counted(answer)
            if prices and asked is not None and answered is not None:
                cost = prices.cost(asked, answered)
            text = self._safe(text_of(answer))  # what repeats the key must not be kept
            self._keep(question, text, (asked, answered))
        except Passing as fault:
            cost = cost if fault.sent else 0.0
            raise
        finally:
            account.reserved -= most
            account.spent += cost
            self.settled.set()

    async def _post(self, question: Question) -> tuple[httpx2.Response, bytes]:
        """A reply with its body, bounded in size and whole time, whatever drips in."""
        rewriter = self.rewriter
        address = f"{self.url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        payload: dict[str, Any] = {"model": rewriter.model, "messages": rewriter.messages(question.prompt)}
        payload |= {rewriter.limit: rewriter.max_tokens}
        if rewriter.temperature is not None:
            payload["temperature"] = rewriter.temperature
        limits = httpx2.Timeout(rewriter.timeout, connect=rewriter.timeout / 2)  # told apart from a slow answer
        body = b""
        try:
            async with (
                asyncio.timeout(rewriter.timeout),
                httpx2.AsyncClient(timeout=limits, verify=_trusted()) as client,
                client.stream("POST", address, json=payload, headers=headers) as reply,
            ):
                async for part in reply.aiter_bytes():
                    body += part
                    if len(body) > LARGEST:
                        raise Passing(f"an answer without an end, over {LARGEST} bytes: is this a chat endpoint?")
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.InvalidURL)
            why = self._shown(error) or f"no whole answer in {rewriter.timeout:g} s: raise timeout"
            raise Passing(f"{type(error).__name__}: {why}", sent=sent) from None
        return reply, body

    def _refusal(self, reply: httpx2.Response, body: bytes) -> Exception:
        why = f"(status {reply.status_code}): {self._shown(body.decode(errors='replace'))}"
        if reply.status_code in AGAIN:
            return Passing(f"refused {why}", retry_after(reply.headers.get("Retry-After", "")))
        return RewritingError(f"{self.url} refuses {why}; check the model's name, OPENAI_API_KEY and OPENAI_BASE_URL")

    def _keep(self, question: Question, answer: str, tokens: tuple[int | None, int | None]) -> None:
        rewriter = self.rewriter
        row = {"model": rewriter.model, "system": rewriter.prompts.system, **question._asdict(), "answer": answer}
        row |= {"tokens": tokens, "sha256": content_key(answer, length=64)}
        with atomic_path(rewriter.file(self.folder, question)) as path, path.open("w", encoding="utf-8") as file:
            json.dump(row, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())

    def _safe(self, text: str) -> str:
        return text.replace(self.key, "…") if self.key else text

    def _shown(self, message: object) -> str:
        """The start of what a server or a library says, without the key."""
        return self._safe(" ".join(str(message).split()))[:SHOWN]


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


def _tokens(text: str) -> int:
    """About how many tokens a text has."""
    return -(-len(text.encode()) // BYTES)


CARD = RewriterCard(
    name="endpoint",
    make=EndpointRewriter,
    title="Chat endpoint",
    about="Asks any endpoint of OpenAI's protocol, within a budget; every paid answer is kept on disk.",
    source="Distillation & clusters §2.4",
    citation="distill_cluster",
    merges=True,
    needs="OPENAI_API_KEY",
)
