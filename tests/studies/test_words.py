"""Words of captions are counted set by set."""

from __future__ import annotations

from pullpush.studies.world.words import caption_words


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
