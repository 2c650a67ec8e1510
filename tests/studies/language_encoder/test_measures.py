"""Measures find effects that were planted, and say why they find none."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import METRICS, nothing, scores

from pullpush.lab.claims import of_chapter
from pullpush.lab.ledger import Ledger
from pullpush.lab.page import judge_measures
from pullpush.studies.language_encoder import measures

LAB = "04-language-encoder-lab"
MIRRORS = ("freesound", "clotho", "audiocaps", "narrow", "skewed")
ZERO_SHOT = ("accuracy", "ensemble accuracy", "mean prompt")
ALL = (*METRICS, *ZERO_SHOT, "text uniformity")
LEVEL = {"CLAP": 0.4, "CLAPs": 0.4, "CyCLAP": 0.4, "CyCLAPs": 0.4}
PICTURES = {name.replace("CLAP", "CLIP"): level for name, level in LEVEL.items()}


def made(bonus=None, level=LEVEL, points=MIRRORS, **options):
    return scores(level, {"world": points} if points else None, bonus=bonus, metrics=ALL, **options)


@pytest.fixture
def found():
    return {
        "pretrained": made({("CyCLAP", "clotho"): 0.05, ("CLAPs", "clotho"): -0.05}),
        "scratch": made({("CLAPs", "freesound"): 0.06, ("CyCLAPs", "freesound"): 0.06}),
        "others": made({("CyCLAP", "freesound"): 0.08}, clips=20),
        "pictures": made(level=PICTURES | {"CyCLIP": 0.5}, points=None, clips=200),
        "music": made(points=None, clips=250),
        "known": made(points=("freesound", "freesound/known")),
    }


def value(name, found):
    return measures.MEASURES[name].of(found).value


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("clotho-cyclic-all-ranks", 0.05),
        ("clotho-simcse-audio-ranks", -0.05),
        ("gain-by-size", 0.06),
        ("gain-by-vocabulary", -0.06),
        ("uniformity-by-vocabulary", 0.06),  # a loss: it rose by that much in the first world, and fell nowhere
        ("cyclic-pictures-over-sounds", 0.1),
        ("zero-shot-freesound-cyclic", 0.04),  # of two tests one gains
        ("gain-by-known-source", 0.0),
        ("text-gains-more-music", 0.0),
    ],
)
def test_what_was_planted_is_found(found, name, planted):
    assert value(name, found) == pytest.approx(planted, abs=0.01)


def test_a_mean_of_two_tests_gives_each_the_same_weight():
    assert measures.joined([np.ones((2, 3)), np.zeros((2, 60))]).mean() == pytest.approx(0.5)


def test_every_claim_of_a_measure_is_judged(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, found)
    asked = {claim.judged["measure"] for claim in of_chapter(LAB) if "measure" in (claim.judged or {})}
    assert asked == {*measures.MEASURES}
    assert not [claim for claim in ledger.open if "measure" in claim.judged]


def test_what_is_missing_is_said(found):
    ledger = Ledger(LAB)
    found["music"] = nothing(found["music"])
    judge_measures(ledger, measures.MEASURES, found)
    rows = ledger.table().set_index("id")
    assert rows.loc["language_encoder-t15-claps-text", "reason"].startswith("music is long")
