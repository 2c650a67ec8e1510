"""Figures of chapter 0: scenes, their truth and a first model."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from pullpush.data.clips import World
from pullpush.data.scenes.composer import seconds
from pullpush.data.scenes.scene import Scene
from pullpush.show.curves import word_frequencies as word_frequencies
from pullpush.show.intervals import intervals
from pullpush.show.layout import finish, name_places, panels, signed, whole_numbers
from pullpush.show.marks import band, bars, dots, matrix
from pullpush.show.palette import BLACK, BLUE, ORANGE, SKY, VERMILION, language_name


def scene_timeline(world: World, scene: Scene) -> Figure:
    """A scene over time: a bar for each sound, with what captions may mention of it."""
    fig, (ax,) = panels(1, height=0.9 + 0.42 * len(scene.sounds), width=6.4)
    for row, sound in enumerate(scene.sounds):
        cuts = [other.onset for other in scene.sounds[row + 1 : row + 2] if scene.relation == "sequence"]
        end = min([sound.onset + seconds(world.bank, sound), scene.duration, *cuts])
        bars(ax, [row], [end - sound.onset], start=sound.onset, width=0.55, colour=SKY, upright=False)
        notes = [f"{signed(sound.semitones, '+d')} semitone{'s' * (abs(sound.semitones) > 1)}"] * bool(sound.semitones)
        notes += [f"{sound.repeats} times"] * (sound.repeats > 1) + ["far"] * sound.far
        ax.annotate(
            ", ".join(notes), (sound.onset, row), (4, 0), textcoords="offset points", va="center", fontsize="small"
        )
    name_places(ax, [world.bank.events[sound.event].name.replace("_", " ") for sound in scene.sounds])
    noise = "no noise" if scene.snr_db is None else f"noise {scene.snr_db:.0f} dB below"
    ax.set(xlabel="time (s)", xlim=(0, scene.duration), title=f"{scene.relation}, {noise}")
    return finish(fig)


def relevance_matrix(relevance: ArrayLike) -> Figure:
    """Graded relevance between scenes, `(Q, N)` in [0, 1]."""
    fig, (ax,) = panels(1, height=4.2, width=5)
    matrix(ax, relevance, label="relevance from the scene graph")
    ax.set(xlabel="clip", ylabel="caption of clip", aspect="equal")
    return finish(fig)


def learning_curve(history: pd.DataFrame) -> Figure:
    """Training loss and validation recall over epochs; `history` has epoch, loss and R@1 columns of both directions."""
    fig, (left, right) = panels(2)
    band(left, history, "epoch", "loss", style="o-", colour=BLACK)
    for column, colour in (("T2A R@1", BLUE), ("A2T R@1", ORANGE)):
        band(right, history, "epoch", column, style="o-", colour=colour, label=column, scale=100)
    left.set(xlabel="epoch", ylabel="training loss", ylim=(0, None))
    right.set(xlabel="epoch", ylabel="validation R@1 (%)", ylim=(0, None))
    for ax in (left, right):
        whole_numbers(ax)
    return finish(fig)


def grade_histogram(grade: ArrayLike) -> Figure:
    """How relevant the first retrieved clip is, `(Q,)` in [0, 1], from the scene graph."""
    fig, (ax,) = panels(1, width=6)
    counts, edges = np.histogram(np.asarray(grade), bins=np.linspace(-0.025, 1.025, 22))
    bars(ax, (edges[1:] + edges[:-1]) / 2, counts, width=0.045)
    ax.set(xlabel="relevance of the first clip (1: the right one)", ylabel="queries")
    return finish(fig)


def zero_shot_accuracy(table: pd.DataFrame) -> Figure:
    """Accuracy by the language of the prompts with its 95 % interval over events.

    table: columns language, value, low, high and chance (fractions).
    """
    fig, (ax,) = panels(1, height=0.9 + 0.3 * len(table), width=6)
    rows = np.arange(len(table))
    dots(ax, table, rows, scale=100, label="accuracy, 95 % interval over events")
    ax.plot(100 * table["chance"], rows, "|", color=VERMILION, markersize=12, markeredgewidth=2, label="chance")
    name_places(ax, [language_name(code) for code in table["language"]])
    ax.set(xlabel="zero-shot accuracy (%)", xlim=(0, None))
    return finish(fig)


def without_words(table: pd.DataFrame) -> Figure:
    """What encoders know by clips alone, a panel a question and a line an encoder.

    table: columns question, encoder, value, low, high and chance (fractions), see `listening.without_words`.
    """
    questions, encoders = (list(dict.fromkeys(table[name])) for name in ("question", "encoder"))
    fig, axes = panels(len(questions), height=1.2 + 0.34 * len(encoders), sharey=True)
    for ax, question in zip(axes, questions, strict=True):
        part = table[table["question"] == question].set_index("encoder").reindex(encoders)
        dots(ax, part, np.arange(len(encoders)), scale=100, label="share, 95 % interval over events")
        ax.axvline(100 * part["chance"].max(), color=VERMILION, linewidth=1.2, label="chance")
        ax.set(xlabel=f"nearest clip is of the {question} (%)", xlim=(0, None))
        name_places(ax, encoders)
    return finish(fig)


def tests_side_by_side(table: pd.DataFrame, metric: str) -> Figure:
    """One score of every system on every test, a panel a test, with the interval and chance.

    table: columns test, system, metric, value, low, high and chance (fractions), see `ears.standings`.
    """
    rows = table[table["metric"] == metric]
    return intervals(rows, rows="system", panels="test", xlabel=f"{metric} (%)")
