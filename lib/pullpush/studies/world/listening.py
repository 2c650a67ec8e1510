"""The same clips heard by several encoders, before anything is trained: which other clip sounds nearest to each?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.clips import Clips, World
from pullpush.encoders import AUDIO
from pullpush.errors import PullPushError
from pullpush.metrics import difference
from pullpush.training.frozen import splits_encoder
from pullpush.training.trunk import Published

PUBLISHED = ("yamnet", "sfx", "speech_embedding", "voice")  # names of encoders whose weights a laptop fetches


def ears(*, fetched: bool) -> dict[str, Published]:
    """The encoders that are heard side by side, label → trunk.

    fetched: with published weights; else two small networks of random weights, so that nothing is fetched.
    """
    if not fetched:
        return {"CNN, random": Published("cnn"), "CNN, small, random": Published("cnn", {"channels": (4, 4, 8)})}
    return {"CNN, random": Published("cnn"), **{AUDIO[name].title: Published(name) for name in PUBLISHED}}


def cards(encoders: Mapping[str, Published]) -> pd.DataFrame:
    """What encoders are: encoder, what it is, hears (its sample rate), licence."""
    rows = []
    for label, trunk in encoders.items():
        card = AUDIO[trunk.audio]
        hears = f"{(card.sample_rate or 0) / 1000:g} kHz"
        rows.append({"encoder": label, "what it is": card.about, "hears": hears, "licence": card.licence})
    return pd.DataFrame(rows)


class Singles(NamedTuple):
    """Clips of one event each.

    clips: N of them; events: their numbers; kinds: their categories; names: of the events.
    """

    clips: Clips
    events: list[int]
    kinds: list[str]
    names: list[str]


def one_of_each(world: World) -> Singles:
    """The first clip of every event among the world's single events."""
    labels = world.singles.labels.tolist()
    rows = sorted({label: row for row, label in reversed(list(enumerate(labels)))}.values())
    events = [world.bank.events[labels[row]] for row in rows]
    names = [event.name.replace("_", " ") for event in events]
    return Singles(
        world.singles.select(rows), [labels[row] for row in rows], [event.category for event in events], names
    )


def spread(kinds: Sequence[str], count: int) -> list[int]:
    """`count` numbers, or fewer, of clips whose kinds take turns.

    >>> spread(["bird", "bird", "tool", "bird"], 3)
    [0, 2, 1]
    """
    turns = pd.Series(kinds).groupby(np.array(kinds)).cumcount()
    return turns.sort_values(kind="stable").index[:count].tolist()


def features_of(clips: Clips, encoders: Mapping[str, Published]) -> dict[str, Tensor]:
    """What each encoder makes of the clips, label → `(N, D)` float32; kept in the cache."""
    return {label: splits_encoder(trunk)(clips).audio(slice(None))[0] for label, trunk in encoders.items()}


def similarities(features: Tensor) -> Tensor:
    """Cosines of clips about their mean, `(N, D)` → `(N, N)`; a clip is not similar to itself (−∞).

    Features after a ReLU all point one way, and cosines about zero would tell little but that.

    >>> similarities(torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]))[0, 1]
    tensor(1.)
    """
    units = F.normalize(features - features.mean(dim=0), dim=1)
    return (units @ units.T).fill_diagonal_(-torch.inf)


def nearest(features: Tensor, groups: Sequence[int]) -> Tensor:
    """The clip that sounds nearest to each among those of other groups, `(N, D)` → `(N,)` int64.

    groups: N numbers, such as those of the events: clips of one group may be one recording, mixed twice.

    Raises:
        PullPushError: there is one group.

    >>> nearest(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.8, 0.3], [-1.0, 0.0]]), [0, 0, 1, 2])[:2]
    tensor([2, 2])
    """
    number = torch.as_tensor(groups)
    if len(number.unique()) < 2:
        raise PullPushError("these data have sounds of one event: the nearest of another event asks for two or more")
    same = number[:, None] == number
    return similarities(features).masked_fill(same, -torch.inf).argmax(dim=1)


def hits(found: Tensor, kinds: Sequence[str]) -> np.ndarray:
    """Whether what was found for each clip is of its kind, `(N,)` of 0 and 1.

    >>> hits(torch.tensor([1, 0, 0]), ["bird", "bird", "tool"]).tolist()
    [1.0, 1.0, 0.0]
    """
    names = np.array(kinds)
    return (names[found.numpy()] == names).astype(float)


def by_chance(groups: Sequence[int], kinds: Sequence[str]) -> float:
    """Share of hits where the clip is drawn at random from those of other groups.

    >>> by_chance([0, 1, 2], ["bird", "bird", "tool"])
    0.3333333333333333
    """
    number, name = np.array(groups), np.array(kinds)
    other = number[:, None] != number
    same = (name[:, None] == name) & other
    return float((same.sum(axis=1) / other.sum(axis=1)).mean())


def recognised(known: Tensor, new: Tensor) -> Tensor:
    """The known clip that sounds nearest to each new one, `(N, D)` and `(M, D)` → `(M,)` int64; see `similarities`.

    >>> recognised(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.2, 0.9]]))
    tensor([1])
    """
    middle = known.mean(dim=0)
    return (F.normalize(new - middle, dim=1) @ F.normalize(known - middle, dim=1).T).argmax(dim=1)


KIND, EVENT = "same category", "same event"
COLUMNS = ["question", "encoder", "value", "low", "high", "chance"]


def without_words(world: World, encoders: Mapping[str, Published]) -> pd.DataFrame:
    """What encoders know of our sounds, asked by clips alone: is the nearest clip of another event of the same
    category, and is the nearest clip of a *further recording* one of the same event? Only what can be asked: no two
    kinds of one's own need share a category, nor need there be further recordings.

    Columns: question, encoder, value, low, high (95 % over events), chance; fractions.

    Raises:
        PullPushError: neither can be asked.
    """
    known, rows = one_of_each(world), []
    heard, events = features_of(known.clips, encoders), np.array(known.events)
    asked = encoders if len(set(known.kinds)) < len(known.kinds) else ()
    for label in asked:
        kind = hits(nearest(heard[label], known.events), known.kinds)
        rows.append((KIND, label, *_interval(kind), by_chance(known.events, known.kinds)))
    if "recording_singles" not in world.splits or len(events) < 2:
        if not rows:
            raise PullPushError("these data have one event, or one recording of each: to ask for the same, give more")
        return pd.DataFrame(rows, columns=COLUMNS)
    new = world.split("recording_singles")
    further, labels = features_of(new, encoders), new.labels.numpy()
    for label in encoders:
        found = events[recognised(heard[label], further[label]).numpy()] == labels
        by_event = pd.Series(found.astype(float)).groupby(labels).mean().to_numpy()
        rows.append((EVENT, label, *_interval(by_event), 1 / len(events)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean with its 95 % interval over values `(N,)`, within 0 … 1."""
    sure = difference(values[None])
    return sure.value, max(sure.low, 0.0), min(sure.high, 1.0)


def neighbours(
    features: Mapping[str, Tensor], groups: Sequence[int], names: Sequence[str], rows: Sequence[int]
) -> pd.DataFrame:
    """What some clips sound like to each encoder: clip, and a column an encoder with the name of the nearest.

    names: of each of the N clips; rows: numbers of clips.
    """
    table = {"clip": [names[row] for row in rows]}
    for label, found in features.items():
        near = nearest(found, groups)
        table[label] = [names[int(near[row])] for row in rows]
    return pd.DataFrame(table)
