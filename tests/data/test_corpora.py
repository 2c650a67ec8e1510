"""Real datasets in their published layouts, miniature copies of which are read as the whole ones are."""

import functools
import http.server
import shutil
import sys
import threading
import zipfile
from dataclasses import replace
from itertools import chain
from pathlib import Path

import miniature
import pytest
import soundfile
import torch

from pullpush.data import store as decoding
from pullpush.data.batches import PairDataset, collate
from pullpush.data.clips import load_data
from pullpush.data.recordings import registry
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, load_labelled
from pullpush.data.sets import captioned
from pullpush.errors import AudioError, DataNotFoundError, PullPushError, UnknownNameError

PUBLIC = Path(__file__).parents[3] / "shared" / "data" / "public"
NAMES = ("audiocaps", "clotho", "macs", "wavcaps", "esc50", "urbansound8k", "vggsound")


@pytest.mark.parametrize("name", ["audiocaps", "clotho"])
def test_a_captioned_dataset_is_three_splits_of_clips(root, name):
    getattr(miniature, name)(root)
    corpus = load_corpus(CorpusConfig(name))
    for split, count in miniature.COUNTS.items():
        clips = getattr(corpus, split)
        audio, lengths = clips.audio(range(count))
        assert len(clips) == count
        assert audio.shape == (count, int(lengths.max()))
        assert audio.dtype == torch.float32
        assert 0.2 < float(audio.abs().max()) <= 0.35
        assert torch.equal(clips.relevance(), torch.eye(count))
        assert len({tuple(own) for own in clips.captions("eng")}) == count
    assert {len(own) for own in corpus.train.captions("eng")} == {1 if name == "audiocaps" else 5}
    assert {len(own) for own in corpus.test.captions("eng")} == {5}
    batch = collate([PairDataset(corpus.train)[row] for row in range(4)])
    assert batch.texts == [own[0] for own in corpus.train.captions("eng")[:4]]


def test_clips_are_cut_as_long_as_the_dataset_has_them_unless_told_otherwise(root):
    miniature.clotho(root)
    miniature.audiocaps(root)
    miniature.tone(root / "CLOTHO_v2.1/clotho_audio_files/evaluation/Sound 300, take 1.wav", 0, rate=44_100, seconds=31)
    first = sorted((root / "AUDIOCAPS/audio_32000Hz/test").iterdir())[0]
    miniature.tone(first, 30, rate=32_000, seconds=31)
    longest = {name: max(load_corpus(CorpusConfig(name)).test.lengths) / 16_000 for name in ("clotho", "audiocaps")}
    assert longest == {"clotho": 30, "audiocaps": 10}
    assert max(load_corpus(CorpusConfig("clotho", seconds=float("inf"))).test.lengths) == 31 * 16_000


def test_recordings_are_decoded_once(root, monkeypatch):
    miniature.audiocaps(root)
    first = load_data(CorpusConfig("audiocaps"))
    monkeypatch.setattr(decoding, "load_audio", None)  # nobody may decode again
    again = load_data(CorpusConfig("audiocaps"))
    assert torch.equal(first.test.audio(2)[0], again.test.audio(2)[0])
    assert first.identity == again.identity


def test_a_changed_recording_or_caption_is_another_corpus(root):
    miniature.clotho(root)
    first = load_corpus(CorpusConfig("clotho"))
    miniature.tone(root / "CLOTHO_v2.1/clotho_audio_files/development/Sound 100, take 1.wav", 9, rate=44_100)
    second = load_corpus(CorpusConfig("clotho"))
    assert second.train.key != first.train.key
    assert second.valid.key == first.valid.key
    file = root / "CLOTHO_v2.1/clotho_csv_files/clotho_captions_development.csv"
    file.write_text(file.read_text().replace("near by", "close"))
    third = load_corpus(CorpusConfig("clotho"))
    assert third.train.key == second.train.key
    assert third.identity != second.identity


