"""What is wrong in a captions.csv is told by its line."""

import warnings

import miniature
import pytest

from pullpush.data.recordings.corpora import CorpusConfig, load_corpus
from pullpush.data.sets.folder import read_captions
from pullpush.errors import DataNotFoundError, PullPushError

HEAD = "split,file_name,caption\n"
GOOD = "train,0.wav,A dog\nvalid,1.wav,A cat\ntest,2.wav,A bird\n"


@pytest.fixture
def mine(home, tmp_path):
    for number in range(4):
        miniature.tone(tmp_path / "mine" / "audio" / f"{number}.wav", number)
        miniature.tone(tmp_path / "mine" / "audio" / "far" / f"{number}.wav", number + 4)
    (tmp_path / "mine" / "audio" / "cafe\u0301.wav").touch()  # as macOS writes it
    return tmp_path / "mine"


def load(folder, rows, *, head=HEAD, further=None):
    (folder / "captions.csv").write_text(head + rows, encoding="utf-8")
    if further is not None:
        (folder / "captions.fra.csv").write_text(further, encoding="utf-8")
    return load_corpus(CorpusConfig(f"folder:{folder}"))


def test_a_table_as_the_page_shows_it_is_taken(mine):
    with warnings.catch_warnings(action="error"):
        load(mine, GOOD + 'train,far/3.wav,"A dog, then a cat"\n')


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (GOOD + "train,3.wav,A dog, then a cat\n", r"line 5: 4 fields in place of 3 \(split, file_name, caption\)"),
        ("train,0.wav,A dog, a cat\nvalid,1.wav,A, b\ntest,2.wav,A, b\n", "line 2: 4 fields.*into quotes"),
        (GOOD + "train,3.wav\n", "line 5: 2 fields"),
        (GOOD + 'train,3.wav,"A dog\n', "line 5: unexpected end of data; are its quotes closed"),
        (GOOD + "train,,A\n", "line 5 has no file_name: name the recording"),
        (GOOD + "train,caf\u00e9.wav,A\n", "lacks 1 of .*caf.*files that look alike are there"),
        (GOOD + "train,../0.wav,A\n", r"line 5: \.\./0\.wav leads out of the folder"),
        (GOOD + "train,far/../../0.wav,A\n", "leads out of the folder"),
        (GOOD + "train,/etc/0.wav,A\n", r"line 5: /etc/0\.wav leads out of the folder"),
        (GOOD + "train,far/0.wav,A\n", r"0\.wav \(line 2\) and far/0\.wav \(line 5\) are called alike"),
        (GOOD + "test,0.wav,A\n", r"0\.wav is in train \(line 2\) and in test \(line 5\)"),
        (GOOD + ",3.wav,A\n", "line 5 has no split; a column `split` says"),
        (GOOD + "dev,3.wav,A\n", r"line 5 has the split 'dev'; a column `split` says train, valid or test"),
        (GOOD.replace("valid,", "train,"), r"no row for the split 'valid', only test, train"),
        (GOOD.replace("test,", "val,"), r"no row for the split 'test', only train, val"),
    ],
)
def test_what_is_wrong_is_told_by_line(mine, rows, says):
    with pytest.raises(PullPushError, match=says):
        load(mine, rows)


def test_a_table_without_splits_says_what_it_needs(mine):
    with pytest.raises(PullPushError, match="there is no split; a column `split`"):
        load(mine, "0.wav,A\n1.wav,B\n", head="file_name,caption\n")


def test_rows_of_valid_and_val_are_one_split(mine):
    corpus = load(mine, GOOD + "val,3.wav,A fox\n")
    assert corpus.valid.captions("eng") == [["A cat"], ["A fox"]]


def test_a_row_that_is_there_twice_is_counted_with_a_word(mine):
    with pytest.warns(UserWarning, match=r"1 rows are there twice, and count so: line 5 is line 2"):
        corpus = load(mine, GOOD + "train,0.wav,A dog\n")
    assert corpus.train.captions("eng") == [["A dog", "A dog"]]


def test_further_captions_of_a_recording_are_no_repetition(mine):
    with warnings.catch_warnings(action="error"):
        corpus = load(mine, GOOD + "train,0.wav,It barks\n")
    assert corpus.train.captions("eng") == [["A dog", "It barks"]]


