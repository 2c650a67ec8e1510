"""Captions rewritten by any endpoint that speaks OpenAI's protocol, paid or one's own.

    export OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_API_KEY=…
    create("endpoint", model="qwen2.5-7b-instruct", prices=Prices(0.15, 0.6), budget=2.0)

Every answer is on disk before anything else is done with it, one file each: what is paid for is asked once, a killed
run goes on where it stopped, and who has the files needs neither key nor network. `diskcache` would hold them in a
database of pickles: no longer to read, to merge by copying or to open without trust, and no shorter here.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pullpush.cache import atomic_path, content_key, locked
from pullpush.data.recordings.debian import say
from pullpush.data.scenes.augmented import RewritingError
from pullpush.rewriting.chat import Answer, Chat, Pace, Refused, Unanswered, writable
from pullpush.rewriting.contract import RewriterCard
from pullpush.rewriting.costs import Account, BudgetError, Prices
from pullpush.rewriting.prompts import HOW, Prompted, Question

KIND = "answers"
URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
BYTES = 4  # of English text, a token
OVERHEAD = 16  # tokens around a conversation, at most


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
        """See `Prompted`: from disk what was answered before, the rest from the endpoint.

        Raises:
            RewritingError: the cost was neither confirmed nor covered by a budget; the budget is spent; there is no
                key; the endpoint refuses; captions that were not answered, by name. What was answered is kept.
            CacheError: the cache cannot be written.
        """
        if broken := [one.caption for one in questions if not writable(self.prompts.system + one.prompt)]:
            raise RewritingError(f"half a character, a lone surrogate, cannot be sent: mend the caption {broken[0]!r}")
        with locked(KIND, content_key(self.model)) as folder:  # of two processes the second reads what the first paid
            missing = [one for one in dict.fromkeys(questions) if not self._file(folder, one).is_file()]
            if missing:
                self._announce(missing)
                self._ask_all(folder, missing)
            return [json.loads(self._file(folder, one).read_text(encoding="utf-8"))["answer"] for one in questions]

    def estimate(self, questions: Sequence[Question]) -> tuple[int, int]:
        """About how many tokens are asked and answered: an answer is taken to be half as long again as its caption."""
        asked = sum(_tokens(self.prompts.system) + _tokens(one.prompt) for one in questions)
        return asked, sum(_tokens(one.caption) * 3 // 2 for one in questions)

    def _announce(self, questions: Sequence[Question]) -> None:
        """Say what the questions cost, and stop where nobody agreed to that."""
        asked, answered = self.estimate(questions)
        cost = "unknown, as no prices are given"
        if self.prices:
            most = sum(map(self._most, questions))
            cost = f"about {self.prices.cost(asked, answered):.4g}, at most {most:.4g} if nothing is asked twice"
        what = f"{len(questions)} questions to {self.model}, about {asked} tokens asked and {answered} answered: {cost}"
        if not self.confirm and self.budget is None:
            raise RewritingError(f"{what}. Agree by confirm=True, or by prices=Prices(…) with a budget=…")
        say(what)

    def _ask_all(self, folder: Path, questions: Sequence[Question]) -> None:
        chat = self._chat()
        pool = ThreadPoolExecutor(self.parallel, thread_name_prefix="rewriting")
        futures = {}
        try:
            futures = {pool.submit(self._ask, chat, folder, one): one for one in questions}
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            chat.pace.end()  # no further attempts
            pool.shutdown(cancel_futures=True)  # what is under way is paid: it is waited for and kept
        had = sum(self._file(folder, one).is_file() for one in questions)
        kept = f"{had} of {len(questions)} answers are kept: what is missing is asked when this runs again"
        done = {future: one for future, one in futures.items() if not future.cancelled()}
        for error in filter(None, (future.exception() for future in done)):  # the gravest first
            if isinstance(error, BudgetError):
                raise RewritingError(
                    f"the next question may cost more than is left of the budget of {self.budget:g} "
                    f"({self.account.spent:.4g} are spent); {kept}, with a higher budget"
                )
            raise RewritingError(f"{error}; {kept}") if isinstance(error, Refused) else error
        if errors := [f"{one.caption!r}: {error}" for future, one in done.items() if (error := future.result())]:
            raise RewritingError(f"{len(errors)} captions were not answered, {'; '.join(errors[:3])}; {kept}")

    def _ask(self, chat: Chat, folder: Path, one: Question) -> Unanswered | None:
        """Ask, and write the answer to disk before anything else; what fails alone, and says nothing of others."""
        bill = partial(self.account.bill, self._most(one), self.budget, self.prices)
        try:
            answer = chat.ask(self._payload(one), bill)
        except Unanswered as error:
            return error
        self._keep(self._file(folder, one), one, answer)
        if answer.odd and self.prices is not None:
            raise Refused(
                f"{chat.url} says that an answer took {answer.odd} tokens, so that nobody knows what it cost: look at "
                "its own bill, and go on by confirm=True without prices and budget"
            )
        return None

    def _chat(self) -> Chat:
        url, key = os.environ.get(URL, "").strip(), os.environ.get(KEY, "").strip()
        if not url and not key:
            raise RewritingError(
                f"the rewriter 'endpoint' needs a key in ${KEY}, or in ${URL} the address of one that takes none"
            )
        if not (key.isascii() and key.isprintable()):
            raise RewritingError(f"${KEY} has characters that no key has: copy it anew")
        return Chat(url or OPENAI, key, self.timeout, self.attempts, self.first_wait, Pace(self.a_minute))

    def _payload(self, one: Question) -> dict[str, Any]:
        told = {} if self.temperature is None else {"temperature": self.temperature}
        return {"model": self.model, "messages": self.messages(one.prompt), self.limit: self.max_tokens, **told}

    def _most(self, one: Question) -> float:
        """What a question costs at most."""
        asked = len((self.prompts.system + one.prompt).encode()) + OVERHEAD  # no token is shorter than a byte
        return self.prices.cost(asked, self.max_tokens) if self.prices else 0.0

    def _file(self, folder: Path, one: Question) -> Path:
        key = content_key([self.model, self.temperature, self.max_tokens, self.prompts.system, list(one)], length=32)
        return folder / key[:2] / f"{key}.json"

    def _keep(self, path: Path, one: Question, answer: Answer) -> None:
        told = {"model": self.model, "system": self.prompts.system, **one._asdict()}
        with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
            json.dump({**told, "answer": answer.text, "tokens": answer.tokens}, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())


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
