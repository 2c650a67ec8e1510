"""Scores of chapter 5 by test and beside the paper, and what stands beside them, on scores that are made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up_glap import SEEDS

from pullpush.lab.paper import paper_table
from pullpush.studies.glap import comparisons, controls, experiments
from pullpush.studies.measures import joined

GENERAL = {"ears": "several"}


def test_several_tests_count_alike_whatever_their_sizes(found):
    words, sounds = found["named-speech"], found["named-sound"]
    one, other = (
        scores.values("GLAP", "accuracy eng", {"test": test})
        for scores, test in ((words, "keywords eng"), (sounds, "sound"))
    )
    assert one.shape[1] != other.shape[1]
    assert joined([one, other]).mean() == pytest.approx((one.mean() + other.mean()) / 2)
    both = comparisons.values(words, "GLAP", "accuracy eng", ["keywords eng", "prompts eng"])
    alone = [words.values("GLAP", "accuracy eng", {"test": test}).mean() for test in ("keywords eng", "prompts eng")]
    assert both.mean() == pytest.approx(np.mean(alone))


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
    table = comparisons.levels(found["batches"], "R@1", wheres=[{"batch": 16}, {"batch": 64}])
    assert list(table) == [*comparisons.LEVELS, "batch"]
    assert (table["chance"] == 1 / 40).all()
    assert table.groupby("batch")["test"].nunique().tolist() == [4, 4]
    words = comparisons.levels(found["named-speech"], "accuracy rus", ["keywords rus", "keywords fra", "sound"])
    assert set(words["test"]) == {"keywords rus", "sound"}
    assert comparisons.levels(found["batches"], "R@1", ["no test"]).empty


def test_chance_is_that_of_one_right_item_or_class():
    rng = np.random.default_rng(0)
    items = 8
    drawn = rng.permuted(np.tile(np.arange(items), (4000, 1)), axis=1)
    hits = (drawn[:, :5] == 0).any(axis=1).mean()
    assert comparisons.by_chance("T2A R@5", items) == pytest.approx(hits, abs=0.02)
    assert comparisons.by_chance("accuracy deu", 4) == 0.25
    assert comparisons.by_chance("R@1", 4) == 0.25
    assert np.isnan(comparisons.by_chance("no score", 4))


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


def test_labels_are_read_by_the_prompt_of_their_domain(found):
    table = comparisons.by_language(found["named-sound"], found["named-music"], ["eng", "rus"])
    means = table.groupby("test")["value"].mean()
    assert means["sound"] == pytest.approx(0.7, abs=0.02)
    assert means["music"] == pytest.approx(0.5, abs=0.02)
    assert "tagger" not in set(table["system"])
    by_kind = {kind: found[f"named-{kind}"] for kind in experiments.PROMPTS}
    prompts = comparisons.by_prompt(by_kind, ["sound", "keywords eng"])
    assert set(prompts["system"]) == {"sound prompt", "music prompt", "bare label"}


def test_length_alone_is_matched_as_a_naive_loop_does():
    rng = np.random.default_rng(1)
    letters = rng.integers(2, 6, 30)
    labels, lengths = np.arange(30), rng.permutation(30).astype(float)
    order = sorted(range(30), key=lambda clip: lengths[clip])
    guess = dict(zip(order, sorted(letters), strict=True))
    wanted = np.mean([(guess[clip] == letters[clip]) / (letters == letters[clip]).sum() for clip in range(30)])
    assert controls.length_accuracy(lengths, letters, labels) == pytest.approx(wanted)


def test_biases_are_read_at_the_end_of_each_run(found):
    batches = found["batches"]
    steps = batches.steps.assign(bias=-batches.steps["step"].astype(float))
    table = controls.learnt_biases(replace(batches, steps=steps), "SigLIP")
    assert len(table) == len(experiments.SIZES) * len(SEEDS)
    assert (table["bias"] == -8).all()
    assert table["batch"].is_monotonic_increasing


def test_the_best_epoch_of_a_run_counts_once(found):
    table = controls.best_epochs({"sampling": found["sampling"], "domains": found["domains"]})
    assert table.to_dict("records") == [
        {"experiment": "sampling", "share": 0.5, "runs": 6},
        {"experiment": "domains", "share": 0.5, "runs": 27},
    ]