def test_translations_that_find_no_recording_are_told(mine):
    french = "file_name,caption\nfar/3.wav,Un chien\n1.wav,Un chat\n"
    with pytest.warns(UserWarning, match=r"captions.fra.csv: 1 rows name no recording .*: far/3.wav \(line 2\)"):
        corpus = load(mine, GOOD + "train,far/3.wav,A dog\n", further=french)
    assert corpus.valid.captions("fra") == [["Un chat"]]


def test_a_translation_that_is_not_there_yet_is_none(mine):
    corpus = load(mine, GOOD, further="file_name,caption\n0.wav,Un chien\n1.wav,\n2.wav,Un oiseau\n")
    assert (corpus.train.captions("fra"), corpus.valid.captions("fra")) == ([["Un chien"]], [[]])


def test_an_edit_anywhere_in_a_translation_is_another_world(mine):
    long = "file_name,caption\n" + "0.wav,Un bruit\n" * 1000
    mended = f"{long[:9000]}{long[9000:].replace('bruit', 'chien', 1)}"
    assert load(mine, GOOD, further=long).identity != load(mine, GOOD, further=mended).identity


def test_only_captions_are_captions(mine):
    rows = "train,0.wav,A dog,7\nvalid,1.wav,A cat,8\ntest,2.wav,A bird,9\n"
    assert load(mine, rows, head="split,file_name,caption,caption_id\n").train.captions("eng") == [["A dog"]]


def test_what_cleaning_empties_is_no_caption(mine):
    load(mine, GOOD + "train,0.wav,???\n")
    cleaned = CorpusConfig(f"folder:{mine}", text_cleaning="dcase")
    assert load_corpus(cleaned).train.captions("eng") == [["a dog"]]


def test_what_is_wrong_with_translations_is_told_too(mine):
    with pytest.raises(PullPushError, match=r"captions.fra.csv, line 2: 3 fields in place of 2"):
        load(mine, GOOD, further="file_name,caption\n0.wav,Un chien, un chat\n")
    with pytest.raises(PullPushError, match=r"captions\.fra\.csv parts its fields by ';'"):
        load(mine, GOOD, further="file_name;caption\n0.wav;Un chien\n")
    (mine / "captions.fra.csv").rename(mine / "captions.eng.csv").write_text("file_name,caption\n0.wav,A dog\n")
    with pytest.raises(PullPushError, match=r"captions\.eng\.csv: captions in English are read from captions\.csv"):
        load(mine, GOOD)
    (mine / "captions.eng.csv").rename(mine / "captions.fr.csv").write_text("file_name,caption\n")
    with pytest.raises(PullPushError, match=r"captions\.fr\.csv: 'fr' is no language: three letters"):
        load(mine, GOOD)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ((HEAD + GOOD).encode("utf-16"), r"is not in UTF-8 .*byte 1\): save it as CSV in UTF-8"),
        ((HEAD + GOOD + "train,3.wav,été\n").encode("latin-1"), "is not in UTF-8"),
        ((HEAD + GOOD).replace(",", ";").encode(), "parts its fields by ';': save it with commas"),
        ((HEAD + GOOD).replace(",", "\t").encode(), r"parts its fields by '\\t'"),
    ],
)
def test_tables_as_spreadsheets_save_them_say_how_to_save_them(mine, raw, says):
    (mine / "captions.csv").write_bytes(raw)
    with pytest.raises(PullPushError, match=says):
        load_corpus(CorpusConfig(f"folder:{mine}"))


# ---------------------------------------------------------------- layouts


def test_clothos_layout_has_a_column_per_caption(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text(
        'split,file_name,caption_1,caption_2\ntest,a.wav,A tone.,"One tone, high."\nval,"b, c.flac",A long tone.,\n'
    )
    assert read_captions(path) == {"a.wav": ["A tone.", "One tone, high."], "b, c.flac": ["A long tone."]}


def test_audiocaps_layout_has_a_row_per_caption(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text(
        '\ufefffile_name,caption\n\nx.wav,A dog.\ny.wav,"A cat,\n""miaow"""\nx.wav, A barking dog. \n', encoding="utf-8"
    )
    assert read_captions(path) == {"x.wav": ["A dog.", "A barking dog."], "y.wav": ['A cat,\n"miaow"']}


def test_what_is_wrong_with_a_table_is_told(tmp_path):
    with pytest.raises(DataNotFoundError, match="no caption table"):
        read_captions(tmp_path / "nothing.csv")
    for text, complaint in (
        ("", "needs the columns"),
        ("name,caption\na,b\n", "needs the columns"),
        ("file_name,caption\na.wav,\n", "no caption for a.wav"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(PullPushError, match=complaint):
            read_captions(tmp_path / "bad.csv")
