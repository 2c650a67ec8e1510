"""Worlds in shards: a stream to learn from, and clips in the cache to choose and test by.

    world = load_data(ShardsConfig("/data/mine"))       # /data/mine/train/*.tar, valid/*.tar, test/*.tar
    train_run(world, recipe("siglip"), out="runs/mine")

Folders in `train` are groups of clips by their names, for `Recipe.balance`.
"""

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from pullpush.cache import bytes_key, cached_dir, content_key
from pullpush.data import store
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import SPLITS, Columns, StoredClips, World
from pullpush.data.shards.files import Annotation, DamagedError, Shard, Where, read_sample, samples_of, shards_of, tars
from pullpush.data.shards.stream import ShardDataset, captions_in
from pullpush.data.store import KIND, fingerprint
from pullpush.errors import DataNotFoundError, PullPushError, check_all_known, unknown
from pullpush.golden import versions
from pullpush.settings import Count, Positive, check_fields, check_setting

TABLE = "clips.json"


@dataclass(frozen=True)
class ShardsConfig:
    """Shards to learn from, to choose by and to test on.

    where: a folder that holds folders `train`, `valid` and `test`; or a folder or pattern to learn from with the others
    behind it, "/data/train-{000..099}.tar?valid=/data/valid&test=/data/test". seconds: longer recordings are cut to
    this; None keeps all. n_valid, n_test: only the first so many clips; None takes all. sample_rate: in Hz, that the
    clips for validation and test are kept in; those to learn from are resampled to what the model takes. unnamed: the
    language of captions that name none; of what is learnt from, these are in the recipe's first.
    """

    where: str
    seconds: Positive | None = None
    n_valid: Count | None = None
    n_test: Count | None = None
    sample_rate: Count = SAMPLE_RATE
    unnamed: str = "eng"

    def __post_init__(self) -> None:
        check_fields(self, of="shards")

    @property
    def places(self) -> dict[str, str]:
        """Where each split is; `UnknownNameError` where another is named."""
        first, _, further = self.where.partition("?")
        named = dict(parse_qsl(further.replace("+", "%2B")))  # a plus is a plus
        check_all_known("split of shards", named, SPLITS)
        folder = Path(first).expanduser()
        inside = {name: str(folder / name) for name in SPLITS if (folder / name).is_dir()}
        return {"train": first} | inside | named

    def load(self) -> World:
        """The shards to learn from as they are, those of the other splits decoded into the cache; raises as
        `read_shards` does, `DataNotFoundError` where a split is missing, and `PullPushError` where a shard is in two.
        """
        places = self.places
        if lost := [name for name in SPLITS[1:] if name not in places]:
            raise DataNotFoundError(
                f"no shards for {' and '.join(lost)} with {self.where}: put them into folders valid and test beside "
                "train, or name them, in quotes: 'shards:/data/train?valid=/data/valid&test=/data/test'"
            )
        options = {"sample_rate": self.sample_rate, "seconds": self.seconds, "unnamed": self.unnamed}
        groups = groups_in(places["train"])
        splits: dict[str, Any] = {"train": ShardSet(groups, self.seconds)}
        of_split = {name: {*tars(places[name])} for name in SPLITS[1:]}
        of_split["train"] = {*tars([*groups.values()] if isinstance(groups, dict) else groups)}
        for a, b in combinations(of_split, 2):
            if both := of_split[a] & of_split[b]:
                raise PullPushError(f"{len(both)} shards are in {a} and in {b}, such as {min(both)}: name each once")
        splits["valid"] = read_shards(places["valid"], name="valid", n=self.n_valid, **options)
        splits["test"] = read_shards(places["test"], name="test", n=self.n_test, **options)
        return World(self, splits, parts=("data/decoding", "data/relevance"))


@dataclass(frozen=True)
class ShardSet:
    """Shards to learn from, in place of the clips of a split: of each group by name, or one of all."""

    where: Where | Mapping[str, Where]
    seconds: float | None = None
    name = "train"

    def pairs(self, **options: Any) -> ShardDataset:
        """What is learnt from; options: of `ShardDataset`."""
        return ShardDataset(self.where, seconds=self.seconds, **options)

    @property
    def key(self) -> str:
        """Names the shards' content, by their checksums, or else their times and ends, and how it is read."""
        sets = self.where if isinstance(self.where, Mapping) else {"": self.where}
        prints = {name: list(map(_print, shards_of(where))) for name, where in sets.items()}
        return content_key([versions("data/decoding"), self.seconds, prints])


