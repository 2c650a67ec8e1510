"""Probes of what clips are called beside the grammar: labels, tables of captions, other wordings, sentences."""

from __future__ import annotations

import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pullpush.cache import content_key
from pullpush.data.banks.folder import english_phrases
from pullpush.data.clips import StoredClips, World
from pullpush.data.language.entailment import Statement, holds, triples
from pullpush.data.language.labels import load_labels
from pullpush.data.language.lexicon import worded_captions
from pullpush.data.language.nli import LABELS, grouped, with_triples
from pullpush.data.language.vocabulary import load_events
from pullpush.data.language.word_counts import word_frequencies, words
from pullpush.data.language.wording import aligned_captions, load_ways, tell_retold
from pullpush.data.languages import LANGUAGES
from pullpush.data.recordings.texts import (
    CLEANINGS,
    captions_in,
    clean,
    every_caption,
    label_prompts,
    read_queries,
    recorded_captions,
    shared_captions,
)
from pullpush.data.scenes.synthetic import synthetic_events
from pullpush.data.sets.folder import read_captions
from pullpush.data.store import Waveforms
from pullpush.golden.compare import Values
from pullpush.golden.languages import scenes

TABLE = """file_name,caption,split
a.wav,"A dog barks, loudly!",train
a.wav,a dog,train
b.wav,It's rain; (heavy),train
c.wav,Un chat miaule.,test
"""
QUERIES = """query,audio_filenames
Dogs bark,"['a.wav', 'c.wav']"
rain,"['b.wav', 'z.wav']"
dogs bark,"['b.wav']"
none,"['y.wav']"
"""


def labels() -> Values:
    """Prompts of labels in languages with and without a file, and all that the table says."""
    known, own = load_labels(), map(english_phrases, ("dog_bark", "one", "8", "hour-x"))
    found: dict[str, Any] = {
        "table": content_key([known.sentences, known.names]),
        "asked": known.prompts(["owl", "rain"], "ita", "{label}?"),
        "folder": [[phrases.nouns, phrases.label] for phrases in own],
    }
    return found | {
        f"prompts {code}": known.prompts(sorted(names)[::40], code) for code, names in sorted(known.names.items())
    }


def texts() -> Values:
    """Captions of tables as they are read and cleaned, one a clip or each for itself; prompts, queries and words."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of queries that lose their clips
        table, asked = Path(folder) / "captions.fra.csv", Path(folder) / "queries.csv"
        table.write_text(TABLE, encoding="utf-8")
        asked.write_text(QUERIES, encoding="utf-8")
        told = read_captions(table)
        clips = _clips({"file": ["a.wav", "b.wav", "c.wav"], "captions": list(told.values())})
        queries = read_queries(asked, clips, cleaning="ml-clap")
        further = recorded_captions("probe", {"fra": table}, "dcase", clips.columns, "fra")
        found: dict[str, Any] = {
            "read": list(told.items()),
            "train": list(read_captions(table, split="train").items()),
            "own": recorded_captions("probe", {}, "ml-clap", clips.columns, "eng"),
            "further": further,
            "queries": [queries.texts, queries.relevance.int().tolist()],
        }
    twins = every_caption(clips)
    found |= {
        name: [clean(text, name) for text in (*told["a.wav"], *told["b.wav"], "猫、叫ぶ。")] for name in CLEANINGS
    }
    found["twins"] = [twins.columns["file"], twins.columns["caption"], twins.captions("eng")]
    found["shared"] = shared_captions([["a dog barks", "a dog"], ["a dog barks"], ["rain", "rain"]])
    found["prompts"] = [*label_prompts(["dog_bark"]), *label_prompts(["dog_bark"], prompt="Hear {label}.")]
    found["asked"] = [*label_prompts(["owl"], "rus"), *label_prompts(["Eule"], "deu", "{label}!", own="deu")]
    found["words"] = words("A dog's bark, über 犬が 3-fach")
    found["frequencies"] = word_frequencies(["A frog croaks.", "a frog, a cow"], vocabulary=3).to_numpy().tolist()
    return found


def wording() -> Values:
    """Captions that are translations of each other, sentences or titles alone, and all ways that the table has."""
    events, every = synthetic_events(), scenes(len(synthetic_events()))
    found: dict[str, Any] = {"ways": content_key(load_ways())}
    for code in LANGUAGES:
        told = [aligned_captions(scene, events, language=code, n=1, seed=3) for scene in every[1::2]]
        found[f"aligned {code}"] = [text for texts in told for text in texts]
    found["several"] = aligned_captions(every[2], events, language="fra", n=5)
    for kind in ("sentences", "titles"):
        found[kind] = tell_retold((kind,), events, 1, 2, {"scene": every[::5]}, "nld")
    return found


def lexicon() -> Values:
    """Captions in few words, and in few words nearly always."""
    events, every = synthetic_events(), scenes(len(synthetic_events()))[::3]
    found: dict[str, Any] = {}
    for code in ("eng", "deu", "jpn"):
        for vocabulary, skew in (("narrow", 0.0), ("rich", 1.5), ("narrow", 0.5)):
            told = [
                worded_captions(scene, events, language=code, vocabulary=vocabulary, skew=skew, n=2, seed=1)
                for scene in every
            ]
            found[f"{code} {vocabulary} {skew}"] = told[:4] if vocabulary == "rich" else told[3:]
    return found


def nli() -> Values:
    """Sentences that follow from scenes or contradict them, triples of corpora, and triples beside clips."""
    events = load_events()
    truth = Statement("sequence", ("crow", "frog"))
    said = [("sequence", ("bird", "frog")), ("sequence", ("frog", "bird")), ("single", ("animal",))]
    rows = [
        ("a dog barks", "an animal", 0),
        ("a dog barks", "quiet", 2),
        ("rain", "so", 1),
        ("rain", "sun", 2),
    ]
    pairs = [dict(zip(("premise", "hypothesis", "label"), row, strict=True)) for row in rows]
    published = [{"sentence1": "a", "sentence2": f" {gold} ", "gold_label": gold} for gold in LABELS]
    found = triples(scenes(len(synthetic_events())), synthetic_events(), seed=2)
    world = with_triples(World(None, {"train": _clips({"file": ["a", "b", "c"]})}), found[:2], seed=1)
    return {
        "synthetic": [list(triple) for triple in found],
        "events": [list(triple) for triple in triples(scenes(len(events))[::2], events)],
        "holds": [holds(truth, Statement(*each), events) for each in said],
        "perhaps": holds(Statement("single", ("duck",)), Statement("single", ("drake",)), events, perhaps=True),
        "grouped": [list(triple) for triple in grouped([*pairs, *published])],
        "beside": [world.train.columns["premise"], world.train.columns["contradiction"]],
    }


def _clips(columns: dict[str, Any]) -> StoredClips:
    waves = Waveforms(np.zeros(3, np.int16), np.arange(1, 4))
    tell = partial(captions_in, "eng") if "captions" in columns else lambda columns, language: []
    return StoredClips("train", "probe", waves, np.arange(3), columns, tell)
