"""Sounds in a page: they play, and they say what they are."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from pullpush.data.audio import SAMPLE_RATE
from pullpush.show.sounds import gallery, log_power, player, thumbnail


def tone(seconds: float = 1.0, hertz: float = 440.0, sample_rate: int = SAMPLE_RATE) -> torch.Tensor:
    time = torch.arange(round(seconds * sample_rate)) / sample_rate
    return 0.5 * torch.sin(2 * torch.pi * hertz * time)


def decoded(page: str) -> tuple[np.ndarray, int]:
    """The samples of the first player in a page, and their rate."""
    data = re.search(r'src="data:audio/mpeg;base64,([^"]+)"', page)[1]
    return soundfile.read(io.BytesIO(base64.b64decode(data)), dtype="float32")


@pytest.mark.parametrize(("seconds", "sample_rate"), [(0.05, 16_000), (1.0, 16_000), (4.0, 16_000), (0.5, 44_100)])
def test_a_player_holds_the_whole_sound(seconds, sample_rate):
    wave = tone(seconds, sample_rate=sample_rate)
    samples, rate = decoded(player(wave, sample_rate=sample_rate).data)
    assert rate == sample_rate
    assert abs(len(samples) - len(wave)) <= 2 * 1152  # MP3 pads to whole frames
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    if seconds >= 0.5:
        assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)
        peak = np.abs(np.fft.rfft(middle)).argmax() * rate / len(middle)
        assert peak == pytest.approx(440, abs=2 * rate / len(middle))


def test_the_same_samples_give_the_same_page():
    assert player(tone(), "a tone").data == player(tone(), "a tone").data


def test_whole_numbers_and_arrays_and_gradients_are_taken():
    wave = tone()
    expected, _ = decoded(player(wave).data)
    for same in (wave.numpy(), (wave * 32767).round().to(torch.int16), wave.double(), wave.clone().requires_grad_()):
        samples, _ = decoded(player(same).data)
        assert np.corrcoef(samples, expected)[0, 1] > 0.999
        assert samples.std() == pytest.approx(expected.std(), rel=0.01)


def test_loud_samples_are_clipped_rather_than_wrapped():
    loud, _ = decoded(player(10 * tone(hertz=100)).data)
    assert np.abs(loud).max() < 1.5
    assert np.corrcoef(loud[:12_000], decoded(player(tone(hertz=100)).data)[0][:12_000])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("wave", "says"),
    [
        (torch.zeros(2, 100), r"shape \(2, 100\)"),
        (torch.zeros(0), r"shape \(0,\)"),
        (torch.tensor(1.0), r"shape \(\)"),
        (torch.tensor([0.0, float("nan")]), "NaN"),
        (np.array([0.0, np.inf]), "NaN or infinite"),
    ],
)
def test_what_cannot_be_played_is_refused(wave, says):
    with pytest.raises(ValueError, match=says):
        player(wave)


def test_labels_are_text_and_never_markup():
    label = '<b>"dog" & cat</b>'
    shown = player(tone(), label)
    assert "<b>" not in shown.data
    assert 'aria-label="&lt;b&gt;&quot;dog&quot; &amp; cat&lt;/b&gt;"' in shown.data
    assert repr(shown) == f"♪ {label}"
    assert "<b>" not in gallery([(tone(), label)], title=label).data


def test_a_player_without_a_label_still_has_a_name():
    shown = player(tone())
    assert 'aria-label="sound"' in shown.data
    assert "figcaption" not in shown.data


def test_a_gallery_keeps_the_order():
    shown = gallery([(tone(), "one"), (tone(hertz=880), "two")], title="Both", columns=2)
    assert re.findall(r"<figcaption>(\w+)<", shown.data) == ["one", "two"]
    assert repr(shown) == "Both\n♪ one\n♪ two"


def test_an_empty_gallery_is_refused():
    with pytest.raises(ValueError, match="at least one sound"):
        gallery([])


def test_a_spectrogram_shows_a_tone_at_its_frequency():
    power = log_power(tone(hertz=2000))
    assert power.shape == (257, 101)
    assert power.max() == 0
    assert (power[:, 50].argmax() * SAMPLE_RATE / 512).item() == pytest.approx(2000, abs=16)


def test_silence_has_a_spectrogram():
    assert torch.isfinite(log_power(torch.zeros(8000))).all()


def test_a_thumbnail_is_a_small_picture_with_high_pitch_on_top():
    address = thumbnail(tone(hertz=6000))
    assert len(address) < 60_000
    picture = Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))
    light = np.asarray(picture.convert("L")).mean(1)
    assert picture.size[1] == 129
    assert (128 - light.argmax()) * 2 * SAMPLE_RATE / 512 == pytest.approx(6000, abs=100)
