"""The endpoint backend against a server that misbehaves: no paid answer is lost, nothing bad is kept."""

import asyncio
import copy
import json
import logging
import pickle
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import chat_server
import pytest

from pullpush.cache import content_key
from pullpush.rewriting import RewritingError, create
from pullpush.rewriting.prompts import Prices, Prompts

KEY = "sk-very-secret-123"
PROMPTS = Prompts(system="", rewrite="{caption}", merge="{first} and {second}")
TEXTS = [f"caption {n}" for n in range(6)]
LOUD = [text.upper() for text in TEXTS]


@pytest.fixture
def home(own_home, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return own_home


@pytest.fixture
def serving(home, monkeypatch):
    @contextmanager
    def at(*given, **named):
        with chat_server.serving(*given, **named) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            yield server

    return at


def endpoint(**options):
    defaults = {"model": "m", "prompts": PROMPTS, "confirm": True, "first_wait": 0.01, "a_minute": None, "timeout": 9}
    return create("endpoint", **{**defaults, **options})


def kept(home):
    files = sorted((home / "answers").glob("*/*/[!.]*.json"))  # names that begin with a dot are unfinished
    return [json.loads(path.read_text()) for path in files]


# ------------------------------------------------------------------------------------------------ answers, once


def test_english_prompts_are_for_english_captions():
    french = create("endpoint", model="any", through="French")
    assert french.through == ("French",)
    assert french.of(None, "eng") is french
    with pytest.raises(RewritingError, match="these prompts ask for English captions, got 'fra'"):
        french.of(None, "fra")
    assert endpoint().of(None, "fra") == endpoint()


def test_answers_come_in_order_and_are_asked_once(home, serving):
    with serving() as server:
        assert endpoint().rewrite([*TEXTS, TEXTS[0]]) == [*LOUD, LOUD[0]]
        assert sorted(server.requests) == TEXTS
        assert endpoint().rewrite(TEXTS[::-1]) == LOUD[::-1]
        assert len(server.requests) == 6
        assert endpoint().rewrite(TEXTS[:1], number=1) == LOUD[:1]
        assert endpoint(model="other").rewrite(TEXTS[:1]) == LOUD[:1]
        assert endpoint(temperature=1.0).rewrite(TEXTS[:1]) == LOUD[:1]
        assert endpoint(prompts=Prompts(system="x", rewrite="say {caption}")).rewrite(TEXTS[:1]) == ["SAY CAPTION 0"]
        assert len(server.requests) == 10


@pytest.mark.parametrize("damage", [lambda text: text[:40], lambda text: text.replace("CAP", "L"), lambda _: "[]"])
def test_a_paid_answer_that_is_damaged_is_named_and_not_taken(home, serving, damage):
    with serving():
        endpoint().rewrite(TEXTS)
        (path,) = [path for path in (home / "answers").glob("*/*/[!.]*.json") if LOUD[0] in path.read_text()]
        path.write_text(damage(path.read_text()))
        with pytest.raises(RewritingError, match=rf"{path.name}, a paid answer, is damaged .*restore or remove it"):
            endpoint().rewrite(TEXTS)


def test_a_notebook_that_runs_a_loop_itself_is_no_obstacle(serving):
    async def cell():
        return endpoint().rewrite(TEXTS)

    with serving():
        assert asyncio.run(cell()) == LOUD


def test_what_is_kept_needs_neither_key_nor_network_nor_consent(home, serving, monkeypatch):
    with serving():
        endpoint().rewrite(TEXTS)
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert endpoint(confirm=False).rewrite(TEXTS) == LOUD


def test_a_request_is_what_the_protocol_says(serving):
    with serving() as server:
        endpoint(prompts=Prompts(), limit="max_completion_tokens", max_tokens=33).rewrite(["a bell rings"])
    (payload,) = server.payloads
    assert payload["messages"][0] == {"role": "system", "content": Prompts().system}
    assert payload["messages"][1]["content"].endswith("\nCaption: a bell rings")
    assert (payload["model"], payload["temperature"], payload["max_completion_tokens"]) == ("m", 0.0, 33)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_what_shapes_no_answer_has_no_part_in_names():
    assert content_key(endpoint(budget=1.0, prices=Prices(1, 1), timeout=9)) == content_key(endpoint())
    assert content_key(endpoint(model="n")) != content_key(endpoint())


# ------------------------------------------------------------------------------------------------ a server misbehaves


@pytest.mark.parametrize(
    "fault",
    [
        *("slow", "429", "500", "503", "truncated", "cut", "empty", "none", "two", "length", "reset"),
        *("endless", "dripping", "dripping head", "deep"),
    ],
)
def test_every_fault_is_got_over_and_never_kept(home, serving, fault):
    timed = fault in ("slow", "dripping", "dripping head")
    with serving([fault, fault, "", fault]) as server:
        assert endpoint(timeout=0.5 if timed else 9).rewrite(TEXTS) == LOUD
        assert len(server.requests) >= 9 if timed else len(server.requests) == 9
    assert sorted(row["answer"] for row in kept(home)) == LOUD


def test_a_caption_that_is_never_answered_is_named_and_the_others_are_kept(home, serving):
    def say(question):
        return "" if question.endswith("3") else question.upper()

    with serving(say=say) as server:
        with pytest.raises(RewritingError, match=r"1 captions were not answered, 'caption 3'.*empty.*5 of 6 answers"):
            endpoint(attempts=3).rewrite(TEXTS)
        assert server.requests.count("caption 3") == 3
        server.say = str.upper
        before = len(server.requests)
        assert endpoint().rewrite(TEXTS) == LOUD
        assert server.requests[before:] == ["caption 3"]
    assert len(kept(home)) == 6


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("length", "an answer that is cut off: raise max_tokens"),
        ("endless", "an answer without an end, over 1000000 bytes: is this a chat endpoint?"),
        ("dripping", r"no whole answer in 0\.5 s: raise timeout"),
        ("dripping head", r"no whole answer in 0\.5 s: raise timeout"),
        ("deep", r"no single completion in JSON \(RecursionError\)"),
    ],
)
def test_an_answer_that_never_comes_whole_is_told_with_what_to_do(home, serving, fault, said):
    with serving([fault] * 2):
        rewriter = endpoint(attempts=2, timeout=0.5 if "drip" in fault else 9, prices=Prices(1e6, 1e6), max_tokens=20)
        started = time.monotonic()
        with pytest.raises(RewritingError, match=f"'caption 0': no answer after 2 attempts .*{said}"):
            rewriter.rewrite(TEXTS[:1])
        assert time.monotonic() - started < 30
    assert not kept(home)
    assert rewriter.account.spent == (2 * 15 if fault == "length" else 2 * 45)  # the most, where nobody counted


