"""Real datasets in the layouts of Clotho and AudioCaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile
import torch

from pullpush.data.batches import PairDataset, collate
from pullpush.data.recordings.corpora import CorpusConfig, load_split
from pullpush.data.sets.folder import read_captions
from pullpush.errors import AudioError, DataNotFoundError, PullPushError, UnknownNameError

CLOTHO = Path(__file__).parents[3] / "shared" / "data" / "clotho-mini"
real = pytest.mark.skipif(not CLOTHO.is_dir(), reason="the small copy of Clotho (../shared/data) is not here")


@pytest.fixture
def folder(tmp_path):
    """Two recordings of 0.5 and 1 s, of other rates and channels than the models want."""
    for name, seconds, rate, channels in (("a.wav", 0.5, 44_100, 2), ("b, c.flac", 1.0, 8_000, 1)):
        time = np.arange(round(seconds * rate)) / rate
        soundfile.write(tmp_path / name, np.repeat(0.3 * np.sin(2000 * time)[:, None], channels, 1), rate)
    (tmp_path / "captions.csv").write_text(
        'split,file_name,caption_1,caption_2\ntest,a.wav,A tone.,"One tone, high."\nval,"b, c.flac",A long tone.,\n'
    )
    return tmp_path


def clips_of(folder: Path, **options):
    """All recordings of the folder as the clips of a test."""
    table = folder / "captions.csv"
    table.write_text(table.read_text().replace("\nval,", "\ntest,"))
    return load_split(CorpusConfig(f"folder:{folder}", **options), "test")


def test_clothos_layout_has_a_column_per_caption(folder):
    assert read_captions(folder / "captions.csv") == {
        "a.wav": ["A tone.", "One tone, high."],
        "b, c.flac": ["A long tone."],
    }
    assert list(read_captions(folder / "captions.csv", split="val")) == ["b, c.flac"]


def test_audiocaps_layout_has_a_row_per_caption(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text("\ufefffile_name,caption\nx.wav,A dog.\ny.wav,A cat.\nx.wav, A barking dog. \n", encoding="utf-8")
    assert read_captions(path) == {"x.wav": ["A dog.", "A barking dog."], "y.wav": ["A cat."]}


def test_what_is_wrong_with_a_table_is_told(tmp_path, folder):
    with pytest.raises(DataNotFoundError, match="no caption table"):
        read_captions(tmp_path / "nothing.csv")
    with pytest.raises(UnknownNameError, match="test, val"):
        read_captions(folder / "captions.csv", split="valid")
    for text, complaint in (
        ("", "not a CSV"),
        ("name,caption\na,b\n", "needs the columns"),
        ("file_name,caption\na.wav,\n", "no caption for a.wav"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(PullPushError, match=complaint):
            read_captions(tmp_path / "bad.csv")


def test_a_folder_gives_the_same_batches_as_a_world(folder, home):
    clips = clips_of(folder)
    batch = collate(list(PairDataset(clips)))
    assert batch.audio.shape == (2, 16_000)
    assert batch.lengths.tolist() == [8_000, 16_000]
    assert batch.texts == ["A tone.", "A long tone."]
    assert not batch.audio[0, 8_000:].any()
    assert torch.equal(clips.audio([1])[0], batch.audio[1:])
    assert clips.audio(slice(0, 0))[0].shape[0] == 0


def test_long_recordings_are_cut(folder, home):
    audio, lengths = clips_of(folder, seconds=0.75).audio([0, 1])
    assert lengths.tolist() == [8_000, 12_000]
    assert audio.shape == (2, 12_000)


def test_missing_and_broken_recordings_are_named(folder, home):
    (folder / "a.wav").write_bytes(b"nothing")
    with pytest.raises(AudioError, match=r"a\.wav"):
        clips_of(folder)
    (folder / "a.wav").unlink()
    with pytest.raises(DataNotFoundError, match=r"lacks 1 of the 2 recordings.*a\.wav"):
        clips_of(folder)


def test_another_language_is_told(folder, home):
    with pytest.raises(UnknownNameError, match="eng"):
        clips_of(folder).captions("fra")


@real
def test_clotho_loads(home, tmp_path):
    table = pd.read_csv(CLOTHO / "captions.csv", dtype=str)  # of which one recording is in two splits
    table[table["split"] == "test"].to_csv(tmp_path / "captions.csv", index=False)
    for path in (CLOTHO / "audio").iterdir():
        (tmp_path / path.name).symlink_to(path)
    clips = load_split(CorpusConfig(f"folder:{tmp_path}", seconds=4.0), "test")
    assert len(clips) == 7
    assert all(len(texts) == 5 for texts in clips.captions("eng"))
    (batch,) = PairDataset(clips, captions="random").batches(7, seed=0, epoch=0)
    assert batch.audio.shape == (7, 64_000)
    assert (batch.audio.abs().amax(1) > 0).all()
