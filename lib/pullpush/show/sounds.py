"""Sounds in a page: to hear with players that need no server, to see as spectrograms."""

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


def player(wave: torch.Tensor | np.ndarray, label: str = "", *, sample_rate: int = SAMPLE_RATE) -> Markup:
    """A player with the sound inside the page, so that it also works in the published book.

    The sound is an MP3: every browser plays it, and unlike Ogg the same samples give the same bytes.

    Args:
        wave: `(T,)` waveform in [-1, 1]; values outside are clipped.
        label: text above the player, and what screen readers say.
        sample_rate: hertz.

    Raises:
        ValueError: not a one-dimensional, finite, non-empty waveform.
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
    sounds: Iterable[tuple[torch.Tensor | np.ndarray, str]],
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
        raise ValueError("gallery needs at least one sound, got none")
    heading = f"<p><strong>{escape(title)}</strong></p>" if title else ""
    width = max(12, 48 // max(1, columns))
    style = f"display:grid;grid-template-columns:repeat(auto-fill,minmax({width}em,1fr));gap:0.2em 1em"
    body = "".join(p.data for p in players)
    lines = [title] if title else []
    return Markup(f'{heading}<div style="{style}">{body}</div>', "\n".join(lines + [p.text for p in players]))


def log_power(wave: torch.Tensor) -> torch.Tensor:
    """Power spectrogram of a `(T,)` waveform in dB below its maximum, `(257, frames)`, 10 ms a frame."""
    window = torch.hann_window(512)
    power = torch.stft(wave, 512, 160, window=window, return_complex=True).abs().square().clamp(min=1e-10)
    return 10 * (power / power.max()).log10()


def thumbnail(wave: Tensor) -> str:
    """Spectrogram as a small PNG data address; half the frames and frequencies are enough for a glance."""
    buffer = io.BytesIO()
    picture = log_power(wave)[::2, ::3].numpy()
    plt.imsave(buffer, picture[::-1], vmin=-80, vmax=0, cmap="magma", format="png")
    return _reduced(buffer.getvalue())


def _reduced(png: bytes) -> str:
    from PIL import Image  # here, so that importing the module stays light

    small = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(64).save(small, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode("ascii")


def _encode(wave: torch.Tensor | np.ndarray, sample_rate: int) -> bytes:
    samples = wave.detach().cpu().numpy() if isinstance(wave, torch.Tensor) else np.asarray(wave)
    if samples.ndim != 1 or samples.size == 0:
        raise ValueError(f"wave must be a waveform of shape (T,), T > 0, got shape {tuple(samples.shape)}")
    if np.issubdtype(samples.dtype, np.integer):
        samples = samples / np.iinfo(samples.dtype).max
    if not np.isfinite(samples).all():
        raise ValueError("wave has NaN or infinite samples")
    buffer = io.BytesIO()
    clipped = np.clip(samples, -1, 1).astype(np.float32)
    soundfile.write(buffer, clipped, sample_rate, format="MP3", subtype="MPEG_LAYER_III", compression_level=COMPRESSION)
    return buffer.getvalue()
