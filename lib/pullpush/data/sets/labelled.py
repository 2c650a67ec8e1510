"""Sounds, music and emotions with one label each, for zero-shot classification: a function and a card a set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pullpush.data.recordings.registry import DatasetCard, Listing, labelled, official_table, unpack, warn_of_missing
from pullpush.errors import DataNotFoundError, PullPushError
from pullpush.progress import tell

INSTRUMENTS = ("bangu", "daluo", "naobo", "xiaoluo")
EMOTIONS = {"ANG": "anger", "DIS": "disgust", "FEA": "fear", "HAP": "happiness", "NEU": "neutral", "SAD": "sadness"}
FAMILIES = ("bass", "brass", "flute", "guitar", "keyboard", "mallet", "organ", "reed", "string", "synth_lead", "vocal")
ESC50 = "https://github.com/karolpiczak/ESC-50/archive/master.zip"  # packed anew by its host: there is no checksum
BEIJING_OPERA = "https://zenodo.org/records/1285212/files/beijing_opera_percussion_instrument_1.0.zip"
URBANSOUND8K = "https://zenodo.org/records/1203745/files/UrbanSound8K.tar.gz"


def json_file(path: Path, how: str) -> Any:
    """A table in JSON; `DataNotFoundError` where there is none, which says how to get it."""
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: {how}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise PullPushError(f"{path} cannot be read: {error}") from error


def by_name(
    place: Path, split: str, *, title: str, patterns: tuple[str, ...], label: Callable[[Path], str], such: str
) -> Listing:
    """Recordings whose names tell their labels; all of them, since these sets have no splits.

    patterns: of the files below its place; label: of a file, "" for a name that tells none; such: what names should
    look like, for the `DataNotFoundError` where one is another.
    """
    paths = sorted(path for pattern in patterns for path in place.glob(pattern))
    labels = [label(path) for path in paths]
    strange = [path.name for path, label in zip(paths, labels, strict=True) if not label]
    if strange or not paths:
        raise DataNotFoundError(f"{title}: {place} should hold {such}; got {strange[0] if strange else 'none'}")
    return labelled(title, paths, labels)


def stroke(path: Path) -> str:
    """The instrument that the name of a stroke of Beijing Opera tells.

    >>> stroke(Path("205874__ajaysm__Bangu-12.wav"))
    'bangu'
    """
    name = path.stem.rpartition("__")[2].rpartition("-")[0].rpartition("-")[2].lower()
    return name if name in INSTRUMENTS else ""


def emotion(path: Path) -> str:
    """The emotion that a name of CREMA-D tells.

    >>> emotion(Path("1001_DFA_ANG_XX.wav"))
    'anger'
    """
    parts = path.stem.split("_")
    return EMOTIONS.get(parts[2], "") if len(parts) == 4 else ""


def esc50(place: Path, split: str, folds: tuple[str, ...] = ()) -> Listing:
    """ESC-50: meta/esc50.csv with filename, fold and category, audio/*.wav, or .flac packed from them; folds: of the
    table's, all where none is named, so that a part of the set is read as it is.

    Read by its official CSV: `soundata` would fetch an index of its own for what is on disk already.
    """
    table = official_table(place / "meta" / "esc50.csv", ["filename", "fold", "category"])
    if absent := sorted(set(folds) - set(table["fold"])):
        there = ", ".join(sorted(set(table["fold"]))) or "none"
        raise DataNotFoundError(f"ESC-50: {place / 'meta' / 'esc50.csv'} has no fold {', '.join(absent)}, but {there}")
    table = table[table["fold"].isin(folds)] if folds else table
    named = [place / "audio" / name for name in table["filename"]]
    paths = [path if path.is_file() else packed(path) for path in named]
    if count := sum(path != name for path, name in zip(paths, named, strict=True)):
        tell(f"ESC-50: {count} of {len(paths)} recordings are FLAC where the table names WAV")
    return labelled("ESC-50", paths, table["category"])


def packed(path: Path) -> Path:
    """The FLAC beside a missing WAV, or what was named where there is none."""
    return flac if (flac := path.with_suffix(".flac")).is_file() else path


def some_folds(card: DatasetCard, argument: str) -> DatasetCard:
    """The card of "esc50:fold=4", or of several folds, "esc50:fold=1,2"."""
    key, _, value = argument.partition("=")
    folds = tuple(part.strip() for part in value.split(","))
    if key != "fold" or not set(folds) <= set("12345"):
        raise PullPushError(f"{card.title} is taken by its folds 1 to 5, got {argument!r}: write {card.name}:fold=4")
    return replace(card, title=f"{card.title}, fold {', '.join(folds)}", make=partial(esc50, folds=folds))


def urbansound8k(place: Path, split: str) -> Listing:
    """UrbanSound8K: metadata/UrbanSound8K.csv with slice_file_name, fold and class, audio/fold1/*.wav …; all folds."""
    table = official_table(place / "metadata" / "UrbanSound8K.csv", ["slice_file_name", "fold", "class"])
    files = zip(table["fold"], table["slice_file_name"], strict=True)
    return labelled("UrbanSound8K", [place / "audio" / f"fold{fold}" / name for fold, name in files], table["class"])


def nsynth(place: Path, split: str) -> Listing:
    """NSynth: nsynth-test/examples.json with instrument_family_str, nsynth-test/audio/<note>.wav and so on.

    A class is a family. There are eleven in every split, although only training has notes of a synthesiser's lead.
    """
    folder = place / f"nsynth-{split}"
    table = folder / "examples.json"
    notes = json_file(table, f"unpack nsynth-{split}.jsonwav.tar.gz to {place}")
    try:
        labels = {name: note["instrument_family_str"] for name, note in sorted(notes.items())}
    except (AttributeError, KeyError, TypeError) as error:
        raise PullPushError(f"{table} is no table of notes with instrument_family_str: {error}") from error
    listing = labelled("NSynth", [folder / "audio" / f"{name}.wav" for name in labels], list(labels.values()))
    if strange := set(listing.classes) - set(FAMILIES):
        raise PullPushError(f"{table} has families that NSynth has not: {', '.join(sorted(strange))}")
    return listing._replace(classes=FAMILIES)


def vocalsound(place: Path, split: str) -> Listing:
    """VocalSound: datafiles/te.json, whose "data" have wav and labels, class_labels_indices_vs.csv with mid and
    display_name, and audio_16k or data_44k with the files.
    """
    path = place / "datafiles" / f"{ {'train': 'tr', 'valid': 'val', 'test': 'te'}[split] }.json"
    table = json_file(path, f"unpack vs_release_16k.zip to {place}")
    classes = official_table(place / "class_labels_indices_vs.csv", ["mid", "display_name"])
    names = dict(zip(classes["mid"], classes["display_name"], strict=True))
    try:
        labels = [names[row["labels"]].lower() for row in table["data"]]
        files = [row["wav"].rpartition("/")[2] for row in table["data"]]
    except (KeyError, TypeError) as error:
        raise PullPushError(f"{path} is no list of recordings with labels of {', '.join(names)}: {error}") from error
    folder = next((place / name for name in ("audio_16k", "data_44k") if (place / name).is_dir()), place / "audio_16k")
    return labelled("VocalSound", [folder / name for name in files], labels)


def vggsound(place: Path, split: str) -> Listing:
    """VGGSound: vggsound.csv without a head (youtube id, start seconds, label, split) and, in `audio`, clips called
    <youtube id>_<start, six digits>.wav, .flac or .mp3; what is gone from YouTube is left out with a warning."""
    columns = ["id", "start", "label", "split"]
    table = official_table(place / "vggsound.csv", columns, names=columns, header=None)
    classes = tuple(sorted(set(table["label"])))
    table = table[table["split"] == split]
    stems = [f"{clip}_{int(start):06d}" for clip, start in zip(table["id"], table["start"], strict=True)]
    files = {path.stem: path for path in (place / "audio").glob("*") if path.suffix in (".wav", ".flac", ".mp3")}
    present = [stem in files for stem in stems]
    warn_of_missing("VGGSound", split, present)
    if not any(present):
        raise DataNotFoundError(f"no clip of {place / 'vggsound.csv'} is in {place / 'audio'}, such as {stems[:1]}.wav")
    labels = [label for label, is_present in zip(table["label"], present, strict=True) if is_present]
    return Listing([files[stem] for stem in stems if stem in files], labels=labels, classes=classes)


card: Callable[..., DatasetCard] = partial(DatasetCard, labelled=True)
CARDS = (
    card(
        name="beijing_opera",
        make=partial(
            by_name,
            title="Beijing Opera",
            patterns=("*.wav",),
            label=stroke,
            such=f"recordings whose names end in one of {', '.join(INSTRUMENTS)} and a number, such as "
            "1__ajaysm__bangu-1.wav",
        ),
        title="Beijing Opera",
        about="236 strokes of four percussion instruments: bangu, daluo, naobo and xiaoluo.",
        source="Tian et al. 2014, A study of instrument-wise onset detection in Beijing opera percussion ensembles",
        authors="Tian, Srinivasamurthy, Sandler and Serra; the musicians",
        licence="CC BY 4.0",
        folder="beijing_opera_percussion_instrument_1.0",
        fetch=partial(unpack, url=BEIJING_OPERA, checksum="md5:51dc70d02a06b9d96befadf320a6996f"),
    ),
    card(
        name="crema_d",
        make=partial(
            by_name,
            title="CREMA-D",
            patterns=("AudioWAV/*.wav",),
            label=emotion,
            such=f"AudioWAV/<actor>_<sentence>_<emotion>_<level>.wav with {', '.join(EMOTIONS)}, such as "
            "1001_DFA_ANG_XX.wav",
        ),
        title="CREMA-D",
        about="7,442 recordings of twelve sentences in six emotions, by 91 actors.",
        source="Cao et al. 2014, CREMA-D: crowd-sourced emotional multimodal actors dataset",
        authors="Cao et al.; the actors",
        licence="ODbL 1.0",
        folder="CREMA-D",
        how="clone CheyneyComputerScience/CREMA-D from GitHub, with Git LFS",
    ),
    card(
        name="esc50",
        make=esc50,
        title="ESC-50",
        about="2,000 clips of five seconds, 40 of each of 50 classes; :fold=4 is one of its five folds.",
        source="Piczak 2015, ESC: dataset for environmental sound classification",
        authors="Karol J. Piczak; the people of Freesound",
        licence="CC BY-NC 3.0",
        folder="ESC-50-master",
        fetch=partial(unpack, url=ESC50),
        of=some_folds,
        clips=2000,
    ),
    card(
        name="gtzan",
        make=partial(  # .au as its author gave them; the jazz.00054.wav of one copy that goes round cannot be read
            by_name,
            title="GTZAN",
            patterns=("*/*.*.wav", "*/*.*.au"),
            label=lambda path: path.parent.name,
            such="recordings such as blues/blues.00000.wav",
        ),
        title="GTZAN",
        about="1,000 clips of thirty seconds of music, 100 of each of ten genres.",
        source="Tzanetakis and Cook 2002, Musical genre classification of audio signals",
        authors="George Tzanetakis; the musicians",
        licence="none stated: used for research; the sounds are their owners'",
        folder="genres",
        seconds=30.0,
        how="unpack genres.tar.gz, of which copies go round, so that genres/blues/blues.00000.wav is there",
    ),
    card(
        name="nsynth",
        make=nsynth,
        title="NSynth",
        about="305,979 notes of four seconds of 1,006 instruments in eleven families; 4,096 test.",
        source="Engel et al. 2017, Neural audio synthesis of musical notes with WaveNet autoencoders",
        authors="Engel et al., Google",
        licence="CC BY 4.0",
        folder="nsynth",
        seconds=4.0,
        how="unpack nsynth-train, nsynth-valid and nsynth-test (JSON and WAV) of Magenta's page",
    ),
    card(
        name="urbansound8k",
        make=urbansound8k,
        title="US8K",
        about="8,732 clips of at most four seconds in ten classes, in ten folds.",
        source="Salamon, Jacoby and Bello 2014, A dataset and taxonomy for urban sound research",
        authors="Salamon, Jacoby and Bello; the people of Freesound",
        licence="CC BY-NC 3.0",
        folder="UrbanSound8K",
        fetch=partial(unpack, url=URBANSOUND8K, checksum="md5:9aa69802bbf37fb986f71ec1483a196e"),
    ),
    card(
        name="vggsound",
        make=vggsound,
        title="VGGSound",
        about="About 200,000 clips of ten seconds from YouTube in 309 classes.",
        source="Chen et al. 2020, VGGSound: a large-scale audio-visual dataset",
        authors="Chen, Xie, Vedaldi and Zisserman; the videos' owners",
        licence="annotations CC BY 4.0; the sounds are the video owners'",
        folder="vggsound",
        how="its clips come from YouTube, by its authors' list vggsound.csv, to audio/<id>_<start, six digits>.wav",
    ),
    card(
        name="vocalsound",
        make=vocalsound,
        title="VocalSound",
        about="21,024 recordings of six sounds that people make, by 3,365 people.",
        source="Gong, Yu and Glass 2022, VocalSound: a dataset for improving human vocal sounds recognition",
        authors="Gong, Yu and Glass; the people who are heard",
        licence="CC BY-SA 4.0",
        folder="vs_release_16k",
        how="unpack vs_release_16k.zip, which the authors' page of VocalSound links to",
    ),
)
