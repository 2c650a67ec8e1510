"""People who speak the stamps' captions: recordings as queries, with the captions' translations as texts.

A stamp is *held out* with all stamps that share a caption with it in any language, so that no text of one split is a
text of another. Some stamps of the training set lack their recording in one language: `crossed` holds those, a known
caption in the voice of a language that it was never heard in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.cache import cached_dir, content_key
from pullpush.data import tuxpaint
from pullpush.data.audio import (
    SAMPLE_RATE,
    check_audible,
    load_audio,
    normalise_rms,
    numbers,
    padded,
    to_int16,
    trim_silence,
)
from pullpush.data.vocabulary import LANGUAGES
from pullpush.errors import AudioError, DataNotFoundError, unknown
from pullpush.progress import hidden
from pullpush.source import digest

KIND = "speech"
SPOKEN = {"fra": "French", "ru": "Russian", "bg": "Bulgarian"}  # in the stamps' codes; about 900 recordings each
THREADS = 2  # that decode


@dataclass(frozen=True)
class SpeechConfig:
    """Everything that shapes the splits.

    spoken: languages of the recordings; seed: of the splits; valid, test: shares of the groups of stamps held out;
    crossed: share of the training groups of which one spoken language is held out; longest: seconds that are kept of
    a recording; without: folders of stamps left out ("symbols" are letters, signs and road signs, spoken as such).
    """

    spoken: tuple[str, ...] = tuple(SPOKEN)
    seed: int = 0
    valid: float = 0.1
    test: float = 0.2
    crossed: float = 0.25
    longest: float = 2.5
    without: tuple[str, ...] = ("symbols",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spoken", tuple(self.spoken))
        object.__setattr__(self, "without", tuple(self.without))
        shares = (self.valid, self.test, self.crossed)
        if not self.spoken or min(shares) < 0 or self.valid + self.test >= 1 or self.crossed > 1 or self.longest <= 0:
            raise ValueError(f"need a spoken language, shares that leave stamps to train on, and a length, got {self}")


@dataclass(frozen=True)
class SpeechSplit:
    """Recordings of captions; one clip a recording.

    name: "train", "valid", "test" or "crossed"; samples: all recordings of the bank one after another, int16 at
    16 kHz, memory-mapped; recordings: a row a clip: stamp, group, spoken (language), path, start, length (samples);
    texts: language → stamp → caption; key: content key.
    """

    name: str
    samples: np.ndarray
    recordings: pd.DataFrame
    texts: dict[str, dict[str, str]] = field(repr=False)
    key: str

    def __len__(self) -> int:
        return len(self.recordings)

    def audio(self, index: int | Sequence[int] | Tensor | slice) -> tuple[Tensor, Tensor]:
        """Some clips, `(B, T)` float32 in [-1, 1], zero beyond each length, and their lengths `(B,)` int64."""
        starts, lengths = (self.recordings[name].to_numpy() for name in ("start", "length"))
        rows = numbers(index, len(self))
        waves = [self.samples[starts[row] : starts[row] + lengths[row]] for row in rows]
        return padded(waves), torch.from_numpy(lengths[rows].astype(np.int64))

    def captions(self, language: str) -> list[list[str]]:
        """The caption of every clip's stamp in one language; none where it has no translation.

        Raises:
            UnknownNameError: no stamp has a caption in that language.
        """
        if language not in self.texts:
            raise unknown("language of captions", language, self.texts)
        own = self.texts[language]
        return [[own[stamp]] if stamp in own else [] for stamp in self.recordings["stamp"]]

    def missing(self, languages: Sequence[str] = LANGUAGES) -> dict[str, int]:
        """How many stamps have no caption in each language."""
        stamps = self.recordings["stamp"].unique()
        return {language: sum(stamp not in self.texts[language] for stamp in stamps) for language in languages}

    def select(self, rows: Sequence[int] | np.ndarray, name: str | None = None) -> SpeechSplit:
        """Some of the clips, by their numbers, as a split of its own."""
        rows = [int(row) for row in rows]
        table = self.recordings.iloc[rows].reset_index(drop=True)
        return replace(self, name=name or self.name, recordings=table, key=content_key([self.key, rows]))

    def head(self, n: int) -> SpeechSplit:
        """The first `n` clips (all, if there are fewer)."""
        return self.select(range(min(n, len(self))))


class SpeechBank(NamedTuple):
    """Where the recordings come from; `key` names their content and their captions'."""

    key: str


class SpeechWorld(NamedTuple):
    """What a `Plan` needs of a world. No stamp is in two of train, valid and test; `crossed` are stamps of
    train in a spoken language in which train does not hold them.
    """

    config: SpeechConfig
    bank: SpeechBank
    train: SpeechSplit
    valid: SpeechSplit
    test: SpeechSplit
    crossed: SpeechSplit

    @property
    def identity(self) -> list[Any]:
        """What tells these recordings from others, for the names of runs."""
        return [self.config, self.bank.key]


