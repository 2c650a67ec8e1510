"""What claims say of contrasts is computed: lists are averaged or joined, one side is taken from another."""

import numpy as np
import pytest
from made_up import METRICS, nothing, scores as made_up

from pullpush.lab.claims import of_chapter
from pullpush.lab.contrasts import by_chance, contrast, gain, joined, needed
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.metrics.inference import difference

LEVEL = {"CLAP": 0.30, "CLAPs": 0.32, "CyCLAP": 0.31, "CyCLAPs": 0.36}
WORLDS = ("freesound", "clotho", "audiocaps", "narrow", "skewed")
SIMCSE = {"experiment": "scratch", "system": "CLAPs", "baseline": "CLAP", "metric": "A2T R@1"}
BOTH = SIMCSE | {"system": ["CLAPs", "CyCLAPs"], "baseline": ["CLAP", "CyCLAP"]}
AT = {"where": {"world": "freesound"}}
LAB = "04-language-encoder-lab"
ALL = (*METRICS, "accuracy", "ensemble accuracy", "mean prompt", "text uniformity")


@pytest.fixture(scope="module")
def found():
    bonus = {(system, "freesound"): 0.05 for system in ("CLAPs", "CyCLAPs")}
    pictures = {name.replace("CLAP", "CLIP"): level for name, level in LEVEL.items()}
    worlds = {"world": WORLDS}
    return {
        "scratch": made_up(LEVEL, worlds, bonus=bonus, metrics=ALL),
        "pretrained": made_up(LEVEL, worlds, metrics=ALL, seed=1),
        "others": made_up(LEVEL, worlds, bonus={("CLAPs", "freesound"): 0.08}, clips=20, metrics=ALL),
        "known": made_up(LEVEL, {"world": ("freesound", "freesound/known")}),
        "pictures": made_up(pictures | {"CyCLIP": 0.5}, clips=200),
        "music": made_up(LEVEL, clips=250),
    }


def test_a_plain_contrast_is_that_of_the_experiment(found):
    expected = found["scratch"].contrast("CLAPs", "CLAP", "A2T R@1", AT["where"])
    assert contrast(found, SIMCSE | AT) == expected
    assert difference(gain(found, SIMCSE | AT)) == expected
    relative = found["scratch"].contrast("CLAPs", "CLAP", "A2T R@1", AT["where"], relative=True)
    assert contrast(found, SIMCSE | AT | {"relative": True}) == relative
    assert difference(gain(found, SIMCSE | AT, relative=True)) == relative
    other = {"baseline_where": {"world": "clotho"}}
    elsewhere = found["scratch"].contrast("CLAP", None, "A2T R@1", AT["where"], **other)
    assert (
        contrast(found, {"experiment": "scratch", "system": ["CLAP"], "metric": "A2T R@1", **AT, **other}) == elsewhere
    )


def test_systems_scores_and_points_are_averaged_clip_by_clip(found):
    whole = gain(found, BOTH | {"metric": ["A2T R@1", "A2T R@5"], "where": {"world": ["freesound", "clotho"]}})
    each = [
        gain(found, SIMCSE | {"system": ours, "baseline": theirs, "metric": metric, "where": {"world": world}})
        for ours, theirs in zip(BOTH["system"], BOTH["baseline"], strict=True)
        for metric in ("A2T R@1", "A2T R@5")
        for world in ("freesound", "clotho")
    ]
    assert whole.shape == (3, 400)
    np.testing.assert_allclose(whole, np.mean(each, axis=0))


def test_experiments_are_of_other_clips_and_weigh_the_same(found):
    side = SIMCSE | AT | {"experiment": ["pretrained", "others"], "metric": "accuracy"}
    values = gain(found, side)
    assert values.shape == (3, 420)
    assert values.mean() == pytest.approx((0.02 + 0.10) / 2, abs=0.01)
    assert joined([np.ones((2, 3)), np.zeros((2, 60))]).mean() == pytest.approx(0.5)


