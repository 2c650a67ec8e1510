"""Panels, legends and axes are the same in every figure."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from pullpush.show.layout import LINEAR, finish, name_places, panels, plain_logarithm, scale_points, spread_note


def test_a_legend_names_each_label_once_and_lies_outside_of_all_panels():
    fig, axes = panels(2)
    for ax, names in zip(axes, (("a", "b"), ("b", "c")), strict=True):
        for name in names:
            ax.plot([0, 1], [0, 1], label=name)
    finish(fig, "five seeds")
    fig.canvas.draw()
    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]
    assert fig._supxlabel.get_text() == "five seeds"
    box = legend.get_window_extent()
    assert not any(box.overlaps(ax.get_window_extent()) for ax in axes)


@pytest.mark.parametrize("count", [1, 3, 6, 12])
def test_a_legend_is_no_wider_than_its_figure(count):
    fig, (ax,) = panels(1)
    for number in range(count):
        ax.plot([0, 1], [0, 1], label=f"InfoNCE + bi-DynamicSVR {number}")
    finish(fig)
    fig.canvas.draw()
    assert fig.legends[0].get_window_extent().width <= fig.bbox.width


def test_a_note_counts_the_seeds():
    table = pd.DataFrame({"seed": [0, 0, 1, 2]})
    assert spread_note(table) == "Means of 3 seeds; bands from the least to the most"
    assert spread_note(table.head(1), "bar") == "One seed"
    apart = pd.DataFrame({"system": ["a", "a", "b", "b", "b"], "seed": [0, 1, 0, 1, 2]})
    assert spread_note(apart, "bar", within=["system"]) == "Means of 2 to 3 seeds; bars from the least to the most"


def test_names_stand_at_places_from_the_top_or_from_the_left():
    _, (left, right) = panels(2)
    name_places(left, ["a", "b"])
    name_places(right, ["c", "d"], axis="x")
    assert [tick.get_text() for tick in left.get_yticklabels()] == ["a", "b"]
    assert left.yaxis_inverted()
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["c", "d"]


def test_a_small_range_is_linear_and_a_large_one_logarithmic_with_a_remark():
    small, large = plt.subplots()[1], plt.subplots()[1]
    assert scale_points(small, -1, 2) == ""
    assert small.get_xscale() == "linear"
    assert scale_points(large, -40, 25) == f", logarithmic beyond ±{LINEAR}"
    assert large.get_xscale() == "symlog"
    low, high = large.get_xlim()
    assert low < -40
    assert high > 25
    assert "−10" in [tick.get_text() for tick in large.get_xticklabels()]


def test_a_logarithm_is_written_in_plain_numbers():
    ax = plt.subplots()[1]
    ax.plot([1, 2], [150, 2500])
    ax.set_yscale("log")
    plain_logarithm(ax.yaxis)
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    shown = [float(tick.get_text()) for tick in ax.get_yticklabels() if low <= tick.get_position()[1] <= high]
    assert shown == [200, 500, 1000, 2000]


def test_logarithmic_axes_have_no_mathematics_which_figures_do_not_parse():
    fig, (left, right) = panels(2)
    left.loglog([20, 70], [1e-6, 1])
    right.set_xscale("symlog")
    right.plot([-300, 300], [0, 1])
    finish(fig).canvas.draw()
    ticks = [*left.get_xticklabels(minor=True), *left.get_yticklabels(), *right.get_xticklabels()]
    written = {tick.get_text() for tick in ticks}
    assert written >= {"20", "1e−06", "−100"}
    assert not any("$" in text for text in written)
