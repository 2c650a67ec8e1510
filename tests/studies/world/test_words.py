"""Words of captions are counted set by set."""

from __future__ import annotations

from pullpush.data.language.vocabulary import word_frequencies
from pullpush.studies.world.words import caption_words, richness


def test_captions_of_real_sets_are_counted_beside_the_scenes(world, home):
    folder = home / "captions"
    folder.mkdir()
    (folder / "clotho_train.csv").write_text("file_name,caption_1,caption_2\na.wav,A dog barks,Dogs bark\n")
    (folder / "clotho_test.csv").write_text("file_name,caption_1,caption_2\nb.wav,A dog howls,A cat\n")
    (folder / "audiocaps_test.csv").write_text("file_name,caption\nc.wav,Rain falls\n")
    try:
        found = caption_words(world)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert set(found) == {"scenes", "clotho", "audiocaps"}
    counts = found["clotho"].set_index("word")["count"]
    assert (counts["a"], counts["dog"], counts["barks"], counts["howls"]) == (3, 2, 1, 1)
    assert list(caption_words(world)) == ["scenes"]


def test_richness_counts_all_words_and_different_ones():
    table = richness({"one": word_frequencies(["a dog barks", "a cat"]), "two": word_frequencies(["rain"])})
    assert table["captions"].tolist() == ["one", "two"]
    assert table["different words"].tolist() == [4, 1]
    assert table["words in all"].tolist() == [5, 1]
    assert table["share of the ten most frequent"].tolist() == [1.0, 1.0]
