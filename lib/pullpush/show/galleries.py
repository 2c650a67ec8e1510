"""Clips to see, hear and read: cards with a picture or a spectrogram, a player that needs no server, and a caption."""

import io
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import soundfile
import torch
from PIL import Image
from torch import Tensor

from pullpush.data import languages
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import Clips
from pullpush.data.languages import LANGUAGES
from pullpush.encoders.pictures import as_images
from pullpush.errors import UnknownNameError
from pullpush.show.markup import Markup, address, compress_png, safe

GRID = "display:grid;grid-template-columns:repeat(auto-fill,minmax(13em,1fr));gap:0.6em 1.2em;overflow-wrap:anywhere"
# libsndfile's scale from 0 (best) to 1 (smallest); 0.6 is about 3 kB a second at 16 kHz.
COMPRESSION = 0.6
DEPTH = 80  # dB that a spectrogram shows below its maximum
COLOURS = 64  # of a small picture: a palette makes it three times smaller
LEFT, RIGHT = "text-align:left", "text-align:right;padding:0.1em 0.8em"


def scenes(clips: Clips, rows: Sequence[int]) -> Markup:
    """Cards of some clips, each with its first caption in English; of those rows that there are."""
    captions = clips.captions("eng")
    return in_grid([card(waveform(clips, row), captions[row][0], "eng") for row in rows if row < len(clips)])


def translations(
    clips: Clips, row: int, *, ranks: Mapping[str, Sequence[int]] | None = None, told: Sequence[str] = LANGUAGES
) -> Markup:
    """One clip with its first caption in each of some languages, those that it has none in left out.

    ranks: system → the rank that it gives the caption in each language, in the order of `told`; a column each.
    """
    ranks = ranks or {}
    lines, texts = [], []
    for code, caption in first_captions(clips, row, told).items():
        number, language = told.index(code), languages.language(code)
        places = [str(of_system[number]) for of_system in ranks.values()]
        cells = "".join(f'<td style="{RIGHT}">{place}</td>' for place in places)
        lines.append(
            f'<tr><th style="{LEFT}">{language.native}</th>'
            f'<td style="{LEFT}" lang="{language.html}">{safe(caption)}</td>{cells}</tr>'
        )
        texts.append(" ".join([f"{code}: {caption}", *places]))
    names = "".join(f'<th style="{RIGHT}">{safe(system)}</th>' for system in ranks)
    head = f"<tr><th></th><th>caption</th>{names}</tr>" if ranks else ""
    table = f'<table style="margin:0.5em 0">{head}{"".join(lines)}</table>'
    return Markup(f"{card(waveform(clips, row), '', 'eng')}{table}", "\n".join(texts))


def first_captions(clips: Clips, row: int, told: Sequence[str]) -> dict[str, str]:
    """The first caption of one clip in each of some languages that it has one in: code → caption."""
    found = {}
    for code in told:
        try:
            captions = clips.captions(code)[row]
        except UnknownNameError:  # recordings of one's own are told in few languages
            continue
        found |= {code: captions[0]} if captions else {}
    return found


def waveform(clips: Clips, row: int) -> Tensor:
    """`(T,)` samples of one clip without its padding, at 16 kHz, as `player` takes them."""
    audio, lengths = clips.audio([row], sample_rate=SAMPLE_RATE)
    return audio[0, : int(lengths[0])]


def card(wave: Tensor, text: str, language: str) -> str:
    """HTML of one clip: spectrogram, caption (if any) and player.

    language: ISO 639-3 code of the caption, so that browsers choose glyphs and screen readers a voice.
    """
    lang = languages.language(language).html
    caption = f'<div lang="{lang}">{safe(text)}</div>' if text else ""
    return (
        f'<div><img src="{thumbnail(wave)}" alt="Spectrogram of: {safe(text or "the scene")}" '
        f'style="width:100%;max-width:22em;height:5.5em;image-rendering:auto">'
        f"{caption}{player(wave)}</div>"
    )


def in_grid(cards: Sequence[str]) -> Markup:
    """Cards beside each other, as many as the screen is wide."""
    return Markup(f'<div style="{GRID}">{"".join(cards)}</div>', f"{len(cards)} sounds")


def player(wave: Tensor) -> str:
    """HTML of a player with the sound inside the page, so that it also works in the published book.

    The sound is an MP3: every browser plays it, and unlike Ogg the same samples give the same bytes. wave: `(T,)` at
    16 kHz, finite, in [-1, 1]; values outside are clipped.
    """
    samples = wave.detach().cpu().numpy()
    if samples.ndim != 1 or samples.size == 0 or not np.isfinite(samples).all():
        raise ValueError(f"wave must be a finite waveform of shape (T,), T > 0, got shape {samples.shape}")
    buffer = io.BytesIO()
    clipped = np.clip(samples, -1, 1).astype(np.float32)
    soundfile.write(buffer, clipped, SAMPLE_RATE, format="MP3", subtype="MPEG_LAYER_III", compression_level=COMPRESSION)
    return (
        '<figure class="sound" style="margin:0.4em 0">'
        '<audio controls preload="metadata" aria-label="sound" style="width:100%;max-width:22em;height:2.4em" '
        f'src="{address(buffer.getvalue(), "audio/mpeg")}"></audio></figure>'
    )


def thumbnail(wave: Tensor) -> str:
    """Spectrogram of a `(T,)` waveform as the address of a small PNG: half its frequencies, a third of its frames."""
    drawn, small, window = io.BytesIO(), io.BytesIO(), torch.hann_window(512)
    power = torch.stft(wave, 512, 160, window=window, return_complex=True).abs().square().clamp(min=1e-10)
    decibels = 10 * (power / power.max()).log10()
    plt.imsave(drawn, decibels[::2, ::3].numpy()[::-1], vmin=-DEPTH, vmax=0, cmap="magma", format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(small, format="PNG", optimize=True)
    return address(small.getvalue())


PICTURES = "display:grid;grid-template-columns:repeat(auto-fill,minmax(8em,1fr));gap:0.8em;overflow-wrap:anywhere"
PAPER = "background:#fff;max-width:100%;border-radius:4px"  # pictures are on white, in dark pages too


def pictures(clips: Clips, rows: Sequence[int]) -> Markup:
    """Some pictures beside each other, each with its first caption in English; `AudioError` of other clips."""
    texts = [clips.captions("eng")[row][0] for row in rows]
    images = as_images(clips.audio(rows)[0]).permute(0, 2, 3, 1).numpy()
    cards = [_picture(image, text) for image, text in zip(images, texts, strict=True)]
    return Markup(f'<div style="{PICTURES}">{"".join(cards)}</div>', "\n".join(texts))


def _picture(image: np.ndarray, caption: str) -> str:
    """HTML of one picture, `(S, S, 3)` in [-1, 1]."""
    buffer, size = io.BytesIO(), image.shape[0]
    Image.fromarray(((image + 1) * 127.5).round().clip(0, 255).astype(np.uint8)).save(buffer, "PNG")
    source = address(compress_png(buffer.getvalue()))
    return (
        f'<figure style="margin:0;text-align:center"><img src="{source}" alt="{safe(caption)}" '
        f'width="{size}" height="{size}" style="{PAPER}"><figcaption lang="en">{safe(caption)}</figcaption></figure>'
    )
