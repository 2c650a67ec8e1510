"""The figure of courses: a line for each group, in its panel, on its axis."""

import pandas as pd
import pytest

from pullpush.show.curves import curves


@pytest.fixture
def table():
    rows = [
        {"system": system, "seed": seed, "step": step, "value": level * step + 0.1 * seed, "panel": panel, "line": line}
        for system, level in (("ml-clap", 0.1), ("kcl", 0.2))
        for seed in (0, 1)
        for step in (1, 2, 4)
        for panel in ("one", "two")
        for line in ("mean", "bound")
    ]
    return pd.DataFrame(rows)


def texts(labels):
    return [label.get_text() for label in labels]


def test_a_line_is_the_mean_of_the_seeds_in_its_colour(table):
    (ax,) = curves(table, "step", ylabel="R@1 (%)", xlabel="step", scale=100).axes
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["ML-CLAP", "KCL"]
    assert lines["KCL"].get_ydata().tolist() == pytest.approx([25, 45, 85])
    assert lines["KCL"].get_color() != lines["ML-CLAP"].get_color()
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()[0]) == ("step", "R@1 (%)", 0)


def test_lines_of_one_colour_are_told_apart_and_named_in_black(table):
    figure = curves(table, "step", lines="line")
    (ax,) = figure.axes
    assert {(line.get_color(), line.get_linestyle()) for line in ax.lines} == {
        (line.get_color(), stroke) for line in ax.lines for stroke in ("-", "--")
    }
    assert texts(figure.legends[0].get_texts()) == ["ML-CLAP", "KCL", "mean", "bound"]


def test_panels_share_an_axis_unless_each_has_a_label(table):
    left, right = curves(table, "step", panels="panel", ylabel="angle").axes
    assert (left.get_title(), right.get_title()) == ("one", "two")
    assert (left.get_ylabel(), right.get_ylabel()) == ("angle", "")
    one, two = curves(table, "step", panels="panel", ylabel={"one": "m", "two": "kg"}, log_y=["two"]).axes
    assert (one.get_ylabel(), two.get_ylabel()) == ("m", "kg")
    assert (one.get_yscale(), two.get_yscale()) == ("linear", "log")
    assert not one.get_shared_y_axes().joined(one, two)


def test_an_axis_that_says_what_a_panel_is_needs_no_title(table):
    left, right = curves(table, "step", panels="panel", xlabel={"one": "texts", "two": "steps"}, log_x=True).axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("texts", "steps")
    assert left.get_title() == right.get_title() == ""
    assert left.get_xscale() == "log"


def test_many_panels_stand_in_two_rows_and_looks_choose_what_is_drawn(table):
    four = table.assign(panel=table["panel"] + " " + table["line"])
    figure = curves(four, "step", panels="panel", xlabel="step", ylabel="m", looks={"kcl": ("ours", "#112233")})
    assert [ax.get_title() for ax in figure.axes] == ["one mean", "one bound", "two mean", "two bound"]
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "", "step", "step"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["m", "", "m", ""]
    assert {(line.get_label(), line.get_color()) for ax in figure.axes for line in ax.lines} == {("ours", "#112233")}
    assert not figure.legends, "one curve needs no key"


def test_seeds_may_have_lines_of_their_own_and_places_their_names(table):
    rows = table[table["line"] == "mean"]
    (ax,) = curves(rows[rows["panel"] == "one"], "step", apart="seed", log_x=True).axes
    assert len(ax.lines) == 4
    assert texts(ax.get_xticklabels()) == ["1", "2", "4"]


def test_zero_is_marked_where_numbers_lie_below_it(table):
    (ax,) = curves(table.assign(value=-table["value"]), "step").axes
    assert ax.get_ylim()[0] < 0 < ax.get_ylim()[1]
    assert any(set(line.get_ydata()) == {0} for line in ax.lines)
