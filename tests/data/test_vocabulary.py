"""The table of events: complete, unambiguous, and in a form that the grammar can use."""

from __future__ import annotations

import copy
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

import pullpush.data.language.vocabulary as vocabulary
from pullpush.data.language.vocabulary import (
    LANGUAGES,
    Clause,
    VocabularyError,
    load_events,
    parse_clause,
    parse_events,
    parse_phrases,
)

EVENTS = {event.name: event for event in load_events()}
# The stamps of Tux Paint 2022.06.04 that come with a sound effect, listed from the package itself.
EFFECTS = (Path(__file__).parent / "tuxpaint_effects.txt").read_text(encoding="utf-8").split()
PHRASES = {"clauses": ["a frog | croaks", "a frog | is croaking"], "nouns": ["the croaking of a frog"], "label": "frog"}


def entry(name: str = "frog") -> dict:
    """A well formed entry whose recording no event of another name has."""
    return {"category": "amphibian", "recordings": [f"animals/{name}"]}


def words(*names: str) -> dict:
    """Language → event → well formed phrases that no event of another name has."""
    text = yaml.safe_dump(PHRASES)
    return {code: {name: yaml.safe_load(text.replace("frog", name)) for name in names} for code in LANGUAGES}


def refusal(table: dict, phrases: dict) -> str:
    with pytest.raises(VocabularyError) as caught:
        parse_events(table, phrases)
    return str(caught.value)


def each_text(language: str) -> list[tuple[str, str]]:
    """(event, text) for every text of a language."""
    found = []
    for event in EVENTS.values():
        phrases = event.phrases[language]
        found += [(event.name, text) for text in (phrases.label, *phrases.nouns)]
        found += [(event.name, part) for clause in phrases.clauses for part in (clause.subject, clause.verb)]
    return found


# The curated table


def test_each_recording_of_the_package_is_used_once_or_excluded_for_a_reason():
    excluded = yaml.safe_load((Path(__file__).parent / "excluded.yaml").read_text(encoding="utf-8"))
    used = [stamp for event in EVENTS.values() for stamp in event.recordings]
    assert Counter([*used, *excluded]) == Counter(EFFECTS)
    assert all(reason.endswith(".") for reason in excluded.values())
    assert all(re.fullmatch("[a-z]+", event.category) for event in EVENTS.values())


@pytest.mark.parametrize("language", ["deu", "nld"])
def test_verbs_that_the_grammar_moves_are_one_word(language):
    for event in EVENTS.values():
        for clause in event.phrases[language].clauses:
            assert re.fullmatch(r"[^\W\d_]+", clause.verb), (event.name, clause)
            assert clause.verb == clause.verb.lower(), (event.name, clause)


def test_japanese_clauses_have_a_marked_subject_and_a_plain_verb():
    for event in EVENTS.values():
        for clause in event.phrases["jpn"].clauses:
            assert clause.subject.endswith(("が", "は")), (event.name, clause)
            assert clause.verb.endswith("る"), (event.name, clause)


def test_chinese_is_simplified():
    for name, text in each_text("zho"):
        foreign = {sign for sign in text if not _in_gb2312(sign)}  # GB 2312 has no traditional forms
        assert not foreign, (name, text, foreign)


def test_chinese_verbs_carry_no_aspect_of_their_own():
    for event in EVENTS.values():
        for clause in event.phrases["zho"].clauses:
            assert not clause.verb.startswith(("在", "正在", "反复")), (event.name, clause)
            assert not clause.verb.endswith(("了", "着")), (event.name, clause)


@pytest.mark.parametrize("language", LANGUAGES)
def test_phrases_leave_capital_and_full_stop_to_the_grammar(language):
    for name, text in each_text(language):
        assert not text.endswith((".", "。", ",", "!")), (name, text)
    if language != "deu":  # German nouns are capital; so may be a proper name after the first word
        assert [text for _, text in each_text(language) if text[0].isupper()] == []


def _in_gb2312(sign: str) -> bool:
    try:
        sign.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


# Parsing


