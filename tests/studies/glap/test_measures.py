"""What judges the claims of chapter 5's lab finds what was planted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_glap import SEEDS, SPOKEN, scores

from pullpush.lab import claims
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.lab.page import judge_measures
from pullpush.studies.glap import measures
from pullpush.studies.glap.experiments import Run, on_tests

LAB = "05-glap-lab"


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("sigmoid-over-softmax", 0.05),
        ("gain-by-batch", 0.05),
        ("gain-by-data", 0.03),
        ("best-before-end", 0.25),  # half of the training was left, and a quarter of it is the last part
        ("balanced-sampling", 0.02),
        ("translated-captions", 0.1),
        ("speech-data-alone", -0.2),
        ("no-speech", 1 / 40 - 0.5),
        ("no-compromise", 0.0),
        ("silent-at-chance", 0.0),
        ("most-versatile", 0.1),
        ("sound-prompt", 0.1),
        ("keywords-english", 0.45 - 1 / 30),
        ("silent-keywords", 0.0),
        ("russian-sounds", 0.0),
    ],
)
def test_what_was_planted_is_found(found, name, planted):
    assert measures.MEASURES[name].of(found).value == pytest.approx(planted, abs=0.015)


def test_accuracy_that_falls_with_every_word_has_a_rank_correlation_of_minus_one(found):
    assert measures.fewer_is_easier(found["named-speech"]).value == pytest.approx(-1, abs=0.05)


def test_every_claim_of_a_measure_is_judged(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, found)
    asked = {claim.judged["measure"] for claim in claims.of_chapter(LAB) if "measure" in (claim.judged or {})}
    assert asked == {*measures.MEASURES}
    assert not [claim for claim in ledger.open if "measure" in claim.judged]


def test_some_of_the_measures_can_be_judged_alone(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, {"sampling": found["sampling"]})
    assert "holds" in ledger.sentence("glap-s3-balanced-sampling")
    assert [claim for claim in ledger.open if claim.id == "glap-s1-no-compromise"]


def test_what_is_missing_is_said(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, {**found, "sampling": replace(found["sampling"], clips={})})
    rows = ledger.table().set_index("id")
    assert rows.loc["glap-s3-balanced-sampling", "reason"].startswith("sampling is long")


def test_too_few_languages_have_no_rank():
    few = on_tests("named-speech", [Run("GLAP", ("siglip", {}))], ["keywords eng"], seeds=SEEDS)
    with pytest.raises(ExperimentError, match="no rank correlation"):
        measures.fewer_is_easier(scores(few, lambda trial, metric: 0.5, SPOKEN))
