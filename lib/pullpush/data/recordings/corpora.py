"""Real datasets as worlds: AudioCaps, Clotho, WavCaps and your own in splits that learn and test as rendered scenes do.

    corpus = load_corpus(CorpusConfig("audiocaps"))     # train, valid, test, as `load_world` gives them
    sounds = load_labelled("esc50")                     # clips with one label each, for zero-shot classification

Datasets lie in their published layouts under `$PULLPUSH_DATA` (see `registry.py`). Recordings are decoded once, at the
rate that the encoder hears, and memory-mapped from the cache from then on.
"""

import ast
import math
import re
import string
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pullpush.cache import content_key, digest
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import SPLITS, Clips, Columns, NoLabelsError, StoredClips, World, identity
from pullpush.data.language.vocabulary import load_labels
from pullpush.data.recordings.overlap import check_recordings
from pullpush.data.recordings.registry import DatasetCard, Listing, datasets_home, find, listing, official_table
from pullpush.data.sets.folder import read_captions
from pullpush.data.store import stored
from pullpush.errors import PullPushError, check_known, few, unknown
from pullpush.settings import Count, Positive, check_fields

CLEANINGS = ("none", "ml-clap", "dcase")
PROMPT = "This is a sound of {label}."  # SupCLAP §4.1
_SPACED = re.compile(r'[(),.!?;:|*"，。！？；：、]')
_REMOVED = str.maketrans("", "", string.punctuation)


def clean(text: str, cleaning: str) -> str:
    """A caption as a paper's code hands it to the text encoder.

    cleaning: "none", as it is written; "ml-clap", in lower case with punctuation turned into spaces, as ML-CLAP and
    WavCaps do (but for the spaces that theirs leaves at the end); "dcase", in lower case without punctuation, as the
    baseline of DCASE 2025 does. Apostrophes and hyphens stay with "ml-clap" and vanish with "dcase".

    Raises:
        UnknownNameError: another cleaning.

    >>> clean("A dog barks, then it's quiet.", "ml-clap"), clean("A dog barks, then it's quiet.", "dcase")
    ("a dog barks then it's quiet", 'a dog barks then its quiet')
    """
    check_known("text cleaning", cleaning, CLEANINGS)
    if cleaning == "none":
        return text
    if cleaning == "dcase":
        return text.lower().translate(_REMOVED)
    return " ".join(_SPACED.sub(" ", text.lower()).split())


def recorded_captions(
    title: str, tables: Mapping[str, Path], cleaning: str, columns: Columns, language: str
) -> list[list[str]]:
    """In English from the column of captions, in others from tables; none for files that they lack."""
    if language in tables:
        table = read_captions(tables[language], whole=False)
        found = [table.get(name, []) for name in columns["file"]]
    elif language == "eng" and "captions" in columns:
        found = columns["captions"]
    else:
        offered = [*(["eng"] if "captions" in columns else []), *tables]
        raise unknown(f"language of {title}'s captions", language, offered)
    return [[cleaned for text in captions if (cleaned := clean(text, cleaning)).strip()] for captions in found]


def every_caption(clips: StoredClips, language: str = "eng") -> StoredClips:
    """Clips of which each comes once for each of its captions: what ML-CLAP, GLAP and DCASE call an epoch.

    A clip's twins may meet in a batch, where a loss takes each for the other's negative. Captions in a further language
    go with those in `language` by their number; a twin without one has none.

    Returns:
        One row a caption, clip by clip; the column "caption" has its number, from 0.
    """
    counts = [len(captions) for captions in clips.captions(language)]
    twins = clips.select([row for row, count in enumerate(counts) for _ in range(count)])
    numbers = [number for count in counts for number in range(count)]
    return replace(
        twins,
        key=content_key([twins.key, "every caption"]),
        columns={**twins.columns, "caption": numbers},
        write=partial(numbered_captions, clips.write),
    )


def numbered_captions(write, columns: Columns, language: str) -> list[list[str]]:
    captions = write(columns, language)
    return [texts[number : number + 1] for texts, number in zip(captions, columns["caption"], strict=True)]


def shared_captions(captions: Sequence[Sequence[str]]) -> int:
    """How many captions another clip has, too, in the same words; a system cannot tell whose they are.

    >>> shared_captions([["a dog barks", "a dog"], ["a dog barks"], ["rain", "rain"]])
    2
    """
    owned = owners(captions)
    return sum(owned[text] > 1 for texts in captions for text in texts)


def owners(captions: Sequence[Sequence[str]]) -> Counter[str]:
    """Text → how many clips have it."""
    return Counter(text for texts in captions for text in set(texts))


