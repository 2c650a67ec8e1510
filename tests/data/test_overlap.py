"""A recording is found again in another cut, level, rate and format; two recordings are not one."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torchaudio.functional import lowpass_biquad, resample

from pullpush.data import store
from pullpush.data.audio import load_audio
from pullpush.data.clips import StoredClips
from pullpush.data.recordings.overlap import overlap

CLOTHO = Path(__file__).parents[3] / "shared" / "data" / "clotho-mini" / "audio"
RATE = 16_000


def coloured(seed: int, seconds: float) -> torch.Tensor:
    """Noise with a rhythm of its own, `(T,)` at 16 kHz."""
    noise = torch.randn(round(RATE * seconds), generator=torch.Generator().manual_seed(seed))
    time = torch.arange(len(noise)) / RATE
    return 0.1 * lowpass_biquad(noise, RATE, 1500) * (1.2 + torch.sin((3 + seed) * time))


def clips(waves: dict[str, torch.Tensor]) -> StoredClips:
    """Waveforms at 16 kHz as clips whose files have these names."""
    parts = [store.to_int16(wave.clamp(-1, 1).numpy()) for wave in waves.values()]
    stops = np.cumsum([len(part) for part in parts])
    held = store.Waveforms(np.concatenate(parts), stops, RATE)
    return StoredClips("clips", "key", held, np.arange(len(waves)), {"file": list(waves)}, lambda columns, language: [])


def mp3(wave: torch.Tensor, rate: int) -> torch.Tensor:
    """What MP3 at another rate leaves of a recording at 16 kHz, back at 16 kHz."""
    file = io.BytesIO()
    soundfile.write(file, resample(wave, RATE, rate).numpy(), rate, format="MP3")
    file.seek(0)
    samples, rate = soundfile.read(file, dtype="float32")
    return resample(torch.from_numpy(samples), rate, RATE)


def test_a_cut_of_a_recording_is_found_with_its_place():
    waves = {f"{seed}.wav": coloured(seed, 12) for seed in range(6)}
    cut = mp3(0.2 * waves["4.wav"], 32_000)[round(3.217 * RATE) : round(8.5 * RATE)]
    table = overlap(clips(waves), clips({"other name.mp3": cut, "new.wav": coloured(9, 10)}))
    assert table[["train", "test", "by"]].to_numpy().tolist() == [["4.wav", "other name.mp3", "sound"]]
    assert table["seconds"][0] == pytest.approx(3.217, abs=0.05)
    assert table["agreement"][0] > 0.8


def test_a_long_recording_is_found_in_each_clip_that_was_cut_from_it():
    whole = coloured(3, 80)
    parts = {f"{second}.wav": whole[second * RATE : (second + 10) * RATE] for second in range(0, 80, 10)}
    assert sorted(overlap(clips({"whole.wav": whole}), clips(parts))["test"]) == sorted(parts)


def test_a_test_clip_that_holds_a_training_clip_begins_before_it():
    whole = coloured(1, 12)
    table = overlap(clips({"part.wav": whole[4 * RATE : 9 * RATE]}), clips({"whole.wav": whole}))
    assert table["seconds"].tolist() == [pytest.approx(-4, abs=0.05)]


def test_names_alone_are_said_to_be_names():
    table = overlap(
        clips({"a.wav": coloured(1, 5), "b.wav": coloured(2, 5)}),
        clips({"a.wav": coloured(3, 5), "b.wav": coloured(2, 5)}),
    )
    assert table[["test", "by"]].to_numpy().tolist() == [["a.wav", "name"], ["b.wav", "name and sound"]]
    assert table["agreement"].isna().tolist() == [True, False]


@pytest.mark.parametrize("wave", [torch.zeros(5 * RATE), coloured(1, 0.2)], ids=["silence", "too short to tell"])
def test_what_is_no_recording_makes_no_pair(wave):
    assert overlap(clips({"a.wav": wave}), clips({"b.wav": wave})).empty


def padded(wave: torch.Tensor, before: float, after: float) -> torch.Tensor:
    """A recording between digital silences, as short clips of ESC-50 and UrbanSound8K are."""
    return torch.nn.functional.pad(wave, (round(before * RATE), round(after * RATE)))


def test_common_silence_makes_no_pair():
    train = {f"{seed}.wav": padded(coloured(seed, 1.5), 0, 3.5) for seed in range(8)}
    test = {f"{seed}.wav": padded(coloured(seed, 1.5), 0, 3.5) for seed in range(10, 18)}
    assert overlap(clips(train), clips(test)).empty
    looped = {"looped.wav": torch.cat([padded(coloured(20, 0.8), 0, 0.6)] * 4)}
    assert overlap(clips(looped), clips(test)).empty


@pytest.mark.parametrize(
    ("train", "test", "seconds"),
    [
        (padded(coloured(3, 2), 0, 3), padded(0.5 * coloured(3, 2), 1, 2), -1),
        (torch.cat([coloured(3, 2)] * 3), padded(coloured(3, 2), 0, 3), 0),
        (padded(coloured(3, 4), 0.5, 1), padded(coloured(3, 4)[RATE : 3 * RATE], 0, 3), 1.5),
    ],
    ids=["padded", "looped", "cut"],
)
def test_a_short_sound_is_found_again_however_it_is_padded(train, test, seconds):
    table = overlap(clips({"a.wav": train, "b.wav": coloured(5, 5)}), clips({"c.wav": test}))
    assert table[["train", "by"]].to_numpy().tolist() == [["a.wav", "sound"]]
    assert table["agreement"][0] > 0.8
    assert (table["seconds"][0] - seconds + 1) % 2 == pytest.approx(1, abs=0.05), "modulo the loop"


@pytest.mark.skipif(not CLOTHO.is_dir(), reason="the small copy of Clotho (../shared/data) is not here")
def test_real_recordings_are_told_apart():
    waves = {path.name: load_audio(path) for path in sorted(CLOTHO.glob("*.wav"))}
    cuts = {f"cut of {name}": mp3(wave[5 * RATE : 12 * RATE], 44_100) for name, wave in waves.items()}
    table = overlap(clips(waves), clips(cuts))
    assert table["test"].tolist() == [f"cut of {name}" for name in table["train"]]
    assert len(table) == len(waves) == 7
