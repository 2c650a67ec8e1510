"""Tests of what the push is made of."""

from __future__ import annotations

import numpy as np
import pytest
from torch.nn import functional as F

from pullpush.forces import sideways
from pullpush.metrics import difference
from pullpush.studies.forces import parts
from pullpush.training.diagnostics import force_norms


def test_forces_by_clip_have_the_means_that_training_records(unit):
    text, audio = unit(12, 8), unit(12, 8, 1)
    mean = parts.forces_by_clip(text, audio, 0.07).mean()
    recorded = force_norms(text, audio, 0.07)
    for name in (*parts.PARTS, "perpendicular_share"):
        assert mean[name] == pytest.approx(recorded[name])


def test_shares_are_of_the_squared_push_and_sideways_is_the_smaller_one(unit):
    table = parts.forces_by_clip(unit(12, 8), unit(12, 8, 1), 0.07)
    parallel = (table["parallel"] / table["push"]) ** 2
    np.testing.assert_allclose(parallel + table["perpendicular_share"], 1)
    assert (table["sideways_share"] <= table["perpendicular_share"]).all()


def test_every_text_sits_in_one_batch_a_pass_and_draws_do_not_change_from_call_to_call(unit):
    text, audio = unit(40, 8), unit(40, 8, 1)
    one, again, other = (parts.forces_in_batches(text, audio, 0.07, 10, passes=2, seed=s) for s in (0, 0, 1))
    assert one.index.tolist() == list(range(40))
    assert one.equals(again)
    assert not one.equals(other)


def test_a_batch_larger_than_the_set_is_the_set(unit):
    text, audio = unit(12, 8), unit(12, 8, 1)
    whole = parts.forces_by_clip(text, audio, 0.07)
    np.testing.assert_allclose(parts.forces_in_batches(text, audio, 0.07, 500), whole, rtol=1e-9)


def test_settings_leave_out_batches_that_the_set_cannot_fill(unit):
    spaces = {"trained": (unit(30, 8), unit(30, 8, 1)), "untrained": (unit(9, 8), unit(9, 8, 1))}
    table = parts.parts_by_setting(spaces, tau=0.1, batch_size=8, taus=(0.05, 0.5), batch_sizes=(4, 8, 24, 64))
    sizes = table[table["setting"] == "batch size"].groupby("model")["value"].apply(list)
    assert sizes["trained"] == [4, 8, 24]
    assert sizes["untrained"] == [4, 8]
    warmth = table[table["setting"] == "temperature"]
    assert warmth.groupby("model")["value"].apply(list)["trained"] == [0.05, 0.5]
    assert table.drop(columns=["model", "setting"]).notna().all(axis=None)


def test_both_settings_measure_the_same_point_alike(unit):
    spaces = {"trained": (unit(30, 8), unit(30, 8, 1))}
    table = parts.parts_by_setting(spaces, tau=0.1, batch_size=8, taus=(0.1,), batch_sizes=(8,))
    first, second = (table.drop(columns=["setting", "value"]).iloc[i] for i in (0, 1))
    assert first.equals(second)
    assert first["sideways_over_pull"] == pytest.approx(first["sideways"] / first["pull"])


def test_the_table_of_parts_has_a_column_a_model_and_half_widths_over_clips(unit):
    found = {name: parts.forces_by_clip(unit(12, 8, s), unit(12, 8, 50 + s), 0.07) for s, name in enumerate("ab")}
    table = parts.parts_table(found, dimensions=8).set_index("force")
    assert list(table.columns) == ["a", "b", "by chance"]
    expected = difference(found["a"]["push"].to_numpy()[None])
    assert table.loc["push", "a"] == f"{expected.value:.3f} ± {expected.half_width:.3f}"
    assert "sideways share" in table.index


def test_by_chance_is_what_random_pushes_have(unit):
    """The oracle is the mean over many random directions."""
    d = 6
    text, audio, push = unit(4000, d), unit(4000, d, 1), unit(4000, d, 2)
    line = F.normalize(audio - text, dim=1)
    table = parts.parts_table({"a": parts.forces_by_clip(unit(4, d), unit(4, d, 1), 0.07)}, dimensions=d)
    chance = table.set_index("force")["by chance"]
    found = 1 - (push * line).sum(1).square().mean()
    assert float(chance["perpendicular share"]) == pytest.approx(found.item(), abs=0.01)
    found = sideways(push, text, audio).square().sum(1).mean()
    assert float(chance["sideways share"]) == pytest.approx(found.item(), abs=0.01)
