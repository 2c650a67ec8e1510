"""What is written to shards is what is read, in an order of (seed, epoch) alone, whatever is damaged."""

import gzip
import io
import json
import re
import shutil
import tarfile
import warnings
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given, strategies as st
from shard_clips import LANGUAGES, clips, rewrite

from pullpush.data.batches import PairDataset, balanced_order
from pullpush.data.shards import read_shards, stream as streams
from pullpush.data.shards.files import INDEX, DamagedError, check_shards, decoded, read_sample, shards_of, write_shards
from pullpush.data.shards.stream import Schedule, ShardDataset, one_pass, substitutes
from pullpush.errors import DataNotFoundError, PullPushError, UnknownNameError


@pytest.fixture
def folder(home, tmp_path):
    """Twenty clips in shards of six."""
    return write_shards(clips(), tmp_path / "set", languages=LANGUAGES, per_shard=6, columns=("file", "loudness"))


def content(batches) -> list:
    return [
        (b.index.tolist(), b.texts, b.languages, b.parallel, b.lengths.tolist(), b.audio.sum().item()) for b in batches
    ]


def order_of(dataset) -> list[int]:
    return [row for batch in dataset.batches(4, seed=0, epoch=0) for row in batch.index.tolist()]


# What is written


def test_what_is_written_is_read_bit_for_bit(folder):
    held, dataset = clips(), ShardDataset(folder, languages=LANGUAGES, sampling="all", columns=("file", "loudness"))
    seen = []
    for batch in dataset.batches(4, seed=0, epoch=0):
        waves, lengths = held.audio(batch.index)
        assert torch.equal(batch.audio, waves)
        assert torch.equal(batch.lengths, lengths)
        rows = batch.index.tolist()
        assert batch.columns["file"] == [held.columns["file"][row] for row in rows]
        np.testing.assert_array_equal(batch.columns["loudness"], held.columns["loudness"][rows])
        assert batch.texts == [held.captions("eng")[row][0] for row in rows]
        french = [texts[0] if texts else None for texts in held.captions("fra")]
        assert batch.parallel == ([french[row] for row in rows],)
        seen += rows
    assert sorted(seen) == list(range(20))


def test_the_same_clips_give_the_same_bytes(folder, tmp_path):
    again = write_shards(clips(), tmp_path / "again", languages=LANGUAGES, per_shard=6, columns=("file", "loudness"))
    assert sorted(path.name for path in again.iterdir()) == [*(f"{n:06d}.tar" for n in range(4)), INDEX]
    for path in again.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes()


@pytest.mark.parametrize(
    ("sampling", "captions"), [("fixed", "first"), ("random", "random"), ("pair", "random"), ("all", "first")]
)
@pytest.mark.filterwarnings("ignore:missing captions", "ignore:.*damaged")
def test_pairs_are_those_of_the_clips_in_memory(folder, sampling, captions):
    complete = [row for row, texts in enumerate(clips().captions("fra")) if texts]
    options = {"languages": LANGUAGES, "sampling": sampling, "captions": captions, "seed": 3}
    pairs = PairDataset(clips(), **options) if sampling != "pair" else None  # it takes no clips that lack a language
    for batch in ShardDataset(folder, **options).batches(4, seed=0, epoch=2):
        if pairs is None:
            assert set(batch.index.tolist()) <= set(complete)
            assert set(batch.languages) == {"eng"}
            continue
        pairs.epoch = 2
        for number, row in enumerate(batch.index.tolist()):
            parallel = tuple(texts[number] for texts in batch.parallel)
            languages = tuple(texts[number] for texts in batch.parallel_languages)
            assert pairs.texts(row) == (batch.texts[number], batch.languages[number], parallel, languages)


def test_a_written_folder_is_complete_or_written_anew(folder, tmp_path, monkeypatch):
    with pytest.raises(PullPushError, match="holds shards already"):
        write_shards(clips(), folder)
    broken = clips()
    monkeypatch.setattr(type(broken), "audio", lambda self, row, **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_shards(broken, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    monkeypatch.undo()
    assert len(shards_of(write_shards(clips(), tmp_path / "new"))) == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"languages": ("deu",)}, UnknownNameError, "deu"),
        ({"languages": ("fra",)}, PullPushError, r"4 of 20 clips have no caption in fra: .* \[4, 9, 14, 19\]"),
        ({"columns": ("fil",)}, UnknownNameError, "did you mean 'file'"),
        ({"columns": ("captions",)}, PullPushError, "leave 'captions' out of the columns"),
        ({"per_shard": 0}, ValueError, "at least 1"),
    ],
)
def test_what_cannot_be_written(home, tmp_path, options, error, message):
    held = clips()
    with pytest.raises(error, match=message):
        write_shards(
            replace(held, columns={**held.columns, "captions": held.captions("eng")}), tmp_path / "set", **options
        )


