"""Clips heard otherwise: what is cut is what was asked for, noise has the power that it says, nothing else changes."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from pullpush.data.clips import StoredClips
from pullpush.data.scenes.altered import Alteration, First, Gain, Loudest, WhiteNoise, altered
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.data.store import Waveforms
from pullpush.training.frozen import encoded
from pullpush.training.trunk import Published

CHANGES = (First(0.5), Loudest(0.5), Gain(-20.0), WhiteNoise(0.0))


@pytest.fixture
def clips():
    """Five clips of noise, between 0.3 and 1.5 s, the middle ones of several in one store."""
    stops = np.cumsum([5000, 16_000, 24_000, 12_000, 20_000, 18_000, 9000])
    samples = np.random.default_rng(0).integers(-9000, 9000, stops[-1]).astype(np.int16)
    files = {"file": ["b", "c", "d", "e", "f"]}
    write = lambda columns, language: [[f"{language} {name}"] for name in columns["file"]]  # noqa: E731
    return StoredClips("test", "key", Waveforms(samples, stops), np.arange(1, 6), files, write)


def test_the_first_seconds_are_the_start_and_no_more(clips):
    whole, lengths = clips.audio(slice(None))
    cut, kept = altered(clips, First(0.5)).audio(slice(None))
    assert kept.tolist() == [min(8000, length) for length in lengths.tolist()]
    torch.testing.assert_close(cut, whole[:, : cut.shape[1]], rtol=0, atol=0)


@given(st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=30), st.integers(1, 40))
def test_no_other_stretch_is_louder_than_the_loudest(samples, size):
    wave = torch.tensor(samples)
    found = Loudest(float(size))(wave, 1, 0)
    size = min(size, len(wave))
    energies = [float(wave[start : start + size].double().square().sum()) for start in range(len(wave) - size + 1)]
    assert len(found) == size
    assert float(found.double().square().sum()) == pytest.approx(max(energies), abs=1e-12)


@pytest.mark.parametrize("decibels", [-10.0, 0.0, 20.0])
def test_noise_has_the_power_that_the_ratio_asks_for(clips, decibels):
    whole, lengths = clips.audio(2)
    noisy, same = altered(clips, WhiteNoise(decibels)).audio(2)
    assert same.tolist() == lengths.tolist()
    ratio = whole.square().mean() / (noisy - whole).square().mean()
    assert 10 * np.log10(float(ratio)) == pytest.approx(decibels, abs=1e-3)


def test_noise_is_the_clips_own_whichever_clips_are_asked_for(clips):
    noisy = altered(clips, WhiteNoise(0.0))
    alone = noisy.audio(3)[0]
    torch.testing.assert_close(noisy.select([4, 3]).audio(1)[0], alone, rtol=0, atol=0)
    assert not torch.equal(altered(clips, WhiteNoise(0.0, seed=1)).audio(3)[0], alone)
    assert not torch.equal(noisy.audio(4)[0] - clips.audio(4)[0], alone - clips.audio(3)[0])


@pytest.mark.parametrize("change", CHANGES)
def test_all_else_is_the_clips_own_and_the_key_is_not(clips, change):
    other = altered(clips, change)
    assert other.captions("eng") == clips.captions("eng")
    assert other.columns == clips.columns
    assert torch.equal(other.relevance(), clips.relevance())
    assert other.key != clips.key
    assert other.lengths.tolist() == other.audio(slice(None))[1].tolist()


def test_alterations_are_told_apart_by_kind_and_by_how_much(clips):
    changes = (*CHANGES, First(0.25), Loudest(0.25), Gain(-10.0), WhiteNoise(-20.0), WhiteNoise(0.0, seed=1))
    assert len({altered(clips, change).key for change in changes}) == len(changes)


def reader_s_own(factor):
    """An alteration of a notebook's cell, each time another class of the same name."""

    @dataclass(frozen=True)
    class Softer(Alteration):
        steps: int = 2

        def __call__(self, wave, sample_rate, row):
            for _ in range(self.steps):
                wave = wave * factor
            return wave

    return Softer()


def test_a_reader_s_own_alteration_is_told_by_what_it_does(clips):
    first, again, other = (altered(clips, reader_s_own(factor)).key for factor in (0.5, 1 / 2, 0.51))
    assert first == again != other


def test_features_and_clips_that_are_altered_already_are_refused(home):
    world = load_world(WorldConfig("synthetic", n_train=4, n_valid=2, n_test=5, n_single_per_event=1))
    heard = encoded(world, Published("cnn", {"channels": (4, 4, 8)}))
    with pytest.raises(TypeError, match="before encoding"):
        altered(heard.test, First(1.0))
    with pytest.raises(ValueError, match="altered already"):
        altered(altered(world.test, First(1.0)), Gain(-10.0))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_no_seconds_are_refused(seconds):
    with pytest.raises(ValueError, match="seconds"):
        First(seconds)
