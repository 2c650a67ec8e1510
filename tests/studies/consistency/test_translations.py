"""Captions in a frozen sentence encoder."""

from __future__ import annotations

from pullpush.data.vocabulary import LANGUAGES
from pullpush.studies.consistency.translations import caption_cosines


def test_a_caption_is_nearer_to_its_own_clip(run, heard):
    same = caption_cosines(run.model.text, heard.test)
    other = caption_cosines(run.model.text, heard.test, stranger=True)
    assert list(same) == list(LANGUAGES)
    assert same["eng"].mean() > other["eng"].mean()
