"""People who speak the stamps' captions: recordings as queries, with the captions' translations as texts.

A stamp is *held out* with all stamps that share a caption with it in any language, so that no text of one split is a
text of another. Some stamps of the training set lack their recording in one language: `crossed` holds those, a known
caption in the voice of a language that it was never heard in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from scipy.cluster.hierarchy import DisjointSet

from pullpush.cache import content_key, digest
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import World, identity
from pullpush.data.draws import share
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.recordings import tuxpaint
from pullpush.data.speech import decoded, split_clips, translations
from pullpush.errors import DataNotFoundError
from pullpush.golden import versions

SPOKEN = {"fra": "French", "ru": "Russian", "bg": "Bulgarian"}  # in the stamps' codes; about 900 recordings each
PARTS = ("data/decoding", "data/speech", "data/relevance")
same_group = partial(identity, column="group")


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

    def load(self) -> World:
        return load_speech(self)


def load_speech(config: SpeechConfig | None = None, *, root: Path | None = None) -> World:
    """Decode the recordings, or read them from the cache, and split them by stamp.

    No stamp is in two of train, valid and test; the further split "crossed" holds stamps of train in a spoken language
    in which train does not hold them. Valid, test and crossed hold one stamp of each group (those that share a
    caption), so that one text is right.

    config: default: French, Russian and Bulgarian; root: folder of stamps; default: that of `tuxpaint.fetch`.

    Returns:
        Clips with the columns "stamp", "group" (the stamps that share a caption with it) and "spoken" (language).

    Raises:
        DataNotFoundError: no recordings in a language, or too few stamps to split.
        AudioError: a recording is damaged or silent; it is named.
    """
    config = config or SpeechConfig()
    stamps = tuxpaint.index(root)
    wanted = stamps.speech[stamps.speech["language"].isin(config.spoken)]
    left_out = wanted["stamp"].str.split("/").str[0].isin(config.without)
    wanted = wanted[~left_out].drop_duplicates(["stamp", "language"]).rename(columns={"language": "spoken"})
    for language in config.spoken:
        if language not in set(wanted["spoken"]):
            there = ", ".join(stamps.speech["language"].unique())
            raise DataNotFoundError(f"nobody speaks {language!r} in these stamps: choose of {there}")
    captions = stamps.captions[stamps.captions["stamp"].isin(set(wanted["stamp"]))]
    wanted = wanted[wanted["stamp"].isin(set(captions["stamp"]))]  # one recording of 2022-06-04 says nobody knows what
    texts = _texts(captions, (*LANGUAGES, *SPOKEN, *config.spoken))
    paths = [Path(path) for path in wanted["path"]]
    contents = [digest(path) for path in paths]
    voices = content_key([versions(*PARTS[:2]), contents, config.longest])
    stored = decoded("speech", voices, paths, config.longest, SAMPLE_RATE)
    table = wanted.reset_index(drop=True)
    table["group"] = table["stamp"].map(caption_groups(texts))
    write = partial(translations, texts, column="stamp")
    masks, columns = _membership(table, config), ("stamp", "group", "spoken")
    splits = split_clips(table, masks, columns, *stored, write, same_group)
    return World(config, splits, content_key(texts), parts=PARTS)


def caption_groups(texts: dict[str, dict[str, str]]) -> dict[str, str]:
    """Stamp → the first of all stamps that it shares a caption with, in any language, directly or through others.

    Capital letters and signs at the ends do not tell captions apart.
    """
    groups = DisjointSet(stamp for captions in texts.values() for stamp in captions)
    for captions in texts.values():
        first: dict[str, str] = {}
        for stamp, text in captions.items():
            groups.merge(first.setdefault(text.casefold().strip(" .!?…。！"), stamp), stamp)
    return {stamp: min(groups.subset(stamp)) for stamp in groups}


def _texts(captions: pd.DataFrame, languages: Sequence[str]) -> dict[str, dict[str, str]]:
    """Language → stamp → caption, in the order of the stamps."""
    table = captions.drop_duplicates(["stamp", "language"]).sort_values("stamp", kind="stable")
    return {
        language: dict(rows[["stamp", "text"]].itertuples(index=False))
        for language in dict.fromkeys(languages)
        for rows in [table[table["language"] == language]]
    }


def _membership(table: pd.DataFrame, config: SpeechConfig) -> dict[str, pd.Series]:
    """Which recordings each split holds, as masks."""
    point = table["group"].map(lambda group: share(("split", config.seed, group)))
    test, valid = point < config.test, (point >= config.test) & (point < config.test + config.valid)
    train = ~(test | valid)
    crossed = train & (table["group"].map(lambda group: share(("crossed", config.seed, group))) < config.crossed)
    lacks = table["group"].map(lambda g: config.spoken[int(share(("lacks", config.seed, g)) * len(config.spoken))])
    crossed &= table["spoken"] == lacks
    first = table["stamp"] == table["group"].map(table.groupby("group")["stamp"].min())
    # One voice a stamp suffices to choose an epoch by, and no other clip then has the same caption.
    voice = table["group"].map(lambda g: config.spoken[int(share(("voice", config.seed, g)) * len(config.spoken))])
    valid &= (table["spoken"] == voice) & first
    return {"train": train & ~crossed, "valid": valid, "test": test & first, "crossed": crossed & first}
