"""Scenes to see, hear and read: cards with a spectrogram, a player and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from torch import Tensor

from pullpush.data.vocabulary import LANGUAGES
from pullpush.data.world import Split
from pullpush.show.markup import Markup
from pullpush.show.sounds import player, thumbnail

LANGUAGE_NAMES = {
    "eng": "English",
    "fra": "français",
    "deu": "Deutsch",
    "spa": "español",
    "nld": "Nederlands",
    "cat": "català",
    "jpn": "日本語",
    "zho": "中文",
}
# HTML language codes, so that browsers choose the right glyphs and screen readers the right voice.
HTML_CODES = {
    "eng": "en",
    "fra": "fr",
    "deu": "de",
    "spa": "es",
    "nld": "nl",
    "cat": "ca",
    "jpn": "ja",
    "zho": "zh-Hans",
}


def scenes(split: Split, rows: Sequence[int], *, language: str = "eng") -> Markup:
    """Cards of scenes: spectrogram, player and one caption each."""
    captions = split.captions(language)
    return cards([card(waveform(split, i), captions[i][0], language) for i in rows])


def translations(split: Split, row: int) -> Markup:
    """One scene with its first caption in each of the eight languages."""
    lines = "".join(
        f'<tr><th style="text-align:left">{LANGUAGE_NAMES[code]}</th>'
        f'<td style="text-align:left" lang="{HTML_CODES[code]}">{escape(split.captions(code)[row][0])}</td></tr>'
        for code in LANGUAGES
    )
    picture = card(waveform(split, row), "", "eng")
    text = "\n".join(f"{code}: {split.captions(code)[row][0]}" for code in LANGUAGES)
    return Markup(f'{picture}<table style="margin:0.5em 0">{lines}</table>', text)


def ranked_translations(split: Split, row: int, ranks: Mapping[str, Sequence[int]]) -> Markup:
    """One scene with its first caption in each of the eight languages, and the rank that each system gives it.

    ranks: system → rank in each language, in the order of LANGUAGES.
    """
    cell = '<td style="text-align:right;padding:0.1em 0.8em">'
    head = "".join(f'<th style="padding:0.1em 0.8em">{escape(system)}</th>' for system in ranks)
    lines = []
    for number, code in enumerate(LANGUAGES):
        places = "".join(f"{cell}{own[number]}</td>" for own in ranks.values())
        lines.append(
            f'<tr><th style="text-align:left">{LANGUAGE_NAMES[code]}</th><td style="text-align:left" '
            f'lang="{HTML_CODES[code]}">{escape(split.captions(code)[row][0])}</td>{places}</tr>'
        )
    picture = card(waveform(split, row), "", "eng")
    text = "\n".join(f"{system}: {', '.join(map(str, own))}" for system, own in ranks.items())
    table = f'<table style="margin:0.5em 0"><tr><th></th><th>caption</th>{head}</tr>{"".join(lines)}</table>'
    return Markup(f"{picture}{table}", text)


def waveform(split: Split, row: int) -> Tensor:
    audio, lengths = split.audio([row])
    return audio[0, : int(lengths[0])]


def card(wave: Tensor, text: str, language: str) -> str:
    caption = f'<div lang="{HTML_CODES[language]}">{escape(text)}</div>' if text else ""
    return (
        f'<div><img src="{thumbnail(wave)}" alt="Spectrogram of: {escape(text or "the scene", quote=True)}" '
        f'style="width:100%;max-width:22em;height:5.5em;image-rendering:auto">'
        f"{caption}{player(wave).data}</div>"
    )


def cards(cards: Sequence[str]) -> Markup:
    style = "display:grid;grid-template-columns:repeat(auto-fill,minmax(13em,1fr));gap:0.6em 1.2em"
    return Markup(f'<div style="{style}">{"".join(cards)}</div>', f"{len(cards)} sounds")
