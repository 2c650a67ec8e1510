"""Captions of stamps in languages that no model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd
import torch
from torch import nn

from pullpush.data.clips import Clips, World
from pullpush.data.language.vocabulary import LANGUAGES, Event
from pullpush.data.recordings import tuxpaint
from pullpush.metrics import difference, zero_shot_predictions
from pullpush.parallel import in_threads
from pullpush.show.palette import method_name
from pullpush.studies.consistency.comparisons import contrasts
from pullpush.studies.consistency.schemes import Runs
from pullpush.training.evaluate import embed_audio, embed_texts

# Languages of the stamps that no objective trains on: code → (name, whether the sentence encoder was trained on it).
UNHEARD = {
    "it": ("Italian", True),
    "pt": ("Portuguese", True),
    "pl": ("Polish", True),
    "ru": ("Russian", True),
    "tr": ("Turkish", True),
    "ko": ("Korean", True),
    "gl": ("Galician", False),
    "ro": ("Romanian", False),
    "bg": ("Bulgarian", False),
    "cs": ("Czech", False),
    "el": ("Greek", False),
    "sv": ("Swedish", False),
    "fi": ("Finnish", False),
    "hu": ("Hungarian", False),
    "vi": ("Vietnamese", False),
}


# By what a language was to training, and to the sentence encoder before it.
GROUPS = dict.fromkeys(LANGUAGES, "trained on") | {
    code: "new, known to the encoder" if seen else "new to the encoder, too" for code, (_, seen) in UNHEARD.items()
}


class StampTexts(NamedTuple):
    """Captions that the stamps of a bank's events have in one language.

    texts: event number → caption; missing: names of the events without one; substitute: how many are in the traditional
    script because the simplified one is missing.
    """

    texts: dict[int, str]
    missing: tuple[str, ...]
    substitute: int


def labels_as_stamps(events: Sequence[Event]) -> tuxpaint.Stamps:
    """Tables like those of the stamps for a bank without any: the events' own labels, one stamp an event."""
    rows = [
        (event.name, language, phrases.label, language)
        for event in events
        for language, phrases in event.phrases.items()
    ]
    empty = pd.DataFrame(columns=["stamp", "path"])
    return tuxpaint.Stamps(pd.DataFrame(rows, columns=["stamp", "language", "text", "code"]), empty, empty, empty)


def stamp_texts(stamps: tuxpaint.Stamps, events: Sequence[Event], language: str) -> StampTexts:
    """The caption of the first recording of each event that has one in this language."""
    captions = _first_captions(stamps, language).set_index("stamp")
    texts, missing, substitute = {}, [], 0
    for number, event in enumerate(events):
        found = next((stamp for stamp in event.recordings or (event.name,) if stamp in captions.index), None)
        if found is None:
            missing.append(event.name)
            continue
        texts[number] = captions.loc[found, "text"]
        substitute += captions.loc[found, "code"] == "zh_TW"
    return StampTexts(texts, tuple(missing), substitute)


def _first_captions(stamps: tuxpaint.Stamps, language: str) -> pd.DataFrame:
    """One caption a stamp in a language."""
    return stamps.captions[stamps.captions["language"] == language].drop_duplicates("stamp")


def coverage(stamps: tuxpaint.Stamps, events: Sequence[Event], languages: Sequence[str]) -> pd.DataFrame:
    """What translations are missing: columns language, all stamps, of them, events, of events, substitutes."""
    total = stamps.captions["stamp"].nunique()
    rows = []
    for language in languages:
        captions = _first_captions(stamps, language)
        of_events = stamp_texts(stamps, events, language)
        substitutes = int((captions["code"] == "zh_TW").sum())
        count = (len(captions), total - len(captions), substitutes, len(of_events.texts), len(of_events.missing))
        rows.append((language, *count))
    columns = ["language", "stamps", "without", "traditional instead", "our events", "without it"]
    return pd.DataFrame(rows, columns=columns)


def zero_shot_stamps(runs: Runs, data: World, stamps: tuxpaint.Stamps, languages: Sequence[str]) -> pd.DataFrame:
    """Single-event clips classified by the stamps' captions: columns system, seed, language, event, accuracy, chance.

    Only events that have a caption in the language are candidates, and only their clips are asked.
    """
    texts = {language: stamp_texts(stamps, data.bank.events, language).texts for language in languages}
    tables = in_threads([partial(_guessed, run.model, data.singles, texts) for run in runs.values()])
    by_run = zip(runs, tables, strict=True)
    named = [table.assign(system=system, seed=seed) for (system, seed), table in by_run]
    return pd.concat(named, ignore_index=True)[["system", "seed", "language", "event", "accuracy", "chance"]]


def _guessed(model: nn.Module, clips: Clips, texts: Mapping[str, Mapping[int, str]]) -> pd.DataFrame:
    """One run's accuracy on each event in each language; texts: language → event number → caption."""
    audio, labels, tables = embed_audio(model, clips, batch_size=512), clips.labels, []
    for language, captions in texts.items():
        numbers = torch.tensor(sorted(captions))
        text = embed_texts(model, [captions[int(number)] for number in numbers], language=language)
        asked = torch.isin(labels, numbers)
        right = numbers[zero_shot_predictions(audio[asked], text)] == labels[asked]
        table = pd.DataFrame({"event": labels[asked].numpy(), "accuracy": right.double().numpy()})
        table = table.groupby("event", as_index=False).mean()
        tables.append(table.assign(language=language, chance=1 / len(numbers)))
    return pd.concat(tables, ignore_index=True)


def by_language(table: pd.DataFrame) -> pd.DataFrame:
    """`zero_shot_stamps` as means over events: columns system, seed, language, accuracy, chance, events."""
    groups = table.groupby(["system", "seed", "language"], sort=False)
    return groups.agg(accuracy=("accuracy", "mean"), chance=("chance", "mean"), events=("event", "size")).reset_index()


def by_group(table: pd.DataFrame, systems: Sequence[str]) -> pd.DataFrame:
    """`by_language` as means over GROUPS: columns languages, and the systems by their printed names."""
    table = table.assign(languages=table["language"].map(GROUPS))
    wide = table.pivot_table(index="languages", columns="system", values="accuracy", sort=False)
    return wide[list(systems)].rename(columns=method_name).reset_index()


def unheard_gains(
    table: pd.DataFrame, pairs: Sequence[tuple[str, str]], groups: Mapping[str, str] = GROUPS
) -> pd.DataFrame:
    """What systems have over others in accuracy, over seeds and events; see `contrasts`.

    Args:
        table: of `zero_shot_stamps`.
        pairs: system and baseline.
        groups: language → its group, which is averaged over.
    """
    table = table.assign(group=table["language"].map(groups))

    def values(group: str, system: str) -> pd.DataFrame:
        rows = table[(table["group"] == group) & (table["system"] == system)]
        return rows.pivot_table(index="seed", columns="event", values="accuracy")

    plans = []
    for group in dict.fromkeys(groups[language] for language in table["language"].unique()):
        for system, base in pairs:
            of_system, of_base = values(group, system), values(group, base)
            seeds = of_system.index.intersection(of_base.index)
            gain = difference(of_system.loc[seeds].to_numpy(), of_base.loc[seeds].to_numpy())
            plans.append(({"languages": group, "system": system, "baseline": base, "metric": "accuracy"}, gain))
    return contrasts(plans)
