"""Scores of chapter 5 by test and beside the paper, and what stands beside them, on scores that are made up."""

import pytest
from made_up_glap import SEEDS, SPOKEN, WORDS, scores

from pullpush.lab import claims
from pullpush.lab.contrasts import contrast, gain
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.lab.paper import paper_table
from pullpush.studies.glap import comparisons, experiments, length, science
from pullpush.studies.glap.experiments import Run, on_tests

GENERAL = {"ears": "several"}
LAB = "05-glap-lab"


def test_several_tests_count_alike_whatever_their_sizes(found):
    side = {"experiment": "named-speech", "system": "GLAP", "metric": "accuracy eng"}
    one, other = (gain(found, {**side, "where": {"test": test}}) for test in ("keywords eng", "prompts eng"))
    assert one.shape[1] != other.shape[1]
    both = gain(found, {**side, "where": {"test": ["keywords eng", "prompts eng"]}})
    assert both.mean() == pytest.approx((one.mean() + other.mean()) / 2)


def test_gains_are_differences_test_by_test_and_together(found):
    pooled = {"both": ["sound", "speech fra"], "elsewhere": ["sound", "speech deu"]}
    table = comparisons.gains(found["domains"], [("all", "silent")], "R@1", GENERAL, pooled).set_index("test")
    assert table.loc["sound", "value"] == pytest.approx(0, abs=0.02)
    assert table.loc["speech fra", "value"] == pytest.approx(0.475, abs=0.02)
    assert table.loc["both", "value"] == pytest.approx(table.loc[["sound", "speech fra"], "value"].mean())
    assert "elsewhere" not in table.index
    assert (
        table.loc["speech fra", "p"]
        >= found["domains"].contrast("all", "silent", "R@1", {**GENERAL, "test": "speech fra"}).p
    )


def test_levels_stand_beside_chance_on_the_tests_that_are_scored(found):
    table = comparisons.levels(found["equal-steps"], "R@1", wheres=[{"batch": 16}, {"batch": 64}])
    assert list(table) == [*comparisons.LEVELS, "batch"]
    assert (table["chance"] == 1 / 40).all()
    assert table.groupby("batch")["test"].nunique().tolist() == [4, 4]
    words = comparisons.levels(found["named-speech"], "accuracy rus", ["keywords rus", "keywords fra", "sound"])
    assert set(words["test"]) == {"keywords rus", "sound"}
    assert comparisons.levels(found["equal-steps"], "R@1", ["no test"]).empty


def test_the_papers_numbers_stand_beside_ours(found):
    table = comparisons.beside_paper(found["domains"], "2", GENERAL)
    theirs = paper_table("glap", 2).query("system == 'GLAP' and dataset == 'AISHELL-2 test'")
    theirs = theirs[(theirs["task"] == "T2A") & (theirs["metric"] == "R@1")]["value"].item()
    row = table[(table["test"] == "keywords fra") & (table["system"] == "all") & (table["metric"] == "T2A R@1")]
    assert row["paper"].item() == theirs
    assert row["here"].item() == pytest.approx(50, abs=2)
    labels = comparisons.beside_paper(found["named-sound"], "7")
    german = labels[(labels["test"] == "sound") & (labels["metric"] == "accuracy deu")]["paper"].item()
    assert german == paper_table("glap", 7).query("dataset == 'ESC-50' and language == 'deu'")["value"].item()


def test_length_alone_stands_in_tables_of_speech_and_in_no_other(found):
    for name, spoken in (("2", True), ("2, music", False), ("5", False)):
        table = comparisons.beside_paper(found["domains"], name, GENERAL, alone=found["over-length"])
        assert set(table["test"]) <= set(comparisons.MIRRORS[name].tests)
        assert (length.ALONE in set(table["system"])) == spoken


def test_every_mirror_names_systems_and_sets_that_the_paper_prints():
    for mirror in comparisons.MIRRORS.values():
        printed = paper_table("glap", mirror.table)
        assert set(mirror.systems.values()) <= set(printed["system"])
        assert set(mirror.tests.values()) <= set(printed["dataset"])
        assert set(mirror.tests) <= {*experiments.Tests().retrieved}


def test_a_printed_table_says_what_stands_for_what(found):
    table = comparisons.beside_paper(found["encoders"], "4")
    wide = comparisons.readable(table, across="test")
    assert wide["system"].tolist()[0] == "yamnet (CED-Base)"
    first = table.iloc[0]
    assert wide["sound (AudioCaps)"][0] == f"{first['here']:.1f} ({first['paper']:.1f})"
    long = comparisons.readable(table)
    assert list(long) == ["test", "system", "T2A mAP@10"]
    assert len(long) == len(table)
    assert comparisons.readable(table.head(0)).empty


# ---------------------------------------------------------------- claims


def test_every_contrast_and_measure_of_the_lab_is_judged(found):
    ledger = Ledger(LAB)
    for name in found:
        ledger.judge_by(found, comparisons.MEASURES, name)
    asked = {claim.judged["measure"] for claim in claims.of_chapter(LAB) if "measure" in (claim.judged or {})}
    assert asked == {*comparisons.MEASURES}
    left = {claim.judged.get("experiment", claim.judged.get("measure")) for claim in ledger.open}
    unmade = {"sound-effects", "objectives", "objectives-again", "masked-in-music", "over-sound-encoders"}
    assert left == unmade, "not made up"


@pytest.mark.parametrize(
    ("id", "planted"),
    [
        ("glap-eq1-sigmoid-over-softmax", 0.05),
        ("glap-eq1-gain-grows-with-batch", 0.05),
        ("glap-eq1-gain-grows-with-data", 0.03),
        ("glap-s3-balanced-sampling", 0.02),
        ("glap-s3-translated-captions", 0.1),
        ("glap-s1-speech-data-not-enough", -0.2),
        ("glap-s1-no-compromise", 0.0),
        ("glap-t3-sound-prompt", 0.1),
    ],
)
def test_what_was_planted_is_found(found, id, planted):
    assert contrast(found, {claim.id: claim for claim in claims.of_chapter(LAB)}[id].judged).value == pytest.approx(
        planted, abs=0.015
    )


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("best-before-end", 0.25),  # half of the training was left, and a quarter of it is the last part
        ("keywords-many-languages", 0.6 - 0.005 * sum(WORDS.values()) / len(WORDS) - 0.1),
        ("fewer-keywords-easier", -1),
    ],
)
def test_what_was_planted_is_measured(found, name, planted):
    assert comparisons.MEASURES[name].of(found).value == pytest.approx(planted, abs=0.05)


def test_too_few_languages_have_no_rank(found):
    few = on_tests("named-speech", [Run("GLAP", ("siglip", {}))], ["keywords eng"], seeds=SEEDS)
    with pytest.raises(ExperimentError, match="no rank correlation"):
        comparisons.fewer_is_easier(found | {"named-speech": scores(few, lambda trial, metric: 0.5, SPOKEN)})


def test_words_that_others_recorded_stand_beside_length_alone(found):
    table = science.commands(found["commands"]).set_index("system")
    assert table.loc["GLAP", "value"] == pytest.approx(0.6, abs=0.01)
    assert [*table.index][-1] == "length alone"
    assert (table["low"] >= 0).all()
    assert (table["chance"] == 1 / 40).all()