def test_macs_without_splits_is_cut_by_name(root):
    miniature.macs(root)
    corpus = load_corpus(CorpusConfig("macs"))
    parts = [set(split.columns["file"]) for split in (corpus.train, corpus.valid, corpus.test)]
    assert [len(part) for part in parts] == [16, 2, 2]
    assert not set.intersection(*parts)
    assert len(corpus.train.captions("eng")[0]) == 2


def test_wavcaps_is_read_source_by_source(root, monkeypatch):
    miniature.wavcaps(root)
    sizes = captioned.module_of("wavcaps").WavCapsCard.EXPECTED_SIZES  # the library counts the files of the whole set
    for source in ("SoundBible", "FreeSound"):
        monkeypatch.setitem(sizes, source, 10)
    corpus = load_corpus(CorpusConfig("wavcaps"))
    assert [len(split) for split in (corpus.train, corpus.valid, corpus.test)] == [16, 1, 1]
    captions = {own[0] for split in (corpus.train, corpus.valid, corpus.test) for own in split.captions("eng")}
    assert miniature.sentence(0) in captions
    assert miniature.sentence(51) not in captions, "Clotho holds it, too"
    monkeypatch.setitem(sizes, "FreeSound", 11)
    with pytest.raises(DataNotFoundError, match="all of Audio/FreeSound"):
        load_corpus(CorpusConfig("wavcaps"))


def test_clips_that_are_gone_from_youtube_are_left_out(root):
    miniature.audiocaps(root)
    gone = sorted((root / "AUDIOCAPS/audio_32000Hz/train").iterdir())[3]
    gone.unlink()
    with pytest.warns(UserWarning, match="AudioCaps: 1 of 20 clips for train"):
        corpus = load_corpus(CorpusConfig("audiocaps"))
    assert gone.name not in corpus.train.columns["file"]
    assert corpus.train.captions("eng")[3] == [miniature.sentence(5)]


def test_audiocaps_is_tested_on_957_clips_or_on_975(root):
    miniature.audiocaps(root)
    table = root / "AUDIOCAPS/csv_files_v1/test.csv"
    for number, clip in enumerate(("7fmOlUlwoNg", "6BJ455B1aAs")):
        miniature.tone(root / f"AUDIOCAPS/audio_32000Hz/test/{clip}_20.flac", number, rate=32_000)
        lines = [f"{number}{k},{clip},20,A caption of {clip} {k}\n" for k in range(5)]
        table.write_text(table.read_text() + "".join(lines))
    assert len(load_corpus(CorpusConfig("audiocaps")).test) == 11
    with pytest.warns(UserWarning, match="955 of the 957 clips of subset 957 are missing"):
        some = load_corpus(CorpusConfig("audiocaps", subset="957"))
    assert some.test.columns["file"] == ["7fmOlUlwoNg_20.flac", "6BJ455B1aAs_20.flac"]
    assert len(some.train) == 20, "training clips stay"
    with pytest.warns(UserWarning, match="964 of the 975 clips"):
        assert len(load_corpus(CorpusConfig("audiocaps", subset="975")).test) == 11
    with pytest.raises(UnknownNameError, match="957"):
        CorpusConfig("audiocaps", subset="958").load()
    with pytest.raises(UnknownNameError, match="subset of Clotho"):
        CorpusConfig("clotho", subset="957").load()


def test_captions_are_cleaned_as_papers_do(root):
    miniature.clotho(root)
    plain, spaced, removed = (
        load_corpus(CorpusConfig("clotho", text_cleaning=cleaning)) for cleaning in ("none", "ml-clap", "dcase")
    )
    whole = plain.train.captions("eng")[1][1]
    assert whole == "A car passes 101 times far away, outside"
    assert spaced.train.captions("eng")[1][1] == "a car passes 101 times far away outside"
    assert removed.train.captions("eng")[1][1] == "a car passes 101 times far away outside"
    assert plain.train.key == spaced.train.key, "nothing is decoded again"
    assert plain.identity != spaced.identity == removed.identity, "known by the captions that come of it"
    with pytest.raises(UnknownNameError, match="did you mean 'dcase'"):
        CorpusConfig("clotho", text_cleaning="dcas")