def test_half_a_character_is_neither_sent_nor_kept(home, serving):
    with serving(say=lambda question: "a \ud800 bell") as server:
        with pytest.raises(RewritingError, match="half a character, a lone surrogate"):
            endpoint(attempts=2).rewrite(TEXTS[:1])
        with pytest.raises(RewritingError, match=r"cannot be sent: mend the caption 'a \\ud800'"):
            endpoint().rewrite(["a bell", "a \ud800"])
        assert len(server.requests) == 2
    assert not kept(home)


def test_waits_double_and_heed_retry_after(serving):
    with serving(["500", "500", "500"]) as server:
        endpoint(parallel=1, first_wait=0.1).rewrite(TEXTS[:1])
        waits = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    for at, waited in enumerate(waits):
        assert 0.05 * 2**at <= waited < 0.15 * 2**at + 3  # a machine may be busy
    with serving(["429 0.6"]) as server:
        endpoint(parallel=1).rewrite(TEXTS[1:2])
        assert 0.6 <= server.times[1] - server.times[0] < 6


def test_retry_after_may_be_a_date(serving):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    with serving([f"429 {soon}"]) as server:
        endpoint(parallel=1).rewrite(TEXTS[:1])
        assert 0.5 <= server.times[1] - server.times[0] < 8


@pytest.mark.parametrize("status", ["400", "401", "404"])
def test_what_does_not_pass_is_said_at_once(serving, status):
    with serving([status] * 50) as server:
        with pytest.raises(RewritingError, match=rf"refuses \(status {status}\).*check the model's name"):
            endpoint(parallel=1).rewrite(TEXTS)
        assert len(server.requests) <= 2


# ------------------------------------------------------------------------------------------------ killed in the middle

