"""Several worlds as one."""

from dataclasses import replace

import pytest
import torch

from pullpush.data.clips import load_data
from pullpush.data.mixture import SEVERAL, Mixed, MixtureConfig, Part, captioned
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import DataNotFoundError, UnknownNameError, check_known
from pullpush.training.frozen import encoded
from pullpush.training.trunk import Published

SIZES = {"n_train": 6, "n_valid": 3, "n_test": 4, "n_single_per_event": 1, "captions_per_scene": 2}


def world(seed=0):
    return WorldConfig("synthetic", seed=seed, **SIZES)


@pytest.fixture(scope="module")
def mixture():
    parts = Part(world(), "sound", ("eng", "fra")), Part(world(1), "music", ("deu",), group="played", limit=3)
    return load_data(MixtureConfig(parts))


def test_the_clips_of_all_parts_are_there_once_and_in_order(mixture):
    sound, music = (load_data(world(seed)) for seed in (0, 1))
    assert {name: len(clips) for name, clips in mixture.splits.items()} == {"train": 9, "valid": 6, "test": 8}
    assert mixture.train.columns["domain"] == ["sound"] * 6 + ["music"] * 3
    assert mixture.train.columns["group"] == ["sound"] * 6 + ["played"] * 3
    for number, expected in ((3, sound.test.audio(3)), (6, music.test.audio(2))):
        torch.testing.assert_close(mixture.test.audio(number)[0], expected[0])
    both, lengths = mixture.test.audio([0, 4])
    assert both.shape == (2, int(lengths.max()))
    assert mixture.test.lengths.tolist() == [*sound.test.lengths.tolist(), *music.test.lengths.tolist()]


def test_mul_is_all_languages_of_a_part(mixture):
    sound = load_data(world()).train
    expected = [eng + fra for eng, fra in zip(sound.captions("eng"), sound.captions("fra"), strict=True)]
    assert mixture.train.captions(SEVERAL)[:6] == expected
    assert [len(texts) for texts in mixture.train.captions(SEVERAL)] == [4] * 6 + [2] * 3
    assert mixture.train.captions("fra")[8] == load_data(world(1)).train.captions("fra")[5]


def test_clips_whose_source_lacks_a_language_have_no_caption_in_it(mixture):
    first, second = mixture.test.sources
    english = replace(
        second, write=lambda columns, language: second.write(columns, check_known("l", language, ["eng"]))
    )
    mixed = Mixed.of("test", [first, english])
    assert mixed.captions("fra") == [*first.captions("fra"), *[[]] * len(second)]
    with pytest.raises(UnknownNameError):
        mixed.captions("xxx")


def test_relevance_is_that_of_the_parts_and_nothing_between_them(mixture):
    fits = mixture.test.relevance()
    torch.testing.assert_close(fits[:4, :4], load_data(world()).test.relevance())
    torch.testing.assert_close(fits[4:, 4:], load_data(world(1)).test.relevance())
    assert not fits[:4, 4:].any()
    chosen = mixture.test.select([6, 1, 4])
    torch.testing.assert_close(chosen.relevance(), fits[[6, 1, 4]][:, [6, 1, 4]])
    with pytest.raises(ValueError, match="same sources"):
        mixture.test.relevance(load_data(world()).test)


def test_each_source_is_encoded_by_itself_and_shared(mixture, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path))
    trunk = Published("cnn", seed=1)
    heard = encoded(mixture, trunk)
    alone = encoded(load_data(world()), trunk)
    rows, _ = heard.train.audio(list(range(6)))
    torch.testing.assert_close(rows, alone.train.audio(list(range(6)))[0])
    assert isinstance(heard.train, Mixed)
    assert heard.train.key != mixture.train.key
    assert heard.train.captions(SEVERAL) == mixture.train.captions(SEVERAL)


def test_what_cannot_be_mixed_is_refused():
    with pytest.raises(ValueError, match="at least one part"):
        MixtureConfig(())
    with pytest.raises(UnknownNameError, match="spoken"):
        load_data(MixtureConfig((Part(world(), "speech", own="spoken"),)))
    with pytest.raises(DataNotFoundError, match="leave this part out"):
        load_data(MixtureConfig((Part(world(), "sound", ()),)))
    assert len(captioned(Part(world(), "sound", ("eng",)).told(load_data(world()).test))) == 4


@pytest.mark.parametrize(
    "part",
    [
        Part(world(), "music", ("eng", "fra")),
        Part(world(), "sound", ("fra", "eng")),
        Part(world(), "sound", ("eng", "fra"), group="all"),
        Part(WorldConfig("synthetic", **SIZES | {"captions_per_scene": 1}), "sound", ("eng", "fra")),
    ],
)
def test_how_parts_are_told_and_grouped_makes_another_world_for_runs(part):
    plain, other = (load_data(MixtureConfig((each,))) for each in (Part(world(), "sound", ("eng", "fra")), part))
    assert other.train.key == plain.train.key
    assert other.identity != plain.identity