def test_every_caption_can_be_a_pair_of_its_own(root):
    miniature.clotho(root)
    rows = [(f"Sound {100 + row}, take 1.wav", f"Un son {row}", f"Bruit {row}") for row in range(20)]
    miniature.table(root / "CLOTHO_v2.1/captions.fra.csv", rows, ["file_name", "caption_1", "caption_2"])
    one, every = load_corpus(CorpusConfig("clotho")), load_corpus(CorpusConfig("clotho", every_caption=True))
    assert len(every.train) == 5 * len(one.train) == 100
    assert [texts for (texts,) in every.train.captions("eng")] == list(chain(*one.train.captions("eng")))
    assert every.train.captions("fra")[5:10] == [["Un son 1"], ["Bruit 1"], [], [], []]
    assert torch.equal(every.train.audio(7)[0], one.train.audio(1)[0])
    assert every.train.relevance()[5].nonzero().flatten().tolist() == [5, 6, 7, 8, 9]
    assert torch.equal(every.train.relevance(one.train).argmax(1), torch.arange(20).repeat_interleave(5))
    assert every.test.captions("eng") == one.test.captions("eng")
    assert every.identity != one.identity
    assert len(PairDataset(every.train)) == 100
    assert len(every.train.head(7)) == 7


@pytest.mark.parametrize(
    ("name", "classes", "title"),
    [
        ("esc50", miniature.ESC50, "chirping birds"),
        ("urbansound8k", miniature.US8K, "air conditioner"),
        ("vggsound", miniature.VGGSOUND, "dog barking"),
    ],
)
def test_a_labelled_dataset_has_a_prompt_for_each_class(root, name, classes, title):
    getattr(miniature, name)(root)
    clips = load_labelled(name)
    assert clips.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert clips.prompts()[0] == f"This is a sound of {title}."
    audio, lengths = clips.audio(slice(None))
    for wave, length, label in zip(audio, lengths, clips.labels, strict=True):
        loudest = int(torch.fft.rfft(wave[:length]).abs().argmax()) * 16_000 / int(length)
        assert loudest == pytest.approx(200 + 90 * int(label), abs=3)
    some = load_labelled(name, n=3)
    assert some.labels.tolist() == [0, 1, 2], "spread over the classes"
    assert some.prompts() == clips.prompts()


def test_a_part_of_a_labelled_set_is_read_as_it_is(root, monkeypatch, capsys):
    miniature.esc50(root, each=5)
    names = [path.name for path in registry.listing("esc50:fold=2,4", "test").paths]
    assert names == [f"{fold}-{1000 + label}-A-{label}.wav" for label in range(3) for fold in (2, 4)]
    audio = root / "ESC-50-master/audio"
    for path in audio.glob("*.wav"):  # the others are gone: a fold is all that there is, packed as FLAC
        if path.name.startswith("4-"):
            soundfile.write(path.with_suffix(".flac"), *soundfile.read(path))
        path.unlink()
    monkeypatch.setenv("PULLPUSH_PROGRESS", "1")
    clips = load_labelled("esc50:fold=4")
    assert clips.columns["file"] == [f"4-{1000 + label}-A-{label}.flac" for label in range(3)]
    assert "3 of 3 recordings are FLAC where the table names WAV" in capsys.readouterr().err
    assert (registry.find("esc50:fold=4").title, registry.find("esc50:fold=4").clips) == ("ESC-50, fold 4", 2000)
    for wrong in ("fold=6", "4", "fold="):
        with pytest.raises(PullPushError, match=r"taken by its folds 1 to 5, got .*: write esc50:fold=4"):
            load_labelled(f"esc50:{wrong}")
    with pytest.raises(DataNotFoundError, match=r"ESC-50 lacks 12 of the 15 recordings"):
        load_labelled("esc50")
    table = root / "ESC-50-master/meta/esc50.csv"
    table.write_text("\n".join(line for line in table.read_text().splitlines() if ",4," in line or "fold" in line))
    with pytest.raises(DataNotFoundError, match=r"esc50\.csv has no fold 1, but 4"):
        load_labelled("esc50:fold=1")