def label_prompts(
    classes: Sequence[str], language: str = "eng", template: str | None = None, *, prompt: str = ""
) -> list[str]:
    """One sentence a class, by a template or else a prompt with "{label}" in it, or as SupCLAP asks for it.

    >>> label_prompts(["dog_bark"]), label_prompts(["dog_bark"], "jpn")
    (['This is a sound of dog bark.'], ['これは犬の吠え声の音です。'])
    """
    if not classes:
        raise NoLabelsError("these clips have captions, not labels: take a classification set such as esc50")
    if language != "eng":
        return load_labels().prompts(classes, language, template or prompt or None)
    return [(template or prompt or PROMPT).format(label=label.replace("_", " ")) for label in classes]


class Queries(NamedTuple):
    """Q texts, and which of N clips are right for each: `(Q, N)` boolean."""

    texts: list[str]
    relevance: Tensor


def read_queries(path: str | Path, clips: Clips, *, cleaning: str = "none") -> Queries:
    """Queries from a CSV: a column `query`, and `audio_filenames`, a list as Python writes it (DCASE's
    `metadata_eval.csv`), or `file_name`, one right clip a row.

    Rows of one query are gathered. Files that are none of the clips, and queries that lose all of theirs, are left out
    with a warning that counts and names them.

    cleaning: of the queries, as of the captions that the model was trained with; see `clean`.

    Raises:
        DataNotFoundError: there is no such file.
        PullPushError: it is another table, or none of its files is among the clips.
    """
    path = Path(path)
    table = official_table(path, ["query"])
    if not {"audio_filenames", "file_name"} & set(table.columns):
        raise PullPushError(f"{path} needs a column audio_filenames or file_name, has {', '.join(table.columns)}")
    if blank := [str(row + 2) for row, query in enumerate(table["query"]) if not query.strip()]:
        raise PullPushError(f"{path} has no query in rows {few(blank)}: write one, or take the rows out")
    listed = "audio_filenames" in table.columns
    wanted: dict[str, list[str]] = {}
    for query, value in zip(table["query"], table["audio_filenames" if listed else "file_name"], strict=True):
        wanted.setdefault(clean(query.strip(), cleaning), []).extend(_names(value, path) if listed else [value])
    place = {name: number for number, name in enumerate(clips.columns["file"])}
    right = {query: [place[name] for name in names if name in place] for query, names in wanted.items()}
    texts = [query for query, rows in right.items() if rows]
    if not texts:
        raise PullPushError(f"no file of {path} is among the {len(clips)} clips: is it the table of this dataset?")
    strange = sorted({name for names in wanted.values() for name in names} - place.keys())
    lost = [query for query, rows in right.items() if not rows]
    for what, names in {"files that are none of the clips": strange, "queries without a clip": lost}.items():
        if names:
            warnings.warn(f"{path.name}: {len(names)} {what} left out: {few(names)}", stacklevel=2)
    relevance = torch.zeros(len(texts), len(clips), dtype=torch.bool)
    for number, query in enumerate(texts):
        relevance[number, right[query]] = True
    return Queries(texts, relevance)


def _names(value: str, path: Path) -> list[str]:
    """`"['a.wav', 'b.wav']"` as a list; nothing of it is run."""
    try:
        names = ast.literal_eval(value)
        if not isinstance(names, list | tuple):
            raise TypeError(f"it is {type(names).__name__}")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise PullPushError(f"{path}: audio_filenames must be lists such as ['a.wav'], got {value[:80]!r}") from error
    return [str(name) for name in names]


@dataclass(frozen=True)
class CorpusConfig:
    """Which dataset, and how much of it.

    dataset: a name in the registry, "folder:/path" or "hf:name" (see `registry.find`); seconds: longer recordings are
    cut to this; None: to what the dataset's longest clips have, 30 for Clotho, 10 for the others; `math.inf` cuts none.
    n_train, n_valid, n_test: only the first so many clips of a split; None takes all. sample_rate: in Hz, that
    recordings are kept in: what the audio encoder takes. subset: of the test clips, by a name of the dataset's:
    AudioCaps has "957", which ML-CLAP and The Language Encoder test on, and "975", all of its table. text_cleaning:
    "none", "ml-clap" or "dcase", see `clean`. every_caption: a training clip comes once for each caption.
    """

    dataset: str
    seconds: Positive | None = None
    n_train: Count | None = None
    n_valid: Count | None = None
    n_test: Count | None = None
    sample_rate: Count = SAMPLE_RATE
    subset: str | None = None
    text_cleaning: str = "none"
    every_caption: bool = False

    def __post_init__(self) -> None:
        check_fields(self, of="corpus", but=("seconds",) if self.seconds == math.inf else ())
        check_known("text cleaning", self.text_cleaning, CLEANINGS)

    def load(self) -> World:
        return load_corpus(self)


