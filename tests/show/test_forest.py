"""A forest shows what was measured of claims as it was measured, beside what the paper prints."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from pullpush.show.forest import claim_forest
from pullpush.show.layout import PAGE_WIDTH
from pullpush.show.palette import VERDICTS


def judged() -> pd.DataFrame:
    """Claims of two sources in points, of two in %, and one that was left."""
    columns = ["id", "paper", "claim", "source", "unit", "paper_value", "value", "low", "high", "verdict"]
    rows = [
        ("a", "supclap", "SVR raises text-to-audio R@1.", "Table 1, Figure 2", "points", 2.0, 1.0, 0.5, 1.5, "holds"),
        ("b", "supclap", "Free.", "Table 14", "%", np.nan, 3.0, -1.0, 7.0, "cannot tell"),
        ("c", "supclap", "Falls.", "Table 2", "points", 90.0, -1.0, -2.0, -0.5, "reversed"),
        ("d", "supclap", "It grows.", "Table 1", "points", 1.0, 0.1, -0.2, 0.4, "holds, smaller"),
        ("e", "supclap", "It is fast.", "Table 5", "points", 1.0, np.nan, np.nan, np.nan, "–"),
        ("g", "supclap", "It is a square.", "Table 1", "points", np.nan, 9.0, 8.0, 9.5, "cannot fail"),
        ("f", "supclap", "Twice as dear.", "Table 15", "%", 100.0, 90.0, 80.0, 99.0, "holds"),
    ]
    return pd.DataFrame(rows, columns=columns)


def written(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def intervals(ax: Axes) -> list[tuple[float, float]]:
    lines = [line for line in ax.lines if line.get_marker() == "None" and len(set(line.get_ydata())) == 1]
    return [tuple(map(float, line.get_xdata())) for line in lines if line.get_linewidth() > 1]


def test_claims_stand_with_their_source_panels_by_unit_and_by_reach():
    points, small, large = claim_forest(judged()).axes
    assert written(points) == ["SVR raises T2A R@1", "It grows", "◇ +90", "Falls", "Table 1", "Table 2"]
    assert (written(small), written(large)) == (["Free", "Table 14"], ["Twice as dear", "Table 15"])
    assert [ax.get_xlabel() for ax in (points, small, large)] == ["points", "%", "%"]


def test_intervals_values_and_verdicts_are_drawn_as_they_are():
    ax = claim_forest(judged()).axes[0]
    assert intervals(ax) == [(0.5, 1.5), (-0.2, 0.4), (-2.0, -0.5)]
    looks = [
        (line.get_xdata()[0], line.get_marker(), line.get_color()) for line in ax.lines if line.get_marker() in "ovs"
    ]
    names = ("holds", "holds, smaller", "reversed")
    assert looks == [(value, *VERDICTS[name][:2]) for value, name in zip((1.0, 0.1, -1.0), names, strict=True)]


def test_the_paper_is_a_diamond_or_far_outside_a_number_at_the_edge():
    figure = claim_forest(judged())
    ax = figure.axes[0]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"] == [2.0, 1.0]
    assert ax.get_xlim()[1] < 10
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == [f"ours: {verdict}" for verdict in VERDICTS if verdict != "no effect"] + ["paper"]


def test_rows_go_from_top_to_bottom_in_the_order_of_sources():
    ax = claim_forest(judged()).axes[0]
    places = {text.get_text(): text.xy[1] for text in ax.texts}
    assert ax.yaxis_inverted()
    assert places["SVR raises T2A R@1"] < places["It grows"] < places["Falls"]
    assert places["Table 1"] == places["SVR raises T2A R@1"]


def test_a_forest_is_as_wide_as_the_page_and_no_text_runs_into_an_axis():
    table = judged().assign(
        claim="With random encoders, bi-DynamicSVR raises the text-to-audio recall of InfoNCE. " * 2
    )
    figure = claim_forest(table)
    figure.canvas.draw()
    assert figure.get_figwidth() == PAGE_WIDTH
    for ax in figure.axes:
        claims = [text for text in ax.texts if "raises" in text.get_text()]
        assert all(text.get_window_extent().x1 <= ax.get_window_extent().x0 + 8 for text in claims)
