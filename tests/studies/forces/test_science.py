"""Chapter 1: parts of the push, a caption in a plane, batches beside the whole, and training seed by seed."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional as F

from pullpush.forces import LocalGlobal, sideways
from pullpush.lab.ledger import Ledger
from pullpush.metrics import difference
from pullpush.studies import push_parts
from pullpush.studies.forces import science
from pullpush.training.diagnostics import force_norms


def test_forces_by_clip_have_the_means_that_training_records(unit):
    text, audio = unit(12, 8), unit(12, 8, 1)
    table, recorded = push_parts.forces_by_clip(text, audio, 0.07), force_norms(text, audio, 0.07)
    for name in (*push_parts.PARTS, "perpendicular_share"):
        assert table.mean()[name] == pytest.approx(recorded[name])
    np.testing.assert_allclose((table["parallel"] / table["push"]) ** 2 + table["perpendicular_share"], 1)
    assert (table["sideways_share"] <= table["perpendicular_share"]).all()


def test_every_text_sits_in_one_batch_a_pass_and_draws_do_not_change_from_call_to_call(unit):
    text, audio = unit(40, 8), unit(40, 8, 1)
    one, again, other = (push_parts.forces_in_batches(text, audio, 0.07, 10, passes=2, seed=s) for s in (0, 0, 1))
    assert one.index.tolist() == list(range(40))
    assert one.equals(again)
    assert not one.equals(other)
    whole = push_parts.forces_by_clip(text, audio, 0.07)
    np.testing.assert_allclose(push_parts.forces_in_batches(text, audio, 0.07, 500), whole, rtol=1e-9)


def test_the_table_of_parts_has_half_widths_over_clips_and_what_random_pushes_have(unit):
    """The oracle is the mean over many random directions."""
    d = 6
    found = {name: push_parts.forces_by_clip(unit(12, d, s), unit(12, d, 50 + s), 0.07) for s, name in enumerate("ab")}
    table = push_parts.parts_table(found, dimensions=d).set_index("force")
    expected = difference(found["a"]["push"].to_numpy()[None])
    assert table.loc["push", "a"] == f"{expected.value:.3f} ± {expected.half_width:.3f}"
    text, audio, push = unit(4000, d), unit(4000, d, 1), unit(4000, d, 2)
    along = (push * F.normalize(audio - text, dim=1)).sum(1).square().mean().item()
    beside = sideways(push, text, audio).square().sum(1).mean().item()
    assert float(table.loc["perpendicular share", "by chance"]) == pytest.approx(1 - along, abs=0.01)
    assert float(table.loc["sideways share", "by chance"]) == pytest.approx(beside, abs=0.01)


def test_the_interval_of_a_share_is_that_of_a_ratio_of_means():
    """The oracle is the spread of the ratio over many samples of clips."""
    generator = np.random.default_rng(0)
    whole = generator.gamma(4, size=(4000, 60))
    part = whole * generator.beta(2, 3, size=whole.shape)
    ratios = part.mean(axis=1) / whole.mean(axis=1)
    nothing = torch.zeros(60)
    of_sample = [
        science.local_share(LocalGlobal(nothing, torch.tensor(w), torch.tensor(p), nothing))
        for p, w in zip(part[:50], whole[:50], strict=True)
    ]
    assert of_sample[0].value == pytest.approx(ratios[0])
    assert np.mean([share.half_width for share in of_sample]) == pytest.approx(2 * ratios.std(), rel=0.1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_in_the_plane_probabilities_and_pushes_are_those_of_the_loss(unit, count):
    text, audio, tau = unit(20, 8), unit(20, 8, 1), 0.2
    groups = [list(range(1 + 5 * k, 6 + 5 * k)) for k in range(count)]
    view = science.project(text, audio, 0, groups, tau)
    along = F.normalize(audio[0] - text[0], dim=0)
    assert view.partner.tolist() == pytest.approx([(audio[0] - text[0]).norm().item(), 0], abs=1e-9)
    for rows, points, push in zip(groups, view.negatives, view.pushes, strict=True):
        scores = [math.exp(text[0] @ audio[j] / tau) for j in [0, *rows]]
        expected = np.array(scores[1:]) / sum(scores)
        np.testing.assert_allclose(points[:, 2], expected, rtol=1e-9)
        np.testing.assert_allclose(points[:, 0], [(audio[j] - text[0]) @ along for j in rows], atol=1e-9)
        force = sum(p * audio[j] for p, j in zip(expected, rows, strict=True)) / tau
        assert push[0] == pytest.approx(-(force @ along).item())
        across = (force - (force @ along) * along).norm().item()
        assert abs(push[1]) <= across * (1 + 1e-9)
        if count == 1:
            assert abs(push[1]) == pytest.approx(across), "the plane of one group holds all of its push"


def judged(seeds=(0, 1, 2), systems=("infonce", "siglip")) -> pd.DataFrame:
    """The chapter's claims by four stretches a run whose answer is known."""
    rows = [
        {"system": system, "seed": seed, "step": step, "ideal": -2.0 - seed, "noise_penalty": 0.5}
        | {
            "first_order": -2.5 - seed,
            "perpendicular_share": 0.9 + 0.01 * seed + (step < 3),
            "gradient_drift_pull": 0.5 + 0.01 * seed,
        }
        for system in systems
        for seed in seeds
        for step in (1, 2, 3, 4)
    ]
    ledger = Ledger("01-forces")
    ledger.judge_by({"training": SimpleNamespace(steps=pd.DataFrame(rows))}, science.MEASURES, "training")
    return ledger.table().set_index("id")


def test_the_claims_about_steps_are_judged_over_the_seeds_of_infonce():
    table = judged()
    assert table.loc["supclap-s2-perpendicular", "value"] == pytest.approx(91), "of the second half of training"
    assert table.loc["supclap-f1-drift-exists", "value"] == pytest.approx(-0.49)
    ratio = np.mean([1 / 4, 1 / 6, 1 / 8]) * (100 if table.loc["supclap-eq12-noise-penalty", "unit"] == "%" else 1)
    assert table.loc["supclap-eq12-noise-penalty", ["value", "seeds"]].tolist() == pytest.approx([ratio, 3])
    square = np.mean([0.5 / first for first in (2.5, 3.5, 4.5)])
    assert table.loc["supclap-eq12-second-order", ["value", "seeds"]].tolist() == pytest.approx([square - 1, 3])


@pytest.mark.parametrize("runs", [{"systems": ("siglip",)}, {"seeds": (0,)}])
def test_the_claims_about_steps_are_left_without_several_seeds_of_infonce(runs):
    assert judged(**runs)["reason"].str.contains("not trained with several seeds").sum() == len(science.MEASURES)
