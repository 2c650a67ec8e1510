"""Shards: clips in tar files of a few hundred megabytes, in the layout of webdataset, for what is larger than a disk.

    000000.tar      000000000.flac, 000000000.json, 000000001.flac, 000000001.json, …
    000001.tar      …
    index.json      how many samples each of them has, and its checksum

The index is that of webdataset's `wids`; shards without one are counted once. The members of a tar file that share
their name up to the first dot are one *sample*: a recording, and JSON with its captions
(`{"captions": {"eng": ["a dog barks"]}}`) and whatever else is known of it. Shards that others wrote may have captions
in "caption", "captions" or "text" of the JSON, one or a list, as GLAP's and LAION's have, or in a member .txt.

`webdataset` itself reads shards from their beginnings: a run that goes on would read again all that it has seen, and
each process what the others take; its order depends on the number of processes. Version 1 has no `wids`, which found
samples by their place. So that is done here, and webdataset is the oracle of the tests.
"""

import io
import json
import tarfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import soundfile
from braceexpand import braceexpand
from torch import Tensor

from pullpush.cache import atomic_path, cached_file, content_key, digest
from pullpush.checks import check_count
from pullpush.data.audio import SAMPLE_RATE, read_audio
from pullpush.data.clips import Clips
from pullpush.data.store import FULL_SCALE, to_int16
from pullpush.errors import AudioError, DataNotFoundError, PullPushError, check_all_known, few

INDEX = "index.json"
COUNTS = "shards"  # in the cache
AUDIO = ("flac", "wav", "ogg", "mp3", "opus")
TEXTS = ("captions", "caption", "text")
Where = str | Path | Sequence[str | Path]


class DamagedError(PullPushError, ValueError):
    """A sample of a shard cannot be used; the message says why."""


class Shard(NamedTuple):
    """One tar file: its path, how many samples it has, and its MD5 in hexadecimal, "" where no index tells."""

    path: Path
    samples: int
    checksum: str = ""


class Sample(NamedTuple):
    """Where a sample lies in its shard: its key, and (first byte, bytes) of each member by extension."""

    key: str
    members: Mapping[str, tuple[int, int]]


class Annotation(NamedTuple):
    """What a sample's JSON or text has: captions by language, "" where it does not name one; and columns."""

    captions: Mapping[str, Sequence[str]]
    columns: Mapping[str, Any]


