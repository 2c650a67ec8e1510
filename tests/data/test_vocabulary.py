"""The table of events: complete, unambiguous, and in a form that the grammar can use."""

import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

import pullpush.data.language.vocabulary as vocabulary
from pullpush.data.banks.synthetic import synthetic_events
from pullpush.data.languages import read_table

EVENTS = {event.name: event for event in vocabulary.load_events()}
# The stamps of Tux Paint 2022.06.04 that come with a sound effect, listed from the package itself.
EFFECTS = (Path(__file__).parent / "tuxpaint_effects.txt").read_text(encoding="utf-8").split()
PHRASES = {"clauses": ["a frog | croaks", "a frog | is croaking"], "nouns": ["the croaking of a frog"], "label": "frog"}


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
        foreign = {*text} - {*text.encode("gb2312", "ignore").decode("gb2312")}  # GB 2312 has no traditional forms
        assert not foreign, (name, text, foreign)


def test_chinese_verbs_carry_no_aspect_of_their_own():
    for event in EVENTS.values():
        for clause in event.phrases["zho"].clauses:
            assert not clause.verb.startswith(("在", "正在", "反复")), (event.name, clause)
            assert not clause.verb.endswith(("了", "着")), (event.name, clause)


@pytest.mark.parametrize("language", vocabulary.LANGUAGES)
def test_phrases_leave_capital_and_full_stop_to_the_grammar(language):
    for name, text in each_text(language):
        assert not text.endswith((".", "。", ",", "!")), (name, text)
    if language != "deu":  # German nouns are capital; so may be a proper name after the first word
        assert [text for _, text in each_text(language) if text[0].isupper()] == []


# Parsing


@given(st.text(st.characters(exclude_characters="|"), max_size=20).map(str.strip), st.text(max_size=20))
def test_a_clause_has_two_parts_or_is_refused(subject, rest):
    text = f"{subject} | {rest}"
    if subject and rest.strip() and "|" not in rest:
        assert vocabulary.parse_clause(text) == vocabulary.Clause(subject, rest.strip())
    else:
        with pytest.raises(vocabulary.VocabularyError, match="subject"):
            vocabulary.parse_clause(text, where="here")


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
def test_malformed_phrases_are_refused_with_their_place(change):
    with pytest.raises(vocabulary.VocabularyError, match=r"^xyz\.yaml: frog"):
        vocabulary.parse_phrases(PHRASES | change, where="xyz.yaml: frog")


def test_phrases_of_no_event_are_named(monkeypatch):
    strange = dataclasses.replace(vocabulary.load_languages()["fra"], events={"toad": PHRASES})
    monkeypatch.setattr(vocabulary, "load_languages", lambda: {"fra": strange})
    with pytest.raises(vocabulary.VocabularyError, match=r"fra\.yaml: toad: no such event"):
        vocabulary._load_events.__wrapped__(())


@pytest.mark.parametrize("events", [vocabulary.load_events(), synthetic_events()])
def test_no_recording_and_no_phrase_belongs_to_two_events(events):
    """A caption must say which event it is of."""
    owner: dict[tuple[str, str], str] = {}
    for event in events:
        claims = {("recording", stamp) for stamp in event.recordings}
        for code, phrases in event.phrases.items():
            says = {f"{clause.subject} {clause.verb}" for clause in phrases.clauses} | set(phrases.nouns)
            claims |= {(code, text.casefold()) for text in says} | {(f"{code} label", phrases.label.casefold())}
        for claim in claims:
            assert owner.setdefault(claim, event.name) == event.name, claim
    assert all(set(event.phrases) == set(vocabulary.LANGUAGES) for event in events)


@pytest.mark.parametrize(("text", "says"), [("frog: [", "not valid YAML"), ("- frog", "expected a table")])
def test_a_file_that_is_no_table_is_named(tmp_path, text, says):
    (tmp_path / "events.yaml").write_text(text)
    with pytest.raises(vocabulary.VocabularyError, match=rf"events\.yaml: {says}"):
        read_table(tmp_path / "events.yaml")
