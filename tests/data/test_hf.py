"""Datasets of the hub: Parquet files of this machine, which `datasets` reads as it reads the hub's."""

import datasets
import miniature
import numpy as np
import pytest
import speakers

from pullpush.data.recordings import registry
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus
from pullpush.data.sets import hf
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError


@pytest.fixture
def hub(home, tmp_path, monkeypatch):
    """A place for datasets of the hub, without the hub."""
    monkeypatch.setenv("PULLPUSH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    return tmp_path / "published"


def publish(folder, columns, **splits):
    """Parquet files with sounds in their rows; splits: name → numbers of the tones."""
    (folder / "data").mkdir(parents=True)
    for split, numbers in splits.items():
        tones = [(speakers.tone(number, kind="FLAC"), f"{number}.flac") for number in numbers]
        rows = {"audio": [{"bytes": sound, "path": name} for sound, name in tones]}
        rows |= {name: [make(number) for number in numbers] for name, make in columns.items()}
        table = datasets.Dataset.from_dict(rows).cast_column("audio", datasets.Audio(decode=False))
        table.to_parquet(str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    return f"hf:{folder}"


def test_a_dataset_of_the_hub_is_fetched_once_and_read_as_a_folder(hub, monkeypatch):
    name = publish(hub, {"caption": miniature.sentence}, train=range(12), validation=[20, 21], test=[30, 31])
    with pytest.raises(DataNotFoundError, match="pullpush fetch hf:"):
        load_corpus(CorpusConfig(name))
    registry.fetch(name)
    monkeypatch.setattr(hf, "load_dataset", None)  # from now on nobody may ask for it
    registry.fetch(name)
    corpus = load_corpus(CorpusConfig(name))
    assert {split: len(clips) for split, clips in corpus.splits.items()} == {"train": 12, "valid": 2, "test": 2}
    assert corpus.test.captions("eng") == [[miniature.sentence(30)], [miniature.sentence(31)]]
    audio, lengths = corpus.test.audio(1)
    spectrum = np.abs(np.fft.rfft(audio[0].numpy()))
    assert spectrum.argmax() * 16_000 / int(lengths[0]) == pytest.approx(200 + 40 * 31, abs=2)


def test_a_dataset_without_validation_and_test_gives_every_tenth_clip_to_each(hub):
    name = publish(hub, {"captions": lambda n: [miniature.sentence(n), miniature.sentence(n, 1)]}, train=range(20))
    registry.fetch(name)
    splits = {split: registry.listing(name, split) for split in ("train", "valid", "test")}
    assert {split: len(files.paths) for split, files in splits.items()} == {"train": 16, "valid": 2, "test": 2}
    assert splits["valid"].captions[1] == [miniature.sentence(18), miniature.sentence(18, 1)]
    assert [path.name for path in splits["test"].paths] == ["9.flac", "19.flac"]


def test_a_recording_with_a_row_for_each_caption_is_one_clip_in_one_split(hub):
    numbers = [number for number in range(20) for _ in range(3)]
    registry.fetch(name := publish(hub, {"caption": "tone {}".format}, train=numbers))
    splits = {split: registry.listing(name, split) for split in ("train", "valid", "test")}
    assert {split: len(files.paths) for split, files in splits.items()} == {"train": 16, "valid": 2, "test": 2}
    assert splits["test"].captions[0] == ["tone 9", "tone 9", "tone 9"]


def test_columns_and_splits_can_be_said(hub):
    columns = {"title": lambda n: f"title {n}", "words": miniature.sentence, "more": lambda n: miniature.sentence(n, 2)}
    name = publish(hub, columns, most=range(3), held=[7], dev=[8])
    with pytest.raises(PullPushError, match=r"no split to train on, only dev, held, most.*train=dev"):
        registry.fetch(name)
    with pytest.raises(PullPushError, match=r"needs a column of captions, has audio, title, words, more"):
        registry.fetch(f"{name}?train=most")
    with pytest.raises(UnknownNameError, match="did you mean 'held'"):
        registry.fetch(f"{name}?train=most&test=hold&text=words")
    chosen = f"{name}?train=most&test=held&text=words,more"
    registry.fetch(chosen)
    assert registry.listing(chosen, "test").captions == [[miniature.sentence(7), miniature.sentence(7, 2)]]
    assert len(registry.listing(chosen, "valid").paths) == 1


def test_clips_without_captions_are_counted(hub):
    name = publish(hub, {"caption": lambda n: "" if n == 1 else "a tone"}, train=[0, 1, 2], valid=[3], test=[4])
    with pytest.warns(UserWarning, match="1 clips without a recording or without a caption"):
        registry.fetch(name)
    assert len(registry.listing(name, "train").paths) == 2


def test_a_fetch_that_fails_leaves_nothing(hub):
    name = publish(hub, {"caption": miniature.sentence}, train=range(3))
    with pytest.raises(PullPushError, match="needs a column of audio"):
        registry.fetch(f"{name}?audio=sound")
    assert not registry.find(f"{name}?audio=sound").where(registry.datasets_home()).exists()
    assert not list((registry.datasets_home() / "hf").iterdir())


def test_a_folder_of_recordings_needs_no_hub(hub):
    miniature.tone(hub / "train" / "a.wav", 1)
    miniature.table(hub / "train" / "metadata.csv", [("a.wav", "a tone")], ["file_name", "caption"])
    with pytest.raises(PullPushError, match=r"torchcodec.*folder:"):
        registry.fetch(f"hf:{hub}")


def test_a_dataset_that_is_not_there_is_named(hub):
    with pytest.raises(DataNotFoundError, match="nobody/nothing"):
        registry.fetch("hf:nobody/nothing")
    with pytest.raises(UnknownNameError, match="did you mean 'text'"):
        registry.find("hf:owner/name?txt=caption")
    with pytest.raises(PullPushError, match="option=value"):
        registry.find("hf:owner/name?caption")
    with pytest.raises(PullPushError, match="clotho is one dataset"):
        registry.find("clotho:small")


def test_two_requests_for_one_dataset_lie_apart(home):
    places = {registry.find(f"hf:owner/name{options}").folder for options in ("", "?text=a", "?text=b", "?revision=v2")}
    assert len(places) == 4
    assert "hf/owner--name" in places
