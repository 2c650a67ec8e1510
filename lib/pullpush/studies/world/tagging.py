"""What YAMNet's own classes say of our sounds, with no training: the bridge from queries to classes."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from pullpush.data.clips import Clips, World
from pullpush.encoders import AUDIO, TEXT
from pullpush.encoders.yamnet import CLASSES, Bridge, class_names
from pullpush.lab.session import Session
from pullpush.metrics import by_clip, difference
from pullpush.metrics.annotations import graded_by_clip
from pullpush.studies.own_data import is_small
from pullpush.studies.world.decision import BRIDGE
from pullpush.studies.world.ears import SCORES, TESTS, beside_chance
from pullpush.training.evaluate import embed, zero_shot


def bridge(book: Session) -> Bridge:
    """The bridge with the profile's sentence encoder; where nothing is fetched, of random weights and made-up names."""
    drawn = is_small(book.settings)
    names = [f"class {number}" for number in range(CLASSES)] if drawn else class_names()
    ears = AUDIO["yamnet"].make(pretrained=not drawn)
    return Bridge(ears, names, TEXT[book.settings.text].make()).eval()


def zero_shot_by_classes(model: Bridge, world: World) -> pd.DataFrame:
    """Zero-shot classification of single events by the bridge, of recordings of the bank and of further ones, if any.

    Columns: clips, metric, value, low, high, chance; see `evaluate.zero_shot`.
    """
    tables = []
    for label, split in (("of the bank", "singles"), ("further takes", "recording_singles")):
        if split not in world.splits:
            continue
        clips = world.split(split)
        tables.append(zero_shot(model, clips, clips.prompts()).iloc[:1].assign(clips=label))
    found = pd.concat(tables, ignore_index=True)
    return found[["clips", *(name for name in found if name != "clips")]]


def first_classes(model: Bridge, clips: Clips, names: Sequence[str], rows: Sequence[int]) -> pd.DataFrame:
    """The two classes that YAMNet scores highest in some clips: clip, first class, score, second class, score."""
    scores = model.ears.tag(*clips.audio(list(rows), sample_rate=model.sample_rate))
    best = scores.topk(2, dim=1)
    table = {"clip": [names[each] for each in rows]}
    for place, word in enumerate(("first", "second")):
        table[f"{word} class"] = [model.names[int(each)] for each in best.indices[:, place]]
        table[f"its score{' ' * place}"] = [f"{float(each):.2f}" for each in best.values[:, place]]
    return pd.DataFrame(table)


def classes_of(model: Bridge, wave: Tensor) -> list[str]:
    """Names of all classes, the one that is heard most in a waveform `(T,)` first."""
    return [model.names[int(each)] for each in model.ears.tag(wave[None])[0].argsort(descending=True)]


def classes_for(model: Bridge, query: str) -> list[str]:
    """Names of all classes, the one that counts most for a query first."""
    with torch.no_grad():
        return [model.names[int(each)] for each in model.weights([query])[0].argsort(descending=True)]


def on_tests(model: Bridge, world: World) -> pd.DataFrame:
    """The bridge on every test, in the rows of `ears.standings`; intervals are over clips alone."""
    rows = []
    for test, split in TESTS.items():
        if split not in world.splits:
            continue
        clips = world.split(split)
        audio, text = embed(model, clips, caption="all")
        values = by_clip(audio, text) | graded_by_clip(audio, text, clips.relevance())
        values["R@1"] = (values["T2A R@1"] + values["A2T R@1"]) / 2
        for metric in SCORES:
            found = difference(values[metric].numpy()[None])
            head = {"test": test, "system": BRIDGE, "metric": metric, "value": found.value}
            rows.append(head | {"low": found.low, "high": found.high, "seeds": 0, "clips": found.clips})
    return beside_chance(pd.DataFrame(rows), world)
