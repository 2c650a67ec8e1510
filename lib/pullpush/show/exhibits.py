"""What chapters show: scenes to see and hear, a search with sounds for answers, tables, and evidence."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import torch
from pandas.io.formats.style import Styler
from torch import Tensor

from pullpush.cache import home
from pullpush.data.compose import seconds
from pullpush.data.scene import Scene
from pullpush.data.tables import read_captions
from pullpush.data.vocabulary import LANGUAGES
from pullpush.data.words import word_frequencies
from pullpush.data.world import Split, World
from pullpush.encoders.dual import DualEncoder
from pullpush.show.display import Markup, player, search_box

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
    return _cards([_card(_wave(split, i), captions[i][0], language) for i in rows])


def translations(split: Split, row: int) -> Markup:
    """One scene with its first caption in each of the eight languages."""
    lines = "".join(
        f'<tr><th style="text-align:left">{LANGUAGE_NAMES[code]}</th>'
        f'<td style="text-align:left" lang="{HTML_CODES[code]}">{escape(split.captions(code)[row][0])}</td></tr>'
        for code in LANGUAGES
    )
    card = _card(_wave(split, row), "", "eng")
    text = "\n".join(f"{code}: {split.captions(code)[row][0]}" for code in LANGUAGES)
    return Markup(f'{card}<table style="margin:0.5em 0">{lines}</table>', text)


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
    card = _card(_wave(split, row), "", "eng")
    text = "\n".join(f"{system}: {', '.join(map(str, own))}" for system, own in ranks.items())
    table = f'<table style="margin:0.5em 0"><tr><th></th><th>caption</th>{head}</tr>{"".join(lines)}</table>'
    return Markup(f"{card}{table}", text)


def search(
    model: DualEncoder, split: Split, audio: Tensor, queries: Mapping[str, str], *, top: int = 3, live: bool = False
) -> Any:
    """Retrieve clips by text: for each query the `top` clips, to see and hear, most similar first.

    Args:
        model: encodes the queries.
        split: holds the clips.
        audio: `(N, d)` their embeddings, from `model`.
        queries: language code → query.
        top: answers per query.
        live: show a search box, which needs a running kernel, instead of the fixed answers.
    """
    device = next(model.parameters()).device

    def answer(query: str) -> Markup:
        with torch.no_grad():
            similarity = (model.encode_text([query]).to(device) @ audio.to(device).T)[0]
        best = similarity.topk(min(top, len(similarity))).indices.tolist()
        captions = split.captions("eng")
        cards = [
            _card(_wave(split, i), f"{rank}. {captions[i][0]} (cosine {similarity[i]:.2f})", "eng")
            for rank, i in enumerate(best, start=1)
        ]
        return _cards(cards)

    if live:
        return search_box(answer, examples=list(queries.values()))
    blocks, texts = [], []
    for code, query in queries.items():
        found = answer(query)
        blocks.append(
            f'<h4 style="margin-bottom:0.2em"><span lang="{HTML_CODES[code]}">{escape(query)}</span> '
            f'<small style="font-weight:normal;opacity:0.7">{LANGUAGE_NAMES[code]}</small></h4>{found.data}'
        )
        texts.append(f"{query}\n{found.text}")
    return Markup("".join(blocks), "\n".join(texts))


def sound_names(world: World, scene: Scene) -> list[str]:
    """Names of a scene's sounds, in their order."""
    return [world.bank.events[sound.event].name.replace("_", " ") for sound in scene.sounds]


def sound_seconds(world: World, scene: Scene) -> list[float]:
    """How long each sound of a scene lasts, unless the scene or the next sound cuts it."""
    return [seconds(world.bank, sound) for sound in scene.sounds]


def table(frame: pd.DataFrame, *, percent: Sequence[str] = (), formats: Mapping[str, str] | None = None) -> Styler:
    """A table for a page: no index, short cells unbroken, wide tables scroll.

    percent: columns of fractions to show as percentages; formats: column → format string.
    """
    own = {**dict.fromkeys(percent, "{:.1%}"), **(formats or {})}
    styles = {column: partial(_cell, form=own.get(column)) for column in frame.columns}
    short = [
        number
        for number, column in enumerate(frame.columns)
        if max((len(str(styles[column](value))) for value in frame[column]), default=0) <= LONGEST_UNBROKEN
    ]
    look = [
        {"selector": "", "props": "font-size: 0.92em; display: block; overflow-x: auto"},
        {"selector": "th, td", "props": "padding: 0.25em 0.7em; text-align: left; vertical-align: baseline"},
        {"selector": "td", "props": "font-variant-numeric: tabular-nums"},
        *({"selector": f"td.col{number}", "props": "white-space: nowrap"} for number in short),
    ]
    return frame.style.format(styles, na_rep="–").set_table_styles(look).hide()


