"""A bank is events with clips of one loudness; what is wrong with a recording is said with its name."""

import os

import numpy as np
import pytest
import soundfile
import torch

from pullpush.data import banks as bank_module
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.banks import Bank, create_bank, prepare
from pullpush.data.language.grammar import captions
from pullpush.data.language.vocabulary import LANGUAGES, load_events
from pullpush.data.scenes.composer import SceneConfig, compose
from pullpush.data.scenes.renderer import render
from pullpush.errors import AudioError, DataNotFoundError, UnknownNameError


def tone(seconds: float, frequency: float = 440.0, rate: int = 44_100, channels: int = 2) -> np.ndarray:
    time = np.arange(round(seconds * rate)) / rate
    return np.repeat(0.3 * np.sin(2 * np.pi * frequency * time)[:, None], channels, axis=1)


@pytest.fixture
def classes(tmp_path):
    """Two kinds of sound, as a user might have them: stereo at 44.1 kHz, and mono FLAC at 8 kHz."""
    for name in ("dog_bark", "alarm"):
        (tmp_path / "classes" / name).mkdir(parents=True)
    soundfile.write(tmp_path / "classes/dog_bark/1.wav", tone(0.5), 44_100)
    soundfile.write(tmp_path / "classes/dog_bark/2.flac", tone(0.7, 300, 8_000, 1), 8_000)
    soundfile.write(tmp_path / "classes/alarm/1.ogg", tone(5.0, 800), 44_100)
    (tmp_path / "classes/dog_bark/notes.txt").write_text("recorded in the garden")
    (tmp_path / "classes/dog_bark/._1.wav").write_bytes(b"left by another system")
    return tmp_path / "classes"


def check(bank: Bank) -> None:
    """What every bank keeps."""
    names = [event.name for event in bank.events]
    assert names == sorted(set(names))
    assert len(bank) == len(bank.events) == len(bank.clips)
    for clips in bank.clips:
        assert clips
        for clip in clips:
            assert clip.dtype == torch.float32
            assert clip.ndim == 1
            assert 0 < len(clip) <= 3.0 * SAMPLE_RATE
            assert clip.abs().max() < 1
            assert clip.square().mean().sqrt() <= 0.1 + 1e-4


def test_the_synthetic_bank_needs_no_data(home):
    bank = create_bank("synthetic")
    check(bank)
    assert bank.name == "synthetic"
    assert bank.key == create_bank("synthetic").key
    assert not home.exists()


@pytest.mark.parametrize("name", ["syntetic", "", "folders:/tmp"])
def test_an_unknown_bank_names_the_known(name):
    with pytest.raises(UnknownNameError, match="known: folder:/path, music, synthetic, takes, tuxpaint"):
        create_bank(name)


def test_a_bank_may_hold_some_categories_only(home):
    whole = create_bank("synthetic")
    part = create_bank("synthetic:sweep,noise")
    check(part)
    assert part.name == "synthetic:sweep,noise"
    assert part.key != whole.key
    assert [event.name for event in part.events] == [
        event.name for event in whole.events if event.category in ("sweep", "noise")
    ]
    one = part.events[0]
    twin = next(i for i, event in enumerate(whole.events) if event.name == one.name)
    assert torch.equal(part.clips[0][0], whole.clips[twin][0])


@pytest.mark.parametrize("name", ["synthetic:3", "synthetic:sweep,nose", "synthetic:sweep,"])
def test_an_unknown_category_names_the_known(name):
    with pytest.raises(UnknownNameError, match="category of events"):
        create_bank(name)


def test_a_folder_is_a_bank(home, classes):
    bank = create_bank(f"folder:{classes}")
    check(bank)
    assert [event.name for event in bank.events] == ["alarm", "dog_bark"]
    assert [len(clips) for clips in bank.clips] == [1, 2]
    assert len(bank.clips[0][0]) == 3 * SAMPLE_RATE, "long recordings are cut"
    assert len(bank.clips[1][0]) == pytest.approx(0.5 * SAMPLE_RATE, abs=0.02 * SAMPLE_RATE)


def test_a_folders_scenes_can_be_composed_heard_and_told_in_english(home, classes):
    bank, config = create_bank(f"folder:{classes}"), SceneConfig(max_events=2)
    scene = compose(bank, config, seed=0, index=0)
    assert torch.isfinite(render(scene, bank, config)).all()
    assert any("alarm" in text or "dog bark" in text for text in captions(scene, bank.events, language="eng"))
    with pytest.raises(UnknownNameError, match="'fra': known: eng"):
        captions(scene, bank.events, language="fra")


