"""Captions of stamps in languages that were never trained on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from pullpush.data.language.vocabulary import Event
from pullpush.data.recordings.tuxpaint import Stamps
from pullpush.studies.consistency import unheard


def stamps() -> Stamps:
    rows = [
        ("animals/dog", "it", "Un cane.", "it"),
        ("animals/dog", "zho", "狗。", "zh_CN"),
        ("animals/cat", "zho", "貓。", "zh_TW"),
        ("animals/cat2", "it", "Un gatto.", "it"),
    ]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    empty = pd.DataFrame(columns=["stamp", "path"])
    return Stamps(captions, empty, empty, empty)


EVENTS = (
    Event("cat", "mammal", ("animals/cat", "animals/cat2"), {}),
    Event("dog", "mammal", ("animals/dog",), {}),
    Event("emu", "bird", ("animals/emu",), {}),
)


def test_missing_translations_are_named_and_substitutes_counted():
    found = unheard.stamp_texts(stamps(), EVENTS, "it")
    assert found.texts == {0: "Un gatto.", 1: "Un cane."}
    assert found.missing == ("emu",)
    chinese = unheard.stamp_texts(stamps(), EVENTS, "zho")
    assert chinese.texts == {0: "貓。", 1: "狗。"}
    assert chinese.substitute == 1
    table = unheard.coverage(stamps(), EVENTS, ["it", "zho"]).set_index("language")
    assert table.loc["zho"].tolist() == [2, 1, 1, 2, 1]


def test_a_bank_without_stamps_lends_its_labels(world):
    events = world.bank.events
    own = unheard.stamp_texts(unheard.labels_as_stamps(events), events, "fra")
    assert own.texts == {number: event.phrases["fra"].label for number, event in enumerate(events)}
    assert not own.missing
    assert not own.substitute


def test_only_events_with_a_caption_are_asked(run, heard):
    events = tuple(replace(event, recordings=(event.name,)) for event in heard.bank.events)
    heard = replace(heard, bank=replace(heard.bank, events=events))
    rows = [(event.name, "it", event.name, "it") for event in events[:3]]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    own = Stamps(captions, captions, captions, captions)
    found = unheard.zero_shot_stamps({("kcl", 0): run, ("kcl", 1): run, ("cacl", 1): run}, heard, own, ["it"])
    table = unheard.by_language(found)
    assert table.loc[0, "events"] == 3
    assert table.loc[0, "chance"] == pytest.approx(1 / 3)
    assert table["accuracy"].between(0, 1).all()
    (gain,) = unheard.unheard_gains(found, [("kcl", "cacl")], {"it": "new"}).to_dict("records")
    assert (gain["languages"], gain["value"], gain["seeds"], gain["clips"]) == ("new", 0, 1, 3)
