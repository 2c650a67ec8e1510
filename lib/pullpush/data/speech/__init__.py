"""Recordings of people who speak, with their texts: as worlds, and what these worlds share."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from pullpush.cache import content_key
from pullpush.data import store
from pullpush.data.audio import SAMPLE_RATE, check_audible, load_audio, normalise_rms, trim_silence
from pullpush.data.clips import Columns, StoredClips
from pullpush.errors import AudioError, DataNotFoundError, looked_up


class Utterance(NamedTuple):
    """One recording.

    language: ISO 639-3; voice: who speaks, as far as that is known, else which recordings it is one of; kind: "word",
    "letter", "syllable", "number", "code word" or "sentence"; key: what is the same in all languages; text: what is
    said.
    """

    path: Path
    language: str
    voice: str
    kind: str
    key: str
    text: str


def normalised(text: str) -> str:
    """What makes two texts the same: capital letters and signs do not count, accents do.

    >>> normalised("Aujourd’hui !") == normalised("aujourd'hui")
    True
    """
    text = unicodedata.normalize("NFC", text).replace("’", "'").casefold()
    return " ".join(re.sub(r"[^\w'@#*+=/$&%-]+", " ", text).split()) or text


def decoded(
    kind: str, key: str, paths: Sequence[Path], longest: float | None, sample_rate: int
) -> tuple[store.Waveforms, str]:
    """Recordings of the cache, each as `wave_of` makes it, and a name for their bytes."""
    decode = partial(wave_of, longest=longest, sample_rate=sample_rate)
    return store.cached(kind, key, lambda: store.made(decode, paths, "decoding speech"), sample_rate)


def split_clips(
    table: pd.DataFrame,
    masks: Mapping[str, pd.Series],
    columns: Sequence[str],
    waveforms: store.Waveforms,
    stored: Any,
    write: Callable[[Columns, str], list[list[str]]],
    compare: Callable[[Columns, Columns], Tensor],
) -> dict[str, StoredClips]:
    """Clips by split: the rows of a table of recordings that each mask has, with some of its columns; stored: names
    what the store holds. `DataNotFoundError` where a split is empty.
    """
    splits = {}
    for name, is_in in masks.items():
        rows = np.flatnonzero(is_in)
        if not len(rows):
            raise DataNotFoundError(f"nothing is left for {name!r} of {len(table)} recordings: take more")
        held = {column: table[column].iloc[rows].tolist() for column in columns}
        splits[name] = StoredClips(
            name, content_key([stored, rows.tolist(), held]), waveforms, rows, held, write, compare
        )
    return splits


def wave_of(path: Path, longest: float | None, sample_rate: int = SAMPLE_RATE) -> np.ndarray:
    """A recording, trimmed, normalised and cut to `longest` seconds, int16; `AudioError` if it is damaged or silent."""
    try:
        wave = trim_silence(check_audible(load_audio(path, sample_rate=sample_rate), path))
    except AudioError as error:
        raise AudioError(f"{error} (somebody who speaks: fetch the recordings again, or remove this file)") from error
    most = None if longest is None else round(longest * sample_rate)
    return store.to_int16(normalise_rms(wave[:most]).numpy())


def translations(
    texts: Mapping[str, Mapping[str, str]], columns: Columns, language: str, *, column: str = "key"
) -> list[list[str]]:
    """What each clip's key is called in a language; none where that is not known; `UnknownNameError` if none is.

    texts: language → key → text; column: of the keys.

    >>> translations({"eng": {"keywords/ear": "ear"}}, {"key": ["keywords/ear", "letters/a"]}, "eng")
    [['ear'], []]
    """
    known = looked_up("language of captions", language, texts)
    return [[known[key]] if key in known else [] for key in columns[column]]
