"""What chapter 5's lab declares: experiments ask for views that there are, share runs, and use what was searched."""

import numpy as np
import pytest
from made_up_glap import ASKED, SEEDS, TESTS, declared

from pullpush.lab import claims
from pullpush.lab.contrasts import needed
from pullpush.lab.experiments import trained_of
from pullpush.studies.glap import experiments
from pullpush.studies.glap.data import ENCODERS, MIXES
from pullpush.studies.glap.experiments import BY_BATCH, Run, at_size, on_tests, tuned
from pullpush.training.recipes import recipe

BEST = {"SigLIP": {"lr": 3e-3, "tau": 0.2}, "SigLIP, batch 64": {"lr": 8e-3}}


def test_experiments_ask_for_mixtures_ears_and_tests_that_there_are():
    known = {*TESTS.retrieved, *TESTS.translated, *ASKED, "commands"}
    for experiment in map(trained_of, declared().values()):
        assert experiment.long
        assert experiment.languages == ("mul",)
        for trial in experiment.trials:
            mix, encoder = trial.data.split("/")
            assert mix in MIXES, trial
            assert encoder in ENCODERS, trial
            first, through, test = trial.test.split("/")
            assert (first, through) == ("test", encoder), trial
            assert test in known, trial


def test_every_recipe_can_be_made():
    for experiment in map(trained_of, declared().values()):
        for trial in experiment.trials:
            assert recipe(trial.recipe, **{"batch_size": 128, **trial.overrides}).terms


def test_experiments_share_their_runs():
    """What a run depends on is the same for the general system in four experiments."""
    made = declared()
    names = ("domains", "encoders", "translations", "named-speech", "named-sound")
    runs = {name: {(trial.recipe, repr(trial.overrides), trial.data) for trial in made[name].trials} for name in names}
    assert {data for _, _, data in set.intersection(*runs.values())} >= {"all/several"}
    assert len(runs["named-sound"] | runs["named-speech"]) == 4


def test_words_are_asked_for_by_prompts_of_their_language_alone():
    for kind in experiments.PROMPTS:
        asked = TESTS.asked(kind)
        assert set(TESTS.named) <= set(asked)
        assert "keywords eng" in asked
    assert set(TESTS.asked("speech")) > set(TESTS.asked("sound"))


def test_what_a_search_chose_is_used():
    assert tuned(BEST, lr=1e-4)[1] == {"lr": 1e-4, "tau": 0.2}
    sizes = {label: at_size(BEST, label, 64, 6)[1] for label in BY_BATCH}
    assert sizes["SigLIP"]["lr"] == 8e-3
    assert {options.get("tau") for label, options in sizes.items() if label != "InfoNCE"} == {0.2}
    assert "lr" not in sizes["no bias"]
    assert at_size(BEST, experiments.BALANCED, 64, 6)[1]["bias"] == pytest.approx(-np.log(63))
    assert all((options["batch_size"], options["epochs"]) == (64, 6) for options in sizes.values())


def test_a_grid_is_the_same_for_all_that_are_sought():
    of = {"one": (("siglip", {"tau": 0.2}), "yamnet"), "other": (("infonce", {}), "several")}
    found = experiments.sought("search", of, {"lr": (1e-3, 3e-3), "dim": (8, 16)}, seeds=(7,))
    points = {name: [trial.where for trial in found.trials if trial.system == name] for name in of}
    assert points["one"] == points["other"]
    assert len(points["one"]) == 4
    assert found.trials[0].overrides == {"tau": 0.2, "lr": 1e-3, "dim": 8}
    assert found.trials[0].test == "test/yamnet/sound"


def test_the_last_change_of_the_code_is_all_of_them():
    *single, (term, whole) = experiments.PUBLISHED_CODE.values()
    assert term == "".join(term for term, _ in single)
    assert whole == {name: value for _, options in single for name, value in options.items()}


def test_a_run_is_a_trial_a_test():
    run = Run("GLAP", ("siglip", {}), "yamnet", "silent", {"batch": 16})
    one, other = on_tests("made", [run], ["sound", "music"], seeds=SEEDS).trials
    assert (one.data, one.test, one.where) == ("silent/yamnet", "test/yamnet/sound", {"batch": 16, "test": "sound"})
    assert other.test == "test/yamnet/music"
    altered = on_tests("made", [run], ["sound"], seeds=SEEDS, altered={"first": (0.5,)})
    assert [trial.test for trial in altered.trials] == ["test/yamnet/sound", "test/yamnet/sound@first 0.5"]
    assert [trial.where["heard"] for trial in altered.trials] == ["whole inf", "first 0.5"]
    assert altered.data == "silent/yamnet"


def test_every_claim_of_an_experiment_names_one_that_is_declared():
    made = declared()
    for claim in claims.of_chapter("05-glap-lab"):
        assert {*needed(claim.judged)} <= {*made}, claim.id
