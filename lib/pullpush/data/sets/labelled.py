"""Sounds and spoken words with one label each, for zero-shot classification.

`labelled.yaml` says of each set what it is; the function that is called as the set is reads it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pullpush.data.recordings.registry import DatasetCard, Listing, cards, official_table, require_all, warn_of_missing
from pullpush.errors import DataNotFoundError, PullPushError
from pullpush.progress import tell

COMMANDS = {"v1": "speech_commands_v0.01", "v2": "speech_commands_v0.02"}


def listed(title: str, paths: Sequence[Path], labels: Iterable[str]) -> Listing:
    """Recordings with one label each, none empty, all of them there; the classes are sorted by name."""
    labels = list(labels)
    require_all(title, paths, "its table")
    for path, label in zip(paths, labels, strict=True):
        if not label.strip():
            raise PullPushError(f"{title}: {path} has an empty label: repair its row, or remove it")
    return Listing(list(paths), labels=labels, classes=tuple(sorted(set(labels))))


def urbansound8k(place: Path, split: str) -> Listing:
    """UrbanSound8K: metadata/UrbanSound8K.csv with fold, slice_file_name and class, audio/fold1/*.wav and so on."""
    table = official_table(place / "metadata" / "UrbanSound8K.csv", ["fold", "slice_file_name", "class"])
    paths = [place / "audio" / f"fold{row.fold}" / row.slice_file_name for row in table.itertuples()]
    return listed("UrbanSound8K", paths, table["class"])


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
    paths = [next((each for each in (path, path.with_suffix(".flac")) if each.is_file()), path) for path in named]
    if count := sum(path != name for path, name in zip(paths, named, strict=True)):
        tell(f"ESC-50: {count} of {len(paths)} recordings are FLAC where the table names WAV")
    return listed("ESC-50", paths, table["category"])


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


FURTHER = {"esc50": {"of": some_folds}, "speech_commands": {"fetch": fetch_speech_commands}}
READERS = (esc50, speech_commands, urbansound8k, vggsound)
CARDS = cards(Path(__file__).with_suffix(".yaml"), {each.__name__: each for each in READERS}, FURTHER, labelled=True)