def test_recordings_are_decoded_once_and_again_when_they_change(home, classes, monkeypatch):
    decoded = []
    load = bank_module.load_audio
    monkeypatch.setattr(bank_module, "load_audio", lambda path: decoded.append(path.name) or load(path))
    first = create_bank(f"folder:{classes}")
    second = create_bank(f"folder:{classes}")
    assert len(decoded) == 3
    assert second.key == first.key
    assert all(
        torch.equal(a, b) for x, y in zip(first.clips, second.clips, strict=True) for a, b in zip(x, y, strict=True)
    )
    soundfile.write(classes / "alarm/1.ogg", tone(2.0, 700), 44_100)
    assert create_bank(f"folder:{classes}").key != first.key
    assert len(decoded) == 6


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "cannot read"),
        (b"RIFF not a recording at all", "cannot read"),
        (np.zeros((0, 1)), "no samples"),
        (np.zeros((8000, 1)), "silent"),
        (np.full((8000, 1), np.nan), "not finite"),
    ],
    ids=["empty file", "corrupt", "no samples", "silent", "not finite"],
)
def test_a_bad_recording_is_named(home, classes, content, complaint):
    path = classes / "alarm" / "bad.wav"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        soundfile.write(path, content, 16_000, subtype="FLOAT")
    with pytest.raises(AudioError, match=complaint) as caught:
        create_bank(f"folder:{classes}")
    assert str(path) in str(caught.value)
    assert list((home / "banks").glob("[!.]*")) == [], "nothing half-decoded is left"


def test_a_folder_without_classes_says_what_is_expected(home, tmp_path):
    with pytest.raises(DataNotFoundError, match="no folder"):
        create_bank(f"folder:{tmp_path}/nothing")
    with pytest.raises(DataNotFoundError, match="no subfolders"):
        create_bank(f"folder:{tmp_path}")
    (tmp_path / "dog").mkdir()
    with pytest.raises(DataNotFoundError, match=r"dog holds no recordings.*\.wav"):
        create_bank(f"folder:{tmp_path}")
    for name in ("dog_bark", "Dog bark"):
        soundfile.write((tmp_path / name).mkdir() or tmp_path / name / "1.wav", np.full(16_000, 0.1), 16_000)
    (tmp_path / "dog").rmdir()
    with pytest.raises(DataNotFoundError, match="'Dog bark' and 'dog_bark' are both told as 'dog bark': join these"):
        create_bank(f"folder:{tmp_path}")
    for name in (b" ", b"dog\xff"):
        os.mkdir(os.fsencode(tmp_path) + b"/" + name)
        with pytest.raises(DataNotFoundError, match=r"which names no sound: rename it, in UTF-8"):
            create_bank(f"folder:{tmp_path}")


def test_the_loudest_part_of_a_long_recording_is_kept():
    wave = torch.cat(
        [0.1 * torch.ones(4 * SAMPLE_RATE), 0.5 * torch.ones(2 * SAMPLE_RATE), 0.1 * torch.ones(SAMPLE_RATE)]
    )
    kept = prepare(wave, "long")
    assert len(kept) == 3 * SAMPLE_RATE
    assert (kept > 0.9 * kept.max()).sum() >= 1.95 * SAMPLE_RATE
    assert kept[0] == kept[-1] == 0, "faded where it is cut"


def test_a_curated_stamp_that_is_missing_is_named(home, tmp_path, monkeypatch):
    (tmp_path / "stamps" / "animals").mkdir(parents=True)
    monkeypatch.setenv("PULLPUSH_TUXPAINT", str(tmp_path / "stamps"))
    with pytest.raises(DataNotFoundError, match=load_events()[0].recordings[0]):
        create_bank("tuxpaint")


def test_the_real_recordings_make_a_bank(home, stamps, monkeypatch):
    monkeypatch.setenv("PULLPUSH_TUXPAINT", str(stamps))
    bank = create_bank("tuxpaint")
    check(bank)
    assert bank.events == load_events()
    assert [len(clips) for clips in bank.clips] == [len(event.recordings) for event in bank.events]
    assert len(bank) >= 70
    assert all(set(event.phrases) == set(LANGUAGES) for event in bank.events)
    assert create_bank("tuxpaint").key == bank.key