LONGEST_UNBROKEN = 30  # characters; longer cells may wrap


def _cell(value: Any, form: str | None) -> str:
    """A cell as text, with a true minus sign and no negative zero."""
    text = form.format(value) if form else str(value) if not isinstance(value, float) else f"{value:.6g}"
    text = re.sub(r"(?<![\w.])-(?=0(?:\.0+)?(?![\d.]))", "", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def gains(frame: pd.DataFrame) -> Styler:
    """Gains with intervals, a row a comparison and a column a metric: of `Scores.gains`, fractions as points.

    A cell is value ± half width [95 % interval], and in how many seeds the system is ahead.
    """
    keys = [column for column in ("system", "baseline") if column in frame]
    wide = frame.assign(cell=[_gain(row) for row in frame.to_dict("records")]).pivot_table(
        index=keys, columns="metric", values="cell", aggfunc="first", sort=False
    )
    order = list(dict.fromkeys(frame["metric"]))
    wide = wide[order].rename_axis(columns=None).reset_index().rename(columns={"baseline": "over"})
    if "clips" in frame:
        counts = frame.groupby(keys, sort=False)[["seeds", "clips"]].first()
        wide["seeds × clips"] = [f"{seeds} × {clips}" for seeds, clips in counts.to_numpy()]
    return table(wide)


def _gain(row: Mapping[str, Any]) -> str:
    half = f" ± {100 * row['half width']:.1f}" if "half width" in row else ""
    wins = f", {row['wins']}" if "wins" in row else ""
    return f"{100 * row['value']:.1f}{half} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]{wins}"


def caption_words(world: World) -> dict[str, pd.DataFrame]:
    """Word frequencies of the world's training captions, and of real datasets whose captions are in the cache.

    These are CSV tables in the folder `captions` of the cache (see `tables.read_captions`); `clotho_train.csv` and
    `clotho_test.csv` count as one set, "clotho".
    """
    sets = {"scenes": [caption for several in world.train.captions("eng") for caption in several]}
    for path in sorted((home() / "captions").glob("*.csv")):
        texts = sets.setdefault(path.stem.split("_")[0], [])
        texts += [caption for captions in read_captions(path).values() for caption in captions]
    return {name: word_frequencies(captions) for name, captions in sets.items()}


def log_power(wave: torch.Tensor) -> torch.Tensor:
    """Power spectrogram of a `(T,)` waveform in dB below its maximum, `(257, frames)`, 10 ms a frame."""
    window = torch.hann_window(512)
    power = torch.stft(wave, 512, 160, window=window, return_complex=True).abs().square().clamp(min=1e-10)
    return 10 * (power / power.max()).log10()


def _wave(split: Split, row: int) -> Tensor:
    audio, lengths = split.audio([row])
    return audio[0, : int(lengths[0])]


def _card(wave: Tensor, text: str, language: str) -> str:
    caption = f'<div lang="{HTML_CODES[language]}">{escape(text)}</div>' if text else ""
    return (
        f'<div><img src="{_thumbnail(wave)}" alt="Spectrogram of: {escape(text or "the scene", quote=True)}" '
        f'style="width:100%;max-width:22em;height:5.5em;image-rendering:auto">'
        f"{caption}{player(wave).data}</div>"
    )


def _cards(cards: Sequence[str]) -> Markup:
    style = "display:grid;grid-template-columns:repeat(auto-fill,minmax(13em,1fr));gap:0.6em 1.2em"
    return Markup(f'<div style="{style}">{"".join(cards)}</div>', f"{len(cards)} sounds")


def _thumbnail(wave: Tensor) -> str:
    """Spectrogram as a small PNG data address; half the frames and frequencies are enough for a glance."""
    buffer = io.BytesIO()
    picture = log_power(wave)[::2, ::3].numpy()
    plt.imsave(buffer, picture[::-1], vmin=-80, vmax=0, cmap="magma", format="png")
    return _palette(buffer.getvalue())


def _palette(png: bytes) -> str:
    from PIL import Image  # here, so that importing the module stays light

    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(64).save(small, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode("ascii")
