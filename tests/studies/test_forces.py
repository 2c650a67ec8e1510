"""The measurements of the chapter on forces, on embeddings whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from pullpush.lab.ledger import Ledger
from pullpush.metrics import difference
from pullpush.studies.forces import forces as force_study
from pullpush.training.diagnostics import force_norms


def unit(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64), dim=1)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 20), d=st.integers(2, 12), tau=st.sampled_from([0.02, 0.07, 0.5, 1.0]), seed=st.integers(0, 99))
def test_the_equations_hold_to_the_last_digits(n, d, tau, seed):
    table = force_study.equation_errors(unit(n, d, seed), unit(n, d, seed + 1000), tau)
    assert table["equation"].tolist() == ["Eq. 1–4", "§2", "§2", "Eq. 12"]
    assert (table["error"] <= 1e-12 * table["scale"].clip(lower=1)).all()


def test_the_equations_hold_for_single_precision_embeddings_too():
    table = force_study.equation_errors(unit(8, 6).float(), unit(8, 6, 1).float(), 0.07)
    assert (table["error"] < 1e-12).all()


def test_the_gradient_of_every_caption_is_pull_plus_push():
    found = force_study.gradient_errors(unit(8, 6), unit(8, 6, 1), 0.07)
    assert 0 <= found.value < 1e-12
    assert (found.seeds, found.clips) == (1, 8)


def test_forces_by_clip_have_the_means_that_training_records():
    text, audio = unit(12, 8), unit(12, 8, 1)
    mean = force_study.forces_by_clip(text, audio, 0.07).mean()
    recorded = force_norms(text, audio, 0.07)
    for name in (*force_study.PARTS, "perpendicular_share"):
        assert mean[name] == pytest.approx(recorded[name])


def test_shares_are_of_the_squared_push_and_sideways_is_the_smaller_one():
    table = force_study.forces_by_clip(unit(12, 8), unit(12, 8, 1), 0.07)
    parallel = (table["parallel"] / table["push"]) ** 2
    np.testing.assert_allclose(parallel + table["perpendicular_share"], 1)
    assert (table["sideways_share"] <= table["perpendicular_share"]).all()


def test_every_text_sits_in_one_batch_a_pass_and_draws_do_not_change_from_call_to_call():
    text, audio = unit(40, 8), unit(40, 8, 1)
    one, again, other = (force_study.forces_in_batches(text, audio, 0.07, 10, passes=2, seed=s) for s in (0, 0, 1))
    assert one.index.tolist() == list(range(40))
    assert one.equals(again)
    assert not one.equals(other)


def test_a_batch_larger_than_the_set_is_the_set():
    text, audio = unit(12, 8), unit(12, 8, 1)
    whole = force_study.forces_by_clip(text, audio, 0.07)
    np.testing.assert_allclose(force_study.forces_in_batches(text, audio, 0.07, 500), whole, rtol=1e-9)


def test_settings_leave_out_batches_that_the_set_cannot_fill():
    spaces = {"trained": (unit(30, 8), unit(30, 8, 1)), "untrained": (unit(9, 8), unit(9, 8, 1))}
    table = force_study.parts_by_setting(spaces, tau=0.1, batch_size=8, taus=(0.05, 0.5), batch_sizes=(4, 8, 24, 64))
    sizes = table[table["setting"] == "batch size"].groupby("model")["value"].apply(list)
    assert sizes["trained"] == [4, 8, 24]
    assert sizes["untrained"] == [4, 8]
    warmth = table[table["setting"] == "temperature"]
    assert warmth.groupby("model")["value"].apply(list)["trained"] == [0.05, 0.5]
    assert table.drop(columns=["model", "setting"]).notna().all(axis=None)


def test_both_settings_measure_the_same_point_alike():
    spaces = {"trained": (unit(30, 8), unit(30, 8, 1))}
    table = force_study.parts_by_setting(spaces, tau=0.1, batch_size=8, taus=(0.1,), batch_sizes=(8,))
    first, second = (table.drop(columns=["setting", "value"]).iloc[i] for i in (0, 1))
    assert first.equals(second)
    assert first["sideways_over_pull"] == pytest.approx(first["sideways"] / first["pull"])


def test_the_table_of_parts_has_a_column_a_model_and_half_widths_over_clips():
    found = {name: force_study.forces_by_clip(unit(12, 8, s), unit(12, 8, 50 + s), 0.07) for s, name in enumerate("ab")}
    table = force_study.parts_table(found).set_index("force")
    assert list(table.columns) == ["a", "b"]
    expected = difference(found["a"]["push"].to_numpy()[None])
    assert table.loc["push", "a"] == f"{expected.value:.3f} ± {expected.half_width:.3f}"
    assert "sideways share" in table.index


def test_batches_are_held_against_the_whole_only_where_two_fit():
    found = force_study.batches_against_whole(unit(40, 8), unit(40, 8, 1), 0.07, batch_sizes=(4, 20, 21, 40))
    table = force_study.local_global_table(found)
    assert table["batch_size"].tolist() == [4, 20]
    assert table["whole"].nunique() == 1
    assert (table["variance"] <= table["batch"] * (1 + 1e-9)).all()
    assert table["cosine"].is_monotonic_increasing, "larger batches come nearer to the whole"
    assert table["variance"].is_monotonic_decreasing


def test_a_set_too_small_for_two_batches_gives_no_rows():
    assert not force_study.batches_against_whole(unit(6, 4), unit(6, 4, 1), 0.07)


def test_the_share_that_fluctuates_is_that_of_the_means():
    found = force_study.batches_against_whole(unit(40, 8), unit(40, 8, 1), 0.07, batch_sizes=(4, 20))
    shares = {size: (one.variance.mean() / one.batch.mean()).item() for size, one in found.items()}
    assert force_study.local_share(found[4]).value == pytest.approx(shares[4])
    change = force_study.local_share(found[20], less=found[4])
    assert change.value == pytest.approx(shares[20] - shares[4])
    assert change.clips == 40


def test_the_interval_of_a_share_is_that_of_a_ratio_of_means():
    """The oracle is the spread of the ratio over many samples of clips."""
    generator = np.random.default_rng(0)
    whole = generator.gamma(4, size=(4000, 60))
    part = whole * generator.beta(2, 3, size=whole.shape)
    ratios = part.mean(axis=1) / whole.mean(axis=1)
    halves = [
        force_study.by_clip(force_study._share(torch.tensor(p), torch.tensor(w))).half_width
        for p, w in zip(part[:50], whole[:50], strict=True)
    ]
    assert np.mean(halves) == pytest.approx(2 * ratios.std(), rel=0.1)


def over_training(recipes=("infonce", "siglip"), seeds=(0, 1, 2)) -> pd.DataFrame:
    """Four stretches a run; the cosines of a run are its number, those of SigLIP less by 0.1."""
    rows = [
        {"recipe": recipe, "seed": seed, "step": step, "ideal": -2.0 - seed, "noise_penalty": 0.5}
        | {"perpendicular_share": 0.9 + 0.01 * seed + (step < 3)}
        | {name: 0.5 + 0.01 * seed - 0.1 * (recipe == "siglip") - 0.2 * (name[0] == "u") for name in READINGS}
        for recipe in recipes
        for seed in seeds
        for step in (1, 2, 3, 4)
    ]
    return pd.DataFrame(rows)


READINGS = {"gradient_drift_pull": "printed", "gradient_drift_tangent": "gradient", "update_drift_tangent": "update"}


def test_late_is_the_second_half_of_training():
    table = force_study.late(over_training(), ["perpendicular_share"])
    assert table.columns.tolist() == ["recipe", "seed", "perpendicular_share"]
    np.testing.assert_allclose(table["perpendicular_share"], [0.9, 0.91, 0.92] * 2)


def test_the_penalty_is_a_share_of_the_ideal_term_whatever_its_sign():
    np.testing.assert_allclose(force_study.penalty_ratios(over_training(("infonce",))), [1 / 4, 1 / 6, 1 / 8])


def test_drift_is_compared_between_recipes_and_between_gradient_and_update():
    drift = force_study.late(over_training(), list(READINGS))
    table = force_study.drift_differences(drift, READINGS).set_index("cosine of")["difference"]
    assert len(table) == 5
    assert table["gradient: SigLIP − InfoNCE"] == "−0.100 ± 0.000 [−0.100, −0.100]"
    assert table["SigLIP: realised update − gradient"] == "−0.200 ± 0.000 [−0.200, −0.200]"


def test_drift_of_one_seed_has_no_interval():
    drift = force_study.late(over_training(seeds=(3,)), list(READINGS))
    table = force_study.drift_differences(drift, READINGS)
    assert table["difference"].tolist() == ["-0.100"] * 3 + ["-0.200"] * 2
    assert (table["seeds"] == 1).all()


def test_the_claims_about_steps_are_judged_over_the_seeds_of_infonce():
    ledger = Ledger("01-forces")
    force_study.judge_steps(ledger, over_training())
    table = ledger.table().set_index("id")
    assert table.loc["supclap-s2-perpendicular", "value"] == pytest.approx(91)
    assert table.loc["supclap-f1-drift-exists", "value"] == pytest.approx(-0.49)
    assert table.loc["supclap-eq12-noise-penalty", "seeds"] == 3
    assert (table.loc[["supclap-s2-perpendicular", "supclap-f1-drift-exists"], "verdict"] == "holds").all()


@pytest.mark.parametrize("steps", [over_training(("siglip",)), over_training(seeds=(0,)), over_training().head(0)])
def test_the_claims_about_steps_are_left_without_several_seeds_of_infonce(steps):
    ledger = Ledger("01-forces")
    force_study.judge_steps(ledger, steps)
    assert "not trained with several seeds" in ledger.sentence("supclap-eq12-noise-penalty")


def test_a_mean_is_written_with_its_half_width():
    found = difference([[0.97, 0.99, 0.95, 0.97]])
    assert force_study.plain(found) == f"0.970 ± {found.half_width:.3f}"
    assert force_study.plain(found, percent=True) == f"97.0 ± {100 * found.half_width:.1f} %"


def test_in_the_plane_the_partner_lies_on_the_x_axis_at_its_distance():
    text, audio = unit(20, 8), unit(20, 8, 1)
    groups = [list(range(1, 10)), list(range(10, 20))]
    view = force_study.plane(text, audio, 0, groups, 0.07)
    assert view.partner[0] == pytest.approx((audio[0] - text[0]).norm().item())
    assert view.partner[1] == pytest.approx(0, abs=1e-9)
    assert [points.shape for points in view.negatives] == [(9, 3), (10, 3)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_in_the_plane_probabilities_and_pushes_are_those_of_the_loss(count):
    text, audio, tau = unit(20, 8), unit(20, 8, 1), 0.2
    groups = [list(range(1 + 5 * k, 6 + 5 * k)) for k in range(count)]
    view = force_study.plane(text, audio, 0, groups, tau)
    along = F.normalize(audio[0] - text[0], dim=0)
    for rows, points, push in zip(groups, view.negatives, view.pushes, strict=True):
        scores = [math.exp(text[0] @ audio[j] / tau) for j in [0, *rows]]
        expected = np.array(scores[1:]) / sum(scores)
        np.testing.assert_allclose(points[:, 2], expected, rtol=1e-9)
        np.testing.assert_allclose(points[:, 0], [(audio[j] - text[0]) @ along for j in rows], atol=1e-9)
        force = sum(p * audio[j] for p, j in zip(expected, rows, strict=True)) / tau
        assert push[0] == pytest.approx(-(force @ along).item())
        sideways = (force - (force @ along) * along).norm().item()
        assert abs(push[1]) <= sideways * (1 + 1e-9)
        if count == 1:
            assert abs(push[1]) == pytest.approx(sideways), "the plane of one group holds all of its push"


def test_the_axes_of_the_plane_are_perpendicular():
    # A negative that differs from the anchor only along û must lie on the x-axis.
    text, audio = unit(6, 5), unit(6, 5, 1)
    audio[3] = text[0] + 0.4 * (audio[0] - text[0])
    view = force_study.plane(text, audio, 0, [[1, 2, 3], [3, 4, 5]], 0.07)
    assert view.negatives[0][2, 1] == pytest.approx(0, abs=1e-9)
    assert view.negatives[1][0, 1] == pytest.approx(0, abs=1e-9)
