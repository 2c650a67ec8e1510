"""Cards are found by the names of files: those of the library, those of the reader, those that come later."""

import dataclasses
import sys

import pytest
from toys import add  # noqa: F401 - a fixture

from pullpush.catalogue import EXTRA, Card, CardError, Catalogue, extra_folders
from pullpush.encoders.interface import AUDIO, TEXT, AudioEncoderCard, TextEncoderCard
from pullpush.errors import UnknownNameError
from pullpush.metrics import METRICS
from pullpush.metrics.cards import MetricCard

TOY = """
from pullpush.metrics import MetricCard


def {name}(embedded):
    return {{}}


CARD = MetricCard(name="{name}", make={name}, title="Toy", about="Nothing.", needs=(), scores=())
"""


def test_every_card_of_the_library_has_a_name_a_maker_and_a_sentence():
    for name, card in [*AUDIO.items(), *TEXT.items(), *METRICS.items()]:
        assert card.name == name
        assert callable(card.make)
        assert card.title
        assert card.about.endswith(".")
        assert card.source


def test_a_kind_of_card_is_one_catalogue_although_files_lie_together():
    assert all(type(card) is AudioEncoderCard for card in AUDIO.values())
    assert all(type(card) is TextEncoderCard for card in TEXT.values())
    assert not AUDIO.keys() & TEXT.keys()


def test_an_unknown_name_brings_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown text encoder 'hash': did you mean 'hashed'\?"):
        TEXT["hash"]
    assert TEXT.get("hash") is None


def test_the_readers_file_is_found_even_when_it_comes_later(add):  # noqa: F811
    assert "early" not in METRICS
    add("metrics/early.py", TOY.format(name="early"))
    assert METRICS["early"].make(None) == {}
    add("metrics/later.py", TOY.format(name="later"))
    assert {"early", "later", "retrieval"} <= METRICS.keys()


def test_a_file_that_is_gone_is_no_longer_an_entry(add):  # noqa: F811
    file = add("metrics/short_lived.py", TOY.format(name="short_lived"))
    assert "short_lived" in METRICS
    file.unlink()
    assert "short_lived" not in METRICS


def test_several_cards_of_one_file_are_told_as_a_tuple(add):  # noqa: F811
    text = TOY.format(name="one").replace("CARD = ", "CARDS = (").rstrip() + ",)"
    add("metrics/both.py", text + '\nCARDS += (MetricCard(**{**vars(CARDS[0]), "name": "two"}),)\n')
    assert {"one", "two"} <= METRICS.keys()


def test_two_cards_of_one_name_are_refused(add):  # noqa: F811
    add("metrics/mine.py", TOY.format(name="closeness"))
    with pytest.raises(CardError, match=r"two cards of pullpush.metrics are called closeness"):
        METRICS["retrieval"]


@pytest.mark.parametrize("file", ["geometry", "distance"])
def test_a_file_that_bears_a_name_of_the_library_is_refused_rather_than_left_out(add, file):  # noqa: F811
    add(f"metrics/{file}.py", TOY.format(name="mine"))
    says = {"geometry": r"\.py lies in .*extra.metrics and in .*give one", "distance": ": give the file"}[file]
    with pytest.raises(CardError, match=f"{file}{says} another name"):
        METRICS["retrieval"]


@pytest.mark.parametrize("line", ["CARD = retrieval", "CARD = 'mine'", "CARDS = [1]"])
def test_what_is_no_card_is_refused_with_its_file(add, line):  # noqa: F811
    add("metrics/wrong.py", f"retrieval = print\n{line}\n")
    with pytest.raises(CardError, match=r"pullpush\.metrics\.wrong: CARD must be a card such as MetricCard\(name=…\)"):
        METRICS["retrieval"]


def test_folders_of_the_reader_are_separated_as_in_path(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name / "losses").mkdir(parents=True)
    monkeypatch.setenv(EXTRA, f"{tmp_path / 'a'}:{tmp_path / 'none'}:{tmp_path / 'b'}")
    assert extra_folders("losses") == (tmp_path / "a" / "losses", tmp_path / "b" / "losses")
    monkeypatch.delenv(EXTRA)
    assert extra_folders("losses") == ()


def test_files_of_a_folder_that_is_named_no_longer_are_forgotten(tmp_path, monkeypatch):
    for folder in ("old", "new"):
        file = tmp_path / folder / "metrics" / "moved.py"
        file.parent.mkdir(parents=True)
        file.write_text(TOY.format(name=folder))
    for folder, other in (("old", "new"), ("new", "old")):
        monkeypatch.setenv(EXTRA, str(tmp_path / folder))
        assert METRICS.file_of(folder).is_relative_to(tmp_path / folder)
        assert other not in METRICS
    monkeypatch.delenv(EXTRA)
    assert not {"old", "new"} & METRICS.keys()
    assert "pullpush.metrics.moved" not in sys.modules


def toy(name, make=dict):
    return MetricCard(name=name, make=make, title="Toy", about="Nothing.", needs=(), scores=())


@pytest.fixture
def clean():
    yield
    METRICS._added.clear()


@pytest.mark.usefixtures("clean")
def test_what_a_cell_defines_is_added_and_replaced():
    METRICS.add(toy("of_a_cell"))
    assert METRICS["of_a_cell"].make is dict
    METRICS.add(toy("of_a_cell", list))
    assert METRICS["of_a_cell"].make is list
    assert [each.name for each in METRICS.added] == ["of_a_cell"]
    with pytest.raises(UnknownNameError, match="metric with a file 'of_a_cell'"):
        METRICS.file_of("of_a_cell")


@pytest.mark.usefixtures("clean")
def test_a_name_of_the_library_is_not_taken_over():
    before = METRICS["retrieval"]
    with pytest.raises(CardError, match="a card called retrieval already"):
        METRICS.add(toy("retrieval"))
    assert METRICS["retrieval"] is before
    with pytest.raises(CardError, match=r"add takes a card such as MetricCard\(name=…\), got dict"):
        METRICS.add({})


def test_a_catalogue_of_another_kind_of_card_is_empty():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Recipe(Card):
        salt: int

    assert list(Catalogue("pullpush.metrics", Recipe, "recipe")) == []
    assert len(Catalogue("pullpush.metrics", MetricCard, "metric")) == len(METRICS)
