"""Which test clips are among the training clips: by the names of their files, and by the sound itself.

Recordings return under other names, in other formats and cuts: WavCaps holds whole Freesound recordings of which Clotho
has parts, and AudioCaps and AudioSet share clips. The fingerprint is that of Haitsma & Kalker (2002), "A highly robust
audio fingerprinting system": 32 bits a frame, the signs of differences of energy between neighbouring bands and frames.
Two cuts of one recording agree in most bits at some offset, whatever their level and coding; two recordings agree in
half of them. Digital silence, which short clips are padded with, has the word 0 and says nothing: only frames in which
both clips sound are compared.

Whether recordings are silent, clipped, or there twice is looked at when they are loaded (`check_recordings`).
"""

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.cache import cached_file, content_key
from pullpush.data.audio import is_audible
from pullpush.data.clips import Clips, StoredClips
from pullpush.data.store import FULL_SCALE
from pullpush.errors import few
from pullpush.progress import hidden

KIND = "heard"
CLIPPED = 0.01  # of the samples at full scale
RATE = 5_000  # Hz, as in the paper, §4.2; the bands reach to 2 kHz
WINDOW = 1920  # samples, 0.38 s
HOP = 60  # samples, 12 ms
EDGES = np.geomspace(300, 2000, 34)  # Hz, of 33 bands
BLOCK = 256  # frames (3 s) on which the paper's threshold rests
AGREEMENT = 0.65  # of the bits: a bit error rate of 0.35, §4.3
SHORT = 83, 0.8  # frames (1 s) in which both clips must sound, and their agreement where it is less than a block
SILENCE = 0  # the word of digital silence
COMMON = 64  # a word of 32 bits that is more frequent among the test clips says nothing
TRIED = 5  # offsets of a clip with most equal words that are compared bit by bit


def check_recordings(title: str, splits: Mapping[str, StoredClips]) -> None:
    """Warn of recordings that are silent or clipped, and of those that come twice, sample by sample, in one split or in
    two; what samples tell is cached.
    """
    silent, clipped, first, twice, both = [], [], {}, [], []
    for split, clips in splits.items():
        notes = _notes(clips)
        names = [str(name) for name in clips.columns["file"]]
        silent += [f"{names[row]} ({split})" for row in notes["silent"]]
        clipped += [f"{names[row]} ({split})" for row in notes["clipped"]]
        for name, sound in zip(names, notes["sounds"], strict=True):
            before = first.setdefault(sound, (name, split))
            if before[1] != split:
                both.append(f"{before[0]} ({before[1]}) is {name} ({split})")
            elif before[0] != name:
                twice.append(f"{before[0]} is {name} ({split})")
    _warn(title, silent, "silent: record them again, or take their rows out")
    _warn(title, clipped, "at full scale for a hundredth of their length or more, as clipped sounds are")
    _warn(title, twice, "there twice, under two names: each is wrong where the other is right")
    _warn(title, both, "in two splits: a score on what was trained on says too much, take one of each out")


def _warn(title: str, found: Sequence[str], what: str) -> None:
    if found:
        verb = "recordings are" if len(found) > 1 else "recording is"
        warnings.warn(f"{title}: {len(found)} {verb} {what}. {few(found, '; ')}", stacklevel=5)


def _notes(clips: StoredClips) -> dict[str, list[Any]]:
    """Rows that are silent and clipped, and a name for what each recording sounds like."""

    def build(place: Path) -> None:
        found: dict[str, list[Any]] = {"silent": [], "clipped": [], "sounds": []}
        for row in range(len(clips)):
            samples = clips.waveforms[clips.rows[row]]
            if not is_audible(torch.from_numpy(samples.astype(np.float32) / FULL_SCALE)):
                found["silent"].append(row)
            elif (np.abs(samples.astype(np.int32)) >= FULL_SCALE).mean() >= CLIPPED:
                found["clipped"].append(row)
            # Silence is like silence, of which there is a warning already.
            sound = hashlib.blake2b(samples.tobytes(), digest_size=12).hexdigest()
            found["sounds"].append(f"silence {clips.key} {row}" if row in found["silent"] else sound)
        place.write_text(json.dumps(found), encoding="utf-8")

    return json.loads(cached_file(KIND, f"{content_key([clips.key, len(clips)])}.json", build).read_text("utf-8"))


class Index(NamedTuple):
    """The words of all test clips, sorted: word, clip and frame of each; and the words clip by clip."""

    words: np.ndarray
    clip: np.ndarray
    frame: np.ndarray
    prints: list[np.ndarray]


class Match(NamedTuple):
    """A test clip, how much of the bits agrees, and where it begins in the other clip, in frames."""

    clip: int
    agreement: float
    frame: int


