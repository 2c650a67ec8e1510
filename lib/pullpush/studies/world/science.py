"""What encoders, a bridge of class names and scene graphs say of the world, before and beside training."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.clips import Clips, World
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.yamnet import CLASSES, Bridge, class_names
from pullpush.errors import PullPushError
from pullpush.lab.session import Session
from pullpush.metrics import by_clip
from pullpush.metrics.annotations import graded_by_clip
from pullpush.studies import means
from pullpush.studies.own_data import is_small
from pullpush.studies.world.data import SCORES, TESTS, beside_chance
from pullpush.training.evaluate import embed
from pullpush.training.frozen import splits_encoder
from pullpush.training.trunk import Published

PUBLISHED = ("yamnet", "sfx", "speech_embedding", "voice")  # names of encoders whose weights a laptop fetches
BRIDGE = "bridge, never trained"
KIND, EVENT = "same category", "same event"


def encoders(book: Session) -> dict[str, Published]:
    """The encoders that are held side by side, label → trunk; in smoke, which fetches nothing, two small networks of
    random weights.
    """
    if is_small(book.settings):
        return {"CNN, random": Published("cnn"), "CNN, small, random": Published("cnn", {"channels": (4, 4, 8)})}
    return {"CNN, random": Published("cnn"), **{AUDIO[name].title: Published(name) for name in PUBLISHED}}


def cards(encoders: Mapping[str, Published]) -> pd.DataFrame:
    """What encoders are: encoder, what it is, hears (its sample rate), licence."""
    of = {label: AUDIO[trunk.audio] for label, trunk in encoders.items()}
    rows = [(label, card.about, f"{(card.sample_rate or 0) / 1000:g} kHz", card.licence) for label, card in of.items()]
    return pd.DataFrame(rows, columns=["encoder", "what it is", "hears", "licence"])


class Singles(NamedTuple):
    """N clips of one event each, numbers and names of the events, and their categories."""

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


def nearest(features: Tensor, groups: Sequence[int]) -> Tensor:
    """The clip that sounds nearest to each among those of other groups, `(N, D)` → `(N,)` int64: the largest cosine
    about the mean. Features after a ReLU all point one way, and cosines about zero would tell little but that.

    groups: N numbers, such as those of the events: clips of one group may be one recording, mixed twice.

    >>> nearest(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.8, 0.3], [-1.0, 0.0]]), [0, 0, 1, 2])[:2]
    tensor([2, 2])
    """
    number = torch.as_tensor(groups)
    if len(number.unique()) < 2:
        raise PullPushError("these data have sounds of one event: the nearest of another event asks for two or more")
    units = F.normalize(features - features.mean(dim=0), dim=1)
    return (units @ units.T).masked_fill(number[:, None] == number, -torch.inf).argmax(dim=1)


def recognised(known: Tensor, new: Tensor) -> Tensor:
    """The known clip that sounds nearest to each new one, `(N, D)` and `(M, D)` → `(M,)` int64; see `nearest`.

    >>> recognised(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.2, 0.9]]))
    tensor([1])
    """
    middle = known.mean(dim=0)
    return (F.normalize(new - middle, dim=1) @ F.normalize(known - middle, dim=1).T).argmax(dim=1)


def kind_by_chance(groups: Sequence[int], kinds: Sequence[str]) -> float:
    """How often a clip that is drawn at random from those of other groups is of the same kind.

    >>> kind_by_chance([0, 1, 2], ["bird", "bird", "tool"])
    0.3333333333333333
    """
    number, name = np.array(groups), np.array(kinds)
    other = number[:, None] != number
    same = (name[:, None] == name) & other
    return float((same.sum(axis=1) / other.sum(axis=1)).mean())


def without_words(world: World, encoders: Mapping[str, Published]) -> pd.DataFrame:
    """What encoders know of our sounds, asked by clips alone: is the nearest clip of another event of the same
    category, and is the nearest clip of a *further recording* one of the same event? Only what can be asked: no two
    kinds of one's own need share a category, nor need there be further recordings.

    Columns: question, encoder, value, low, high (95 % over events), chance; fractions.

    Raises:
        PullPushError: neither can be asked.
    """
    known, found = one_of_each(world), []
    features, events, kinds = features_of(known.clips, encoders), np.array(known.events), np.array(known.kinds)
    if len(set(known.kinds)) < len(known.kinds):
        lucky = kind_by_chance(known.events, known.kinds)
        for label in encoders:
            near = nearest(features[label], known.events).numpy()
            found.append((KIND, label, (kinds[near] == kinds).astype(float), lucky))
    if "recording_singles" in world.splits and len(events) > 1:
        new = world.split("recording_singles")
        further, labels = features_of(new, encoders), new.labels.numpy()
        for label in encoders:
            right = pd.Series(events[recognised(features[label], further[label]).numpy()] == labels, dtype=float)
            found.append((EVENT, label, right.groupby(labels).mean().to_numpy(), 1 / len(events)))
    if not found:
        raise PullPushError("these data have one event, or one recording of each: to ask for the same, give more")
    rows = []
    for question, label, values, chance in found:
        sure = means.by_clip(values)
        rows.append((question, label, sure.value, max(sure.low, 0.0), min(sure.high, 1.0), chance))
    return pd.DataFrame(rows, columns=["question", "encoder", "value", "low", "high", "chance"])


# ---------------------------------------------------------------- YAMNet's own classes, with no training


def bridge(book: Session) -> Bridge:
    """The bridge with the profile's sentence encoder; where nothing is fetched, of random weights and made-up names."""
    drawn = is_small(book.settings)
    names = [f"class {number}" for number in range(CLASSES)] if drawn else class_names()
    return Bridge(AUDIO["yamnet"].make(pretrained=not drawn), names, TEXT[book.settings.text].make()).eval()


def bridge_on_tests(model: Bridge, world: World) -> pd.DataFrame:
    """The bridge on every test, in the rows of `data.standings`; intervals are over clips alone."""
    rows = []
    for test, split in TESTS.items():
        if split not in world.splits:
            continue
        clips = world.split(split)
        audio, text = embed(model, clips, caption="all")
        values = by_clip(audio, text) | graded_by_clip(audio, text, clips.relevance())
        values["R@1"] = (values["T2A R@1"] + values["A2T R@1"]) / 2
        for metric in SCORES:
            found = means.by_clip(values[metric])
            rows.append((test, BRIDGE, metric, found.value, found.low, found.high, 0, found.clips))
    columns = ["test", "system", "metric", "value", "low", "high", "seeds", "clips"]
    return beside_chance(pd.DataFrame(rows, columns=columns), world)


# ---------------------------------------------------------------- scene graphs and words


def contents(world: World) -> pd.DataFrame:
    """How much there is of everything: columns what, count."""
    rows = [(f"scenes for {name}", len(split)) for name, split in world.splits.items() if name != "singles"]
    rows += [("clips of a single event", len(world.singles)), ("events", len(world.bank))]
    rows += [("recordings", sum(len(recordings) for recordings in world.bank.clips))]
    return pd.DataFrame(rows, columns=["what", "count"])


def off_diagonal(relevance: Tensor) -> Tensor:
    """Relevance of all pairs of different clips, `(N, N)` → `(N² − N,)`.

    >>> off_diagonal(torch.tensor([[1.0, 0.5], [0.0, 1.0]])).tolist()
    [0.5, 0.0]
    """
    return relevance[~torch.eye(len(relevance), dtype=torch.bool)]
