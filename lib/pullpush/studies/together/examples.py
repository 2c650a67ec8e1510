"""Models seen at their end: the force of each term, how much of the push is across, and what a query finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.studies.means import by_clip, plain
from pullpush.studies.push_parts import SHARES, forces_in_batches
from pullpush.studies.term_forces import term_forces
from pullpush.training.evaluate import embed, embed_audio, embed_texts
from pullpush.training.loop import Result
from pullpush.training.recipes import recipe
from pullpush.training.runs import drawn

Spaces = Mapping[str, tuple[Tensor, Tensor]]  # name of a system → captions and clips, `(N, d)` each
BATCHES = 4
# Of a recipe: what its terms and its model are.
FIELDS = ("terms", "languages", "sampling", "captions", "batch_size", "dim", "audio", "text", "encoder_options")


def forces_at_the_end(run: Result, clips: Clips, *, seed: int = 0) -> pd.DataFrame:
    """The force of each weighted term of a run on captions and clips, at the temperature that it learnt.

    clips: that it was trained on, with the columns that its terms need; returns what `term_forces` does. A caption in
    one of several languages is one of as many that pull at its clip.
    """
    learnt = run.steps.iloc[-1]
    options = {name: float(learnt[name]) for name in ("tau", "bias") if name in learnt}
    fields = {field: getattr(run.recipe, field) for field in FIELDS}
    one = recipe(run.recipe.name, **fields, **options)
    return term_forces(run.model, one, drawn(clips, one, BATCHES, seed=seed), seed=seed)


def spaces(runs: Mapping[str, Result], clips: Clips) -> dict[str, tuple[Tensor, Tensor]]:
    """The clips and their first English captions in the space of each model: text and audio, `(N, d)` float64."""
    found = {}
    for name, run in runs.items():
        audio, text = embed(run.model, clips)
        found[name] = text.double(), audio.double()
    return found


def shares(placed: Spaces, tau: float, *, batch_size: int) -> pd.DataFrame:
    """Of the push on captions, in batches as in training: a row a system; means over captions ± half-widths of 95 %.

    Columns: system, pull, push (norms), perpendicular share and sideways share (of the squared push).
    """
    rows = []
    for name, (text, audio) in placed.items():
        table = forces_in_batches(text, audio, tau, batch_size)
        columns = ("pull", "push", *SHARES.values())
        rows.append({"system": name} | {one.replace("_", " "): plain(by_clip(table[one])) for one in columns})
    return pd.DataFrame(rows)


def ranks(model: nn.Module, clips: Clips, row: int, languages: Sequence[str] = LANGUAGES) -> list[int]:
    """The rank of a clip for its first caption in each language, 1 is the first; ties count against it."""
    audio = embed_audio(model, clips)
    found = []
    for language in languages:
        text = embed_texts(model, [clips.captions(language)[row][0]], language=language)
        similarity = (audio @ text.T)[:, 0]
        found.append(int((similarity >= similarity[row]).sum()))
    return found


def nearest(model: nn.Module, clips: Clips, row: int) -> int:
    """The clip that is found first for the English caption of one."""
    text = embed_texts(model, [clips.captions("eng")[row][0]])
    return int((embed_audio(model, clips) @ text.T)[:, 0].argmax())
