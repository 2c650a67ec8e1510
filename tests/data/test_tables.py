"""Tables in the layouts of Clotho and AudioCaps."""

from __future__ import annotations

import pytest

from pullpush.data.sets.folder import read_captions
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError


@pytest.fixture
def folder(tmp_path):
    """A table in Clotho's layout."""
    (tmp_path / "captions.csv").write_text(
        'split,file_name,caption_1,caption_2\ntest,a.wav,A tone.,"One tone, high."\nval,"b, c.flac",A long tone.,\n'
    )
    return tmp_path


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
        ("", "needs the columns"),
        ("name,caption\na,b\n", "needs the columns"),
        ("file_name,caption\na.wav,\n", "no caption for a.wav"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(PullPushError, match=complaint):
            read_captions(tmp_path / "bad.csv")
