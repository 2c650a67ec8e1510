"""Chapter 3 on data of one's own: the languages that are there, and what is refused where some are not."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from miniature import tone

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.material import SCENES
from pullpush.studies.consistency import comparisons, experiments
from pullpush.studies.consistency.grounds import LanguagesError, check_told, languages_of, require, several


def material(name, bank="synthetic"):
    settings = SimpleNamespace(world={"bank": bank})
    return SimpleNamespace(name=name, book=SimpleNamespace(settings=settings))


def write(folder, *codes):
    for code in codes:
        with open(folder / f"captions.{code}.csv", "w", newline="") as file:
            csv.writer(file).writerow(["file_name", "caption"])


def test_the_books_scenes_are_told_in_all_eight():
    assert languages_of(material(SCENES)) == LANGUAGES


def test_a_folder_has_the_languages_of_its_tables(tmp_path):
    write(tmp_path, "deu", "fra", "xxx")
    assert languages_of(material(f"folder:{tmp_path}")) == ("eng", "fra", "deu")


def test_a_folder_that_is_not_there_is_no_matter_of_languages(tmp_path):
    assert languages_of(material(f"folder:{tmp_path / 'none'}")) == LANGUAGES


def test_english_alone_is_refused_with_what_to_give(tmp_path):
    with pytest.raises(LanguagesError, match=r"in eng alone.*captions\.fra\.csv"):
        languages_of(material(f"folder:{tmp_path}"))
    tone(tmp_path / "engine" / "1.wav", 1)
    with pytest.raises(LanguagesError, match=r"scenes of folder:.*in eng alone"):
        languages_of(material(SCENES, f"folder:{tmp_path}"))
    with pytest.raises(LanguagesError, match="none of the eight"):
        several("Mine", [])


def told(**languages):
    return SimpleNamespace(name="test", captions=lambda code: languages[code])


def test_clips_need_as_many_captions_in_each_language():
    check_told(told(eng=[["a"], ["b"]], fra=[["c"], ["d"]]), ("eng", "fra"))
    with pytest.raises(LanguagesError, match="eng 1, fra 0–1"):
        check_told(told(eng=[["a"], ["b"]], fra=[["c"], []]), ("eng", "fra"))


def test_what_is_about_certain_languages_names_those_that_are_missing():
    require(("eng", "fra"), "fra")
    with pytest.raises(LanguagesError, match=r"captions\.zho\.csv"):
        comparisons.west_less_east({code: np.zeros(3) for code in (*comparisons.WEST, "jpn")})


def test_west_is_nearer_than_east():
    cosines = {"fra": 0.9, "deu": 0.7, "spa": 0.8, "nld": 0.8, "cat": 0.3, "jpn": 0.5, "zho": 0.6}
    same = {code: np.full(4, cosine) for code, cosine in cosines.items()}
    assert comparisons.west_less_east(same).value == pytest.approx(0.7 - 0.55)


def test_experiments_are_scored_in_the_languages_that_are_there():
    three = ("eng", "fra", "deu")
    assert experiments.text_side((0,), three).languages == three
    assert experiments.svr_end_to_end((0,), 1, three).trials[0].overrides["languages"] == three
    assert sorted(experiments.language_order(0, three)) == sorted(three)
