"""Captioned sounds and music: a function and a card a set; `aac-datasets` reads and fetches those that it knows."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pullpush.data.recordings.registry import (
    DatasetCard,
    Listing,
    Subset,
    every_tenth,
    official_table,
    require_all,
    variants,
    warn_of_missing,
)
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
    return frozenset((Path(__file__).parent / "audiocaps_957.txt").read_text(encoding="ascii").split())


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


CARDS = (
    DatasetCard(
        name="audiocaps",
        make=audiocaps,
        title="AudioCaps",
        about="About 50,000 clips of ten seconds from YouTube, with one caption each for training and five for "
        "testing.",
        source="Kim et al. 2019, AudioCaps: generating captions for audios in the wild",
        authors="Kim, Kim, Lee and Kim; the videos' owners",
        licence="captions: MIT, at first for academic use only; the sounds are the video owners'",
        citation="audiocaps",
        folder="AUDIOCAPS",
        fetch=fetch_audiocaps,
        of=variants(
            "version of AudioCaps",
            {
                version: {
                    "title": title,
                    "make": partial(audiocaps, version=version),
                    "fetch": partial(fetch_audiocaps, version=version),
                }
                for version, title in {"v1": "AudioCaps", "v2": "AudioCaps 2.0"}.items()
            },
        ),
        subsets={"957": Subset(957, in_957), "975": Subset(975, bool)},
    ),
    DatasetCard(
        name="clotho",
        make=clotho,
        title="Clotho",
        about="About 6,000 recordings of 15 to 30 seconds from Freesound, with five captions each.",
        source="Drossos et al. 2020, Clotho: an audio captioning dataset",
        authors="Drossos, Lipping and Virtanen; the people of Freesound",
        licence="captions: Tampere University's, not for commercial use; each sound its own Creative Commons licence",
        version="2.1",
        citation="clotho",
        folder="CLOTHO_v2.1",
        fetch=download("clotho", *(subset for subset, _ in CLOTHO.values())),
        seconds=30.0,
    ),
    DatasetCard(
        name="macs",
        make=macs,
        title="MACS",
        about="About 3,900 recordings of airports, public squares and parks, with two to five captions each.",
        source="Martín-Morató and Mesaros 2021, MACS: multi-annotator captioned soundscapes",
        authors="Martín-Morató and Mesaros, Tampere University",
        licence="captions and sounds: Tampere University's, not for commercial use",
        folder="MACS",
        fetch=download("macs"),
    ),
    DatasetCard(
        name="musiccaps",
        make=musiccaps,
        title="MusicCaps",
        about="5,521 clips of ten seconds of music from YouTube, with one caption each by a musician.",
        source="Agostinelli et al. 2023, MusicLM: generating music from text",
        authors="Agostinelli et al., Google; the videos' owners",
        licence="captions CC BY-SA 4.0; the sounds are the video owners'",
        folder="MusicCaps",
        how="take musiccaps-public.csv of google/MusicCaps on the Hugging Face hub, and its clips from YouTube, to "
        "audio/<YouTube id>.wav",
        of=variants("version of MusicCaps", {"paper": {"make": partial(musiccaps, version="paper")}}),
    ),
    DatasetCard(
        name="song_describer",
        make=song_describer,
        title="Song Describer",
        about="706 tracks of two minutes of music with 1,106 captions; song_describer:valid has 746 that were checked.",
        source="Manco et al. 2023, The Song Describer dataset",
        authors="Manco, Weck, Doh et al.; the musicians of Jamendo",
        licence="captions CC BY-SA 4.0; each track its own Creative Commons licence",
        folder="song_describer",
        seconds=120.0,
        how="take song_describer.csv and audio.zip of Zenodo's record 10072001",
        of=variants(
            "subset of Song Describer",
            {"valid": {"title": "Song Describer (valid)", "make": partial(song_describer, subset="valid")}},
        ),
    ),
    DatasetCard(
        name="wavcaps",
        make=wavcaps,
        title="WavCaps",
        about="About 400,000 recordings of AudioSet, the BBC, Freesound and SoundBible, with one caption each.",
        source="Mei et al. 2023, WavCaps: a ChatGPT-assisted weakly-labelled audio captioning dataset",
        authors="Mei et al.; Freesound, BBC Sound Effects, SoundBible, AudioSet",
        licence="captions CC BY 4.0; for academic use only",
        folder="WavCaps",
        fetch=download("wavcaps", *WAVCAPS.values()),
    ),
)
