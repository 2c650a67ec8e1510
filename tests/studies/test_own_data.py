"""What chapters 5 to 7 take of a bank of one's own: its languages, tests, sizes, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.errors import PullPushError
from pullpush.lab.profiles import PROFILES
from pullpush.lab.session import Session
from pullpush.studies.distill.data import BOTH, SOFT, Context as Distill, LessonContext
from pullpush.studies.distill.labels import ByText
from pullpush.studies.distill.stages import Stage
from pullpush.studies.glap import experiments
from pullpush.studies.glap.data import QUIET, Grounds
from pullpush.studies.glap.science import named_by_prompts
from pullpush.studies.own_data import check_retold, is_small, languages_of
from pullpush.studies.together import experiments as together
from pullpush.studies.together.data import Context as Together
from pullpush.topics import TopicsError


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """A bank of two classes with one recording each, named in English."""
    root = tmp_path_factory.mktemp("bank")
    for row, name in enumerate(("gate", "tram")):
        (root / name).mkdir()
        wave = 0.3 * np.sin(2 * np.pi * (300 + 400 * row) * np.arange(16_000) / 16_000)
        soundfile.write(root / name / "0.wav", wave, 16_000)
    return f"folder:{root}"


@pytest.fixture(scope="module")
def own(bank, tmp_path_factory):
    """A session on that bank, with as few scenes as can be."""
    world = {"bank": bank, "n_train": 4, "n_valid": 2, "n_test": 3}
    settings = replace(PROFILES["smoke"], name="mine", world=world)
    return Session("05-glap", settings, 0, tmp_path_factory.mktemp("out"))


def test_a_folder_is_told_in_english_and_the_books_banks_in_all(bank):
    assert languages_of(bank) == ("eng",)
    assert languages_of("tuxpaint:bird") == languages_of("synthetic") == LANGUAGES  # and nothing is fetched for it


def test_the_encoders_and_not_the_bank_say_how_small_a_profile_is(bank):
    world = {**PROFILES["quick"].world, "bank": bank}
    assert not is_small(replace(PROFILES["quick"], world=world))
    assert is_small(replace(PROFILES["smoke"], world=world))


def test_chapter_5_learns_from_and_tests_on_a_bank_of_ones_own(own):
    ground = Grounds(own)
    mixed = ground.mixture("all").train
    assert all("gate" in text or "tram" in text for texts in mixed.captions("mul") for text in map(str.lower, texts))
    assert QUIET in mixed.columns["group"]
    tests = experiments.tests_of(ground)
    assert tests.translated == ("sound eng",)
    assert set(ground.tests) == {"sound", "sound eng", "music", "music eng", "speech"}
    assert ground.view("all/yamnet").overrides["batch_size"] > 1
    assert ground.test("sound").test.captions("mul")


def test_chapter_6_mixes_and_changes_words_where_there_is_no_other_language(own):
    ground = Distill(own)
    rewriters = ground.config(Stage("finetune", augment="all")).rewriters
    assert len(rewriters) == 1
    ordinary = replace(own, settings=replace(own.settings, world=PROFILES["smoke"].world))
    assert len(Distill(ordinary).config(Stage("finetune", augment="all")).rewriters) == 2


def test_back_translation_of_one_language_is_refused(own):
    with pytest.raises(PullPushError, match="needs events that are told in two languages, these are in eng"):
        check_retold(Distill(own).source(Stage("finetune")).bank.events)


def test_chapter_7_asks_in_the_languages_of_the_bank(own):
    ground = Together(own)
    assert ground.view("plain").overrides["languages"] == ("eng",)
    asked = together.search(dim=8, languages=ground.languages, seeds=(0,))
    assert asked.languages == ("eng",)
    assert together.search(dim=8, seeds=(0,)).languages == LANGUAGES


def test_naming_one_class_is_refused(own):
    singles = Grounds(own).test("sound").singles
    with pytest.raises(PullPushError, match="sounds of one class"):
        named_by_prompts(None, {"sound": singles.select([0, 1])})


def test_a_bank_with_too_few_captions_has_soft_labels_and_no_topics(own, monkeypatch):
    def too_few(*_):
        raise TopicsError("too few")

    monkeypatch.setattr(ByText, "of", too_few)
    ground = LessonContext(own)
    assert not ground.has_topics
    systems = [trial.system for trial in ground.trials()]
    assert SOFT in systems
    assert BOTH not in systems
    ordinary = replace(own, settings=replace(own.settings, world=PROFILES["smoke"].world))
    assert LessonContext(ordinary).trials()[-1].system == BOTH
