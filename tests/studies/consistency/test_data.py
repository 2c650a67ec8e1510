"""Chapter 3 on data of one's own: the languages that are there, and what is refused where some are not."""

from types import SimpleNamespace

import pytest
import torch
from miniature import tone

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.errors import UnknownNameError
from pullpush.lab import compute, material as materials, session
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.material import SCENES
from pullpush.studies.consistency import data
from pullpush.studies.consistency.results import event_captions


def material(name, bank="synthetic"):
    settings = SimpleNamespace(world={"bank": bank})
    return SimpleNamespace(name=name, book=SimpleNamespace(settings=settings))


def test_the_books_scenes_are_told_in_all_eight():
    assert data.languages_of(material(SCENES)) == LANGUAGES


def test_a_folder_has_the_languages_of_its_tables(tmp_path):
    for code in ("deu", "fra", "xxx"):
        (tmp_path / f"captions.{code}.csv").write_text("file_name,caption\n")
    assert data.languages_of(material(f"folder:{tmp_path}")) == ("eng", "fra", "deu")


def test_a_folder_that_is_not_there_is_no_matter_of_languages(tmp_path):
    assert data.languages_of(material(f"folder:{tmp_path / 'none'}")) == LANGUAGES


def test_english_alone_is_refused_with_what_to_give(tmp_path):
    with pytest.raises(data.LanguagesError, match=r"in eng alone.*captions\.fra\.csv"):
        data.languages_of(material(f"folder:{tmp_path}"))
    tone(tmp_path / "engine" / "1.wav", 1)
    with pytest.raises(data.LanguagesError, match=r"scenes of folder:.*in eng alone"):
        data.languages_of(material(SCENES, f"folder:{tmp_path}"))
    with pytest.raises(data.LanguagesError, match="none of the eight"):
        data.several("Mine", [])


def told(**languages):
    return SimpleNamespace(name="test", captions=lambda code: languages[code])


def test_clips_need_as_many_captions_in_each_language():
    data.check_captions(told(eng=[["a"], ["b"]], fra=[["c"], ["d"]]), ("eng", "fra"))
    with pytest.raises(data.LanguagesError, match="eng 1, fra 0–1"):
        data.check_captions(told(eng=[["a"], ["b"]], fra=[["c"], []]), ("eng", "fra"))


@pytest.fixture
def ground(home, tmp_path):
    book = session.start("03-consistency-lab", profile="smoke", out=tmp_path)
    return data.Grounds(materials.of(book, "scenes"))


def test_all_runs_of_a_seed_go_on_from_its_long_run(ground):
    trials = [
        Trial(name, name, {}, {"start": start}, start)
        for start in (data.ML_CLAP, data.NOTHING)
        for name in ("ml-clap", "kcl")
    ]
    experiment = Experiment("starts", tuple(trials), (0, 1))
    cells = compute.plans_of(ground, experiment)
    first, last = compute.rounds(ground, experiment, cells)
    assert len(first) == len(experiment.seeds)
    bases = {plan.path: plan for plan in first}
    for (trial, seed), plan in cells.items():
        if trial.where["start"] == data.NOTHING:
            assert plan.base is None
        else:
            assert plan.base == ground.first_run(data.ML_CLAP, seed).path
            assert bases[plan.base].seed not in experiment.seeds
            assert bases[plan.base].recipe.name == "ml-clap"
            assert bases[plan.base].world is plan.world
    assert len(last) == len(cells)


def test_galleries_of_a_stage_begin_with_its_own_clips(ground):
    plain, wide = ground.view(data.NOTHING).data.test, ground.view(data.TESTED).tests
    assert len(wide) == ground.material.galleries
    assert [clips.captions("deu") for clips in (plain, wide[0].test)] == [plain.captions("deu")] * 2
    assert torch.equal(wide[0].test.audio([0, 1])[0], plain.audio([0, 1])[0])


def test_captions_of_a_stage_are_translations_on_the_materials_own_features(ground):
    assert ground.translated.test.captions("fra") != ground.data().test.captions("fra")
    heard = ground.view("aligned/nothing").data
    assert heard.test.key == ground.view("frozen").data.test.key  # the same features
    assert heard.test.captions("fra") == ground.translated.test.captions("fra")
    valid = ground.view("aligned/valid").data
    assert valid.test.key == heard.valid.key
    assert valid.test.captions("fra") == heard.valid.captions("fra")
    with pytest.raises(UnknownNameError, match="stage"):
        ground.view("aligned/sung")


def test_a_text_encoder_that_is_trained_goes_on_from_one_that_was(ground):
    experiment = Experiment.of("text-side", {"kcl": ("kcl", {})}, seeds=(0,), data=data.WORDS)
    plans = compute.plans_of(ground, experiment).values()
    assert {plan.recipe.text for plan in plans} == {"words"}
    first = ground.first_run(data.WORDS, 0)
    assert first.recipe.encoder_options == next(iter(plans)).recipe.encoder_options
    assert {plan.base for plan in plans} == {first.path}


def test_a_bank_without_stamps_lends_its_labels(world):
    events = world.bank.events
    own = event_captions(data.labels_as_stamps(events), events, "fra")
    assert own["text"].to_dict() == {number: event.phrases["fra"].label for number, event in enumerate(events)}


def test_what_is_taken_is_what_the_scheme_takes():
    generator = torch.Generator().manual_seed(0)
    random = data.take(50, 4, "random", generator)
    pair = data.take(50, 4, "pair", generator)
    assert (random.sum(1) == 1).all()
    assert random.any(0).all()
    assert (pair.sum(1) == 2).all()
    assert pair[:, 0].all()