def load_corpus(config: CorpusConfig) -> World:
    """A dataset of captioned recordings, decoded or read from the cache.

    Returns:
        Clips with the columns "file" and "captions", in the set's own language. Those in further ones are read from
        `captions.fra.csv` and so on beside the dataset's own files; relevance is 1 for the same file, else 0.

    Raises:
        UnknownNameError: no such dataset, or subset of it.
        DataNotFoundError: it is not on disk; the message says where it is looked for and how to get it.
        AudioError: a recording cannot be read; the message names it.
        PullPushError: it has labels in place of captions, or a reading library is not installed.
    """
    splits = {split: load_split(config, split) for split in SPLITS}
    dataset = find(config.dataset)
    check_recordings(dataset.title, splits)
    if config.every_caption:
        splits["train"] = every_caption(splits["train"])
    tables = language_tables(dataset.where(datasets_home()))
    about = [config.every_caption, *(splits[split].captions("eng") for split in ("train", "valid"))]
    words = content_key([*about, {language: digest(path) for language, path in tables.items()}])
    return World(config, splits, words, parts=("data/decoding", "data/relevance", "data/labels"))


def load_split(config: CorpusConfig, split: str) -> StoredClips:
    """One of the splits alone, "train", "valid" or "test"; raises as `load_corpus` does."""
    dataset = find(config.dataset)
    if dataset.labelled:
        raise PullPushError(f"{dataset.title} has labels, not captions: it is for zero-shot classification")
    if config.subset is not None:
        check_known(f"subset of {dataset.title}", config.subset, dataset.subsets)
    files = listing(config.dataset, split)
    if split == "test" and config.subset is not None:
        subset = dataset.subsets[config.subset]
        files = files.rows(row for row, path in enumerate(files.paths) if subset.holds(path.stem))
        if lost := max(0, subset.clips - len(files.paths)):
            message = f"{lost} of the {subset.clips} clips of subset {config.subset} are missing"
            warnings.warn(f"{dataset.title}: {message}", stacklevel=4)
    files = files.rows(range(len(files.paths))[: getattr(config, f"n_{split}")])
    options = {"cleaning": config.text_cleaning, "seconds": config.seconds, "sample_rate": config.sample_rate}
    return _clips(dataset, config.dataset, split, files, {"captions": files.captions}, **options)


def load_labelled(
    name: str, *, seconds: float | None = None, n: int | None = None, sample_rate: int = SAMPLE_RATE
) -> StoredClips:
    """A dataset's clips for zero-shot classification: its test split, or all of it where it has folds only.

    n: only so many clips, spread evenly over the files; seconds, sample_rate: see `CorpusConfig`.

    Returns:
        Clips with the columns "file" and "label".

    Raises:
        UnknownNameError, DataNotFoundError, AudioError, PullPushError, CacheError: see `load_corpus`.
    """
    dataset = find(name)
    if not dataset.labelled:
        raise PullPushError(f"{dataset.title} has captions, not labels: take a set such as esc50")
    files = listing(name, "test")
    if n is not None and n < len(files.paths):  # spread, since labelled sets are often sorted by class
        files = files.rows(int(row) for row in np.linspace(0, len(files.paths) - 1, n).round())
    columns: dict[str, Sequence] = {"label": [files.classes.index(label) for label in files.labels]}
    return _clips(dataset, name, "test", files, columns, seconds=seconds, sample_rate=sample_rate)


def _clips(
    dataset: DatasetCard,
    name: str,
    split: str,
    files: Listing,
    columns: dict[str, Sequence],
    *,
    cleaning: str = "none",
    seconds: float | None,
    sample_rate: int,
) -> StoredClips:
    """Files as clips, decoded first if they are not in the cache."""
    if not files.paths:
        raise PullPushError(f"{dataset.title} has no clip for {split}: see {dataset.where(datasets_home())}")
    longest = dataset.seconds if seconds is None else None if seconds == math.inf else seconds
    about, title = [name.partition(":")[0], split], f"{dataset.title} {split}"
    tables = {} if dataset.labelled else language_tables(dataset.where(datasets_home()))
    waveforms, key = stored(files.paths, about, longest, sample_rate, title)
    return StoredClips(
        split,
        key,
        waveforms,
        np.arange(len(waveforms)),
        {"file": [path.name for path in files.paths], **columns},
        partial(recorded_captions, dataset.title, tables, cleaning),
        identity,
        partial(label_prompts, files.classes, prompt=dataset.prompt),
    )


def language_tables(folder: Path) -> dict[str, Path]:
    """The files of a folder's captions in further languages, by ISO 639-3 code: `captions.fra.csv`; PullPushError where
    a name is no code, or that of English, which the set itself has.
    """
    found = {path.name.removeprefix("captions.").removesuffix(".csv"): path for path in folder.glob("captions.*.csv")}
    for code, path in found.items():
        if not re.fullmatch("[a-z]{3}", code):
            raise PullPushError(f"{path}: {code!r} is no language: three letters of ISO 639-3, as in captions.fra.csv")
        if code == "eng":
            raise PullPushError(f"{path}: captions in English are read from captions.csv; take one of the two away")
    return dict(sorted(found.items()))
