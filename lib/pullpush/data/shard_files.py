"""Shards: clips in tar files of a few hundred megabytes, in the layout of webdataset, for what is larger than a disk.

    000000.tar      000000000.flac, 000000000.json, 000000001.flac, 000000001.json, …
    000001.tar      …
    index.json      how many samples each of them has, and its checksum

The index is that of webdataset's `wids`; shards without one are counted once.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
import tarfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import soundfile

from pullpush.cache import atomic_path, cached_file, content_key
from pullpush.data.audio import SAMPLE_RATE
from pullpush.data.clips import Clips
from pullpush.data.shard_samples import samples_of
from pullpush.data.store import to_int16
from pullpush.errors import DataNotFoundError, PullPushError, unknown
from pullpush.golden import versions

INDEX = "index.json"
COUNTS = "shards"  # in the cache
Where = str | Path | Sequence[str | Path]


class Shard(NamedTuple):
    """One tar file: its path, how many samples it has, and its MD5 in hexadecimal, "" where no index tells."""

    path: Path
    samples: int
    checksum: str = ""


def write_shards(
    clips: Clips,
    folder: str | Path,
    *,
    languages: Sequence[str] = ("eng",),
    per_shard: int = 1000,
    columns: Sequence[str] = (),
    sample_rate: int = SAMPLE_RATE,
) -> Path:
    """Write clips to shards: FLAC of 16 bits, with captions and columns as JSON.

    The same clips give the same bytes. Every file is written beside its place and moved there, the index last: without
    it the folder is unfinished, and written anew.

    Args:
        folder: made if it is not there.
        languages: of the captions that are written.
        per_shard: samples in a shard. Shards of 100 MB to 1 GB suit network storage.
        columns: which of the clips' columns go along; they hold texts, numbers, and lists of these.
        sample_rate: in Hz, that the clips are asked for and written in.

    Returns:
        The folder.

    Raises:
        ValueError: less than one sample in a shard.
        PullPushError: the folder holds shards; clips have no caption in any of the languages.
        UnknownNameError: the clips have no such language or column.
        CacheError: the folder cannot be written.
    """
    folder, counts = Path(folder).expanduser(), []
    if (folder / INDEX).exists():
        raise PullPushError(f"{folder} holds shards already: name another folder, or remove it")
    if per_shard < 1:
        raise ValueError(f"per_shard must be at least 1, got {per_shard}")
    said = _said(clips, languages, columns)
    for number, start in enumerate(range(0, len(clips), per_shard)):
        rows = range(start, min(start + per_shard, len(clips)))
        with atomic_path(folder / f"{number:06d}.tar") as path:
            _write_shard(path, clips, rows, said, sample_rate)
            size, checksum = path.stat().st_size, _checksum(path)
        name = f"{number:06d}.tar"
        counts.append({"url": name, "nsamples": len(rows), "filesize": size, "md5sum": checksum})
    index = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": counts}
    with atomic_path(folder / INDEX) as path:
        path.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return folder


def shards_of(where: Where) -> tuple[Shard, ...]:
    """The shards that a folder, a pattern or a list of these names, in that order, those of a folder by name.

    A pattern is a path with braces ("/data/{000000..000099}.tar", "/data/{a,b}.tar"). How many samples they have is
    read from `index.json` beside them; shards that it does not list are counted, which reads the header of every
    member, once: the counts are kept in the cache.

    Raises:
        DataNotFoundError: there are no such shards; those that are missing are named.
    """
    paths = [path for one in ([where] if isinstance(where, str | Path) else where) for path in _paths(str(one))]
    if missing := [str(path) for path in paths if not path.is_file()]:
        some = f"{', '.join(missing[:5])}{' …' if missing[5:] else ''}"
        raise DataNotFoundError(f"{len(missing)} of {len(paths)} shards are not there: {some}")
    listed = {folder: _listed(folder) for folder in dict.fromkeys(path.parent for path in paths)}
    found = {path: listed[path.parent].get(path.name) for path in paths}
    found |= _counted([path for path, shard in found.items() if shard is None])
    return tuple(shard for path in paths if (shard := found[path]))


def check_shards(where: Where) -> pd.DataFrame:
    """Read shards from end to end and compare them with their index: columns shard, problem, a row a damaged shard.

    Shards without a checksum are only looked through to their end.
    """
    rows = []
    for shard in shards_of(where):
        if shard.checksum:
            problem = "" if _checksum(shard.path) == shard.checksum else "its checksum is not that of the index"
        else:
            problem = samples_of(shard.path)[1]
        rows += [(str(shard.path), problem)] if problem else []
    return pd.DataFrame(rows, columns=["shard", "problem"])


def expand(pattern: str) -> list[str]:
    """The names that braces stand for, as shells and webdataset read them.

    >>> expand("a{08..10}.tar"), expand("{a,b}.tar")
    (['a08.tar', 'a09.tar', 'a10.tar'], ['a.tar', 'b.tar'])
    """
    parts = re.split(r"\{([^{}]*)\}", pattern)
    choices = [_choices(part) if number % 2 else [part] for number, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _choices(inside: str) -> list[str]:
    """What one pair of braces stands for."""
    if match := re.fullmatch(r"(\d+)\.\.(\d+)", inside):
        first, last = match.groups()
        padded = any(len(bound) > 1 and bound.startswith("0") for bound in (first, last))
        width = max(len(first), len(last)) if padded else 0
        step = 1 if int(last) >= int(first) else -1
        return [f"{number:0{width}d}" for number in range(int(first), int(last) + step, step)]
    return inside.split(",") if "," in inside else [f"{{{inside}}}"]


def _paths(where: str) -> list[Path]:
    """The tar files that one folder or pattern names."""
    place = Path(where).expanduser().absolute()
    if not place.is_dir():
        return [Path(name) for name in expand(str(place))]
    index = place / INDEX
    names = list(_listed(place)) or [path.name for path in place.glob("*.tar") if not path.name.startswith(".")]
    if not names:
        zipped = ", though .tar.gz, which must be unpacked with gunzip first" if any(place.glob("*.tar.gz")) else ""
        raise DataNotFoundError(f"no shards in {place}{zipped}: it needs .tar files, or {index} that lists them")
    return [place / name for name in sorted(names)]


def _listed(folder: Path) -> dict[str, Shard]:
    """What a folder's index says of each shard, by name; nothing where there is none."""
    index = folder / INDEX
    if not index.is_file():
        return {}
    try:
        rows = json.loads(index.read_text(encoding="utf-8"))["shardlist"]
        shards = [Shard(folder / row["url"], int(row["nsamples"]), row.get("md5sum", "")) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise PullPushError(f"{index} is no index of shards ({error}): remove it, and they are counted") from error
    return {shard.path.name: shard for shard in shards}


def _counted(paths: Sequence[Path]) -> dict[Path, Shard]:
    """Shards whose samples are counted, or were before; those that end early are told."""
    if not paths:
        return {}
    about = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in paths]

    def count(place: Path) -> None:
        with ThreadPoolExecutor(8) as threads:  # most of the time is spent waiting for the disk
            counts = [(len(samples), problem) for samples, problem in threads.map(samples_of, paths)]
        place.write_text(json.dumps(counts), encoding="utf-8")

    kept = cached_file(COUNTS, content_key([versions("data/shards"), *about]) + ".json", count)
    counts = dict(zip(paths, json.loads(kept.read_text(encoding="utf-8")), strict=True))
    if early := [f"{path} ({problem})" for path, (_, problem) in counts.items() if problem]:
        warnings.warn(
            f"{len(early)} of {len(paths)} shards end early, and what stands behind that place is lost: {early[0]}"
            f"{' …' if early[1:] else ''}; `check_shards` names all",
            stacklevel=3,
        )
    return {path: Shard(path, count) for path, (count, _) in counts.items()}


