"""Tests of forces and drift over training, on a table whose answer is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pullpush.lab.ledger import Ledger
from pullpush.studies.forces import steps

READINGS = {"gradient_drift_pull": "printed", "gradient_drift_tangent": "gradient", "update_drift_tangent": "update"}


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


def test_late_is_the_second_half_of_training():
    table = steps.late(over_training(), ["perpendicular_share"])
    assert table.columns.tolist() == ["recipe", "seed", "perpendicular_share"]
    np.testing.assert_allclose(table["perpendicular_share"], [0.9, 0.91, 0.92] * 2)


def test_the_penalty_is_a_share_of_the_ideal_term_whatever_its_sign():
    np.testing.assert_allclose(steps.penalty_ratios(over_training(("infonce",))), [1 / 4, 1 / 6, 1 / 8])


def test_drift_is_compared_between_recipes_and_between_gradient_and_update():
    drift = steps.late(over_training(), list(READINGS))
    table = steps.drift_differences(drift, READINGS).set_index("cosine of")["difference"]
    assert len(table) == 5
    assert table["gradient: SigLIP − InfoNCE"] == "−0.100 ± 0.000 [−0.100, −0.100]"
    assert table["SigLIP: realised update − gradient"] == "−0.200 ± 0.000 [−0.200, −0.200]"


def test_drift_of_one_seed_has_no_interval():
    drift = steps.late(over_training(seeds=(3,)), list(READINGS))
    table = steps.drift_differences(drift, READINGS)
    assert table["difference"].tolist() == ["-0.100"] * 3 + ["-0.200"] * 2
    assert (table["seeds"] == 1).all()


def test_the_claims_about_steps_are_judged_over_the_seeds_of_infonce():
    ledger = Ledger("01-forces")
    steps.judge_steps(ledger, over_training())
    table = ledger.table().set_index("id")
    assert table.loc["supclap-s2-perpendicular", "value"] == pytest.approx(91)
    assert table.loc["supclap-f1-drift-exists", "value"] == pytest.approx(-0.49)
    assert table.loc["supclap-eq12-noise-penalty", "seeds"] == 3
    assert (table.loc[["supclap-s2-perpendicular", "supclap-f1-drift-exists"], "verdict"] == "holds").all()


@pytest.mark.parametrize("table", [over_training(("siglip",)), over_training(seeds=(0,)), over_training().head(0)])
def test_the_claims_about_steps_are_left_without_several_seeds_of_infonce(table):
    ledger = Ledger("01-forces")
    steps.judge_steps(ledger, table)
    assert "not trained with several seeds" in ledger.sentence("supclap-eq12-noise-penalty")
