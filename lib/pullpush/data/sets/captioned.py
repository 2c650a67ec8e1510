"""Captioned sounds and music, and sentences that are read aloud: a function a set, called as the set is.

`captioned.yaml` says of each what it is. `aac-datasets` and `torchaudio` read and fetch the sets that they know.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pullpush.data.recordings.registry import Listing, Subset, cards, official_table, require_all, warn_of_missing
from pullpush.data.sets.folder import read_captions
from pullpush.errors import DataNotFoundError, PullPushError

YTDLP = "PULLPUSH_YTDLP"
ATTEMPTS = 3  # a clip of YouTube
CLOTHO = {"train": ("dev", "development"), "valid": ("val", "validation"), "test": ("eval", "evaluation")}
WAVCAPS = {
    "AudioSet_SL": "audioset_no_audiocaps_v1",
    "BBC_Sound_Effects": "bbc",
    "FreeSound": "freesound_no_clotho_v2",
    "SoundBible": "soundbible",
}
ENDINGS = (".wav", ".flac", ".mp3", ".m4a", ".ogg", ".opus")  # of MusicCaps
ID = 11  # characters of a YouTube id
TENTH = 10  # one in so many training clips of MusicCaps validates
AISHELL_FOLDERS = {"train": "train", "valid": "dev", "test": "test"}
LIBRISPEECH_TRAIN = ("train-clean-100", "train-clean-360", "train-other-500")


def module_of(name: str) -> ModuleType:
    """The module of aac-datasets that reads and fetches a dataset; `PullPushError` if it is not installed."""
    import torchaudio

    # aac-datasets 0.7 imports this name for a type that we never meet; torchaudio 2.11 has dropped it.
    lacks = not hasattr(torchaudio, "AudioMetaData")
    try:
        if lacks:
            torchaudio.AudioMetaData = object
        return importlib.import_module(f"aac_datasets.datasets.functional.{name}")
    except ModuleNotFoundError as error:
        raise PullPushError(
            f"reading {name} needs {error.name}, which is not installed: pip install 'pullpush[full]'"
        ) from error
    finally:
        if lacks:
            del torchaudio.AudioMetaData


def read_columns(name: str, place: Path, subset: str, expected: str, **options: Any) -> dict[str, list]:
    """The columns that aac-datasets gives for a subset of the dataset `name` in the folder `place`; options: of its
    function; expected: what is in the folder if all is well, for the `DataNotFoundError` where it is not."""
    load = getattr(module_of(name), f"load_{name}_dataset")
    try:
        columns = load(place.parent, subset, -1, **options)
    except (RuntimeError, OSError, KeyError, AssertionError) as error:
        raise DataNotFoundError(f"{place} is not as {name} is published ({subset}): expected {expected}") from error
    return columns[0] if isinstance(columns, tuple) else columns


def download(name: str, *subsets: str, **options: Any) -> Callable[[Path], None]:
    """What fetches a dataset by aac-datasets, from Zenodo or where its authors put it: the `fetch` of its card."""

    def fetch(root: Path) -> None:
        functions = vars(module_of(name))
        if subsets:
            functions[f"download_{name}_datasets"](root, subsets, verbose=1, **options)
        else:
            functions[f"download_{name}_dataset"](root, verbose=1, **options)

    return fetch


def audiocaps(place: Path, split: str, version: str = "v1") -> Listing:
    """AudioCaps 1.0: `train.csv` (or csv_files_v1/train.csv) and `audio_32000Hz/train/<youtube id>_<start>.flac`.

    version: "v1", or "v2" for AudioCaps 2.0 of csv_files_v2, which has more training clips.

    Another sample rate in the folder's name and other formats are taken as they are. Clips that are gone from YouTube
    are left out; a warning says how many.
    """
    subset = {"valid": "val"}.get(split, split)
    expected = f"csv_files_{version}/{subset}.csv and audio_32000Hz/{subset}/<youtube id>_<start>.flac"
    folders = sorted(place.glob(f"audio_*Hz/{subset}"))
    files = [name for name in os.listdir(folders[0]) if not name.startswith(".")] if folders else []
    if not files:
        raise DataNotFoundError(f"AudioCaps has no recordings for {split} in {place}: expected {expected}")
    rate = int(folders[0].parent.name.removeprefix("audio_").removesuffix("Hz"))
    options = {
        "sr": rate,
        "audio_format": Path(files[0]).suffix[1:],
        "exclude_removed_audio": False,
        "version": version,
    }
    columns = read_columns("audiocaps", place, subset, expected, **options)
    present = columns["is_on_disk"]
    warn_of_missing("AudioCaps", split, present)
    rows = [row for row, is_present in enumerate(present) if is_present]
    paths = [folders[0] / columns["fname"][row] for row in rows]
    return Listing(paths, [columns["captions"][row] for row in rows])


def in_957(stem: str) -> bool:
    """Whether the file `<youtube id>_<start>` is one of the 957 test clips that ML-CLAP's code lists; the table of
    AudioCaps 1.0 has 975.

    >>> in_957("7fmOlUlwoNg_20")
    True
    """
    return stem.rpartition("_")[0] in _ids_957()


@cache
def _ids_957() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("audiocaps_957.txt").read_text(encoding="ascii").split())


def fetch_audiocaps(root: Path, version: str = "v1") -> None:
    """Download it from YouTube; `$PULLPUSH_YTDLP` holds further options of yt-dlp, such as those for cookies."""
    for program in ("yt-dlp", "ffmpeg"):
        if shutil.which(program) is None:
            raise DataNotFoundError(f"AudioCaps comes from YouTube by {program}, which is not on your path: install it")
    options = {"version": version, "ytdlp_opts": shlex.split(os.environ.get(YTDLP, "")), "num_dl_attempts": ATTEMPTS}
    download("audiocaps", "train", "val", "test", **options)(root)


def clotho(place: Path, split: str) -> Listing:
    """Clotho 2.1: clotho_csv_files/clotho_captions_development.csv, clotho_audio_files/development/*.wav and so on."""
    subset, folder = CLOTHO[split]
    table = place / "clotho_csv_files" / f"clotho_captions_{folder}.csv"
    recordings = place / "clotho_audio_files" / folder
    if table.is_file() and recordings.is_dir():
        require_all("Clotho", [recordings / name for name in read_captions(table)], table)
    expected = (
        f"clotho_csv_files/clotho_captions_{folder}.csv, clotho_csv_files/clotho_metadata_{folder}.csv and one file in "
        f"clotho_audio_files/{folder} for each of their rows"
    )
    columns = read_columns("clotho", place, subset, expected)
    return Listing([recordings / name for name in columns["fname"]], columns["captions"])


def macs(place: Path, split: str) -> Listing:
    """MACS: MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and audio/*.wav of TAU Urban Acoustic Scenes 2019.

    It has no splits: every tenth file by name is for validation and every tenth for the test.
    """
    expected = "MACS.yaml, MACS_competence.csv, tau_meta/meta.csv and its files in audio"
    columns = read_columns("macs", place, "full", expected)
    return every_tenth([place / "audio" / name for name in columns["fname"]], columns["captions"], split)


def wavcaps(place: Path, split: str) -> Listing:
    """WavCaps: json_files/SoundBible/sb_final.json, Audio/SoundBible/*.flac and so on, of the sources that are there.

    What AudioCaps or Clotho hold, too, is left out by the lists of `aac-datasets`. It has no splits: see `macs`.
    """
    paths, captions = [], []
    for source, subset in WAVCAPS.items():
        if (place / "Audio" / source).is_dir():
            expected = f"json_files/{source}/*.json and all of Audio/{source}"
            columns = read_columns("wavcaps", place, subset, expected)
            paths += [place / "Audio" / source / name for name in columns["fname"]]
            captions += columns["captions"]
    if not paths:
        raise DataNotFoundError(f"WavCaps has none of {', '.join(WAVCAPS)} in {place / 'Audio'}")
    require_all("WavCaps", paths, "its JSON files")
    return every_tenth(paths, captions, split)


def musiccaps(place: Path, split: str, version: str = "") -> Listing:
    """MusicCaps: musiccaps-public.csv, and in `audio` one file a clip, whose name begins with its YouTube id, in
    brackets or not, and goes on with its start or with nothing: <id>.wav, <id>_30.wav, [<id>]-[30-40].wav.

    The clips of AudioSet's evaluation set test, 2,663 of 5,521; of the 2,858 others every tenth by id validates.
    version: "paper", all 2,858 to learn from, and the test clips to validate, as The Language Encoder has it. Clips
    that are gone from YouTube are left out; a warning says how many.
    """
    table = official_table(place / "musiccaps-public.csv", ("ytid", "start_s", "end_s", "caption", "is_audioset_eval"))
    evaluates = table["is_audioset_eval"].str.lower() == "true"
    rows = table[evaluates if split == "test" or (version and split == "valid") else ~evaluates]
    if not version and split != "test":
        ids = sorted(rows["ytid"])
        held_out = set(ids[TENTH - 1 :: TENTH])
        rows = rows[rows["ytid"].isin(held_out) == (split == "valid")]
    files = [file for file in sorted((place / "audio").glob("*")) if file.suffix.lower() in ENDINGS]
    known = {id_and_start(file.stem): file for file in files}
    paths = [
        next((known[key] for key in ((clip, start), (clip, 1000 * start), (clip, None)) if key in known), None)
        for clip, start in zip(rows["ytid"], rows["start_s"].map(int), strict=True)
    ]
    warn_of_missing("MusicCaps", split, [path is not None for path in paths])
    clips = [(path, [caption.strip()]) for path, caption in zip(paths, rows["caption"], strict=True) if path]
    if not clips:
        raise DataNotFoundError(
            f"no clip of {place / 'musiccaps-public.csv'} is in {place / 'audio'}, such as {rows['ytid'].iloc[0]}.wav"
        )
    return Listing([path for path, _ in clips], [captions for _, captions in clips])


def id_and_start(stem: str) -> tuple[str, int | None]:
    """The YouTube id and the start that a file's name tells, in seconds or milliseconds; None: none.

    >>> id_and_start("-0Gj8-vB1q4"), id_and_start("[-0Gj8-vB1q4]-[30-40]"), id_and_start("-0Gj8-vB1q4_30")
    (('-0Gj8-vB1q4', None), ('-0Gj8-vB1q4', 30), ('-0Gj8-vB1q4', 30))
    """
    plain = stem.replace("[", "").replace("]", "")
    start = re.search(r"\d+", plain[ID:])
    return plain[:ID], int(start[0]) if start else None


def song_describer(place: Path, split: str, subset: str = "") -> Listing:
    """Song Describer: song_describer.csv, and audio/<path> as the table has it or with .2min before its ending, as the
    archive has it. A track has as many captions as it has rows; there is no split but "test".

    subset: "valid", the captions that somebody checked.
    """
    if split != "test":
        raise DataNotFoundError("Song Describer has a test split alone: take load_split(config, 'test')")
    table = official_table(place / "song_describer.csv", ("track_id", "caption", "is_valid_subset", "path"))
    if subset:
        table = table[table["is_valid_subset"].str.lower() == "true"]
    captions: dict[Path, list[str]] = {}
    for name, caption in zip(table["path"], table["caption"], strict=True):
        path = place / "audio" / name
        cut = path.with_suffix(f".2min{path.suffix}")
        captions.setdefault(cut if cut.is_file() else path, []).append(caption.strip())
    require_all("Song Describer", list(captions), place / "song_describer.csv")
    return Listing(list(captions), list(captions.values()))


def every_tenth(paths: Sequence[Path], captions: Sequence[list[str]], split: str) -> Listing:
    """A split of a dataset that has none: of every ten files by name, eight train, one validates and one tests.

    >>> every_tenth([Path(f"{n}.wav") for n in range(10)], [["a"]] * 10, "test").paths[0].name
    '9.wav'
    """
    order = sorted(range(len(paths)), key=lambda row: paths[row].name)
    share = {"valid": {8}, "test": {9}}.get(split, set(range(8)))
    return Listing(list(paths), list(captions)).rows(row for number, row in enumerate(order) if number % 10 in share)


# ---------------------------------------------------------------- sentences that are read


def librispeech(place: Path, split: str, kind: str = "other") -> Listing:
    """LibriSpeech: test-other/<speaker>/<chapter>/*.flac with <speaker>-<chapter>.trans.txt beside them; read by
    `torchaudio`.

    What is read aloud is a caption, in capitals, as published; `text_cleaning="ml-clap"` makes small letters of them.
    "valid" is dev-other, "train" those of the three training sets that are there. kind: "clean" tests on test-clean.
    """
    from torchaudio.datasets import LIBRISPEECH

    names = LIBRISPEECH_TRAIN if split == "train" else (f"{'dev' if split == 'valid' else split}-{kind}",)
    found = []
    for name in names:
        if not (place / name).is_dir():
            continue
        data = LIBRISPEECH(place.parent, name, place.name)
        try:
            found += [data.get_metadata(row) for row in range(len(data))]
        except (FileNotFoundError, ValueError) as error:  # no table, no line of it, or an empty line
            raise DataNotFoundError(f"LibriSpeech: {error}: unpack {name}.tar.gz again") from error
    if not found:
        raise DataNotFoundError(f"LibriSpeech has no {' or '.join(names)} in {place}: unpack it there")
    return Listing([place / row[0] for row in found], [[row[2]] for row in found])


def fetch_librispeech(root: Path) -> None:
    """Download test-other by `torchaudio`, against its checksum; what is learnt from are 60 GB."""
    from torchaudio.datasets import LIBRISPEECH

    (root / "LibriSpeech").mkdir(parents=True, exist_ok=True)
    LIBRISPEECH(root, "test-other", "LibriSpeech", download=True)


def aishell(place: Path, split: str) -> Listing:
    """AISHELL-1: transcript/aishell_transcript_v0.8.txt and wav/<train, dev or test>/<speaker>/<name>.wav.

    Words are parted by spaces there, which Chinese does not write. Recordings without a transcript, of which there are
    some, are left out.
    """
    texts = transcripts(place / "transcript" / "aishell_transcript_v0.8.txt")
    where = place / "wav" / AISHELL_FOLDERS[split]
    paths = [path for path in sorted(where.glob("*/*.wav")) if path.stem in texts]
    if not paths:
        raise DataNotFoundError(f"AISHELL-1 has no recording with a transcript in {where}")
    return Listing(paths, [[texts[path.stem]] for path in paths])


