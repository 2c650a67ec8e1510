"""Each mark draws the numbers that it is given, and there are six."""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from pullpush.show import marks
from pullpush.show.palette import GREEN, VERMILION


@pytest.fixture
def ax() -> Axes:
    return plt.subplots()[1]


def seeds() -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 1, 2, 2, 4, 4], "y": [1.0, 3.0, 2.0, np.nan, 5.0, 4.0], "seed": [0, 1] * 3})


def bars_of(ax: Axes) -> list[np.ndarray]:
    """The intervals as they are drawn, `(2, 2)` points each."""
    return ax.collections[0].get_segments()


def test_there_are_at_most_six_marks_and_each_takes_the_axes_first():
    functions = [f for _, f in inspect.getmembers(marks, inspect.isfunction) if f.__module__ == marks.__name__]
    public = {f.__name__ for f in functions if not f.__name__.startswith("_")}
    assert public == {"band", "dots", "bars", "density", "scatter", "matrix"}
    assert all(next(iter(inspect.signature(f).parameters)) == "ax" for f in functions)


def test_a_band_goes_through_the_means_from_the_least_to_the_most(ax):
    marks.band(ax, seeds(), "x", "y", label="ours", colour=GREEN, scale=10)
    (line,), (area,) = ax.lines, ax.collections
    np.testing.assert_allclose(line.get_xydata(), [[1, 20], [2, 20], [4, 45]])
    corners = {tuple(corner) for corner in area.get_paths()[0].vertices.round(6)}
    assert corners >= {(1.0, 10.0), (1.0, 30.0), (2.0, 20.0), (4.0, 40.0), (4.0, 50.0)}
    assert (line.get_label(), line.get_color()) == ("ours", GREEN)


def test_two_places_are_dots_and_no_line(ax):
    marks.band(ax, seeds().query("x < 3"), "x", "y", label="ours")
    assert [line.get_linestyle() for line in ax.lines] == ["None"]
    np.testing.assert_allclose(bars_of(ax), [[[1, 1], [1, 3]], [[2, 2], [2, 2]]])
    assert ax.get_legend_handles_labels()[1] == ["ours"]


def test_seeds_apart_are_a_line_each_with_one_label(ax):
    table = seeds().fillna({"y": 2.0})
    marks.band(ax, table, "x", "y", label="ours", apart="seed")
    assert [line.get_ydata().tolist() for line in ax.lines] == [[1, 2, 5], [3, 2, 4]]
    assert not ax.collections
    assert ax.get_legend_handles_labels()[1] == ["ours"]


@pytest.mark.parametrize("upright", [True, False])
def test_dots_stand_at_their_values_with_their_intervals(ax, upright):
    table = pd.DataFrame({"value": [0.1, 0.4], "low": [0.0, 0.3], "high": [0.15, 0.6]})
    marks.dots(ax, table, [0, 1], scale=100, colour=VERMILION, upright=upright)
    expected = np.array([[[0, 0], [15, 0]], [[30, 1], [60, 1]]], dtype=float)
    flip = slice(None, None, -1) if upright else slice(None)
    np.testing.assert_allclose(bars_of(ax), expected[:, :, flip])
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.array([[10, 0], [40, 1]], dtype=float)[:, flip])
    assert ax.lines[0].get_color() == VERMILION
    assert ax.lines[0].get_linestyle() == "None"


def test_bars_add_up_or_last(ax):
    marks.bars(ax, [0, 1], [2, 3], start=[1, 0], label="parts")
    assert [(bar.get_y(), bar.get_height()) for bar in ax.patches] == [(1, 2), (0, 3)]
    lying = plt.subplots()[1]
    marks.bars(lying, [0], [1.5], start=0.5, upright=False)
    assert [(bar.get_x(), bar.get_width()) for bar in lying.patches] == [(0.5, 1.5)]


def test_a_density_has_the_mass_one_and_its_mode_where_values_lie(ax):
    values = np.random.default_rng(0).normal(0.5, 0.1, 2000)
    marks.density(ax, values, limits=(-1, 1))
    x, y = ax.lines[0].get_data()
    assert np.trapezoid(y, x) == pytest.approx(1, abs=0.01)
    assert x[y.argmax()] == pytest.approx(0.5, abs=0.03)
    assert max(abs(x)) <= 1


def test_a_matrix_has_its_first_row_on_top_and_a_scale_with_a_name(ax):
    image = marks.matrix(ax, np.eye(3), label="relevance")
    np.testing.assert_allclose(image.get_array(), np.eye(3))
    assert image.get_clim() == (0, 1)
    assert ax.yaxis_inverted()
    assert [other.get_ylabel() for other in ax.figure.axes] == ["", "relevance"]
