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


def test_missing_translations_are_counted_and_substitutes_taken():
    found = unheard.event_captions(stamps(), EVENTS, "it")
    assert found["text"].to_dict() == {0: "Un gatto.", 1: "Un cane."}
    chinese = unheard.event_captions(stamps(), EVENTS, "zho")
    assert chinese["text"].to_dict() == {0: "貓。", 1: "狗。"}
    assert chinese["code"].to_dict() == {0: "zh_TW", 1: "zh_CN"}
    table = unheard.coverage(stamps(), EVENTS, ["it", "zho"]).set_index("language")
    assert table.loc["zho"].tolist() == [2, 1, 1, 2, 1]


def test_a_bank_without_stamps_lends_its_labels(world):
    events = world.bank.events
    own = unheard.event_captions(unheard.labels_as_stamps(events), events, "fra")
    assert own["text"].to_dict() == {number: event.phrases["fra"].label for number, event in enumerate(events)}


def test_only_events_with_a_caption_are_asked(run, heard):
    events = tuple(replace(event, recordings=(event.name,)) for event in heard.bank.events)
    heard = replace(heard, bank=replace(heard.bank, events=events))
    rows = [(event.name, "it", event.name, "it") for event in events[:3]]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    own = Stamps(captions, captions, captions, captions)
    found = unheard.zero_shot_stamps({("kcl", 0): run, ("kcl", 1): run, ("cacl", 1): run}, heard, own, ["it"])
    assert set(found["event"]) == {0, 1, 2}
    assert found["chance"].unique() == pytest.approx([1 / 3])
    assert found["accuracy"].between(0, 1).all()
    (gain,) = unheard.gains(found, [("kcl", "cacl")]).to_dict("records")
    assert (gain["languages"], gain["value"], gain["seeds"], gain["clips"]) == ("new, known to the encoder", 0, 1, 3)
    kcl, _ = unheard.levels(found).to_dict("records")
    assert (kcl["system"], kcl["seeds"], kcl["clips"]) == ("kcl", 2, 3)
    assert kcl["value"] == pytest.approx(found["accuracy"].mean())
