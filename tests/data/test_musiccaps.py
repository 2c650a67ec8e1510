"""MusicCaps in its layout: whose clips test, how recordings are called, and what is gone."""

from __future__ import annotations

import miniature
import pytest
import torch

from pullpush.data.recordings.corpora import CorpusConfig, load_corpus
from pullpush.data.recordings.registry import find
from pullpush.errors import DataNotFoundError, UnknownNameError

NAMES = ("{id}", "[{id}]-[{start}-{end}]", "{id}_{start}", "{id}_{start}000_{end}000")
HEAD = ["ytid", "start_s", "end_s", "audioset_positive_labels", "aspect_list", "caption", "author_id"]


@pytest.fixture(autouse=True)
def songs_there(root):
    """MusicCaps, 20 clips to learn from and 8 to test, called as people call them; two of them are one video's."""
    rows = []
    for number in range(28):
        clip, start = f"-_{number:02d}-xyz789", 10 * (number % 4)
        name = NAMES[number % 4].format(id=clip, start=start, end=start + 10)
        miniature.tone(root / f"MusicCaps/audio/{name}.wav", number, rate=8000, seconds=0.3)
        rows.append([clip, start, start + 10, "/m/0", "['calm, slow']", f"Song {number}, slow.\n", 3])
        rows[-1] += [number % 2 == 0, number >= 20]
    miniature.table(root / "MusicCaps/musiccaps-public.csv", rows, [*HEAD, "is_balanced_subset", "is_audioset_eval"])


def songs(clips) -> list[int]:
    return [int(text.split()[1].rstrip(",")) for (text,) in clips.captions("eng")]


def test_audiosets_evaluation_clips_test(root):
    corpus = load_corpus(CorpusConfig("musiccaps"))
    assert songs(corpus.test) == list(range(20, 28))
    assert songs(corpus.valid) == [9, 19], "every tenth of those to learn from"
    assert sorted(songs(corpus.train) + songs(corpus.valid)) == list(range(20))
    assert corpus.train.captions("eng")[0] == ["Song 0, slow."]


@pytest.mark.parametrize("row", range(4))
def test_each_way_to_call_a_clip_finds_its_sound(root, row):
    clips = load_corpus(CorpusConfig("musiccaps")).train
    audio, lengths = clips.audio(row)
    loudest = int(torch.fft.rfft(audio[0]).abs().argmax()) * 16_000 / int(lengths)
    assert loudest == pytest.approx(200 + 90 * row, abs=5)
    name = NAMES[row].format(id=f"-_{row:02d}-xyz789", start=10 * row, end=10 * row + 10)
    assert clips.columns["file"][row] == f"{name}.wav"


def test_the_papers_two_splits(root):
    corpus = load_corpus(CorpusConfig("musiccaps:paper"))
    assert songs(corpus.train) == list(range(20))
    assert songs(corpus.valid) == songs(corpus.test) == list(range(20, 28))
    with pytest.raises(UnknownNameError, match="version of MusicCaps"):
        find("musiccaps:v2")


def test_clips_that_are_gone_are_counted(root):
    for file in sorted((root / "MusicCaps/audio").iterdir())[:3]:
        file.unlink()
    with pytest.warns(UserWarning, match=r"MusicCaps: \d of \d+ clips for"):
        corpus = load_corpus(CorpusConfig("musiccaps"))
    assert sum(len(clips) for clips in corpus.splits.values()) == 25


def test_without_sounds_it_says_what_is_expected(root):
    for file in (root / "MusicCaps/audio").iterdir():
        file.unlink()
    with pytest.raises(DataNotFoundError, match=r"such as -_00-xyz789\.wav"), pytest.warns(UserWarning, match="of 18"):
        load_corpus(CorpusConfig("musiccaps"))
    (root / "MusicCaps/musiccaps-public.csv").unlink()
    with pytest.raises(DataNotFoundError, match=r"musiccaps-public\.csv"):
        load_corpus(CorpusConfig("musiccaps"))
