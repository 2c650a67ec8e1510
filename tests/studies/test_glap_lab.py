"""Chapter 5's lab: experiments ask for views that there are, and measures find what was planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pullpush.lab import claims
from pullpush.lab.experiments import ExperimentError
from pullpush.lab.ledger import Ledger
from pullpush.lab.page import judge_measures
from pullpush.lab.paper import paper_table
from pullpush.lab.scores import Scores
from pullpush.studies.glap import comparisons, controls, experiments, losses, measures, naming, printed, searches
from pullpush.studies.glap.ears import EARS
from pullpush.studies.glap.grounds import MIXES
from pullpush.training.recipes import recipe

LAB = "05-glap-lab"
SEEDS = (0, 1, 2)
WORDS = {"eng": 30, "fra": 20, "spa": 25, "ita": 15, "rus": 40, "slv": 10}
TESTS = experiments.Tests(keywords=(*(f"keywords {each}" for each in WORDS), "prompts eng"))
ASKED = (*TESTS.named, *TESTS.keywords)
BY_BATCH = {**losses.BY_BATCH, "Eq. 2": losses.LOSSES["Eq. 2"]}
SPOKEN = ["accuracy eng", *(f"accuracy {each}" for each in WORDS if each != "eng")]


def declared():
    every = {"seeds": SEEDS}
    heard = ({}, {}, TESTS.retrieved)
    return {
        made.name: made
        for made in (
            searches.search(seeds=(1000,)),
            searches.rates((*experiments.EARS, *experiments.FURTHER, *experiments.OBJECTIVES), {}, seeds=(1000,)),
            searches.batch_search(BY_BATCH, {}, experiments.SIZES, epochs=6, seeds=(1000,)),
            experiments.domains(*heard, **every),
            experiments.encoders("encoders", experiments.EARS, *heard, **every),
            experiments.encoders("further-ears", ("speech_embedding", *experiments.FURTHER), *heard, **every),
            experiments.encoders("objectives", experiments.OBJECTIVES, *heard, **every),
            experiments.encoders("upper", experiments.UPPER, *heard, **every),
            experiments.batches(BY_BATCH, {}, experiments.SIZES, TESTS.brief, epochs=6, **every),
            experiments.amounts({}, TESTS.brief, mixes={"all": 1, "quarter": 4}, epochs=12, **every),
            experiments.sampling({}, TESTS.retrieved, **every),
            experiments.translations({}, TESTS.translated, **every),
            *(experiments.naming(kind, {}, {}, ASKED, **every) for kind in experiments.PROMPTS),
            experiments.code({}, TESTS.brief, **every),
        )
    }


def scores(experiment, level, metrics, *, clips=40, noise=0.01):
    """Scores that nobody trained: level(trial, metric) and noise of each clip, and of each run."""
    rng = np.random.default_rng(0)
    found = {}
    for trial, seed in experiment.cells:
        test = trial.where.get("test", "")
        count = WORDS.get(test.removeprefix("keywords "), clips) if test.startswith("keywords") else clips
        found[str(trial), seed] = {
            name: level(trial, name) + rng.normal(0, noise, count)
            for name in metrics
            if not test.startswith("keywords") or "accuracy" not in name or name.endswith(test[-3:])
        }
    history = pd.DataFrame(
        [
            {"system": trial.system, **trial.where, "seed": seed, "epoch": epoch, "step": epoch, "R@1": min(epoch, 4)}
            for trial, seed in experiment.cells
            for epoch in range(1, 9)
        ]
    )
    steps = history.assign(bias=-8.0, tau=0.1)
    return Scores(experiment, found, history, steps, None)  # pyrefly: ignore[bad-argument-type]


RANKS = ("T2A R@1", "A2T R@1", "T2A R@10", "A2T R@10", "R@1", "T2A mAP@10")


@pytest.fixture(scope="module")
def found():
    """Everything of one experiment is alike but for what is named here."""
    made = declared()

    def of_domains(trial, metric):
        silent = trial.system == "silent" and trial.where["test"] in experiments.SPEECH
        return 1 / 40 if silent else 0.5 - 0.2 * (trial.where["ears"] == "yamnet")

    def of_batches(trial, metric):
        return 0.4 + (0.05 if (trial.system, trial.where["batch"]) == ("SigLIP", measures.LARGE) else 0.0)

    def of_words(trial, metric):
        return 1 / WORDS["eng"] if trial.system == "no speech" else 0.6 - 0.005 * WORDS.get(trial.where["test"][-3:], 0)

    levels = {
        "domains": of_domains,
        "encoders": lambda trial, metric: 0.3 + 0.1 * (trial.system == "several"),
        "batches": of_batches,
        "amounts": lambda trial, metric: 0.4 + 0.03 * (str(trial).startswith("SigLIP data=all")),
        "sampling": lambda trial, metric: 0.3 + 0.02 * (trial.system == "balanced"),
        "translations": lambda trial, metric: 0.2 + 0.1 * (trial.system == "GLAP"),
    }
    result = {name: scores(made[name], level, RANKS) for name, level in levels.items()}
    labels = [f"accuracy {each}" for each in experiments.READ]
    for kind, level in (("sound", 0.7), ("music", 0.5)):
        result[f"named-{kind}"] = scores(made[f"named-{kind}"], lambda trial, metric, level=level: level, labels)
    result["named-speech"] = scores(made["named-speech"], of_words, [*SPOKEN, *labels])
    return result


# ---------------------------------------------------------------- what is declared


def test_experiments_ask_for_mixtures_ears_and_tests_that_there_are():
    known = {*TESTS.retrieved, *TESTS.translated, *ASKED}
    for experiment in declared().values():
        assert experiment.long
        for trial in experiment.trials:
            mix, ears = trial.data.split("/")
            assert mix in MIXES, trial
            assert ears in EARS, trial
            first, heard, test = trial.test.split("/")
            assert (first, heard) == ("test", ears), trial
            assert test in known, trial


def test_every_recipe_can_be_made():
    for experiment in declared().values():
        for trial in experiment.trials:
            assert recipe(trial.recipe, **{"batch_size": 128, **trial.overrides}).terms


def test_experiments_share_their_runs():
    """What a run depends on is the same for the general system in five experiments."""
    made = declared()
    runs = {
        name: {(trial.recipe, repr(trial.overrides), trial.data) for trial in made[name].trials}
        for name in ("domains", "encoders", "translations", "named-speech", "named-sound")
    }
    shared = set.intersection(*runs.values())
    assert {data for _, _, data in shared} >= {"all/several"}
    assert len(set.union(*(runs[name] for name in ("named-sound", "named-speech")))) == 4


def test_what_a_search_chose_is_used():
    best = {"SigLIP": {"lr": 3e-3, "tau": 0.2}, "SigLIP, batch 64": {"lr": 8e-3}}
    heard = experiments.domains(best, {"yamnet": {"lr": 1e-4}}, ["sound"], seeds=SEEDS)
    rates = {trial.where["ears"]: trial.overrides["lr"] for trial in heard.trials}
    assert rates["yamnet"] == 1e-4
    assert rates["several"] == 3e-3
    sizes = experiments.batches(losses.BY_BATCH, best, (64,), ["sound"], epochs=6, seeds=SEEDS)
    assert {trial.overrides.get("lr") for trial in sizes.trials if trial.system == "SigLIP"} == {8e-3}
    assert {trial.overrides.get("tau") for trial in sizes.trials if trial.system != "InfoNCE"} == {0.2}


def test_each_change_of_the_code_is_one_and_the_last_is_all_of_them():
    trials = {trial.system: trial for trial in experiments.code({}, ["sound"], seeds=SEEDS).trials}
    assert trials["paper"].overrides == {}
    assert trials["regularised embeddings"].recipe == "siglip+sparsity"
    both = trials[losses.TOGETHER]
    assert both.recipe == "siglip+sparsity"
    assert {"loss_parts", "raw_tau", "warmup"} <= both.overrides.keys()


# ---------------------------------------------------------------- readings


def test_several_tests_count_alike_whatever_their_sizes(found):
    words = found["named-speech"]
    tests = ["keywords fra", "keywords rus"]
    each = [words.values("GLAP", f"accuracy {test[-3:]}", {"test": test}).mean() for test in tests]
    joined = measures.joined([words.values("GLAP", f"accuracy {test[-3:]}", {"test": test}) for test in tests])
    assert joined.mean() == pytest.approx(np.mean(each))


def test_gains_are_differences_test_by_test_and_together(found):
    table = comparisons.gains(
        found["domains"], [("all", "silent")], ["R@1"], ["sound", "speech fra"], {"ears": "several"},
        pooled={"both": ["sound", "speech fra"]},
    ).set_index("test")  # fmt: skip
    assert table.loc["sound", "value"] == pytest.approx(0, abs=0.02)
    assert table.loc["speech fra", "value"] == pytest.approx(0.475, abs=0.02)
    assert table.loc["both", "value"] == pytest.approx(table.loc[["sound", "speech fra"], "value"].mean())


def test_chance_is_that_of_one_right_item_or_class():
    rng = np.random.default_rng(0)
    items = 8
    drawn = rng.permuted(np.tile(np.arange(items), (4000, 1)), axis=1)
    hits = (drawn[:, :5] == 0).any(axis=1).mean()
    assert comparisons.by_chance("T2A R@5", np.zeros((2, items))) == pytest.approx(hits, abs=0.02)
    assert comparisons.by_chance("accuracy deu", np.zeros((2, 4))) == 0.25
    assert comparisons.by_chance("R@1", np.zeros((2, 4))) == 0.25
    assert np.isnan(comparisons.by_chance("no score", np.zeros((2, 4))))


def test_the_papers_numbers_stand_beside_ours(found):
    table = printed.beside_paper(found["domains"], 2, {"ears": "several"})
    theirs = paper_table("glap", 2).query("system == 'GLAP' and dataset == 'AISHELL-2 test'")
    theirs = theirs[(theirs["task"] == "T2A") & (theirs["metric"] == "R@1")]["value"].item()
    row = table[(table["test"] == "keywords fra") & (table["system"] == "all") & (table["metric"] == "T2A R@1")]
    assert row["paper"].item() == theirs
    assert row["here"].item() == pytest.approx(50, abs=2)
    assert printed.readable(table)["system"].str.startswith("paper: ").any()
    labels = printed.beside_paper(found["named-sound"], 7)
    german = labels[(labels["test"] == "sound") & (labels["metric"] == "accuracy deu")]["paper"].item()
    assert german == paper_table("glap", 7).query("dataset == 'ESC-50' and language == 'deu'")["value"].item()


def test_scores_that_are_not_there_give_empty_tables(found):
    none = replace(found["domains"], clips={})
    assert comparisons.levels(none, ["R@1"]).empty
    assert comparisons.gains(none, [("all", "silent")], ["R@1"]).empty
    assert printed.across(printed.beside_paper(none, 4)).empty
    assert comparisons.by_language(none, none, ["eng"]).empty


def test_labels_are_read_by_the_prompt_of_their_domain(found):
    table = comparisons.by_language(found["named-sound"], found["named-music"], ["eng", "rus"])
    means = table.groupby("test")["value"].mean()
    assert means["sound"] == pytest.approx(0.7, abs=0.02)
    assert means["music"] == pytest.approx(0.5, abs=0.02)
    prompts = comparisons.by_prompt(found, ["sound", "keywords eng"])
    assert set(prompts["system"]) == {"sound prompt", "music prompt", "bare label"}


# ---------------------------------------------------------------- controls


def test_length_alone_is_matched_as_a_naive_loop_does():
    rng = np.random.default_rng(1)
    letters = rng.integers(2, 6, 30)
    labels, lengths = np.arange(30), rng.permutation(30).astype(float)
    order = sorted(range(30), key=lambda clip: lengths[clip])
    guess = dict(zip(order, sorted(letters), strict=True))
    wanted = np.mean([(guess[clip] == letters[clip]) / (letters == letters[clip]).sum() for clip in range(30)])
    assert controls.length_accuracy(lengths, letters, labels) == pytest.approx(wanted)


def test_biases_are_read_beside_s_over_tau_in_both_forms(found):
    table = controls.learnt_biases(found["batches"], ("SigLIP", "Eq. 2"))
    assert len(table) == 2 * len(experiments.SIZES) * len(SEEDS)
    by_form = table.groupby("system")["bias"].first()
    assert by_form["SigLIP"] == -8
    assert by_form["Eq. 2"] == pytest.approx(-80)  # −8/τ


def test_the_best_epoch_of_a_run_counts_once(found):
    table = controls.best_epochs({"sampling": found["sampling"]})
    assert table.to_dict("records") == [{"experiment": "sampling", "share": 0.5, "runs": 6}]


# ---------------------------------------------------------------- measures


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("sigmoid-over-softmax", 0.05),
        ("gain-by-batch", 0.05),
        ("gain-by-data", 0.03),
        ("best-before-end", 0.25),  # half of the training was left, and a quarter of it is the last part
        ("balanced-sampling", 0.02),
        ("translated-captions", 0.1),
        ("speech-data-alone", -0.2),
        ("no-speech", 1 / 40 - 0.5),
        ("no-compromise", 0.0),
        ("silent-at-chance", 0.0),
        ("most-versatile", 0.1),
        ("sound-prompt", 0.1),
        ("keywords-english", 0.45 - 1 / 30),
        ("silent-keywords", 0.0),
        ("russian-sounds", 0.0),
    ],
)
def test_what_was_planted_is_found(found, name, planted):
    assert measures.MEASURES[name].of(found).value == pytest.approx(planted, abs=0.015)


def test_accuracy_that_falls_with_every_word_has_a_rank_correlation_of_minus_one(found):
    assert naming.fewer_is_easier(found).value == pytest.approx(-1, abs=0.05)


def test_every_claim_of_a_measure_is_judged(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, found)
    asked = {claim.judged["measure"] for claim in claims.of_chapter(LAB) if "measure" in (claim.judged or {})}
    assert asked == {*measures.MEASURES}
    assert not [claim for claim in ledger.open if "measure" in claim.judged]


def test_every_claim_of_an_experiment_names_a_point_that_is_declared():
    made = declared()
    for claim in claims.of_chapter(LAB):
        if claim.judged and "experiment" in claim.judged:
            asked = claim.judged
            trials = [trial for trial in made[asked["experiment"]].trials if trial.system == asked["system"]]
            assert [trial for trial in trials if asked["where"].items() <= trial.where.items()], claim.id


def test_some_of_the_measures_can_be_judged_alone(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, {"sampling": found["sampling"]})
    assert "holds" in ledger.sentence("glap-s3-balanced-sampling")
    assert [claim for claim in ledger.open if claim.id == "glap-s1-no-compromise"]


def test_what_is_missing_is_said(found):
    ledger = Ledger(LAB)
    judge_measures(ledger, measures.MEASURES, {**found, "sampling": replace(found["sampling"], clips={})})
    rows = ledger.table().set_index("id")
    assert rows.loc["glap-s3-balanced-sampling", "reason"].startswith("sampling is long")


def test_too_few_languages_have_no_rank(found):
    few = experiments.naming("speech", {}, {}, ["keywords eng"], seeds=SEEDS)
    with pytest.raises(ExperimentError, match="no rank correlation"):
        naming.fewer_is_easier({"named-speech": scores(few, lambda trial, metric: 0.5, SPOKEN)})
