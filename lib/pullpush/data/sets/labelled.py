"""Sounds, music, emotions and spoken words with one label each, for zero-shot classification.

`labelled.yaml` says of each set what it is and how it is laid out. Most are a table (`by_table`) or names of files that
tell the label (`by_name`); the others have a function here, called as the set is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any

from pullpush.data.recordings.registry import DatasetCard, Listing, cards, official_table, require_all, warn_of_missing
from pullpush.errors import DataNotFoundError, PullPushError
from pullpush.progress import tell

FAMILIES = ("bass", "brass", "flute", "guitar", "keyboard", "mallet", "organ", "reed", "string", "synth_lead", "vocal")
COMMANDS = {"v1": "speech_commands_v0.01", "v2": "speech_commands_v0.02"}


def listed(title: str, paths: Sequence[Path], labels: Iterable[str]) -> Listing:
    """Recordings with one label each; the classes are sorted by name.

    Raises:
        DataNotFoundError: recordings are missing; the first are named.
        PullPushError: a label is empty.
    """
    labels = list(labels)
    require_all(title, paths, "its table")
    for path, label in zip(paths, labels, strict=True):
        if not label.strip():
            raise PullPushError(f"{title}: {path} has an empty label: repair its row, or remove it")
    return Listing(list(paths), labels=labels, classes=tuple(sorted(set(labels))))


def by_table(place: Path, split: str, *, title: str, table: str, file: str, label: str) -> Listing:
    """All rows of a CSV. table: its path, in which {split} may stand; file: a recording's, by columns in braces; label:
    the column of the label.
    """
    columns = [name for _, name, _, _ in Formatter().parse(file) if name]
    rows = official_table(place / table.format(split=split), [*columns, label])
    return listed(title, [place / file.format(**row) for row in rows[columns].to_dict("records")], rows[label])


def by_name(
    place: Path,
    split: str,
    *,
    title: str,
    files: Sequence[str],
    label: str,
    such: str,
    classes: Mapping[str, str] | None = None,
) -> Listing:
    """All recordings below a folder; these sets have no splits.

    files: patterns; label: regular expression, whose group is found in `folder/name` of a file without its ending;
    classes: what groups stand for; such: what names should look like, for the `DataNotFoundError` where one is another.
    """
    paths = sorted(path for pattern in files for path in place.glob(pattern))
    found = [re.search(label, f"{path.parent.name}/{path.stem}", re.IGNORECASE) for path in paths]
    if not paths or not all(found):
        strange = [path.name for path, match in zip(paths, found, strict=True) if not match] or ["none"]
        raise DataNotFoundError(f"{title}: {place} should hold {such}; got {strange[0]}")
    names = [match[1] for match in found if match]
    return listed(title, paths, [classes[name.upper()] if classes else name.lower() for name in names])


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
    return listed("ESC-50", paths, table["category"])


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


def speech_commands(place: Path, split: str, version: str = "v2") -> Listing:
    """Speech Commands: speech_commands_v0.02/<word>/<speaker>_nohash_<number>.wav, testing_list.txt and
    validation_list.txt; every word is a class, 30 in the first version and 35 in the second. Read by `torchaudio`.

    version: "v1-sample" is all recordings of the first that are there, for a part of it without its lists.
    """
    from torchaudio.datasets import SPEECHCOMMANDS

    whole, _, is_sample = version.partition("-")
    folder = COMMANDS[whole]
    if is_sample:
        paths = sorted((place / folder).glob("*/*_nohash_*.wav"))
        if not paths:
            raise DataNotFoundError(f"no recording such as {place / folder / 'yes' / '0a7c2a8d_nohash_0.wav'}")
        return listed("Speech Commands", paths, [path.parent.name for path in paths])
    for name in ("testing_list.txt", "validation_list.txt"):
        if not (place / folder / name).is_file():
            raise DataNotFoundError(
                f"no {place / folder / name}: `pullpush fetch speech_commands:{version}` gets it, or unpack it there; "
                f"speech_commands:{version}-sample takes the recordings that are there, without their lists"
            )
    subset = {"train": "training", "valid": "validation", "test": "testing"}[split]
    data = SPEECHCOMMANDS(place.parent, folder, place.name, subset=subset)
    rows = [data.get_metadata(row) for row in range(len(data))]
    return listed("Speech Commands", [place / path for path, *_ in rows], [word for _, _, word, *_ in rows])


def fetch_speech_commands(root: Path, version: str = "v2") -> None:
    """Download it by `torchaudio`, against its checksum."""
    from torchaudio.datasets import SPEECHCOMMANDS

    (root / "SpeechCommands").mkdir(parents=True, exist_ok=True)
    SPEECHCOMMANDS(root, COMMANDS[version.partition("-")[0]], "SpeechCommands", download=True)


def mswc(place: Path, split: str, code: str = "") -> Listing:
    """Multilingual Spoken Words: <code>/<code>_splits.csv with SET, LINK, WORD and VALID, <code>/clips/<LINK>.

    Clips that are not marked as valid are left out; the words of the split are its classes.
    """
    if not code:
        raise PullPushError("choose a language of Multilingual Spoken Words, such as mswc:fr")
    part = {"train": "TRAIN", "valid": "DEV", "test": "TEST"}[split]
    table = official_table(place / code / f"{code}_splits.csv", ["SET", "LINK", "WORD", "VALID"])
    rows = table[(table["SET"] == part) & (table["VALID"].str.lower() == "true")]
    if rows.empty:
        raise DataNotFoundError(f"Multilingual Spoken Words has no keyword of {code} in the split {part}")
    paths = [place / code / "clips" / link for link in rows["LINK"]]
    return listed(f"Multilingual Spoken Words ({code})", paths, rows["WORD"])


def nsynth(place: Path, split: str) -> Listing:
    """NSynth: nsynth-test/examples.json with instrument_family_str, nsynth-test/audio/<note>.wav and so on.

    A class is a family. There are eleven in every split, although only training has notes of a synthesiser's lead.
    """
    folder = place / f"nsynth-{split}"
    notes = json_file(folder / "examples.json", f"unpack nsynth-{split}.jsonwav.tar.gz to {place}")
    try:
        labels = {name: note["instrument_family_str"] for name, note in sorted(notes.items())}
    except (AttributeError, KeyError, TypeError) as error:
        where = folder / "examples.json"
        raise PullPushError(f"{where} is no table of notes with instrument_family_str: {error}") from error
    found = listed("NSynth", [folder / "audio" / f"{name}.wav" for name in labels], labels.values())
    if strange := set(found.classes) - set(FAMILIES):
        raise PullPushError(f"{folder} has families that NSynth has not: {', '.join(sorted(strange))}")
    return found._replace(classes=FAMILIES)


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
    return listed("VocalSound", [folder / name for name in files], labels)


def vggsound(place: Path, split: str) -> Listing:
    """VGGSound: vggsound.csv without a head (youtube id, start seconds, label, split) and, in `audio`, clips called
    <youtube id>_<start, six digits>.wav, .flac or .mp3; what is gone from YouTube is left out with a warning.
    """
    columns = ["id", "start", "label", "split"]
    table = official_table(place / "vggsound.csv", columns, names=columns, header=None)
    rows = table[table["split"] == split]
    stems = [f"{clip}_{int(start):06d}" for clip, start in zip(rows["id"], rows["start"], strict=True)]
    files = {path.stem: path for path in (place / "audio").glob("*") if path.suffix in (".wav", ".flac", ".mp3")}
    found = [(files[stem], label) for stem, label in zip(stems, rows["label"], strict=True) if stem in files]
    warn_of_missing("VGGSound", split, [stem in files for stem in stems])
    if not found:
        such = f"{stems[0]}.wav" if stems else "none"
        raise DataNotFoundError(f"no clip of {place / 'vggsound.csv'} is in {place / 'audio'}, such as {such}")
    paths, labels = map(list, zip(*found, strict=True))
    return Listing(paths, labels=labels, classes=tuple(sorted(set(table["label"]))))


def json_file(path: Path, how: str) -> Any:
    """A table in JSON; `DataNotFoundError` where there is none, which says how to get it."""
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: {how}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise PullPushError(f"{path} cannot be read: {error}") from error


FURTHER = {"esc50": {"of": some_folds}, "speech_commands": {"fetch": fetch_speech_commands}}
READERS = (by_table, by_name, esc50, speech_commands, mswc, nsynth, vocalsound, vggsound)
CARDS = cards(Path(__file__).with_suffix(".yaml"), {each.__name__: each for each in READERS}, FURTHER, labelled=True)
