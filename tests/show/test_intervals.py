"""The figure of intervals shows every number where it belongs."""

import pandas as pd
import pytest

from pullpush.show.intervals import intervals, note


@pytest.fixture
def table():
    rows = [
        {"test": test, "system": system, "metric": "R@1", "value": value, "low": value - 0.1, "high": value + 0.2}
        for test, start in (("sound", 0.3), ("music", 0.5))
        for system, value in (("GLAP", start), ("no speech", start + 0.05))
    ]
    return pd.DataFrame(rows).assign(seeds=3, clips=50, chance=0.02)


def test_places_come_from_the_top_and_colours_tell_systems_apart(table):
    (ax,) = intervals(table, rows="test", colours="system", xlabel="%").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["sound", "music"]
    first, second, chance = (line for line in ax.lines if line.get_marker() in "os|")
    assert first.get_xdata().tolist() == pytest.approx([30, 50])
    assert second.get_xdata().tolist() == pytest.approx([35, 55])
    assert (first.get_ydata() < second.get_ydata()).all(), "marks at one place stand side by side"
    assert chance.get_xdata().tolist() == pytest.approx([2, 2])
    assert first.get_color() != second.get_color()


def test_panels_differences_and_papers_numbers(table):
    gained = table.assign(**{"half width": 0.15, "paper": [0.2, 0.2, float("nan"), float("nan")]})
    left, right = intervals(gained, panels="test", names={"sound": "Sounds"}, looks={}).axes
    assert (left.get_title(), right.get_title()) == ("Sounds", "music")
    assert [0, 0] in [list(line.get_xdata()) for line in left.lines]
    diamonds = [line for line in left.lines if line.get_marker() == "D"]
    assert diamonds[0].get_xdata().tolist() == pytest.approx([20, 20])
    assert not [line for line in right.lines if line.get_marker() == "D"]


def test_panels_may_differ_in_their_unit(table):
    panels = {"sound": 100.0, "music": 1.0}
    left, right = intervals(table, panels="test", xlabel={"sound": "%", "music": "nats"}, scale=panels).axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("%", "nats")
    assert [ax.lines[0].get_xdata()[0] for ax in (left, right)] == pytest.approx([30, 0.5])


def test_a_note_says_over_what_intervals_are(table):
    assert note(table, "classes") == "95 % intervals over seeds and classes: 3 seeds, up to 50 classes"
    assert note(table.iloc[:0]) == "95 % intervals over seeds and clips"
