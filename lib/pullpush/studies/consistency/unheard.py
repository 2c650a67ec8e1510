"""Captions of stamps, in languages that no model was trained on, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import torch
from torch import nn

from pullpush.data.clips import Clips, World
from pullpush.data.language.vocabulary import LANGUAGES, Event
from pullpush.data.recordings.tuxpaint import Stamps
from pullpush.lab.comparisons import differences
from pullpush.metrics import zero_shot_predictions
from pullpush.metrics.inference import difference
from pullpush.parallel import in_threads
from pullpush.show.palette import language_name
from pullpush.studies.consistency.schemes import Runs
from pullpush.training.evaluate import embed_audio, embed_texts

# Languages of the stamps that no objective trains on, by whether the sentence encoder was trained on them.
KNOWN = {"it": "Italian", "pt": "Portuguese", "pl": "Polish", "ru": "Russian", "tr": "Turkish", "ko": "Korean"}
STRANGE = {"gl": "Galician", "ro": "Romanian", "bg": "Bulgarian", "cs": "Czech", "el": "Greek", "sv": "Swedish"}
STRANGE |= {"fi": "Finnish", "hu": "Hungarian", "vi": "Vietnamese"}
GROUPS = dict.fromkeys(LANGUAGES, "trained on") | dict.fromkeys(KNOWN, "new, known to the encoder")
GROUPS |= dict.fromkeys(STRANGE, "new to the encoder, too")
NAMES = {code: language_name(code) for code in LANGUAGES} | KNOWN | STRANGE


def labels_as_stamps(events: Sequence[Event]) -> Stamps:
    """Tables like those of the stamps for a bank without any: the events' own labels, one stamp an event."""
    rows = [(each.name, code, phrases.label, code) for each in events for code, phrases in each.phrases.items()]
    empty = pd.DataFrame(columns=["stamp", "path"])
    return Stamps(pd.DataFrame(rows, columns=["stamp", "language", "text", "code"]), empty, empty, empty)


def event_captions(stamps: Stamps, events: Sequence[Event], language: str) -> pd.DataFrame:
    """The caption of the first recording of each event that has one in a language: event number → text, code.

    code "zh_TW": in the traditional script, because the simplified one is missing.
    """
    captions = _captions(stamps, language).set_index("stamp")[["text", "code"]]
    found = {
        number: next((stamp for stamp in event.recordings or (event.name,) if stamp in captions.index), None)
        for number, event in enumerate(events)
    }
    told = {number: stamp for number, stamp in found.items() if stamp is not None}
    return captions.loc[list(told.values())].set_axis(list(told), axis=0)


def _captions(stamps: Stamps, language: str) -> pd.DataFrame:
    """One caption a stamp in a language."""
    return stamps.captions[stamps.captions["language"] == language].drop_duplicates("stamp")


def coverage(stamps: Stamps, events: Sequence[Event], languages: Sequence[str]) -> pd.DataFrame:
    """What translations are missing: a row a language, how many of all stamps and of the bank's events have one."""
    total = stamps.captions["stamp"].nunique()
    rows = []
    for language in languages:
        captions, ours = _captions(stamps, language), len(event_captions(stamps, events, language))
        traditional = int((captions["code"] == "zh_TW").sum())
        rows.append((language, len(captions), total - len(captions), traditional, ours, len(events) - ours))
    columns = ["language", "stamps", "without", "traditional instead", "our events", "without it"]
    return pd.DataFrame(rows, columns=columns)


def zero_shot_stamps(runs: Runs, data: World, stamps: Stamps, languages: Sequence[str]) -> pd.DataFrame:
    """Single-event clips classified by the stamps' captions: columns system, seed, language, event, accuracy, chance.

    Only events that have a caption in the language are candidates, and only their clips are asked.
    """
    texts = {language: event_captions(stamps, data.bank.events, language)["text"] for language in languages}
    tables = in_threads([partial(_accuracies, run.model, data.singles, texts) for run in runs.values()])
    named = [table.assign(system=system, seed=seed) for (system, seed), table in zip(runs, tables, strict=True)]
    return pd.concat(named, ignore_index=True)[["system", "seed", "language", "event", "accuracy", "chance"]]


def _accuracies(model: nn.Module, clips: Clips, texts: Mapping[str, pd.Series]) -> pd.DataFrame:
    """One run's accuracy on each event in each language; texts: language → event number → caption."""
    audio, labels, tables = embed_audio(model, clips, batch_size=512), clips.labels, []
    for language, captions in texts.items():
        numbers, text = torch.tensor(captions.index), embed_texts(model, list(captions), language=language)
        asked = torch.isin(labels, numbers)
        right = numbers[zero_shot_predictions(audio[asked], text)] == labels[asked]
        table = pd.DataFrame({"event": labels[asked].numpy(), "accuracy": right.double().numpy()})
        table = table.groupby("event", as_index=False).mean()
        tables.append(table.assign(language=language, chance=1 / len(numbers)))
    return pd.concat(tables, ignore_index=True)


def levels(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy over seeds and events, in the mean over each of GROUPS: columns languages, system, value, low, high,
    seeds, clips (events), chance; table: of `zero_shot_stamps`.
    """
    chance = table.groupby(table["language"].map(GROUPS))["chance"].mean()
    rows = []
    for (group, system), values in _by_group(table).items():
        found = difference(values.to_numpy())
        row = {"languages": group, "system": system, "value": found.value, "low": found.low, "high": found.high}
        rows.append({**row, "seeds": found.seeds, "clips": found.clips, "chance": chance[group]})
    return pd.DataFrame(rows)


def gains(table: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """What systems have over others in accuracy, over seeds and events, in the mean over each of GROUPS.

    table: of `zero_shot_stamps`; pairs: system and baseline.

    Returns:
        Columns languages, system, baseline, metric, and those of `lab.comparisons.differences`.
    """
    values, named = _by_group(table), []
    for group in dict.fromkeys(group for group, _ in values):
        for system, base in pairs:
            ours, theirs = values[group, system].align(values[group, base], join="inner")
            head = {"languages": group, "system": system, "baseline": base, "metric": "accuracy"}
            named.append((head, difference(ours.to_numpy(), theirs.to_numpy())))
    return differences(named)


def _by_group(table: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """(group, system) → accuracy, a row a seed and a column an event."""
    groups = table.groupby([table["language"].map(GROUPS), "system"], sort=False)
    return {key: rows.pivot_table(index="seed", columns="event", values="accuracy") for key, rows in groups}