def aishell_2(place: Path, split: str) -> Listing:
    """AISHELL-2: iOS/data, iOS/dev and iOS/test, each with trans.txt and wav.scp, which names a path for each name."""
    folder = place / "iOS" / ("data" if split == "train" else AISHELL_FOLDERS[split])
    texts, files = transcripts(folder / "trans.txt"), transcripts(folder / "wav.scp")
    names = [name for name in texts if name in files]
    if not names:
        raise DataNotFoundError(f"AISHELL-2: {folder / 'trans.txt'} and wav.scp have no name in common")
    paths = [folder / files[name] for name in names]
    require_all("AISHELL-2", paths, folder / "wav.scp")
    return Listing(paths, [[texts[name]] for name in names])


def transcripts(path: Path) -> Mapping[str, str]:
    """Name → what a line has after it, without spaces."""
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: is AISHELL complete?")
    texts = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, *rest = line.split()
        if not rest:
            raise PullPushError(f"{path}: {name!r} has nothing behind it")
        texts[name] = "".join(rest)
    return texts


FURTHER = {
    "audiocaps": {"fetch": fetch_audiocaps, "subsets": {"957": Subset(957, in_957), "975": Subset(975, bool)}},
    "clotho": {"fetch": download("clotho", *(subset for subset, _ in CLOTHO.values()))},
    "librispeech": {"fetch": fetch_librispeech},
    "macs": {"fetch": download("macs")},
    "wavcaps": {"fetch": download("wavcaps", *WAVCAPS.values())},
}
READERS = (audiocaps, clotho, macs, wavcaps, musiccaps, song_describer, librispeech, aishell, aishell_2)
CARDS = cards(Path(__file__).with_suffix(".yaml"), {each.__name__: each for each in READERS}, FURTHER)
