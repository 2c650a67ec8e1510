"""Clips on a page can be seen, heard and read, by screen readers too."""

from __future__ import annotations

import html
import re

from pullpush.data.languages import LANGUAGES, language
from pullpush.errors import unknown
from pullpush.show import galleries


def test_a_card_shows_the_sound_and_its_caption_in_its_language(world):
    shown = galleries.scenes(world.test, [0, 3, 5], language="deu").data
    captions = [html.escape(world.test.captions("deu")[i][0]) for i in (0, 3, 5)]
    assert re.findall(r'<div lang="de">([^<]*)</div>', shown) == captions
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


def test_a_clip_is_shown_without_its_padding(world):
    _, lengths = world.test.audio([0])
    assert galleries.waveform(world.test, 0).shape == (int(lengths[0]),)


def test_a_clip_that_is_told_in_one_language_is_shown_in_it_alone(world, monkeypatch):
    told = world.test.captions("eng")

    def captions(language):
        if language != "eng":
            raise unknown("language", language, ["eng"])
        return told

    monkeypatch.setattr(type(world.test), "captions", lambda self, language: captions(language))
    shown = galleries.translations(world.test, 1, ranks={"A": range(11, 19)})
    assert repr(shown) == f"eng: {told[1][0]} {11 + LANGUAGES.index('eng')}"


def test_rows_that_there_are_not_are_left_out(world):
    few = world.test.head(2)
    assert galleries.scenes(few, range(6)).data == galleries.scenes(few, range(2)).data