@given(st.text(st.characters(exclude_characters="|"), max_size=20).map(str.strip), st.text(max_size=20))
def test_a_clause_has_two_parts_or_is_refused(subject, rest):
    text = f"{subject} | {rest}"
    if subject and rest.strip() and "|" not in rest:
        assert parse_clause(text) == Clause(subject, rest.strip())
    else:
        with pytest.raises(VocabularyError, match="subject"):
            parse_clause(text, where="here")


def test_well_formed_tables_parse_in_order_of_name():
    names = ("toad", "frog", "newt")
    events = parse_events({name: entry(name) for name in names}, words(*names))
    assert [event.name for event in events] == ["frog", "newt", "toad"]
    assert events[0].recordings == ("animals/frog",)
    assert events[0].phrases["jpn"] == parse_phrases(PHRASES)


def test_a_language_that_is_not_required_may_lack_events():
    events = parse_events({"frog": entry()}, words("frog") | {"ita": {}})
    assert "ita" not in events[0].phrases


@pytest.mark.parametrize(
    "change",
    [
        {"clauses": ["a frog | croaks"]},
        {"clauses": ["a frog | croaks", "a frog | croaks"]},
        {"clauses": ["a frog croaks", "a frog | is croaking"]},
        {"nouns": []},
        {"nouns": ["the  croaking"]},
        {"nouns": ["the | croaking"]},
        {"nouns": [7]},
        {"label": ""},
        {"label": None},
        {"titles": []},
    ],
)
@pytest.mark.parametrize("language", ["eng", "zho"])
def test_malformed_phrases_are_refused_naming_file_and_event(change, language):
    phrases = words("frog")
    phrases[language]["frog"] |= change
    assert refusal({"frog": entry()}, phrases).startswith(f"{language}.yaml: frog")


@pytest.mark.parametrize(
    "table", [{"category": "amphibian"}, {"recordings": ["a"]}, entry() | {"ita": PHRASES}, "croaks"]
)
def test_an_event_of_other_keys_is_refused(table):
    assert refusal({"frog": table}, words("frog")).startswith("events.yaml: frog: expected the keys")


def test_an_event_that_a_language_lacks_is_named():
    assert refusal({"frog": entry(), "toad": entry("toad")}, words("frog")) == "eng.yaml: missing the event 'toad'"


def test_phrases_of_no_event_are_named():
    assert refusal({"frog": entry()}, words("frog", "toad")).startswith("eng.yaml: toad: no such event")


@pytest.mark.parametrize("recordings", [[], None, "animals/frog"])
def test_recordings_are_a_list_of_at_least_one(recordings):
    assert "list of recordings" in refusal({"frog": entry() | {"recordings": recordings}}, words("frog"))


def test_a_recording_of_two_events_is_refused_naming_both():
    table = {"frog": entry(), "toad": entry("toad") | {"recordings": ["animals/frog"]}}
    message = refusal(table, words("frog", "toad"))
    assert {"frog", "toad"} <= set(message.split())
    assert "animals/frog" in message


@pytest.mark.parametrize("key", ["clauses", "nouns", "label"])
def test_a_phrase_of_two_events_is_refused_naming_the_language(key):
    phrases = words("frog", "toad")
    phrases["nld"]["toad"][key] = copy.deepcopy(PHRASES[key])
    message = refusal({"frog": entry(), "toad": entry("toad")}, phrases)
    assert {"frog", "toad", "nld"} <= set(message.split())


def test_case_does_not_tell_two_phrases_apart():
    phrases = words("frog", "toad")
    phrases["eng"]["toad"]["label"] = "FROG"
    assert "'frog'" in refusal({"frog": entry(), "toad": entry("toad")}, phrases)


# Files on disk


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that stands in for the package's tables of events."""
    monkeypatch.setattr(vocabulary, "FOLDER", tmp_path)
    return tmp_path


def test_a_file_that_is_not_yaml_is_named(folder):
    (folder / "events.yaml").write_text("frog: [")
    with pytest.raises(VocabularyError, match=r"events\.yaml: not valid YAML"):
        load_events()


@pytest.mark.parametrize("text", ["", "- frog", "frog"])
def test_a_file_that_is_no_table_is_named(folder, text):
    (folder / "events.yaml").write_text(text)
    with pytest.raises(VocabularyError, match=r"events\.yaml: expected a table"):
        load_events()
