"""Queries with several right clips: DCASE's table, a plain table, and what they lose."""

import miniature
import pytest

from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, read_queries
from pullpush.errors import DataNotFoundError, PullPushError


@pytest.fixture
def clips(home, tmp_path, monkeypatch):
    miniature.clotho(tmp_path / "data")
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    return load_corpus(CorpusConfig("clotho")).test


def name(row: int) -> str:
    return f"Sound {300 + row}, take 1.wav"


def test_the_table_of_dcase_is_read(clips, tmp_path):
    rows = [("a tone", str([name(1), name(4)])), ("it's high", str([name(8)]))]
    miniature.table(tmp_path / "metadata_eval.csv", rows, ["query", "audio_filenames"])
    queries = read_queries(tmp_path / "metadata_eval.csv", clips)
    assert queries.texts == ["a tone", "it's high"]
    assert queries.relevance.nonzero().tolist() == [[0, 1], [0, 4], [1, 8]]


def test_a_plain_table_has_a_right_clip_in_each_row(clips, tmp_path):
    rows = [("a tone", name(1)), ("high", name(8)), ("a tone", name(4))]
    miniature.table(tmp_path / "queries.csv", rows, ["query", "file_name"])
    assert read_queries(tmp_path / "queries.csv", clips).relevance.nonzero().tolist() == [[0, 1], [0, 4], [1, 8]]


def test_queries_are_cleaned_as_captions_are(clips, tmp_path):
    rows = [("A tone, high!", name(1)), ("a tone high", name(2))]
    miniature.table(tmp_path / "queries.csv", rows, ["query", "file_name"])
    assert read_queries(tmp_path / "queries.csv", clips).texts == ["A tone, high!", "a tone high"]
    queries = read_queries(tmp_path / "queries.csv", clips, cleaning="dcase")
    assert queries.texts == ["a tone high"]
    assert queries.relevance.nonzero().tolist() == [[0, 1], [0, 2]]


def test_what_is_none_of_the_clips_is_counted(clips, tmp_path):
    rows = [("a tone", name(1)), ("a tone", "gone.wav"), ("a bell", "gone.wav")]
    miniature.table(tmp_path / "queries.csv", rows, ["query", "file_name"])
    with pytest.warns(UserWarning, match="left out") as told:
        queries = read_queries(tmp_path / "queries.csv", clips)
    messages = [str(warning.message) for warning in told]
    assert "queries.csv: 1 files that are none of the clips left out: gone.wav" in messages
    assert "queries.csv: 1 queries without a clip left out: a bell" in messages
    assert queries.texts == ["a tone"]


def test_a_comma_without_quotes_cuts_no_query(clips, tmp_path):
    (tmp_path / "queries.csv").write_text(f"query,file_name\na dog barks, then a cat,{name(1)}\n")
    with pytest.raises(
        PullPushError, match="more fields than its header has names; put a text that holds a comma into"
    ):
        read_queries(tmp_path / "queries.csv", clips)


@pytest.mark.parametrize(
    ("head", "rows", "message"),
    [
        (["query", "audio_filenames"], [("a", "__import__('os').listdir()")], "must be lists such as"),
        (["query", "audio_filenames"], [("a", "'b.wav'")], "must be lists such as"),
        (["query", "audio_filenames"], [("a", "3")], "must be lists such as"),
        (["query", "file_name"], [("a", "b.wav"), (" ", "b.wav")], "has no query in rows 3: write one"),
        (["query", "files"], [("a", "b")], "needs a column audio_filenames or file_name, has query, files"),
        (["text", "file_name"], [("a", "b")], "lacks query"),
        (["query", "file_name"], [("a", "b.wav")], "is it the table of this dataset"),
    ],
)
def test_other_tables_are_refused(clips, tmp_path, head, rows, message):
    miniature.table(tmp_path / "queries.csv", rows, head)
    with pytest.raises(PullPushError, match=message):
        read_queries(tmp_path / "queries.csv", clips)
    with pytest.raises(DataNotFoundError):
        read_queries(tmp_path / "nothing.csv", clips)