def test_shards_are_written_at_the_rate_that_clips_are_kept_in(home, tmp_path):
    held = clips(3)
    kept = replace(held, waveforms=replace(held.waveforms, sample_rate=48_000))
    folder = write_shards(kept, tmp_path / "set")
    assert torch.equal(read_shards(folder, sample_rate=48_000).audio(0)[0], kept.audio(0)[0])


# Shards and webdataset


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # of its own
def test_webdataset_reads_what_is_written(folder):
    webdataset = pytest.importorskip("webdataset")
    held = clips()
    pattern = str(folder / "{000000..000003}.tar")
    samples = list(webdataset.WebDataset(pattern, shardshuffle=False).decode())
    assert [sample["__key__"] for sample in samples] == [f"{n:09d}" for n in range(20)]
    for row, sample in enumerate(samples):
        assert sample["json"]["captions"]["eng"] == held.captions("eng")[row]
        assert sample["json"]["file"] == held.columns["file"][row]
        wave, rate = soundfile.read(io.BytesIO(sample["flac"]))
        assert rate == 16_000
        np.testing.assert_allclose(wave, held.audio(row)[0][0], atol=1e-4)


def test_what_webdataset_writes_is_read(home, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    flac = tmp_path / "a.flac"
    soundfile.write(flac, clips().audio(3)[0][0].numpy(), 16_000)
    with webdataset.ShardWriter(str(tmp_path / "%03d.tar"), maxcount=2, verbose=0) as sink:
        for number, said in enumerate([{"captions": "one"}, {"text": ["two", "zwei"]}, {"caption": {"fra": "trois"}}]):
            sink.write({"__key__": f"a/{number}", "flac": flac.read_bytes(), "json": said})
        sink.write({"__key__": "a/3", "flac": flac.read_bytes(), "txt": "four"})
    dataset = ShardDataset(tmp_path / "{000..001}.tar", languages=("eng", "fra"), sampling="all")
    assert len(dataset) == 4
    (batch,) = dataset.batches(4, seed=0, epoch=0)
    texts = {row: (batch.texts[i], batch.parallel[0][i]) for i, row in enumerate(batch.index.tolist())}
    assert texts == {0: ("one", None), 1: ("two", None), 2: (None, "trois"), 3: ("four", None)}
    assert dataset.find(3) == (str(tmp_path / "001.tar"), "a/3")


def test_shards_by_folder_pattern_and_list(folder):
    every = shards_of(folder)
    assert [shard.samples for shard in every] == [6, 6, 6, 2]
    assert shards_of(str(folder / "{000000..000003}.tar")) == every
    assert shards_of([folder / "000001.tar", folder / "{000000,000003}.tar"]) == (every[1], every[0], every[3])
    (folder / INDEX).unlink()
    assert [shard[:2] for shard in shards_of(folder)] == [shard[:2] for shard in every]


# Order


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any),
    st.integers(1, 50),
    st.integers(0, 5),
)
def test_a_pass_has_every_sample_once(counts, window, seed):
    found = one_pass(counts, window=window, seed=(seed,)).tolist()
    assert sorted(found) == [[shard, sample] for shard, count in enumerate(counts) for sample in range(count)]


@given(st.integers(1, 90), st.data())
def test_substitutes_are_every_other_sample(count, data):
    position = data.draw(st.integers(0, count - 1))
    found = list(substitutes(position, count))
    assert found[0] == position
    assert sorted(found) == list(range(count))