SCRIPT = """
from pullpush.rewriting import create
from pullpush.rewriting.prompts import Prompts
rewriter = create("endpoint", model="m", prompts=Prompts(system="", rewrite="{caption}"), confirm=True, a_minute=None)
print(rewriter.rewrite([f"caption {n}" for n in range(60)]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_paid_answer_is_lost_when_the_process_is_killed(home, serving, how):
    texts = [f"caption {n}" for n in range(60)]

    def say(question):
        time.sleep(0.03)
        return question.upper()

    with serving(say=say) as server:
        process = subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        deadline = time.monotonic() + 300  # on a machine that is busy the imports alone take a minute
        while len(kept(home)) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(how)
        process.communicate(timeout=60)
        had = {row["caption"] for row in kept(home)}
        assert 10 <= len(had) < 60
        paid = set(server.answered)
        assert len(paid - had) <= (4 if how == signal.SIGKILL else 0)  # what was under way when it was killed
        before = len(server.requests)
        assert endpoint().rewrite(texts) == [text.upper() for text in texts]
        assert sorted(server.requests[before:]) == sorted(set(texts) - had)


# ------------------------------------------------------------------------------------------------ costs


def test_nothing_is_asked_before_somebody_agreed_to_the_cost(home, serving):
    with serving() as server:
        with pytest.raises(RewritingError, match=r"6 questions to m, about 18 tokens.*unknown.*Agree by confirm=True"):
            endpoint(confirm=False).rewrite(TEXTS)
        with pytest.raises(RewritingError, match=r"about 9e-05, at most 0\.00375"):
            endpoint(confirm=False, prices=Prices(1, 3)).rewrite(TEXTS)
        assert not server.requests


@pytest.mark.parametrize("parallel", [1, 4])
@pytest.mark.parametrize("faults", [[], ["truncated", "empty", "slow", "500", "uncounted"]])
def test_a_budget_is_never_exceeded_and_more_money_goes_on(home, serving, parallel, faults):
    prices = Prices(1e6, 1e6)  # a token costs 1: 15 an answer, at most 9 + 16 + 20 = 45
    with serving(faults) as server:
        rewriter = endpoint(prices=prices, budget=160, confirm=False, parallel=parallel, max_tokens=20, timeout=0.5)
        with pytest.raises(RewritingError, match=r"left of the budget of 160 .*: raise it; .* are kept"):
            rewriter.rewrite([f"caption {n}" for n in range(20)])
        counted = 15 * sum(row["tokens"][0] is not None for row in kept(home))
        assert counted <= rewriter.account.spent <= 160
        assert rewriter.account.reserved == 0
        assert 1 <= len(kept(home)) < 20
        server.faults.clear()
        before = len(server.requests)
        more = endpoint(prices=prices, budget=1000, max_tokens=20)
        had = len(kept(home))
        assert more.rewrite([f"caption {n}" for n in range(20)])[19] == "CAPTION 19"
        assert len(server.requests) - before == 20 - had
        assert more.account.spent == 15 * (20 - had)


def test_an_endpoint_travels_to_other_processes_with_what_it_spent(serving):
    with serving():
        rewriter = endpoint(prices=Prices(1e6, 1e6), budget=1000)
        rewriter.rewrite(TEXTS[:1])
    for other in (pickle.loads(pickle.dumps(rewriter)), copy.deepcopy(rewriter)):
        assert other == rewriter
        assert other.account.spent == 15


USAGES = ["null", "[]", "7", "{}", '{"prompt_tokens": 10}']
USAGES += [
    f'{{"prompt_tokens": 10, "completion_tokens": 5, "{name}": {count}}}'
    for name in ("prompt_tokens", "completion_tokens")
    for count in ("NaN", "-5", "1" + "0" * 400, "1e400", "2.5", '"many"', "true", "[]")
]


@pytest.mark.parametrize("usage", USAGES)
def test_what_is_not_counted_or_not_sensibly_is_billed_as_the_most_and_asked_once(serving, usage):
    with serving([f"usage {usage}"]) as server:
        rewriter = endpoint(prices=Prices(1e6, 1e6), budget=200, max_tokens=20)
        for _ in range(2):
            assert rewriter.rewrite(TEXTS[:1]) == LOUD[:1]
        assert (rewriter.account.spent, rewriter.account.reserved) == (45, 0)
        assert len(server.requests) == 1


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
def test_prices_and_budgets_that_bound_nothing_are_refused(home, price):
    with pytest.raises(ValueError, match="finite and at least 0"):
        Prices(1.0, price)
    with pytest.raises(ValueError, match="finite and at least 0"):
        endpoint(prices=Prices(1, 1), budget=price)


# ------------------------------------------------------------------------------------------------ the key


@pytest.mark.parametrize("fault", ["401", "500", "truncated", "reset"])
def test_the_key_is_in_no_error_log_cache_or_repr(home, serving, fault, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    with serving([fault] * 20) as server:
        rewriter = endpoint(attempts=2)
        with pytest.raises(RewritingError) as found:
            rewriter.rewrite(TEXTS)
        server.faults.clear()
        rewriter.rewrite(TEXTS)
    chain, error = "", found.value
    while error is not None:
        chain, error = chain + repr(error), error.__cause__ or error.__context__
    said = [chain, repr(rewriter), caplog.text, *capsys.readouterr()]
    said += [path.read_text() for path in home.rglob("*") if path.is_file()]
    assert not [text for text in said if KEY in text]


def test_the_key_is_not_kept_where_an_answer_repeats_it(home, serving, monkeypatch):
    with serving(say=lambda question: f"{KEY} rings"):
        assert endpoint().rewrite(TEXTS[:1]) == ["… rings"]
        assert KEY not in json.dumps(kept(home))
        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\u20ac")
        with pytest.raises(RewritingError, match="copy it anew") as found:
            endpoint().rewrite(TEXTS[1:2])
        assert KEY not in str(found.value)


def test_what_is_missing_is_named(home, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(RewritingError, match="needs a key in \\$OPENAI_API_KEY"):
        endpoint().rewrite(TEXTS)
    monkeypatch.setenv("OPENAI_BASE_URL", "no address")
    with pytest.raises(RewritingError, match="OPENAI_BASE_URL is no address: no address"):
        endpoint().rewrite(TEXTS)
    with pytest.raises(ValueError, match="needs a model"):
        create("endpoint")
    with pytest.raises(ValueError, match="a budget needs prices"):
        endpoint(budget=1.0)
    with pytest.raises(ValueError, match="attempts must be positive"):
        endpoint(attempts=0)
    with pytest.raises(ValueError, match=r"needs the slot \{caption\}"):
        Prompts(rewrite="nothing")
    with pytest.raises(ValueError, match="at least one language"):
        endpoint(through=())
