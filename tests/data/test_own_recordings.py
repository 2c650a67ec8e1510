"""Audio that is not what it says is named: refused, or warned about where others might want it so."""

import os
import struct
import warnings

import miniature
import numpy as np
import pytest
import soundfile
import torch

from pullpush.data.audio import load_audio
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus
from pullpush.errors import AudioError

NOISE = np.random.default_rng(0).normal(size=16_000) * 0.1


@pytest.fixture
def mine(home, tmp_path):
    """A folder of seven recordings of one second, and how to load it."""
    splits = ("train", "train", "train", "valid", "valid", "test", "test")
    for number in range(len(splits)):
        miniature.tone(tmp_path / "mine" / "audio" / f"{number}.wav", number, seconds=1)
    rows = [(split, f"{number}.wav", miniature.sentence(number)) for number, split in enumerate(splits)]
    miniature.table(tmp_path / "mine" / "captions.csv", rows, ["split", "file_name", "caption"])
    return tmp_path / "mine"


def load(folder):
    return load_corpus(CorpusConfig(f"folder:{folder}"))


def write(path, wave, rate=16_000, **options):
    soundfile.write(path, np.asarray(wave, dtype=np.float32), rate, **options)


def test_whole_recordings_pass_without_a_word(mine):
    with warnings.catch_warnings(action="error"):
        load(mine)


@pytest.mark.parametrize("kind", ["WAV", "AIFF"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_half_a_recording_is_named(mine, kind, share):
    path = mine / "audio" / "1.wav"
    write(path, NOISE, format=kind)
    load_audio(path)
    os.truncate(path, round(path.stat().st_size * share))
    with pytest.raises(AudioError, match=r"audio/1\.wav is cut off: \d+ of the \d+ bytes"):
        load(mine)


@pytest.mark.parametrize(("kind", "rate"), [("WAV", 8000), ("WAV", 44_100), ("MP3", 16_000)])
def test_the_first_seconds_are_those_of_the_whole_and_half_a_file_is_named(tmp_path, kind, rate):
    path = tmp_path / "a"
    write(path, np.tile(NOISE, 3), rate, format=kind)
    whole = load_audio(path)
    for seconds in (0.01, 0.7, 1e6):
        first = load_audio(path, seconds=seconds)  # resampled, it is summed in another order
        torch.testing.assert_close(first, whole[: round(seconds * 16_000)], rtol=0, atol=1e-6)
    os.truncate(path, path.stat().st_size // 2)
    for seconds in (None, 2.9):
        with pytest.raises(AudioError, match=r"a is cut off: \d+ of the \d+ (samples|bytes) that"):
            load_audio(path, seconds=seconds)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFF024, 0])
def test_a_header_that_did_not_know_its_size_is_taken(tmp_path, size):
    path = tmp_path / "piped.wav"
    write(path, NOISE)
    told = bytearray(path.read_bytes())
    told[4:8] = struct.pack("<I", size)
    path.write_bytes(told)
    assert len(load_audio(path)) == 16_000


def test_a_byte_of_padding_that_is_not_there_does_no_harm(tmp_path):
    path = tmp_path / "odd.wav"
    soundfile.write(path, np.zeros(999), 8_000, subtype="PCM_U8")
    os.truncate(path, path.stat().st_size - 1)
    assert len(load_audio(path)) > 0


def test_integers_written_as_floats_are_named(mine):
    write(mine / "audio" / "2.wav", NOISE * 32768, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"2\.wav reaches .* where full scale is 1.*Divide them by 32768"):
        load(mine)


def test_floats_a_little_beyond_full_scale_are_taken(tmp_path):
    write(tmp_path / "hot.wav", NOISE * 8, subtype="FLOAT")
    assert 1 < load_audio(tmp_path / "hot.wav").abs().max() < 4


@pytest.mark.parametrize("rate", [44_101, 47_999])
def test_a_rate_whose_filter_would_need_gigabytes_is_named(mine, rate):
    write(mine / "audio" / "0.wav", NOISE, rate)
    with pytest.raises(AudioError, match=rf"0\.wav has {rate} Hz.*ffmpeg"):
        load(mine)


def test_a_recording_edited_in_its_middle_is_decoded_anew(mine):
    path = mine / "audio" / "5.wav"
    before = load(mine).test.audio([0])[0]
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2
    whole[middle : middle + 2000] = bytes(2000)
    path.write_bytes(whole)
    os.utime(path, (1, 1))
    assert not load(mine).test.audio([0])[0].equal(before)


def test_silence_and_clipping_are_told_with_names(mine):
    write(mine / "audio" / "0.wav", np.zeros(16_000))
    write(mine / "audio" / "3.wav", np.clip(NOISE * 50, -1, 1))
    with pytest.warns(UserWarning, match="mine") as said:
        load(mine)
    assert [str(one.message) for one in said] == [
        "mine: 1 recording is silent: record them again, or take their rows out. 0.wav (train)",
        "mine: 1 recording is at full scale for a hundredth of their length or more, as clipped sounds are. "
        "3.wav (valid)",
    ]


def test_what_is_heard_twice_is_told_with_names(mine):
    for name in ("0", "1", "6"):
        write(mine / "audio" / f"{name}.wav", NOISE)
    with pytest.warns(UserWarning, match="mine") as said:
        load(mine)
    twice, both = (str(one.message) for one in said)
    assert "1 recording is there twice" in twice
    assert "0.wav is 1.wav (train)" in twice
    assert "1 recording is in two splits" in both
    assert "0.wav (train) is 6.wav (test)" in both
