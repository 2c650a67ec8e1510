"""Sounds in a page: players that need no server, and spectrograms."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import soundfile
import torch
from torch import Tensor

from pullpush.data.audio import SAMPLE_RATE
from pullpush.show.markup import Markup

# libsndfile's scale from 0 (best) to 1 (smallest); 0.6 is about 3 kB a second at 16 kHz.
COMPRESSION = 0.6
DEPTH = 80  # dB that a spectrogram shows below its maximum
COLOURS = 64  # of a small picture: a palette makes it three times smaller


def player(wave: Tensor | np.ndarray, label: str = "", *, sample_rate: int = SAMPLE_RATE) -> Markup:
    """A player with the sound inside the page, so that it also works in the published book.

    The sound is an MP3: every browser plays it, and unlike Ogg the same samples give the same bytes.

    Args:
        wave: `(T,)` waveform in [-1, 1]; values outside are clipped.
        label: text above the player, and what screen readers say.
        sample_rate: hertz.

    Raises:
        ValueError: not a one-dimensional, finite, non-empty waveform.

    Example:
        >>> player(torch.zeros(8000), "silence")
        ♪ silence
    """
    source = f"data:audio/mpeg;base64,{base64.b64encode(_encode(wave, sample_rate)).decode('ascii')}"
    name = escape(label or "sound", quote=True)
    caption = f"<figcaption>{escape(label)}</figcaption>" if label else ""
    return Markup(
        f'<figure class="sound" style="margin:0.4em 0">{caption}'
        f'<audio controls preload="metadata" aria-label="{name}" style="width:100%;max-width:22em;height:2.4em" '
        f'src="{source}"></audio></figure>',
        f"♪ {label or 'sound'}",
    )


def gallery(
    sounds: Iterable[tuple[Tensor | np.ndarray, str]],
    *,
    title: str = "",
    columns: int = 3,
    sample_rate: int = SAMPLE_RATE,
) -> Markup:
    """Players side by side, in the order given.

    Args:
        sounds: pairs of a `(T,)` waveform and its label.
        title: heading above them.
        columns: at most so many beside each other; fewer on a narrow screen.
        sample_rate: hertz.

    Raises:
        ValueError: no sounds, or one that cannot be played.
    """
    players = [player(wave, label, sample_rate=sample_rate) for wave, label in sounds]
    if not players:
        raise ValueError("gallery needs at least one sound, got none: give pairs of a waveform and its label")
    heading = f"<p><strong>{escape(title)}</strong></p>" if title else ""
    width = max(12, 48 // max(1, columns))
    style = f"display:grid;grid-template-columns:repeat(auto-fill,minmax({width}em,1fr));gap:0.2em 1em"
    lines = [title] * bool(title) + [shown.text for shown in players]
    return Markup(f'{heading}<div style="{style}">{"".join(shown.data for shown in players)}</div>', "\n".join(lines))


def log_power(wave: Tensor) -> Tensor:
    """Power spectrogram of a `(T,)` waveform in dB below its maximum, `(257, frames)`; windows of 512, steps of 160.

    Example:
        >>> log_power(torch.ones(16_000)).shape
        torch.Size([257, 101])
    """
    window = torch.hann_window(512)
    power = torch.stft(wave, 512, 160, window=window, return_complex=True).abs().square().clamp(min=1e-10)
    return 10 * (power / power.max()).log10()


def thumbnail(wave: Tensor) -> str:
    """Spectrogram of a `(T,)` waveform as the address of a small PNG.

    Half the frequencies and a third of the frames are enough for a glance.
    """
    from PIL import Image  # here, so that importing the module stays light

    drawn, small = io.BytesIO(), io.BytesIO()
    plt.imsave(drawn, log_power(wave)[::2, ::3].numpy()[::-1], vmin=-DEPTH, vmax=0, cmap="magma", format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(small, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode("ascii")


def _encode(wave: Tensor | np.ndarray, sample_rate: int) -> bytes:
    """The bytes of an MP3."""
    samples = wave.detach().cpu().numpy() if isinstance(wave, Tensor) else np.asarray(wave)
    if samples.ndim != 1 or samples.size == 0:
        raise ValueError(f"wave must be a waveform of shape (T,), T > 0, got shape {tuple(samples.shape)}")
    if np.issubdtype(samples.dtype, np.integer):
        samples = samples / np.iinfo(samples.dtype).max
    if not np.isfinite(samples).all():
        raise ValueError("wave has NaN or infinite samples: it must be finite to be heard")
    buffer = io.BytesIO()
    clipped = np.clip(samples, -1, 1).astype(np.float32)
    soundfile.write(buffer, clipped, sample_rate, format="MP3", subtype="MPEG_LAYER_III", compression_level=COMPRESSION)
    return buffer.getvalue()
