"""Figures of chapter 0: scenes, their truth, and a first model."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pullpush.data.compose import seconds
from pullpush.data.scene import Scene
from pullpush.data.world import World
from pullpush.show.palette import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
)


def scene_timeline(world: World, scene: Scene) -> Figure:
    """The scene graph over time: a bar for each sound, with what the captions may mention."""
    names = [world.bank.events[sound.event].name.replace("_", " ") for sound in scene.sounds]
    fig, ax = plt.subplots(figsize=(6.4, 0.9 + 0.5 * len(scene.sounds)))
    for row, sound in enumerate(scene.sounds):
        notes = [f"{sound.semitones:+d} semitones"] if sound.semitones else []
        notes += [f"{sound.repeats} times"] if sound.repeats > 1 else []
        notes += ["far"] if sound.far else []
        ends = [other.onset for other in scene.sounds[row + 1 : row + 2] if scene.relation == "sequence"]
        end = min([sound.onset + seconds(world.bank, sound), scene.duration, *ends])
        ax.barh(row, end - sound.onset, left=sound.onset, height=0.55, color=SKY)
        ax.text(sound.onset + 0.04, row, ", ".join(notes), va="center", fontsize="small")
    ax.set_yticks(range(len(names)), names)
    noise = "no noise" if scene.snr_db is None else f"noise {scene.snr_db:.0f} dB below"
    ax.set(xlabel="time (s)", xlim=(0, scene.duration), title=f"{scene.relation}, {noise}")
    ax.invert_yaxis()
    return fig


def relevance_matrix(relevance: torch.Tensor | np.ndarray) -> Figure:
    """Graded relevance between scenes, `(Q, N)` in [0, 1]."""
    fig, ax = plt.subplots(figsize=(5, 4.2))
    image = ax.imshow(np.asarray(relevance), cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    ax.set(xlabel="clip", ylabel="caption of clip")
    ax.grid(False)
    fig.colorbar(image, label="relevance from the scene graph")
    return fig


def word_frequencies(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Figure 3 of the language-encoder paper: relative word frequency over rank, one curve a caption set."""
    fig, ax = plt.subplots(figsize=(6, 3.6))
    for (name, table), colour in zip(tables.items(), [BLUE, VERMILION, GREEN, PURPLE], strict=False):
        ax.loglog(table["rank"], table["frequency"], color=colour, label=f"{name} ({len(table):,} words)")
    ax.set(xlabel="word, from frequent to rare", ylabel="share of all words")
    ax.legend()
    return fig


def learning_curve(history: pd.DataFrame) -> Figure:
    """Training loss and validation recall over epochs; `history` has epoch, loss and R@1 columns of both directions."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.plot(history["epoch"], history["loss"], color=BLACK)
    left.set(xlabel="epoch", ylabel="training loss")
    for column, colour in (("T2A R@1", BLUE), ("A2T R@1", ORANGE)):
        right.plot(history["epoch"], 100 * history[column], color=colour, label=column)
    right.set(xlabel="epoch", ylabel="validation R@1 (%)", ylim=(0, None))
    right.legend()
    for ax in (left, right):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return fig


def grade_histogram(grade: torch.Tensor) -> Figure:
    """How relevant the first retrieved clip is, `(Q,)` in [0, 1], from the scene graph."""
    fig, ax = plt.subplots(figsize=(6, 3))
    ax.hist(np.asarray(grade), bins=np.linspace(-0.025, 1.025, 22), color=BLUE)
    ax.set(xlabel="relevance of the first clip", ylabel="queries")
    return fig


def zero_shot_accuracy(table: pd.DataFrame, label: str, *, xlabel: str, percent: bool = False) -> Figure:
    """Values with their intervals, one row each in the table's order; a tick marks chance where the table has it.

    table: columns `label`, value, low, high and perhaps chance.
    """
    fig, ax = plt.subplots(figsize=(6, 0.9 + 0.33 * len(table)))
    scale = 100 if percent else 1
    value, rows = scale * table["value"], np.arange(len(table))
    spread = np.abs(scale * table[["low", "high"]].to_numpy().T - value.to_numpy())
    ax.errorbar(value, rows, xerr=spread, fmt="o", color=BLUE, capsize=3)
    if "chance" in table:
        ax.plot(scale * table["chance"], rows, "|", color=VERMILION, markersize=12, markeredgewidth=2, label="chance")
        ax.legend()
    ax.set_yticks(rows, table[label])
    ax.set(xlabel=f"{xlabel} (%)" if percent else xlabel, xlim=(0, None))
    ax.invert_yaxis()
    return fig