def overlap(train: Clips, test: Clips) -> pd.DataFrame:
    """Pairs of a training clip and a test clip that are one recording, or bear one name.

    Returns:
        Columns train, test (names of files, or numbers where clips have none), by ("name", "sound" or "name and
        sound"), agreement (share of equal bits, NaN where only names agree) and seconds (where the test clip begins
        in the training clip; negative, where it begins earlier); sorted by test and train.
    """
    index, found = indexed([fingerprint(wave) for wave in _waves(test, "test")]), {}
    for row, wave in enumerate(_waves(train, "training")):
        for match in matches(fingerprint(wave), index):
            found[row, match.clip] = ("sound", match.agreement, match.frame * HOP / RATE)
    learnt, tested = (list(clips.columns.get("file", range(len(clips)))) for clips in (train, test))
    place = {name: number for number, name in enumerate(tested)} if "file" in test.columns else {}
    for row, name in enumerate(learnt):
        if name in place:
            pair = row, place[name]
            found[pair] = ("name and sound", *found[pair][1:]) if pair in found else ("name", np.nan, np.nan)
    rows = [(learnt[row], tested[clip], *match) for (row, clip), match in found.items()]
    table = pd.DataFrame(rows, columns=["train", "test", "by", "agreement", "seconds"])
    return table.sort_values(["test", "train"], ignore_index=True)


def fingerprint(wave: Tensor) -> np.ndarray:
    """`(T,)` float32 at 5 kHz → one word of 32 bits for every 12 ms, `(F,)` uint32; none for clips under 0.4 s.

    >>> loud = torch.randn(5000, generator=torch.Generator().manual_seed(0))
    >>> words = fingerprint(loud)
    >>> len(words), bool((words == fingerprint(loud / 10)).mean() > 0.99)
    (51, True)
    """
    if len(wave) < WINDOW + HOP:
        return np.zeros(0, np.uint32)
    spectrum = torch.stft(wave, WINDOW, HOP, window=torch.hann_window(WINDOW), center=False, return_complex=True)
    bins = np.searchsorted(np.arange(WINDOW // 2 + 1) * RATE / WINDOW, EDGES)
    power = torch.view_as_real(spectrum).square().sum(-1)
    energy = torch.stack([power[low:high].sum(0) for low, high in pairwise(bins)])  # (33, F)
    across = energy[:-1] - energy[1:]
    bits = (across[:, 1:] > across[:, :-1]).numpy()
    return np.packbits(bits, axis=0).T.copy().view(np.uint32)[:, 0]


def indexed(prints: list[np.ndarray]) -> Index:
    """The words of fingerprints `(F,)`, for `matches`."""
    words = np.concatenate([*prints, np.zeros(0, np.uint32)])
    clip = np.repeat(np.arange(len(prints)), [len(words) for words in prints])
    frame = np.concatenate([np.arange(len(words)) for words in [*prints, words[:0]]])
    order = np.argsort(words, kind="stable")
    return Index(words[order], clip[order], frame[order], prints)


def matches(words: np.ndarray, index: Index) -> list[Match]:
    """The indexed clips that are of the same recording as a fingerprint `(F,)`, each at its best offset."""
    low, high = (np.searchsorted(index.words, words, side=side) for side in ("left", "right"))
    counts = np.where((high - low <= COMMON) & (words != SILENCE), high - low, 0)
    ours = np.repeat(np.arange(len(words)), counts)
    theirs = np.repeat(low, counts) + np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    offsets = np.stack([index.clip[theirs], ours - index.frame[theirs]])
    pairs, votes = np.unique(offsets, axis=1, return_counts=True)
    best, tried = dict[int, Match](), Counter[int]()
    for place in np.argsort(-votes, kind="stable")[: max(TRIED, int((votes > 1).sum()))]:
        clip, offset = map(int, pairs[:, place])
        if tried[clip] == TRIED:
            continue
        tried[clip] += 1
        agreement = _agreement(words, index.prints[clip], offset)
        if agreement > (best[clip].agreement if clip in best else 0):
            best[clip] = Match(clip, agreement, offset)
    return list(best.values())


def _agreement(ours: np.ndarray, theirs: np.ndarray, offset: int) -> float:
    """Share of equal bits where both sound, theirs beginning at frame `offset` of ours; 0 where that is too little."""
    first, last = max(0, offset), min(len(ours), offset + len(theirs))
    one, other = ours[first:last], theirs[first - offset : last - offset]
    both = (one != SILENCE) & (other != SILENCE)
    least = AGREEMENT if both.sum() >= BLOCK else SHORT[1]
    if both.sum() < SHORT[0]:
        return 0.0
    agreement = 1 - np.bitwise_count((one ^ other)[both]).mean() / 32
    return float(agreement) if agreement >= least else 0.0


def _waves(clips: Clips, name: str) -> Iterator[Tensor]:
    for row in tqdm(range(len(clips)), desc=f"listening to {name} clips", unit="clip", disable=hidden()):
        audio, lengths = clips.audio(row, sample_rate=RATE)
        yield audio[0, : int(lengths[0])]
