"""Scores in many languages, summed up as the papers print them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.compute import Embedded
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.metrics import METRICS, distance
from pullpush.studies.consistency import comparisons
from pullpush.studies.consistency.space import embed


def test_a_row_a_run_holds_the_mean_over_languages(scores_of):
    scores = scores_of({"kcl": 0.5, "ml-clap": 0.4})
    table = comparisons.by_run(scores.table)
    assert list(zip(table["system"], table["seed"], strict=True)) == [
        (s, n) for s in ("kcl", "ml-clap") for n in (0, 1)
    ]
    assert table.loc[0, "R@1"] == pytest.approx(scores.clips["kcl", 0]["R@1"].mean())
    assert table["steps"].tolist() == [20] * 4


def test_the_table_of_languages_ends_with_their_average(scores_of):
    table = comparisons.language_table(scores_of({"ml-clap": 0.4, "kcl": 0.5}).table, ["R@1", "T2A R@1"])
    assert list(table)[:3] == [("R@1", "ML-CLAP"), ("R@1", "KCL"), ("T2A R@1", "ML-CLAP")]
    assert table.loc["avg"].tolist() == pytest.approx(table.iloc[:-1].mean().tolist())
    flat = comparisons.flat(table)
    assert list(flat)[:3] == ["language", "R@1 ML-CLAP", "R@1 KCL"]
    assert flat["language"].tolist() == ["eng", "fra", "deu", "avg"]


def test_gains_of_single_languages_are_contrasts_adjusted_within_the_table(scores_of):
    scores = scores_of({"kcl": 0.5, "ml-clap": 0.4})
    table = comparisons.gains_by_language(scores, [("kcl", "ml-clap")], "R@1").set_index("language")
    gain = scores.contrast("kcl", "ml-clap", "R@1", {"language": "fra"})
    assert table.loc["fra", ["value", "low", "high"]].tolist() == [gain.value, gain.low, gain.high]
    assert table.loc["fra", "p"] >= gain.p
    shown = comparisons.points(table.reset_index())
    assert shown.loc[1, "difference (points)"].startswith("+10.")
    assert shown.loc[1, ["system", "over", "n"]].tolist() == ["KCL", "ML-CLAP", "2 × 12"]


def test_ranks_are_summed_up_by_run_with_the_share_of_the_worst_clips(scores_of):
    table = comparisons.rank_table(scores_of({"kcl": 0.5}, clips=20))
    assert table["median"].tolist() == [9.5, 9.5]
    assert table["worst"].tolist() == pytest.approx([19 / 190] * 2)


def test_languages_are_compared_with_the_reference_and_its_own_column_holds_their_mean(run, heard):
    languages = LANGUAGES[:3]
    score = METRICS["consistency"].make
    values = score(Embedded(lambda: run.model, heard, languages))
    texts = embed(run.model, heard.test, languages).texts
    far = [distance(texts[:, 0, 0], texts[:, 0, k]).item() for k in (1, 2)]
    assert values["Dis"].mean(0) == pytest.approx([np.mean(far), *far], rel=1e-5)
    assert values["Dis within eng"].mean() == pytest.approx(distance(texts[:, 0, 0], texts[:, 1, 0]).item(), rel=1e-5)
    assert values["Gap"][:, 0] == pytest.approx(values["Gap"][:, 1:].mean(1))
    assert set(score(Embedded(lambda: run.model, heard, ("eng",)))) >= {"Dis within eng", "MRV"}


def test_distances_stand_by_language_then_their_average_and_the_yardstick(run, heard):
    values = METRICS["consistency"].make(Embedded(lambda: run.model, heard, ("eng", "fra", "deu")))
    experiment = Experiment("schemes", (Trial("kcl", "kcl"),), (0,), languages=("eng", "fra", "deu"))
    history = pd.DataFrame({"system": ["kcl"], "seed": [0], "epoch": [1], "step": [1], "R@1": [0.1]})
    scores = Scores(experiment, {("kcl", 0): values}, history, pd.DataFrame(), Stamp("now", "", (0,), 0.0, {}))
    table = comparisons.distance_table(scores.table)
    assert list(table.index) == ["fra", "deu", "avg", "eng, second caption"]
    assert table.loc["avg", ("Dis", "KCL")] == pytest.approx(table.loc[["fra", "deu"], ("Dis", "KCL")].mean())
    assert table.loc["eng, second caption", ("Gap", "KCL")] == pytest.approx(values["Gap within eng"].mean())
    assert scores.values("kcl", "Dis").mean() == pytest.approx(table.loc["avg", ("Dis", "KCL")])


def test_a_figure_names_both_systems_of_a_gain():
    gains = pd.DataFrame({"system": ["kcl"], "baseline": ["ml-clap ×8"], "value": [0.1]})
    assert comparisons.compared(gains)["pair"].item() == "KCL over ML-CLAP ×8"


def test_a_caption_is_nearer_to_its_own_clip(run, heard):
    same, other = (comparisons.caption_cosines(run.model.text, heard.test, shift=shift) for shift in (0, 1))
    assert list(same) == list(LANGUAGES)
    assert same["eng"].mean() > other["eng"].mean()
    assert comparisons.caption_cosines(run.model.text, heard.test, shift=len(heard.test))["fra"] == pytest.approx(
        same["fra"]
    )
