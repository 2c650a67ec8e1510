"""Cards of pictures: what they show, and what is read of them where they cannot be seen."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from pullpush.data.clips import StoredClips
from pullpush.data.recordings.pictures import Pixels
from pullpush.errors import AudioError
from pullpush.show.galleries import pictures

COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
TEXTS = {"eng": [['A "red" <thing>.'], ["A green thing."], ["A blue thing."]], "zho": [["红色的。"], [], ["蓝色的。"]]}


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
    markup = pictures(clips, [0, 1], notes=["rank 1", "rank 2"], title="A & B")
    assert 'alt="A &quot;red&quot; &lt;thing&gt;."' in markup.data
    assert "<b>A &amp; B</b>" in markup.data
    assert '<figcaption lang="en">A green thing.</figcaption><small>rank 2</small>' in markup.data
    assert repr(markup) == 'A & B\nA "red" <thing>. · rank 1\nA green thing. · rank 2'


def test_a_picture_without_a_translation_goes_without(clips):
    markup = pictures(clips, [1, 2], language="zho")
    assert markup.data.count("<figcaption") == 1
    assert 'lang="zh' in markup.data
    assert 'alt="a picture without a caption in this language"' in markup.data


def test_notes_that_do_not_fit_and_clips_that_are_no_pictures_are_refused(clips, world):
    with pytest.raises(ValueError, match="2 pictures need as many notes, got 1"):
        pictures(clips, [0, 1], notes=["one"])
    with pytest.raises(AudioError, match="pictures as 3 S² pixels"):
        pictures(world.test.select([0]), [0])