def groups_in(where: str) -> str | dict[str, Path]:
    """The folders with shards in a folder, by their names; the folder or pattern itself where there are none;
    `PullPushError` where there are shards beside such folders, which are of no group."""
    folder = Path(where).expanduser()
    inside = sorted({path.parent for path in folder.glob("*/[!.]*.tar")}) if folder.is_dir() else []
    if inside and (loose := sorted(folder.glob("[!.]*.tar"))):
        raise PullPushError(f"{loose[0]} lies beside folders with shards, which are groups: put it into one of its own")
    return {path.name: path for path in inside} or where


def read_shards(
    where: Where,
    *,
    name: str = "valid",
    sample_rate: int = SAMPLE_RATE,
    seconds: float | None = None,
    n: int | None = None,
    unnamed: str = "eng",
) -> StoredClips:
    """Shards of a size that a disk holds, decoded into the cache once.

    where: see `shards_of`; name: of the split; sample_rate: in Hz, that recordings are kept in; seconds: longer ones
    are cut to this; n: only the first so many; unnamed: the language of captions that name none.

    Returns:
        Clips in the order of the shards with the columns "captions" (by language), those that all samples have, and
        "file" if that is none of these: shard and key, behind the folders that tell them apart. A warning says how many
        samples are damaged, which are left out.

    Raises:
        DataNotFoundError: there are no such shards.
        PullPushError: none of their samples can be read; SettingError: seconds or n that are not positive.
    """
    check_setting("seconds", seconds, Positive | None)
    check_setting("n", n, Count | None)
    shards = shards_of(where)
    above = Path(os.path.commonpath([shard.path.parent for shard in shards])).parent
    named = {shard.path.relative_to(above).as_posix(): shard for shard in shards}
    key = content_key([versions("data/decoding"), list(map(_print, shards)), list(named), sample_rate, seconds, n])
    folder = cached_dir(KIND, key, lambda place: _decode(place, named, sample_rate, seconds, n))
    table = json.loads((folder / TABLE).read_text(encoding="utf-8"))
    rows, damaged = table["clips"], table["damaged"]
    if damaged:
        total = len(rows) + len(damaged)
        warnings.warn(
            f"{len(damaged)} of {total} samples are damaged, left out: {', '.join(damaged[:3])}", stacklevel=2
        )
    if not rows:
        raise PullPushError(f"none of the samples of {where} can be read: {', '.join(damaged[:3])}")
    common = [column for column in rows[0]["columns"] if all(column in row["columns"] for row in rows)]
    columns = {"file": [row["file"] for row in rows]}
    columns |= {column: [row["columns"][column] for row in rows] for column in common}
    columns["captions"] = [row["captions"] for row in rows]
    waveforms = store.read(folder, sample_rate=sample_rate)
    write = partial(captions_of, unnamed=unnamed)
    return StoredClips(
        name, content_key([bytes_key(folder), sample_rate]), waveforms, np.arange(len(rows)), columns, write
    )


def captions_of(columns: Columns, language: str, *, unnamed: str = "eng") -> list[list[str]]:
    """The captions of clips from shards in a language; `UnknownNameError` where none has any.

    unnamed: the language of captions that name none.

    >>> captions_of({"captions": [{"eng": ["a dog"]}, {"fra": ["un chat"]}]}, "eng")
    [['a dog'], []]
    """
    known = columns["captions"]
    captions = [list(captions_in(Annotation(each, {}), (unnamed, language))[language]) for each in known]
    if not any(captions):
        raise unknown("language of these captions", language, {name or unnamed for each in known for name in each})
    return captions


def _print(shard: Shard) -> list[Any]:
    return [shard.path.name, shard.samples, shard.checksum or [shard.path.stat().st_mtime_ns, fingerprint(shard.path)]]


def _decode(folder: Path, shards: Mapping[str, Shard], sample_rate: int, seconds: float | None, n: int | None) -> None:
    """Write the recordings (see store.py) and their annotations to a folder."""
    clips: list[dict[str, Any]] = []
    damaged: list[str] = []

    def waves() -> Iterator[np.ndarray]:
        for name, shard in shards.items():
            samples, problem = samples_of(shard.path)
            for number in range(shard.samples):
                if n is not None and len(clips) == n:
                    return
                if number >= len(samples):
                    damaged.append(f"sample {number} in {shard.path} ({problem or 'its shard ends before it'})")
                    continue
                sample = samples[number]
                try:
                    wave, annotation = read_sample(shard.path, sample, sample_rate=sample_rate, seconds=seconds)
                except DamagedError as error:
                    damaged.append(f"{sample.key} in {shard.path} ({error})")
                    continue
                clips.append({**annotation._asdict(), "file": f"{name}/{sample.key}"})
                yield store.to_int16(wave.clamp(-1, 1).numpy())

    store.write(folder, waves())
    table = json.dumps({"clips": clips, "damaged": damaged}, ensure_ascii=False)
    (folder / TABLE).write_text(table, encoding="utf-8")
