"""The direction error, on spaces whose answer is known and on a run that it must not change."""

from __future__ import annotations

import pytest
import torch

from pullpush.lab import session
from pullpush.studies.consistency import direction
from pullpush.studies.consistency.schemes import SCHEMES


def test_more_languages_taken_err_less_and_all_do_not_err(toy):
    table = direction.direction_by_count({("kcl", 0): toy(clips=200, languages=4, noise=0.8)})
    some = table[table["what"] == "m of all"].set_index("count")["error"]
    assert some[4] == pytest.approx(0, abs=1e-4)
    assert some.is_monotonic_decreasing
    first = table[table["what"] == "one of K"].set_index("count")["error"]
    assert first[1] == pytest.approx(0, abs=1e-4)
    assert first.is_monotonic_increasing
    assert first[4] == pytest.approx(some[1])


def test_the_probe_watches_without_changing_the_run(heard, tmp_path):
    book = session.start("03-consistency-lab", profile="smoke", out=tmp_path)
    table = direction.direction_history(book, heard, [0], points=1, languages=("eng", "fra", "deu"))
    assert list(dict.fromkeys(table["recipe"])) == list(SCHEMES)
    assert table[list(direction.PROBED)].to_numpy().min() >= 0
    assert table[list(direction.PROBED)].to_numpy().max() <= 180


def test_the_error_per_unit_of_spread_knows_no_parallax():
    texts = torch.tensor([[[0.1, 1.0, 0.0], [-0.1, 1.0, 0.0]], [[0.1, -1.0, 0.0], [-0.1, -1.0, 0.0]]])
    taken = torch.tensor([[True, False], [True, False]])
    away = torch.tensor([0.0, 0.0, 1.0])
    far, near = (texts.mean(dim=1) + distance * away for distance in (10, 0.5))
    angles = [float(direction.direction_error(audio, texts, taken).mean()) for audio in (far, near)]
    aims = [float(direction.aim_error(audio, texts, taken).mean()) for audio in (far, near)]
    assert angles[1] > 10 * angles[0]
    assert aims[1] == pytest.approx(aims[0], rel=0.05)
    everything = torch.ones_like(taken)
    assert direction.aim_error(far, texts, everything).tolist() == pytest.approx([0, 0], abs=1e-5)


def test_pulls_are_drawn_around_their_mean_without_losing_length_in_a_plane():
    pulls = torch.tensor([[2.0, 1.0], [2.0, -1.0], [2.0, 0.0]])
    table = direction.pull_plane(pulls, ("eng", "fra", "deu")).set_index("language")
    assert table["along"].tolist() == pytest.approx([2, 2, 2, 2])
    assert table["across"].tolist() == pytest.approx([1, -1, 0, 0])