def write_shards(
    clips: Clips,
    folder: str | Path,
    *,
    languages: Sequence[str] = ("eng",),
    per_shard: int = 1000,
    columns: Sequence[str] = (),
    sample_rate: int | None = None,
) -> Path:
    """Write clips to shards: FLAC of 16 bits, with captions and columns as JSON; the same clips give the same bytes.

    Every file is written beside its place and moved there, the index last: without it the folder is written anew.

    Args:
        folder: made if it is not there; it is returned.
        languages: of the captions that are written.
        per_shard: samples in a shard. Shards of 100 MB to 1 GB suit network storage.
        columns: which of the clips' columns go along; they hold texts, numbers, and lists of these.
        sample_rate: in Hz, that the clips are asked for and written in; None: what they are kept in, 16 kHz where that
            is not known.

    Raises:
        ValueError: less than one sample in a shard.
        PullPushError: the folder holds shards; clips have no caption in any of the languages; a column of captions.
        UnknownNameError: the clips have no such language or column.
    """
    sample_rate = sample_rate or getattr(getattr(clips, "waveforms", None), "sample_rate", SAMPLE_RATE)
    folder, counts = Path(folder).expanduser(), []
    if (folder / INDEX).exists():
        raise PullPushError(f"{folder} holds shards already: name another folder, or remove it")
    check_count("per_shard", per_shard)
    annotations = _annotations(clips, languages, columns)
    for start in range(0, len(clips), per_shard):
        rows, name = range(start, min(start + per_shard, len(clips))), f"{start // per_shard:06d}.tar"
        with atomic_path(folder / name) as path:
            with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
                for row in rows:
                    wave = to_int16(clips.audio(row, sample_rate=sample_rate)[0][0].clamp(-1, 1).numpy())
                    flac = io.BytesIO()
                    soundfile.write(flac, wave, sample_rate, format="FLAC", subtype="PCM_16")
                    for extension, content in (("flac", flac.getvalue()), ("json", annotations[row])):
                        member = tarfile.TarInfo(f"{row:09d}.{extension}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
            size, checksum = path.stat().st_size, digest(path, "md5")
        counts.append({"url": name, "nsamples": len(rows), "filesize": size, "md5sum": checksum})
    index = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": counts}
    with atomic_path(folder / INDEX) as path:
        path.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return folder


def shards_of(where: Where) -> tuple[Shard, ...]:
    """The shards that a folder, a pattern or a list of these names, in that order, those of a folder by name.

    A pattern has braces ("/data/{000000..000099}.tar", "/data/{a,b}.tar"). Shards that `index.json` beside them does
    not list are counted once, by the headers of their members. `DataNotFoundError` names those that are missing.
    """
    paths = tars(where)
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise DataNotFoundError(f"{len(missing)} of {len(paths)} shards are not there: {few(missing)}")
    listed = {folder: _listed(folder) for folder in dict.fromkeys(path.parent for path in paths)}
    found = {path: listed[path.parent].get(path.name) for path in paths}
    found |= _counted([path for path, shard in found.items() if shard is None])
    return tuple(shard for path in paths if (shard := found[path]))


def tars(where: Where) -> list[Path]:
    """The tar files that these name, as `shards_of` has them, whether they are there or not."""
    return [path for one in ([where] if isinstance(where, str | Path) else where) for path in _paths(str(one))]


def check_shards(where: Where) -> pd.DataFrame:
    """Read shards from end to end and compare them with their index: columns shard, problem, a row a damaged shard;
    those without a checksum are only looked through to their end.
    """
    rows = []
    for shard in shards_of(where):
        if shard.checksum:
            problem = "" if digest(shard.path, "md5") == shard.checksum else "its checksum is not that of the index"
        else:
            problem = samples_of(shard.path)[1]
        rows += [(str(shard.path), problem)] if problem else []
    return pd.DataFrame(rows, columns=["shard", "problem"])


def _paths(where: str) -> list[Path]:
    """The tar files that one folder or pattern names."""
    place = Path(where).expanduser().absolute()
    if not place.is_dir():
        return [Path(name) for name in braceexpand(str(place))]
    index = place / INDEX
    names = {*_listed(place), *(path.name for path in place.glob("*.tar") if not path.name.startswith("."))}
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
    """Shards whose samples are counted, or were before; a warning names those that end early."""
    if not paths:
        return {}
    prints = [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in paths]

    def count(path: Path) -> None:
        with ThreadPoolExecutor(8) as threads:  # most of the time is spent waiting for the disk
            counts = [(len(samples), problem) for samples, problem in threads.map(samples_of, paths)]
        path.write_text(json.dumps(counts), encoding="utf-8")

    place = cached_file(COUNTS, content_key(prints) + ".json", count)
    counts = dict(zip(paths, json.loads(place.read_text(encoding="utf-8")), strict=True))
    if early := [f"{path} ({problem})" for path, (_, problem) in counts.items() if problem]:
        warnings.warn(
            f"{len(early)} of {len(paths)} shards end early, and what stands behind that place is lost: {early[0]}"
            f"{' …' if early[1:] else ''}; `check_shards` names all",
            stacklevel=3,
        )
    return {path: Shard(path, count) for path, (count, _) in counts.items()}


def _annotations(clips: Clips, languages: Sequence[str], columns: Sequence[str]) -> list[bytes]:
    """Captions and columns of each clip as JSON, with the numbers and arrays of numpy as plain ones."""
    captions = {language: clips.captions(language) for language in languages}
    check_all_known("column of the clips", columns, clips.columns)
    if taken := {*columns} & {*TEXTS}:
        raise PullPushError(f"captions are written by their languages: leave {min(taken)!r} out of the columns")
    if silent := [row for row in range(len(clips)) if not any(texts[row] for texts in captions.values())]:
        raise PullPushError(
            f"{len(silent)} of {len(clips)} clips have no caption in {', '.join(languages)}: leave out clips "
            f"{silent[:5]}{'…' if silent[5:] else ''}, or name further languages"
        )
    rows = []
    for row in range(len(clips)):
        known: dict[str, Any] = {"captions": {name: list(texts[row]) for name, texts in captions.items() if texts[row]}}
        known |= {name: clips.columns[name][row] for name in columns}
        rows.append(json.dumps(known, ensure_ascii=False, default=lambda value: value.tolist()).encode())
    return rows


def samples_of(path: Path) -> tuple[list[Sample], str]:
    """The samples of a shard, from the headers of its members alone, and what ended it early, if anything did."""
    found: list[Sample] = []
    stop = 0
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                stop = member.offset_data + -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                if member.isreg() and not member.name.startswith("__"):  # names of webdataset's own
                    _add(found, member)
        return found, _after(path, stop)
    except (tarfile.TarError, OSError, EOFError) as error:
        return found, f"{error or type(error).__name__}"


def _after(path: Path, stop: int) -> str:
    """What is wrong behind the last member, if anything: `tarfile` ends there silently, be it cut off or damaged."""
    with open(path, "rb") as file:
        file.seek(stop)
        if len(file.read(tarfile.BLOCKSIZE)) < tarfile.BLOCKSIZE:
            return f"it ends at byte {stop + 1}, without the mark of an end: it was cut off"
        file.seek(stop)
        while block := file.read(1 << 20):
            if block.strip(b"\0"):
                return f"what stands behind byte {stop} is neither a member nor the end: it is damaged there"
    return ""


def _add(found: list[Sample], member: tarfile.TarInfo) -> None:
    """Put a member to the sample that it is of: the last one, or a new one."""
    folder, slash, name = member.name.rpartition("/")
    stem, dot, extension = name.partition(".")
    if not dot:
        return
    key = folder + slash + stem
    if not found or found[-1].key != key:
        found.append(Sample(key, {}))
    # pyrefly: ignore[unsupported-operation]
    found[-1].members[extension.lower()] = (member.offset_data, member.size)


def read_sample(
    path: Path, sample: Sample, *, sample_rate: int | None = None, seconds: float | None = None
) -> tuple[Tensor, Annotation]:
    """A sample's recording `(T,)` float32 in one channel, of 16 bits exactly what `write_shards` was given, and its
    annotation; `DamagedError` says what is wrong with it.

    sample_rate: in Hz, resampled to; None: as it is; seconds: longer recordings are cut to this; None keeps all.
    """
    places = {name: place for name, place in sample.members.items() if name in (*AUDIO, "json", "txt")}
    start, stop = min((first for first, _ in places.values()), default=0), max(map(sum, places.values()), default=0)
    try:
        with open(path, "rb") as file:
            file.seek(start)
            block = file.read(stop - start)
    except OSError as error:
        raise DamagedError(f"{error.strerror or error}") from error
    if len(block) < stop - start:
        raise DamagedError("the shard ends within it")
    raw = {name: block[first - start : first - start + size] for name, (first, size) in places.items()}
    described = annotation(raw)
    for name in AUDIO:
        if name in raw:
            return decoded(raw[name], sample_rate=sample_rate, seconds=seconds), described
    raise DamagedError(f"it has no recording ({', '.join(AUDIO)}), but {', '.join(sample.members) or 'nothing'}")


def annotation(raw: Mapping[str, bytes]) -> Annotation:
    """What the members "json" and "txt" of a sample hold.

    >>> annotation({"json": b'{"captions": {"eng": ["a dog"]}, "group": "sound"}'})
    Annotation(captions={'eng': ['a dog']}, columns={'group': 'sound'})
    >>> annotation({"txt": b"a dog barks"}).captions
    {'': ['a dog barks']}
    """
    try:
        columns = json.loads(raw.get("json", b"{}"))
        texts = raw["txt"].decode() if "txt" in raw else {}
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"its JSON or text cannot be read: {error}") from error
    if not isinstance(columns, dict):
        raise DamagedError("its JSON is not an object with names")
    if name := next((name for name in TEXTS if name in columns), ""):
        texts = columns.pop(name)
    by_language = texts if isinstance(texts, dict) else {"": texts}
    captions = {language: [each] if isinstance(each, str) else each for language, each in by_language.items()}
    if not all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in captions.values()):
        raise DamagedError(f"its captions are neither a text nor a list of texts: {str(texts)[:80]}")
    return Annotation(
        {language: [text for text in each if text.strip()] for language, each in captions.items()}, columns
    )


def decoded(raw: bytes, *, sample_rate: int | None = None, seconds: float | None = None) -> Tensor:
    """A recording from the bytes of its file, see `read_sample`."""
    try:
        return read_audio(raw, "its recording", sample_rate=sample_rate, seconds=seconds, full_scale=FULL_SCALE)
    except AudioError as error:
        raise DamagedError(str(error)) from error