@pytest.mark.parametrize("weights", [{}, {"a": 1, "b": 2}])
def test_shares_of_processes_and_resumed_runs_are_those_of_one(folder, tmp_path, weights):
    second = write_shards(clips(9, 1), tmp_path / "second", languages=LANGUAGES, per_shard=4)
    options = {"languages": LANGUAGES, "sampling": "random", "captions": "random", "weights": weights, "buffer": 5}
    dataset = ShardDataset({"a": folder, "b": second}, **options)
    whole = list(dataset.batches(7, seed=1, epoch=1))
    assert len(whole) == dataset.steps(7) == 5
    assert content(dataset.batches(7, seed=1, epoch=1, skip=2)) == content(whole[2:])
    for processes in (2, 3):
        shares = [list(dataset.batches(7, seed=1, epoch=1, rank=r, processes=processes)) for r in range(processes)]
        assert dataset.steps(7, processes=processes) == len(shares[0]) == 4, "a last batch of one is left out"
        for number, one in enumerate(zip(*shares, strict=True)):
            assert [row for share in one for row in share.index.tolist()] == whole[number].index.tolist()
            assert [text for share in one for text in share.texts] == whole[number].texts


def test_what_is_skipped_and_what_others_have_is_not_read(folder, monkeypatch):
    read = []

    def noted(path, sample, **options):
        read.append(sample.key)
        return read_sample(path, sample, **options)

    monkeypatch.setattr(streams, "read_sample", noted)
    dataset = ShardDataset(folder)
    rows = [batch.index.tolist() for batch in dataset.batches(4, seed=0, epoch=0, skip=3, rank=1, processes=2)]
    assert sorted(read) == sorted(f"{row:09d}" for one in rows for row in one)
    assert len(read) == 2 * 2


# Groups


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 12), st.data())
def test_groups_are_mixed_as_they_are_in_memory(counts, batch_size, data):
    sizes = [data.draw(st.integers(1, 9)) for _ in counts]
    schedule = Schedule([np.array([size]) for size in sizes], counts, window=3)
    names = [str(number) for number in range(len(counts))]
    rows = {name: [int(name)] * size for name, size in zip(names, sizes, strict=True)}
    whole = balanced_order(rows, dict(zip(names, counts, strict=True)), seed=0, epoch=1)
    steps = range(schedule.steps(batch_size, 1))
    places = [place for number in steps for place in schedule.batch(number, batch_size, epoch=1)]
    assert [place.stream for place in places] == whole
    for stream, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        turns = [place.turn * size + place.position for place in places if place.stream == stream]
        assert turns == list(range(count, 2 * count)), "the second epoch goes on where the first has ended"


# Damage


def damage(folder):
    """One sample of each kind of damage in the first two shards; the keys that are lost."""
    changes = {
        "000000000.flac": lambda content: content[:200],
        "000000001.json": lambda content: content[:-9],
        "000000002.json": lambda content: b'{"captions": {"eng": [" "]}, "file": "a", "loudness": 0}',
        "000000003.flac": lambda content: bytes([*content[:500], content[500] ^ 1, *content[501:]]),
        "000000004.flac": lambda content: None,
        "000000006.json": lambda content: b'{"captions": {"eng": 7}}',
        "000000007.json": lambda content: b'{"captions": {"eng": ["no columns"]}}',
    }
    for shard in ("000000.tar", "000001.tar"):
        rewrite(folder / shard, lambda name, content: changes[name](content) if name in changes else content)
    return {0, 1, 2, 3, 4, 6, 7}


def test_damaged_samples_are_replaced_and_counted(folder):
    lost = damage(folder)
    dataset = ShardDataset(folder, languages=("eng",), columns=("file",))
    with pytest.warns(
        UserWarning, match=r"7 samples of epoch 1 are damaged, replaced by others: 00000000\d in .*000000"
    ) as warned:
        batches = list(dataset.batches(4, seed=0, epoch=0))
    assert len(warned) == 1
    rows = [row for batch in batches for row in batch.index.tolist()]
    assert len(rows) == 20
    assert set(rows) == set(range(20)) - lost
    assert sorted(dataset.damaged["sample"]) == [f"{row:09d}" for row in sorted(lost)]
    reasons = dict(zip(dataset.damaged["sample"].astype(int), dataset.damaged["reason"], strict=True))
    for row, reason in {
        0: "cannot read its recording",
        1: "JSON",
        2: "no caption",
        3: "cannot read its recording",
        4: "no recording",
        6: "neither",
        7: "no file",
    }.items():
        assert reason in reasons[row]
    for batch in batches:
        assert len(set(batch.index.tolist())) == len(batch)


