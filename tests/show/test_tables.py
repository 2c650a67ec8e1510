"""Tables say percentages, gaps and signs as a page needs them."""

import pandas as pd

from pullpush.show.tables import styled


def test_a_table_shows_percentages_and_gaps_and_no_index():
    frame = pd.DataFrame({"name": ["a", "b"], "share": [0.256, None], "error": [1e-13, 2e-13]}, index=[41, 42])
    shown = styled(frame, percent=["share"], formats={"error": "{:.0e}"}).to_html()
    assert "25.6%" in shown
    assert "–" in shown
    assert "1e-13" in shown
    assert ">41<" not in shown


def test_numbers_have_true_minus_signs_and_no_negative_zero():
    frame = pd.DataFrame({"x": [-0.00004, -0.5, 3.0], "text": ["-0.0 [-1.2, 0.8]", "mono-lingual -3", "1e-13"]})
    shown = styled(frame, formats={"x": "{:.1f}"}).to_html()
    for text in (">0.0<", ">−0.5<", ">0.0 [−1.2, 0.8]<", ">mono-lingual −3<", ">1e-13<"):
        assert text in shown


def test_texts_are_shown_and_never_run():
    hostile = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202eflow", "a" * 100_000)
    frame = pd.DataFrame({"caption": hostile, hostile[0]: 1.0, hostile[1]: -1})
    shown = styled(frame).to_html()
    assert not any(text in shown for text in ("<script", "<img"))
    assert shown.count("&lt;script&gt;") == 2
    assert ">−1<" in shown
