"""Gains and their differences; measures find effects that were planted, and say why they find none."""

from __future__ import annotations

import numpy as np
import pytest
from made_up import METRICS, nothing, scores as made_up
from scipy import special

from pullpush.lab.claims import of_chapter
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.lab.page import judge_measures
from pullpush.metrics.inference import difference
from pullpush.studies.language_encoder import comparisons, measures

LAB = "04-language-encoder-lab"
MIRRORS = ("freesound", "clotho", "audiocaps", "narrow", "skewed")
ZERO_SHOT = ("accuracy", "ensemble accuracy", "mean prompt")
ALL = (*METRICS, *ZERO_SHOT, "text uniformity")
LEVEL = {"CLAP": 0.4, "CLAPs": 0.4, "CyCLAP": 0.4, "CyCLAPs": 0.4}
PICTURES = {name.replace("CLAP", "CLIP"): level for name, level in LEVEL.items()}
WORLDS = ("freesound", "clotho", "made")
POINTS = {world: {"world": world} for world in WORLDS}
S = [("CLAPs", "CLAP"), ("CyCLAPs", "CyCLAP")]


@pytest.fixture(scope="module")
def scores():
    level = {"CLAP": 0.30, "CLAPs": 0.32, "CyCLAP": 0.31, "CyCLAPs": 0.36}
    return made_up(level, {"world": WORLDS}, bonus={("CLAPs", "freesound"): 0.05, ("CyCLAPs", "freesound"): 0.05})


def test_a_gain_is_that_of_the_experiment(scores):
    found = measures.gain(scores, S[0], "A2T R@1", POINTS["clotho"])
    assert found.shape == (3, 400)
    assert difference(found) == scores.contrast("CLAPs", "CLAP", "A2T R@1", POINTS["clotho"])
    relative = measures.gain(scores, S[0], "A2T R@1", POINTS["clotho"], relative=True)
    assert difference(relative) == scores.contrast("CLAPs", "CLAP", "A2T R@1", POINTS["clotho"], relative=True)


def test_several_pairs_and_scores_are_averaged(scores):
    both = measures.gain(scores, S, comparisons.RECALLS, POINTS["clotho"])
    each = [measures.gain(scores, pair, name, POINTS["clotho"]) for pair in S for name in comparisons.RECALLS]
    np.testing.assert_allclose(both, np.mean(each, axis=0))
    assert both.mean() == pytest.approx(0.035, abs=0.003)


def test_exchanged_a_pair_gives_how_far_a_loss_falls(scores):
    rise, fall = (measures.gain(scores, pair, "R@1", POINTS["made"]) for pair in (S[0], S[0][::-1]))
    np.testing.assert_allclose(rise, -fall)


def test_one_experiment_has_more_than_another(scores):
    more, less = (measures.gain(scores, S, where=POINTS[world]) for world in ("freesound", "clotho"))
    paired = difference(more, less)
    assert paired.stands
    assert paired.low < 0.05 < paired.high
    apart = measures.unpaired(more, less)
    assert apart.value == pytest.approx(paired.value)
    assert apart.low < 0.05 < apart.high
    assert (apart.seeds, apart.clips) == (3, 400)
    assert sum(apart.variance.shares.values()) == pytest.approx(1)


def test_a_gain_of_what_was_not_kept_says_so(scores):
    with pytest.raises(ExperimentError, match="share no seed"):
        measures.gain(nothing(scores), S[0], where=POINTS["clotho"])


def test_two_experiments_apart_differ_as_welch_says():
    """One number a seed: then this is Welch's test."""
    one, other = [[1.0], [2.0], [4.0]], [[0.0], [0.5], [0.1], [0.2]]
    found = measures.unpaired(one, other)
    a, b = np.ravel(one), np.ravel(other)
    parts = np.array([a.var(ddof=1) / 3, b.var(ddof=1) / 4])
    df = parts.sum() ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3)
    assert found.value == pytest.approx(a.mean() - b.mean())
    assert found.df == pytest.approx(df)
    assert found.half_width == pytest.approx(special.stdtrit(df, 0.975) * np.sqrt(parts.sum()))
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
    assert measures.unpaired(other, one).value == pytest.approx(-found.value)


def test_nothing_varies_and_nothing_differs():
    same = measures.unpaired(np.ones((2, 3)), np.ones((2, 4)))
    assert (same.value, same.half_width, same.p) == (0, 0, 1)
    assert measures.unpaired(np.ones((2, 3)), np.zeros((2, 4))).p == 0


@pytest.mark.parametrize(("seeds", "clips"), [((3, 3), (40, 300)), ((5, 3), (200, 100))])
def test_intervals_of_independent_differences_hold_the_truth_as_often_as_they_say(seeds, clips):
    rng, covered, draws = np.random.default_rng(0), 0, 300

    def drawn(rows: int, columns: int) -> np.ndarray:
        part = rng.normal(0, 0.3, (rows, 1)) + rng.normal(0, 2, (1, columns))
        return part + rng.normal(0, 2, (rows, columns))

    for _ in range(draws):
        found = measures.unpaired(*(drawn(*size) for size in zip(seeds, clips, strict=True)))
        covered += found.low <= 0 <= found.high
    assert 0.92 <= covered / draws <= 0.985


# ---------------------------------------------------------------- measures


def made(bonus=None, level=LEVEL, points=MIRRORS, **options):
    return made_up(level, {"world": points} if points else None, bonus=bonus, metrics=ALL, **options)


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
