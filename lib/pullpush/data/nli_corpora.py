"""SNLI and MNLI as triples, grouped by premise as in supervised SimCSE (Gao et al. 2021, section 4).

They are read by `datasets`: from the hub, which keeps them in its cache, or from a folder of JSON lines.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pullpush.data.entailment import Triple
from pullpush.errors import DataNotFoundError, PullPushError, unknown

SOURCES = {"snli": "stanfordnlp/snli", "mnli": "nyu-mll/multi_nli"}
CORPORA = {"snli": ("snli",), "mnli": ("mnli",), "nli": ("snli", "mnli")}
COLUMNS = (("premise", "sentence1"), ("hypothesis", "sentence2"))  # on the hub, and as they are published
LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2, "-": -1}  # "-": the annotators did not agree
ENTAILMENT, CONTRADICTION = LABELS["entailment"], LABELS["contradiction"]


def nli_corpus(name: str, *, n: int | None = None, seed: int = 0) -> list[Triple]:
    """Triples of the training pairs of "snli", "mnli", or "nli", which are both.

    Args:
        name: of the corpus, from the hub; "snli:/folder" reads `snli*.jsonl` there: lines with premise, hypothesis and
            label, or with sentence1, sentence2 and gold_label, as the corpora are published.
        n: how many to draw, in random order; None: all, in their own.
        seed: of that draw.

    Raises:
        UnknownNameError: there is no such corpus.
        DataNotFoundError: it is neither there nor on the hub.
        PullPushError: `datasets` is not installed, or cannot read it, or no premise has both kinds of hypotheses.
    """
    corpus, folder = located(name)
    found = [triple for part in CORPORA[corpus] for triple in grouped(_pairs(part, folder))]
    if not found:
        raise PullPushError(f"{name} has no premise with both an entailment and a contradiction")
    if n is None:
        return found
    return [found[row] for row in np.random.default_rng(seed).permutation(len(found))[:n].tolist()]


def located(name: str) -> tuple[str, str]:
    """The corpus and the folder of "snli:/folder"; no folder: "". `UnknownNameError` if there is no such corpus."""
    corpus, _, folder = name.partition(":")
    if corpus not in CORPORA:
        raise unknown("corpus of triples", corpus, CORPORA)
    return corpus, folder


def grouped(pairs: Iterable[Mapping[str, Any]]) -> list[Triple]:
    """One triple for each premise that has both an entailment and a contradiction; of several the first.

    pairs: see `nli_corpus`; labels are 0 entailment, 1 neutral, 2 contradiction, -1 none.

    >>> rows = [("a dog barks", "an animal is heard", 0), ("a dog barks", "it is quiet", 2), ("it rains", "so", 0)]
    >>> grouped(dict(zip(("premise", "hypothesis", "label"), row)) for row in rows)
    [Triple(premise='a dog barks', entailment='an animal is heard', contradiction='it is quiet')]
    """
    kinds: dict[str, dict[int, str]] = {}
    for pair in pairs:
        premise, hypothesis = (pair[new if new in pair else old].strip() for new, old in COLUMNS)
        label = pair["label"] if "label" in pair else LABELS[pair["gold_label"]]
        if label in (ENTAILMENT, CONTRADICTION) and premise and hypothesis:
            kinds.setdefault(premise, {}).setdefault(label, hypothesis)
    return [
        Triple(premise, found[ENTAILMENT], found[CONTRADICTION]) for premise, found in kinds.items() if len(found) == 2
    ]


def _pairs(name: str, folder: str) -> Iterable[Mapping[str, Any]]:
    """The training pairs of one corpus."""
    try:
        hub = importlib.import_module("datasets")
    except ModuleNotFoundError as error:
        raise PullPushError(f"{name} needs datasets, which is not installed: pip install 'pullpush[full]'") from error
    files = sorted(str(path) for path in Path(folder).glob(f"{name}*.jsonl")) if folder else []
    if folder and not files:
        raise DataNotFoundError(f"{folder} holds no {name}*.jsonl: expected lines with premise, hypothesis and label")
    try:
        if files:
            return hub.load_dataset("json", data_files=files, split="train")
        return hub.load_dataset(SOURCES[name], split="train")
    except FileNotFoundError as error:  # what the hub's own error for a dataset that is not there is
        raise DataNotFoundError(f"no dataset {SOURCES[name]!r} on the hub or this machine: {error}") from error
    except OSError as error:
        raise DataNotFoundError(f"{SOURCES[name]} cannot be fetched: {error}") from error
    except Exception as error:  # its builders wrap what they need in errors of their own
        raise PullPushError(f"datasets cannot read {name}: {error}") from error
