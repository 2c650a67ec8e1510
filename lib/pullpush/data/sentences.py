"""The tasks of SentEval, read from its own files: pairs of sentences with judgements, sentences with classes.

    $PULLPUSH_DATA/SentEval/data/downstream/STS/STS12-en-test/STS.input.MSRpar.txt … MR/rt-polarity.pos … TREC/…

as SentEval's get_transfer_data.bash leaves them, or SimCSE's download; no library is asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pullpush.data.registry import DATA, datasets_home
from pullpush.errors import DataNotFoundError, PullPushError, unknown

FOLDERS = ("SentEval/data/downstream", "SentEval/downstream", "senteval")
SOURCES = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),  # without SMT, whose licence does not allow it
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


class Sentences(NamedTuple):
    """Sentences, or pairs of them, with a judgement or a class number of each.

    right: the second sentences of pairs; none for single ones.
    """

    left: list[str]
    right: list[str]
    gold: list[float]


Parts = Mapping[str, Sentences]


def read_task(name: str) -> Parts:
    """The sources of a task of similarity, or the splits of one of classes: "all", or "train", "valid" and "test".

    Raises:
        UnknownNameError: no such task.
        DataNotFoundError: its files are not on disk; the message says where they are looked for.
        PullPushError: they are not as published.
    """
    if name not in TASKS:
        raise unknown("task of SentEval", name, TASKS)
    home = datasets_home()
    place = next((home / folder for folder in FOLDERS if (home / folder).is_dir()), None)
    if place is None:
        raise DataNotFoundError(
            f"SentEval is not at {home / FOLDERS[0]}: run data/downstream/get_transfer_data.bash of "
            f"github.com/facebookresearch/SentEval there, or set ${DATA} to the folder that holds SentEval"
        )
    try:
        found = TASKS[name](place)
    except (IndexError, ValueError) as error:
        raise PullPushError(f"the files of {name} in {place} are not as SentEval has them: {error}") from error
    if empty := [part for part, sentences in found.items() if not sentences.left]:
        raise PullPushError(f"{name} has no sentences for {', '.join(empty)} in {place}")
    return found


def _sts(year: str, place: Path) -> Parts:
    """Pairs of one year, source by source; those that were not judged, an empty line in STS.gs, are left out."""
    parts = {}
    for source in SOURCES[year]:
        folder = place / "STS" / f"{year}-en-test"
        pairs = [line.split("\t") for line in _lines(folder / f"STS.input.{source}.txt")]
        gold = _lines(folder / f"STS.gs.{source}.txt")
        rows = [(pair[0], pair[1], float(value)) for pair, value in zip(pairs, gold, strict=True) if value]
        parts[source] = _pairs(rows)
    return parts


def _sts_benchmark(place: Path) -> Parts:
    """Its test split; columns 5, 6 and 7 hold the judgement and both sentences."""
    rows = [line.split("\t") for line in _lines(place / "STS/STSBenchmark/sts-test.csv")]
    return {"test": _pairs([(row[5], row[6], float(row[4])) for row in rows])}


def _sick(place: Path) -> Parts:
    """SICK's test split, whose relatedness goes from 1 to 5."""
    rows = [line.split("\t") for line in _lines(place / "SICK/SICK_test_annotated.txt")[1:]]
    return {"test": _pairs([(row[1], row[2], float(row[3])) for row in rows])}


def _two_files(positive: str, negative: str, place: Path) -> Parts:
    """Sentences of two classes, one file each."""
    texts = [_lines(place / name, "latin-1") for name in (negative, positive)]
    return {"all": _single([(text, number) for number, found in enumerate(texts) for text in found if text.strip()])}


def _sst(place: Path) -> Parts:
    files = {"train": "sentiment-train", "valid": "sentiment-dev", "test": "sentiment-test"}
    rows = {
        split: [line.rpartition("\t") for line in _lines(place / "SST/binary" / file)] for split, file in files.items()
    }
    return {split: _single([(text, int(label)) for text, _, label in found]) for split, found in rows.items()}


def _trec(place: Path) -> Parts:
    """Questions and what they ask for: the first of two labels, "DESC:manner How …", numbered by name."""
    files = {"train": "train_5500.label", "test": "TREC_10.label"}
    rows = {}
    for split, file in files.items():
        found = [line.partition(" ") for line in _lines(place / "TREC" / file, "latin-1")]
        rows[split] = [(text, label.partition(":")[0]) for label, _, text in found]
    classes = sorted({label for _, label in rows["train"]})
    return {split: _single([(text, classes.index(label)) for text, label in found]) for split, found in rows.items()}


def _mrpc(place: Path) -> Parts:
    parts = {}
    for split in ("train", "test"):
        rows = [line.split("\t") for line in _lines(place / f"MRPC/msr_paraphrase_{split}.txt")[1:]]
        parts[split] = _pairs([(row[3], row[4], int(row[0])) for row in rows])
    return parts


def _pairs(rows: Sequence[tuple[str, str, float]]) -> Sentences:
    return Sentences(
        [_plain(left) for left, _, _ in rows], [_plain(right) for _, right, _ in rows], [y for *_, y in rows]
    )


def _single(rows: Sequence[tuple[str, float]]) -> Sentences:
    return Sentences([_plain(text) for text, _ in rows], [], [gold for _, gold in rows])


def _plain(text: str) -> str:
    """A sentence with one blank between words."""
    return " ".join(text.split())


def _lines(path: Path, encoding: str = "utf-8-sig") -> list[str]:
    """A file's lines; other marks that Python takes for ends of lines are none here."""
    if not path.is_file():
        raise DataNotFoundError(f"no {path}: is SentEval complete?")
    lines = path.read_text(encoding=encoding).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


TASKS: Mapping[str, Callable[[Path], Parts]] = {
    **{year: partial(_sts, year) for year in SOURCES},
    "STS-B": _sts_benchmark,
    "SICKR": _sick,
    "MR": partial(_two_files, "MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": partial(_two_files, "CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": partial(_two_files, "SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": partial(_two_files, "MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    "SST2": _sst,
    "TREC": _trec,
    "MRPC": _mrpc,
}
INTRINSIC = tuple(TASKS)[:7]
EXTRINSIC = tuple(TASKS)[7:]
