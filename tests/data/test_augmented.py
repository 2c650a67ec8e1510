"""Augmented clips: more captions, mixes of two, and everything that they are not to change."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from pullpush.cache import content_key
from pullpush.data import store
from pullpush.data.clips import StoredClips, World, load_data
from pullpush.data.language.grammar import captions
from pullpush.data.scenes.augmented import AugmentedConfig, Merger, Rewriter, partners, unite, unites
from pullpush.data.scenes.scene import Scene, Sound, relevance_matrix
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import PullPushError
from pullpush.rewriting import RewritingError, create
from pullpush.training.frozen import encoded
from pullpush.training.trunk import Published

SMALL = WorldConfig("synthetic", n_train=40, n_valid=6, n_test=6, n_single_per_event=1, captions_per_scene=2)
GRAMMAR = create("grammar")


@dataclass(frozen=True)
class Louder(Rewriter, Merger):
    """A rewriter whose work is seen."""

    mark: str = "!"

    def rewrite(self, captions, *, number=0):
        return [f"{caption}{self.mark}{number}" for caption in captions]

    def merge(self, first, second, *, number=0):
        return [f"{a} & {b}" for a, b in zip(first, second, strict=True)]


@pytest.fixture(scope="module")
def world():
    return load_data(SMALL)


@pytest.fixture(scope="module")
def augmented():
    return load_data(AugmentedConfig(SMALL, (GRAMMAR, create("deletion")), copies=2, merger=GRAMMAR, mixes=12))


def recordings(count=6, rate=8000):
    """A real dataset in small: tones of one second with two captions each, and no scenes."""
    time = np.arange(rate) / rate
    waves = [store.to_int16(0.1 * (1 + n) / count * np.sin(2 * np.pi * 200 * (n + 1) * time)) for n in range(count)]
    held = store.Waveforms(np.concatenate(waves), np.arange(1, count + 1) * rate, rate)
    columns = {"file": [f"{n}.wav" for n in range(count)]}

    def write(columns, language):
        return [[f"tone {name}", f"{language} {name}"] for name in columns["file"]]

    return StoredClips("train", "tones", held, np.arange(count), columns, write)


@dataclass(frozen=True)
class Recordings:
    """Its configuration."""

    def load(self):
        clips = recordings()
        return World(self, {"train": clips, "valid": clips.head(2), "test": clips.head(2)}, "words")


# ---------------------------------------------------------------------------------------------------- more captions


def test_every_caption_comes_again_from_each_rewriter_and_copy(world):
    config = AugmentedConfig(SMALL, (Louder("!"), Louder("?")), copies=2)
    for before, texts in zip(world.train.captions("eng"), load_data(config).train.captions("eng"), strict=True):
        further = [f"{text}{mark}{number}" for number in (0, 1) for mark in "!?" for text in before]
        assert texts == before + further


def test_other_splits_languages_and_the_first_caption_stay(world, augmented):
    for name in ("valid", "test", "singles"):
        assert augmented.split(name).captions("eng") == world.split(name).captions("eng")
        assert augmented.split(name).key == world.split(name).key
    assert augmented.train.captions("fra")[:40] == world.train.captions("fra")
    first = [texts[0] for texts in world.train.captions("eng")]
    assert [texts[0] for texts in augmented.train.captions("eng")][:40] == first


def test_worlds_are_named_by_what_rewriters_said():
    names = [
        content_key(load_data(config).identity)
        for config in (
            AugmentedConfig(SMALL, (Louder(),)),
            AugmentedConfig(SMALL, (Louder(),)),
            AugmentedConfig(SMALL, (Louder("?"),)),
            AugmentedConfig(SMALL, (Louder(),), copies=2),
            AugmentedConfig(SMALL, (Louder(),), merger=GRAMMAR, mixes=2),
            AugmentedConfig(SMALL, (Louder(),), merger=GRAMMAR, mixes=2, seed=1),
        )
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 5


# ------------------------------------------------------------------------------------------------------------- mixes


def test_mixed_clips_are_the_sum_of_two_at_equal_levels(augmented):
    clips, mixed = augmented.train.sources
    longest = int(clips.lengths.max())
    assert len(augmented.train) == 52
    for at, (first, second) in enumerate(zip(mixed.columns["first"], mixed.columns["second"], strict=True)):
        parts = [clips.audio(clips.columns["scene"].index(row["scene"]))[0][0].numpy() for row in (first, second)]
        starts = [round(row["scene"].sounds[0].onset * 16_000) for row in (first, second)]
        length = min(longest, max(len(part) + max(starts) - start for part, start in zip(parts, starts, strict=True)))
        total = np.zeros(max(len(part) + max(starts) - start for part, start in zip(parts, starts, strict=True)))
        for part, start in zip(parts, starts, strict=True):
            total[max(starts) - start :][: len(part)] += part / np.sqrt(np.mean(part.astype(np.float64) ** 2))
        found = augmented.train.audio(40 + at)[0][0].numpy()
        assert len(found) == length
        assert np.abs(found).max() < 0.96
        body = slice(0, length - 400)
        assert np.corrcoef(found[body], total[:length][body])[0, 1] > 0.9999


def test_the_union_is_the_truth_of_a_mixed_clip(world, augmented):
    clips, mixed = augmented.train.sources
    fits = augmented.train.relevance()
    for at, scene in enumerate(mixed.columns["scene"]):
        parts = [mixed.columns[side][at]["scene"] for side in ("first", "second")]
        assert scene.graph == ("overlap", tuple(sorted(parts[0].events + parts[1].events)))
        assert scene.duration == pytest.approx(int(mixed.lengths[at]) / 16_000, abs=2e-3)
        row = clips.columns["scene"].index(parts[0])
        expected = relevance_matrix([scene], parts[:1], world.bank.events)
        assert float(fits[40 + at, row]) == pytest.approx(float(expected[0, 0]))
    torch.testing.assert_close(fits[:40, :40], world.train.relevance())
    assert torch.all(fits[40:, 40:].diagonal() == 1)
    assert augmented.train.relevance(augmented.test).shape == (52, 6)


def test_no_mix_has_the_events_of_a_test_clip():
    big = WorldConfig("synthetic", n_train=60, n_valid=30, n_test=30, n_single_per_event=1, captions_per_scene=1)
    world = load_data(AugmentedConfig(big, merger=GRAMMAR, mixes=60))
    sets = {frozenset(scene.events) for name in ("valid", "test") for scene in world.split(name).columns["scene"]}
    mixed = world.train.sources[1].columns["scene"]
    assert sets
    assert not [scene for scene in mixed if frozenset(scene.events) in sets]
    assert len({scene.graph for scene in mixed}) > 20


def test_mixed_captions_are_merged_and_rewritten_themselves(world, augmented):
    _, mixed = augmented.train.sources
    events = world.bank.events
    for scene, texts in zip(mixed.columns["scene"], mixed.captions("eng"), strict=True):
        told = {text for seed in range(60) for text in captions(scene, events, language="eng", n=60, seed=seed)}
        assert len(texts) == 2 * (1 + 2 * 2)
        if len(scene.events) == 2:  # more sounds can be told in more ways than are listed here
            assert {*texts[:4], *texts[6:8]} <= told
        assert all(text[0].isupper() for text in texts)
    assert mixed.captions("fra") == [[]] * 12


def test_only_mixed_clips_are_encoded_anew(world, augmented, tmp_path, monkeypatch):
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path))
    trunk = Published("cnn", seed=1)
    plain, more = encoded(world, trunk), encoded(augmented, trunk)
    assert len(plain.train)
    before = set((tmp_path / "features").iterdir())
    assert len(more.train)
    assert len({place for place in (tmp_path / "features").iterdir() if place.is_dir()} - before) == 1
    torch.testing.assert_close(more.train.audio([0, 39])[0], plain.train.audio([0, 39])[0])
    assert more.train.captions("eng") == augmented.train.captions("eng")
    torch.testing.assert_close(more.train.relevance(), augmented.train.relevance())


# ------------------------------------------------------------------------------------------------ recordings


def test_recordings_without_scenes_are_augmented_by_other_rewriters():
    config = AugmentedConfig(Recordings(), (Louder(),), merger=Louder(), mixes=4)
    world = load_data(config)
    mixed = world.train.sources[1]
    for first, second, name, texts in zip(
        *(mixed.columns[column] for column in ("first", "second", "file")), mixed.captions("eng"), strict=True
    ):
        assert name == f"{first['file']} + {second['file']}"
        merged = [f"tone {first['file']} & tone {second['file']}", f"eng {first['file']} & eng {second['file']}"]
        assert texts == [*merged, *(f"{text}!0" for text in merged)]
    assert torch.equal(world.train.relevance(), torch.eye(10))
    assert world.train.lengths.tolist() == [8000] * 10


def test_the_grammar_refuses_recordings():
    with pytest.raises(RewritingError, match="captions of scenes"):
        load_data(AugmentedConfig(Recordings(), (GRAMMAR,)))


# ------------------------------------------------------------------------------------------------ parts


def test_a_union_starts_its_sounds_together_and_has_the_noise_of_both():
    near = Scene((Sound(1, 0, 0.5), Sound(0, 1, 0.6)), "overlap", 10.0, 3.0)
    other = Scene((Sound(2, 0, 0.1),), "single", None, 3.5)
    union = unite(near, other)
    assert [(sound.event, sound.onset) for sound in union.sounds] == [(1, 0.5), (2, 0.5), (0, 0.6)]
    assert union.duration == pytest.approx(3.9)
    assert union.snr_db == pytest.approx(10 * np.log10(2 / (1 / 11) - 1), abs=0.06)
    assert unite(other, Scene((Sound(3, 0, 0.0),), "single", None, 2.0)).snr_db is None
    turned = Scene((Sound(4, 0, 0.0), Sound(5, 0, 1.0)), "sequence", None, 3.0)
    assert not unites(other, turned)
    assert not unites(other, other)
    with pytest.raises(ValueError, match="only scenes of different events"):
        unite(other, turned)


def test_pairs_are_different_and_the_first_ones_do_not_depend_on_their_number():
    found = partners(None, 40, 12, seed=3)
    assert len(set(found)) == 40
    assert all(first < second for first, second in found)
    assert partners(None, 7, 12, seed=3) == found[:7]
    assert partners(None, 7, 12, seed=4) != found[:7]
    with pytest.raises(PullPushError, match="only 3 of 4 pairs"):
        partners(None, 4, 3, seed=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"copies": 0}, "copies must be at least 1"),
        ({"mixes": -1}, "mixes must be at least 0"),
        ({"mixes": 3}, r"3 mixes need a merger to write their captions, such as create\('grammar'\)"),
    ],
)
def test_what_makes_no_sense_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        AugmentedConfig(SMALL, **options)


def test_features_are_not_augmented(augmented):
    with pytest.raises(TypeError, match="got Augmented: augment their parts"):
        AugmentedConfig(AugmentedConfig(SMALL, merger=GRAMMAR, mixes=2), (GRAMMAR,)).load()