def _said(clips: Clips, languages: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """What is written of each clip."""
    captions = {language: clips.captions(language) for language in languages}
    for name in columns:
        if name not in clips.columns:
            raise unknown("column of the clips", name, clips.columns)
    rows = []
    for row in range(len(clips)):
        held = {language: list(texts[row]) for language, texts in captions.items() if texts[row]}
        rows.append({"captions": held, **{name: clips.columns[name][row] for name in columns}})
    if silent := [row for row, said in enumerate(rows) if not said["captions"]]:
        raise PullPushError(
            f"{len(silent)} of {len(rows)} clips have no caption in {', '.join(languages)}: leave out clips "
            f"{silent[:5]}{'…' if silent[5:] else ''}, or name further languages"
        )
    return rows


def _write_shard(
    path: Path, clips: Clips, rows: Sequence[int], said: Sequence[Mapping[str, Any]], sample_rate: int
) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for row in rows:
            wave = clips.audio(row, sample_rate=sample_rate)[0][0]
            flac = io.BytesIO()
            soundfile.write(flac, to_int16(wave.clamp(-1, 1).numpy()), sample_rate, format="FLAC", subtype="PCM_16")
            for extension, content in (("flac", flac.getvalue()), ("json", _json(said[row]))):
                member = tarfile.TarInfo(f"{row:09d}.{extension}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def _json(said: Mapping[str, Any]) -> bytes:
    """JSON, with the numbers and arrays of numpy as plain ones."""
    return json.dumps(said, ensure_ascii=False, default=lambda value: value.tolist()).encode()


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