def test_pooled_conditions_are_averaged_with_equal_weights_and_points_of_their_own(found):
    points = {"scratch": {"world": ["freesound", "clotho"]}, "pretrained": {"world": "audiocaps"}}
    side = SIMCSE | {"experiment": [*points], "pooled": points}
    each = [
        gain(found, SIMCSE | {"experiment": name, "where": {"world": world}})
        for name, world in (("scratch", "freesound"), ("scratch", "clotho"), ("pretrained", "audiocaps"))
    ]
    assert contrast(found, side) == difference(np.mean(each, axis=0))


def test_experiments_of_more_seeds_are_pooled_by_those_that_all_have(found):
    longer = made_up(LEVEL, {"world": WORLDS}, metrics=ALL, seed=1, seeds=range(5))
    points = {"scratch": {"world": "freesound"}, "pretrained": {"world": "audiocaps"}}
    side = SIMCSE | {"experiment": [*points], "pooled": points}
    values = gain(found | {"pretrained": longer}, side)
    of_longer = gain({"pretrained": longer}, SIMCSE | {"experiment": "pretrained", "where": {"world": "audiocaps"}})
    of_other = gain(found, SIMCSE | {"experiment": "scratch", "where": {"world": "freesound"}})
    np.testing.assert_allclose(values, (of_longer[:3] + of_other) / 2)
    later = made_up(LEVEL, {"world": WORLDS}, metrics=ALL, seed=1, seeds=range(1, 6))
    of_later = gain({"pretrained": later}, SIMCSE | {"experiment": "pretrained", "where": {"world": "audiocaps"}})
    values = gain(found | {"pretrained": later}, side)
    np.testing.assert_allclose(values, (of_later[:2] + of_other[1:]) / 2, err_msg="paired by seed, not by place")


def test_what_is_less_replaces_what_it_names(found):
    more = contrast(found, BOTH | AT | {"less": {"where": {"world": "clotho"}}})
    assert more.low < 0.05 < more.high
    sides = [gain(found, BOTH | {"where": {"world": world}}) for world in ("freesound", "clotho")]
    assert more == difference(*sides)
    fewer = contrast(
        found, {"experiment": "scratch", "system": "CLAP", "metric": "R@1", **AT, "less": {"experiment": "pretrained"}}
    )
    assert fewer.clips == 400
    assert abs(fewer.value) < 0.02


def test_chance_is_a_baseline(found):
    side = {"experiment": "music", "system": "CLAP", "baseline": "chance", "metric": "T2A R@1"}
    assert contrast(found, side).value == pytest.approx(found["music"].values("CLAP", "T2A R@1").mean() - 1 / 250)
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(np.arange(8), (4000, 1)), axis=1)
    assert by_chance("T2A R@5", 8) == pytest.approx((drawn[:, :5] == 0).any(axis=1).mean(), abs=0.02)
    assert (by_chance("accuracy deu", 4), by_chance("R@1", 4)) == (0.25, 0.25)
    assert np.isnan(by_chance("no score", 4))


def test_what_is_not_there_is_said(found):
    with pytest.raises(ExperimentError, match="share no seed"):
        gain({"scratch": nothing(found["scratch"])}, SIMCSE | AT)
    with pytest.raises(ExperimentError, match="system"):
        contrast(found, BOTH | AT | {"system": ["CLAPs", "CLAPx"]})


# ---------------------------------------------------------------- claims


def test_every_contrast_of_a_lab_is_judged_once_all_that_it_needs_is_there(found):
    ledger, so_far = Ledger(LAB), {}
    several = {claim.id: needed(claim.judged) for claim in of_chapter(LAB) if len(needed(claim.judged)) > 1}
    assert several
    for name, scores in found.items():
        so_far[name] = scores
        ledger.judge_by(so_far, {}, name)
        still = {claim.id for claim in ledger.open}
        assert not [id for id, names in several.items() if (id in still) == ({*names} <= so_far.keys())], name


def test_a_part_that_was_not_kept_leaves_its_claims(found):
    ledger = Ledger(LAB)
    ledger.judge_by({"music-again": nothing(found["music"])}, {}, "music-again")
    rows = ledger.table().set_index("id")
    assert rows.loc["language_encoder-t15-claps-text", "reason"].startswith("music-again is long")
