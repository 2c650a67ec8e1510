"""Runs of several lengths."""

from __future__ import annotations

import pandas as pd
import pytest

from pullpush.studies.consistency import longer
from pullpush.studies.consistency.comparisons import named


def test_longer_runs_count_the_texts_that_a_scheme_reads(scores_of):
    scores = scores_of({"kcl": 0.5, "ml-clap": 0.4}, times=(1, 2))
    table = longer.longer_table(scores, epochs=4)
    texts = table.drop_duplicates(["system", "times"]).set_index("label")["texts"].to_dict()
    assert texts == {"kcl": 12, "kcl ×2": 24, "ml-clap": 4, "ml-clap ×2": 8}  # KCL reads three languages here
    (row,) = longer.longer_gains(scores, [(("kcl", 1), ("ml-clap", 2))], ["R@1"]).to_dict("records")
    assert (row["system"], row["baseline"]) == ("kcl ×1", "ml-clap ×2")
    assert row["value"] == pytest.approx(0.1, abs=0.01)
    assert named(pd.DataFrame({"label": ["ml-clap ×2"]}))["label"].item() == "ML-CLAP ×2"


def test_lengths_are_printed_with_what_they_have_read(scores_of):
    table = longer.longer_table(scores_of({"kcl": 0.5, "ml-clap": 0.4}, times=(1, 2)), epochs=4)
    printed = longer.standings(table, ["R@1"]).set_index("label")
    assert printed["texts read of a clip"].to_dict() == {"KCL": "12", "KCL ×2": "24", "ML-CLAP": "4", "ML-CLAP ×2": "8"}
    assert printed.loc["KCL", "R@1 (%)"].startswith("50.")