@pytest.mark.parametrize(("name", "classes"), [("", ["left", "no", "yes"]), (":v1", ["no", "yes"])])
def test_speech_commands_are_asked_for_as_they_are_said(root, name, classes):
    miniature.speech_commands(root)
    clips = load_labelled(f"speech_commands{name}")
    assert clips.prompts() == classes
    assert sorted(clips.labels.tolist()) == list(range(len(classes)))


def test_a_sample_of_speech_commands_needs_no_lists(root):
    miniature.speech_commands(root)
    folder = root / "SpeechCommands/speech_commands_v0.01"
    for name in ("testing_list.txt", "validation_list.txt"):
        (folder / name).unlink()
    with pytest.raises(DataNotFoundError, match="speech_commands:v1-sample takes the recordings that are there"):
        load_labelled("speech_commands:v1")
    clips = load_labelled("speech_commands:v1-sample")
    assert clips.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert clips.prompts() == ["no", "yes"]
    with pytest.raises(UnknownNameError, match="version of Speech Commands 'v3'"):
        load_labelled("speech_commands:v3")


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="no public recordings beside the checkout")
def test_the_public_recordings_are_read_as_parts_of_their_sets(root):
    for target, link in (
        ("ESC-50-fold4", "ESC-50-master"),
        ("speech-commands-sample", "SpeechCommands/speech_commands_v0.01"),
    ):
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(PUBLIC / target)
    sounds, words = registry.listing("esc50:fold=4", "test"), registry.listing("speech_commands:v1-sample", "test")
    assert (len(sounds.paths), len(sounds.classes)) == (400, 50)
    assert (len(words.paths), len(words.classes)) == (300, 30)
    clips = load_labelled("esc50:fold=4", n=4)
    assert clips.lengths.tolist() == [5 * 16_000] * 4


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_dataset_says_where_it_is_looked_for(root, name):
    load = load_labelled if registry.find(name).labelled else (lambda name: load_corpus(CorpusConfig(name)))
    with pytest.raises(DataNotFoundError) as error:
        load(name)
    for word in (str(root / registry.find(name).folder), "$PULLPUSH_DATA"):
        assert word in str(error.value)
    assert (f"pullpush fetch {name}" in str(error.value)) == (name != "vggsound")


def test_an_incomplete_dataset_is_explained(root):
    miniature.everything(root)
    (root / "CLOTHO_v2.1/clotho_audio_files/evaluation/Sound 304, take 1.wav").unlink()
    with pytest.raises(DataNotFoundError, match=r"lacks 1 of the 9 recordings.*Sound 304"):
        load_corpus(CorpusConfig("clotho"))
    (root / "CLOTHO_v2.1/clotho_csv_files/clotho_metadata_validation.csv").unlink()
    with pytest.raises(DataNotFoundError, match=r"expected clotho_csv_files/clotho_captions_validation"):
        load_corpus(CorpusConfig("clotho"))
    shutil.rmtree(root / "AUDIOCAPS/audio_32000Hz/val")
    with pytest.raises(DataNotFoundError, match="no recordings for valid"):
        load_corpus(CorpusConfig("audiocaps"))
    (root / "AUDIOCAPS/csv_files_v1/train.csv").unlink()
    with pytest.raises(DataNotFoundError, match=r"csv_files_v1/train\.csv"):
        load_corpus(CorpusConfig("audiocaps"))
    (root / "ESC-50-master/audio/1-1000-A-0.wav").unlink()
    with pytest.raises(DataNotFoundError, match=r"1-1000-A-0\.wav"):
        load_labelled("esc50")
    (root / "UrbanSound8K/metadata/UrbanSound8K.csv").write_text("a,b\n1,2\n")
    with pytest.raises(PullPushError, match=r"lacks .*slice_file_name"):
        load_labelled("urbansound8k")
    shutil.rmtree(root / "vggsound/audio")
    with pytest.raises(DataNotFoundError, match="no clip"), pytest.warns(UserWarning, match="6 of 6"):
        load_labelled("vggsound")