def test_what_a_folder_refuses_of_a_recording_damages_a_sample():
    for rate, peak, reason in ((16_000, 32_768.0, "where full scale is 1"), (44_101, 0.5, "has no simple ratio")):
        soundfile.write(file := io.BytesIO(), np.full(2000, peak), rate, format="WAV", subtype="FLOAT")
        with pytest.raises(DamagedError, match=reason):
            decoded(file.getvalue(), sample_rate=16_000)
    soundfile.write(file := io.BytesIO(), np.zeros(2000), 16_000, format="FLAC")
    raw = file.getvalue()
    with pytest.raises(DamagedError, match="does not say how long it is"):
        decoded(raw[:21] + bytes([raw[21] & 0xF0, 0, 0, 0, 0]) + raw[26:])  # without the number of its samples
    soundfile.write(file := io.BytesIO(), np.zeros(2000), 16_000, format="WAV")
    with pytest.raises(DamagedError, match="its recording is cut off: 2992 of the 4036 bytes"):
        decoded(file.getvalue()[:3000])


def test_shards_that_the_index_of_their_folder_does_not_list_are_counted(folder):
    before = shards_of(folder)
    shutil.copy(folder / "000000.tar", folder / "more.tar")
    *listed, more = shards_of(folder)
    assert tuple(listed) == before
    assert more == (folder / "more.tar", before[0].samples, "")


@pytest.mark.parametrize("cut", [700, 5000, 12_345])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_shard_that_is_cut_short_gives_what_it_has(folder, cut, indexed):
    path = folder / "000001.tar"
    path.write_bytes(path.read_bytes()[:cut])
    if not indexed:
        (folder / INDEX).unlink()
    dataset = ShardDataset(folder)
    assert len(dataset) == 20 if indexed else 14 <= len(dataset) < 20
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        rows = order_of(dataset)
    assert len(rows) == len(dataset)
    assert str(path) in set(dataset.damaged["shard"])
    assert len(warned) == 1 or not indexed
    assert check_shards(folder)["shard"].tolist() == [str(path)]


# What can go wrong


def test_what_is_not_there(home, tmp_path, folder):
    with pytest.raises(DataNotFoundError, match=r"1 of 5 shards are not there: .*000004"):
        ShardDataset(folder / "{000000..000004}.tar")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataNotFoundError, match="no shards in"):
        ShardDataset(tmp_path / "empty")
    (tmp_path / "empty" / "a.tar.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(DataNotFoundError, match="gunzip"):
        ShardDataset(tmp_path / "empty")
    with pytest.raises(UnknownNameError, match="did you mean 'file'"):
        ShardDataset(folder, columns=("fil",))
    with pytest.raises(ValueError, match="needs more languages"):
        ShardDataset(folder, sampling="pair")
    for read, name, wrong in ((ShardDataset, "seconds", 0), (read_shards, "seconds", np.inf), (read_shards, "n", 0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            read(folder, **{name: wrong})
    (folder / INDEX).write_text(json.dumps({"shardlist": [{"name": "a"}]}))
    with pytest.raises(PullPushError, match="is no index of shards"):
        ShardDataset(folder)


@pytest.mark.parametrize("damage", ["cut between members", "cut in a header", "a flipped bit", "zeros in the middle"])
def test_without_an_index_a_header_that_is_damaged_is_told(folder, damage):
    path = folder / "000001.tar"
    (folder / INDEX).unlink()
    with tarfile.open(path) as tar:
        raw, at = bytearray(path.read_bytes()), tar.getmembers()[4].offset  # the first byte of its header
    if damage == "cut between members":
        raw = raw[:at]
    elif damage == "cut in a header":
        raw = raw[: at + 100]
    elif damage == "a flipped bit":
        raw[at + 3] ^= 1
    else:
        raw[at : at + 512] = bytes(512)
    path.write_bytes(raw)
    with pytest.warns(UserWarning, match="1 of 4 shards end early.*000001.tar"):
        dataset = ShardDataset(folder)
    order_of(dataset)
    assert dataset.damaged["shard"].tolist() == [str(path)]
    assert re.search("cut off|damaged there", dataset.damaged["reason"][0])
    assert check_shards(folder)["shard"].tolist() == [str(path)]
