"""Clips on a page can be seen, heard and read, by screen readers too."""

import base64
import html
import io
import re

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import StoredClips
from pullpush.data.languages import LANGUAGES, language
from pullpush.data.recordings.pictures import Pixels
from pullpush.errors import AudioError, unknown
from pullpush.show import galleries
from pullpush.show.galleries import pictures, player, thumbnail


def test_a_card_shows_the_sound_and_its_caption_in_its_language(world):
    shown = galleries.scenes(world.test, [0, 3, 5]).data
    captions = [html.escape(world.test.captions("eng")[i][0]) for i in (0, 3, 5)]
    assert re.findall(r'<div lang="en">([^<]*)</div>', shown) == captions
    assert shown.count("<audio ") == 3
    assert re.findall(r'alt="([^"]*)"', shown) == [f"Spectrogram of: {caption}" for caption in captions]


def test_every_picture_has_a_text_and_every_player_a_name(world):
    for shown in (galleries.scenes(world.test, [0]).data, galleries.translations(world.test, 0).data):
        assert all(re.search(r'alt="[^"]+"', tag) for tag in re.findall(r"<img [^>]*>", shown))
        assert all(re.search(r'aria-label="[^"]+"', tag) for tag in re.findall(r"<audio [^>]*>", shown))


def test_a_clip_is_told_in_eight_languages(world):
    shown = galleries.translations(world.test, 1)
    cells = dict(re.findall(r'<td [^>]*lang="([^"]+)">([^<]+)</td>', shown.data))
    assert cells == {language(code).html: html.escape(world.test.captions(code)[1][0]) for code in LANGUAGES}
    assert re.findall(r"<th [^>]*>([^<]+)</th>", shown.data) == [language(code).native for code in LANGUAGES]
    assert [line.split(":")[0] for line in repr(shown).splitlines()] == list(LANGUAGES)


def test_ranks_stand_beside_the_captions_in_the_order_of_the_languages(world):
    shown = galleries.translations(world.test, 0, ranks={"A & B": range(1, 9), "C": range(11, 19)})
    assert "A &amp; B</th>" in shown.data
    rows = re.findall(r"<tr>(.*?)</tr>", shown.data)[1:]
    assert [re.findall(r">(\d+)</td>", row) for row in rows] == [[str(n), str(10 + n)] for n in range(1, 9)]
    assert repr(shown).splitlines()[7].endswith(" 8 18")


def test_a_clip_that_is_told_in_one_language_is_shown_in_it_alone(world, monkeypatch):
    told = world.test.captions("eng")

    def captions(language):
        if language != "eng":
            raise unknown("language", language, ["eng"])
        return told

    monkeypatch.setattr(type(world.test), "captions", lambda self, language: captions(language))
    shown = galleries.translations(world.test, 1, ranks={"A": range(11, 19)})
    assert repr(shown) == f"eng: {told[1][0]} {11 + LANGUAGES.index('eng')}"


# Sounds and their pictures


def tone(seconds: float = 1.0, hertz: float = 440.0) -> torch.Tensor:
    time = torch.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return 0.5 * torch.sin(2 * torch.pi * hertz * time)


def decoded(page: str) -> tuple[np.ndarray, int]:
    """The samples of the first player in a page, and their rate."""
    data = re.search(r'src="data:audio/mpeg;base64,([^"]+)"', page)[1]
    return soundfile.read(io.BytesIO(base64.b64decode(data)), dtype="float32")


@pytest.mark.parametrize("seconds", [0.05, 1.0, 4.0])
def test_a_player_holds_the_whole_sound(seconds):
    wave = tone(seconds)
    samples, rate = decoded(player(wave))
    assert rate == SAMPLE_RATE
    assert abs(len(samples) - len(wave)) <= 2 * 1152  # MP3 pads to whole frames
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    if seconds >= 0.5:
        assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)
        peak = np.abs(np.fft.rfft(middle)).argmax() * rate / len(middle)
        assert peak == pytest.approx(440, abs=2 * rate / len(middle))


def test_loud_samples_are_clipped_rather_than_wrapped():
    loud, _ = decoded(player(10 * tone(hertz=100)))
    assert np.abs(loud).max() < 1.5
    assert np.corrcoef(loud[:12_000], decoded(player(tone(hertz=100)))[0][:12_000])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("wave", "says"),
    [
        (torch.zeros(2, 100), r"shape \(2, 100\)"),
        (torch.zeros(0), r"shape \(0,\)"),
        (torch.tensor(1.0), r"shape \(\)"),
        (torch.tensor([0.0, float("nan")]), "finite"),
        (torch.tensor([0.0, float("inf")]), "finite"),
    ],
)
def test_what_cannot_be_played_is_refused(wave, says):
    with pytest.raises(ValueError, match=says):
        player(wave)


def test_a_thumbnail_is_a_small_picture_with_high_pitch_on_top():
    address = thumbnail(tone(hertz=6000))
    assert len(address) < 60_000
    picture = Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,"))))
    light = np.asarray(picture.convert("L")).mean(1)
    assert picture.size[1] == 129
    assert (128 - light.argmax()) * 2 * SAMPLE_RATE / 512 == pytest.approx(6000, abs=100)


COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
TEXTS = {"eng": [['A "red" <thing>.'], ["A green thing."], ["A blue thing."]]}


@pytest.fixture
def clips():
    rows = np.array([np.repeat(colour, 16) for colour in COLOURS], dtype=np.uint8)

    def write(columns, language):
        return [TEXTS[language][row] for row in columns["row"]]

    return StoredClips("test", "key", Pixels.of(rows), np.arange(3), {"row": [0, 1, 2]}, write)


def shown(markup):
    """The pictures of a page, as arrays."""
    found = re.findall(r"data:image/png;base64,([\w+/=]+)", markup.data)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB")) for text in found]


def test_pictures_are_shown_in_the_order_that_is_asked_for(clips):
    found = shown(pictures(clips, [2, 0]))
    assert [image.shape for image in found] == [(4, 4, 3)] * 2
    assert [tuple(image[0, 0].tolist()) for image in found] == [COLOURS[2], COLOURS[0]]


def test_captions_are_read_by_eyes_and_by_screen_readers(clips):
    markup = pictures(clips, [0, 1])
    assert 'alt="A &quot;red&quot; &lt;thing&gt;."' in markup.data
    assert '<figcaption lang="en">A green thing.</figcaption>' in markup.data
    assert repr(markup) == 'A "red" <thing>.\nA green thing.'


def test_clips_that_are_no_pictures_are_refused(world):
    with pytest.raises(AudioError, match="pictures as 3 S² pixels"):
        pictures(world.test.select([0]), [0])
