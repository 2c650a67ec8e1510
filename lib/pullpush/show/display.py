"""Sounds in a page: players and galleries that need no server, and a search box for JupyterLab."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
import soundfile
import torch
from IPython.display import HTML, display

from pullpush.data.audio import SAMPLE_RATE

# libsndfile's scale from 0 (best) to 1 (smallest); 0.6 is about 3 kB a second at 16 kHz.
COMPRESSION = 0.6


class Markup(HTML):
    """HTML with a short text form, for terminals and for diffs of executed notebooks."""

    def __init__(self, data: str, text: str) -> None:
        super().__init__(data)
        self.text = text

    def __repr__(self) -> str:
        return self.text


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


def search_box(
    answer: Callable[[str], Any], *, examples: Sequence[str] = (), placeholder: str = "a sound, in any language"
) -> Any:
    """A text box that shows `answer(query)` below it: in JupyterLab on enter or a click on an example.

    A published page has no kernel behind it: show `gallery`s of some queries there (`session.published()` tells).

    Args:
        answer: takes the query, returns anything that can be displayed; an exception's message is shown in its place.
        examples: queries that a click fills in.
        placeholder: shown while the box is empty.

    Returns:
        The ipywidgets box.
    """
    import ipywidgets as widgets  # only readers in JupyterLab need it

    box = widgets.Text(placeholder=placeholder, continuous_update=False, layout={"width": "40em"})
    output = widgets.Output()

    def respond(change: dict) -> None:
        output.clear_output(wait=True)
        with output:
            try:
                display(answer(change["new"].strip()))
            except Exception as error:  # a reader's query must not end in a traceback
                print(f"{type(error).__name__}: {error}")

    box.observe(respond, names="value")
    buttons = []
    for example in examples:
        button = widgets.Button(description=example, layout={"width": "auto"})
        button.on_click(lambda _, example=example: setattr(box, "value", example))
        buttons.append(button)
    return widgets.VBox([box, widgets.HBox(buttons, layout={"flex_flow": "row wrap"}), output])


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
