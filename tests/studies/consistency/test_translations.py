"""Captions in a frozen sentence encoder."""

from __future__ import annotations

import numpy as np

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.studies.consistency.translations import caption_cosines, caption_table


def test_a_caption_is_nearer_to_its_own_clip(run, heard):
    same = caption_cosines(run.model.text, heard.test)
    other = caption_cosines(run.model.text, heard.test, stranger=True)
    assert list(same) == list(LANGUAGES)
    assert same["eng"].mean() > other["eng"].mean()


def test_the_nearest_language_stands_first():
    same = {"fra": np.array([0.5, 0.7]), "deu": np.array([0.9, 0.9])}
    table = caption_table(same, {name: values / 2 for name, values in same.items()}, {"fra": 88.0})
    assert table["language"].tolist() == ["deu", "fra"]
    assert table.iloc[1, 1:].tolist() == [60, 30, 88]