def test_a_corrupt_clip_is_named_and_leaves_no_half_cache(root):
    miniature.clotho(root)
    broken = root / "CLOTHO_v2.1/clotho_audio_files/validation/Sound 203, take 1.wav"
    sound = broken.read_bytes()
    broken.write_bytes(b"nothing")
    with pytest.raises(AudioError, match="Sound 203"):
        load_corpus(CorpusConfig("clotho"))
    broken.write_bytes(sound)
    assert len(load_corpus(CorpusConfig("clotho")).valid) == 9


def test_wrong_names_get_the_nearest(root):
    with pytest.raises(UnknownNameError, match="did you mean 'clotho'"):
        load_corpus(CorpusConfig("cloto"))
    with pytest.raises(PullPushError, match="has labels"):
        load_corpus(CorpusConfig("esc50"))
    with pytest.raises(PullPushError, match="has captions"):
        load_labelled("clotho")
    with pytest.raises(ValueError, match="n_train"):
        CorpusConfig("clotho", n_train=0)


def test_the_extra_is_named_where_its_library_is_not_installed(root, monkeypatch):
    miniature.audiocaps(root)
    monkeypatch.setitem(sys.modules, "aac_datasets", None)
    for name in [name for name in sys.modules if name.startswith("aac_datasets.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(PullPushError, match=r"pip install 'pullpush\[full\]'"):
        load_corpus(CorpusConfig("audiocaps"))


def test_what_comes_damaged_is_thrown_away_and_fetched_again(root, tmp_path):
    miniature.esc50(tmp_path / "site")
    whole = Path(shutil.make_archive(str(tmp_path / "whole"), "zip", tmp_path / "site", "ESC-50-master")).read_bytes()
    wrong = bytearray(whole)
    wrong[whole.index(b"RIFF") if b"RIFF" in whole else 200] ^= 255  # in the bytes of a recording
    outside = tmp_path / "outside.zip"
    with zipfile.ZipFile(outside, "w") as archive:
        archive.writestr("ESC-50-master/../../evil.txt", "x")
    sent = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body, length = sent.pop(0)
            self.send_response(200)
            if length:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            """Silent."""

    cases = [
        ((whole[:5000], len(whole)), "is there a network"),  # cut off, and the length was told
        ((whole[:5000], 0), "came damaged .* and was thrown away"),  # cut off, and it was not
        ((bytes(wrong), len(wrong)), "came damaged .* and was thrown away"),
        ((outside.read_bytes(), 0), r"would write outside of .*evil\.txt"),
    ]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}/master.zip"
        card = replace(registry.find("esc50"), fetch=functools.partial(registry.unpack, url=here))
        with registry.SETS.standing_in({"esc50": card}):
            for answer, message in cases:
                sent.append(answer)
                with pytest.raises(DataNotFoundError, match=message):
                    registry.fetch("esc50")
                assert not list(tmp_path.rglob("evil.txt"))
                shutil.rmtree(root / "ESC-50-master", ignore_errors=True)
            sent.append((whole, len(whole)))
            assert registry.fetch("esc50") == root / "ESC-50-master"
            assert len(load_labelled("esc50")) == 6
        server.shutdown()
    with pytest.raises(DataNotFoundError, match=r"vggsound\.csv"):
        registry.fetch("vggsound")