def load_speech(config: SpeechConfig | None = None, *, root: Path | None = None) -> SpeechWorld:
    """Decode the recordings, or read them from the cache, and split them by stamp.

    Valid, test and crossed hold one stamp of each group (those that share a caption), so that one text is right.

    Args:
        config: default: French, Russian and Bulgarian.
        root: folder of stamps; default: that of `tuxpaint.fetch`.

    Raises:
        DataNotFoundError: no recordings in a language, or too few stamps to split.
        AudioError: a recording is damaged or silent; it is named.
        CacheError: the cache cannot be written.
    """
    config = config or SpeechConfig()
    stamps = tuxpaint.index(root)
    wanted = stamps.speech[stamps.speech["language"].isin(config.spoken)]
    left_out = wanted["stamp"].str.split("/").str[0].isin(config.without)
    wanted = wanted[~left_out].drop_duplicates(["stamp", "language"]).rename(columns={"language": "spoken"})
    for language in config.spoken:
        if language not in set(wanted["spoken"]):
            raise DataNotFoundError(f"nobody speaks {language!r} in these stamps: choose of {', '.join(SPOKEN)}")
    captions = stamps.captions[stamps.captions["stamp"].isin(set(wanted["stamp"]))]
    wanted = wanted[wanted["stamp"].isin(set(captions["stamp"]))]  # one recording of 2022-06-04 says nobody knows what
    texts = _texts(captions, (*LANGUAGES, *SPOKEN, *config.spoken))
    paths = [Path(path) for path in wanted["path"]]
    contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    bank = SpeechBank(content_key([digest(_decode), contents, config.longest]))
    folder = cached_dir(KIND, bank.key, lambda place: _decode(place, paths, config.longest))
    samples, lengths = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("samples", "lengths"))
    table = wanted.reset_index(drop=True).assign(start=np.cumsum(lengths) - lengths, length=lengths)
    table["group"] = table["stamp"].map(caption_groups(texts))
    key = content_key([digest(_membership, caption_groups), bank.key, config, texts])
    parts = {
        name: SpeechSplit(name, samples, table[own].reset_index(drop=True), texts, content_key([key, name]))
        for name, own in _membership(table, config).items()
    }
    if empty := [name for name, part in parts.items() if not len(part)]:
        raise DataNotFoundError(f"{table['stamp'].nunique()} stamps are too few: nothing is left for {empty}")
    return SpeechWorld(config, SpeechBank(key), **parts)


def caption_groups(texts: dict[str, dict[str, str]]) -> dict[str, str]:
    """Stamp → the first of all stamps that it shares a caption with, in any language, directly or through others.

    Capital letters and signs at the ends do not tell captions apart.
    """
    parent: dict[str, str] = {stamp: stamp for own in texts.values() for stamp in own}

    def root(stamp: str) -> str:
        while parent[stamp] != stamp:
            parent[stamp] = stamp = parent[parent[stamp]]
        return stamp

    for own in texts.values():
        first: dict[str, str] = {}
        for stamp, text in own.items():
            one, other = root(first.setdefault(text.casefold().strip(" .!?…。！"), stamp)), root(stamp)
            parent[max(one, other)] = min(one, other)
    return {stamp: root(stamp) for stamp in parent}


def _texts(captions: pd.DataFrame, languages: Sequence[str]) -> dict[str, dict[str, str]]:
    """Language → stamp → caption, in the order of the stamps."""
    table = captions.drop_duplicates(["stamp", "language"]).sort_values("stamp", kind="stable")
    return {
        language: dict(own[["stamp", "text"]].itertuples(index=False))
        for language in dict.fromkeys(languages)
        for own in [table[table["language"] == language]]
    }


def _membership(table: pd.DataFrame, config: SpeechConfig) -> dict[str, pd.Series]:
    """Which recordings each split holds, as masks."""
    point = table["group"].map(lambda group: _point("split", config.seed, group))
    test, valid = point < config.test, (point >= config.test) & (point < config.test + config.valid)
    train = ~(test | valid)
    crossed = train & (table["group"].map(lambda group: _point("crossed", config.seed, group)) < config.crossed)
    lacks = table["group"].map(lambda g: config.spoken[int(_point("lacks", config.seed, g) * len(config.spoken))])
    crossed &= table["spoken"] == lacks
    first = table["stamp"] == table["group"].map(table.groupby("group")["stamp"].min())
    # One voice a stamp suffices to choose an epoch by, and no other clip then has the same caption.
    voice = table["group"].map(lambda g: config.spoken[int(_point("voice", config.seed, g) * len(config.spoken))])
    valid &= (table["spoken"] == voice) & first
    return {"train": train & ~crossed, "valid": valid, "test": test & first, "crossed": crossed & first}


def _point(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48


def _decode(folder: Path, paths: Sequence[Path], longest: float) -> None:
    """Write samples.npy, all recordings one after another in int16, and lengths.npy."""
    parallel = joblib.Parallel(n_jobs=THREADS, prefer="threads", return_as="generator")
    waves = list(
        tqdm(
            parallel(joblib.delayed(_wave)(path, longest) for path in paths),
            total=len(paths),
            desc="decoding speech",
            unit="recording",
            disable=hidden(),
        )
    )
    np.save(folder / "samples.npy", np.concatenate(waves))
    np.save(folder / "lengths.npy", np.array([len(wave) for wave in waves], dtype=np.int64))


def _wave(path: Path, longest: float) -> np.ndarray:
    """A recording, trimmed, normalised and cut to `longest` seconds, int16."""
    try:
        wave = trim_silence(check_audible(load_audio(path), path))
    except AudioError as error:
        raise AudioError(f"{error} (a spoken caption: fetch the stamps again, or remove this file)") from error
    wave = normalise_rms(wave[: round(longest * SAMPLE_RATE)])
    return to_int16(wave.numpy())


def stamps_of(splits: Sequence[SpeechSplit]) -> pd.DataFrame:
    """How much there is: columns split, recordings, stamps, minutes, and the recordings in each spoken language."""
    rows = []
    for split in splits:
        minutes = split.recordings["length"].sum() / SAMPLE_RATE / 60
        row = {"split": split.name, "recordings": len(split), "stamps": split.recordings["stamp"].nunique()}
        rows.append(row | {"minutes": minutes} | split.recordings["spoken"].value_counts().sort_index().to_dict())
    return pd.DataFrame(rows).fillna(0)
