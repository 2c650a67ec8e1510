"""Batches depend on (seed, epoch, index) alone, and padding is silence."""

from dataclasses import replace
from itertools import chain
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from pullpush.data.batches import Item, PairDataset, collate, shard
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.errors import PullPushError, UnknownNameError

LANGUAGES = ("eng", "fra", "jpn")


@pytest.fixture(scope="module")
def split(module_home):
    config = WorldConfig(bank="synthetic", n_train=40, n_valid=5, n_test=5, n_single_per_event=1)
    return load_world(config).train


def content(batches) -> list:
    return [(b.index.tolist(), b.texts, b.languages, b.parallel, b.lengths.tolist()) for b in batches]


def test_an_item_is_a_clip_with_one_of_its_captions(split):
    item = PairDataset(split)[3]
    assert item.index == 3
    assert len(item.waveform) == int(split.lengths[3])
    assert item.text == split.captions("eng")[3][0]
    assert item.language == "eng"
    assert PairDataset(split)[-1].index == 39
    with pytest.raises(IndexError):
        PairDataset(split)[40]


@pytest.mark.parametrize("rate", [None, 16_000, 8000])
def test_samples_travel_as_they_are_stored_and_become_the_same_floats(split, rate):
    dataset = PairDataset(split, sample_rate=rate)
    plain, stored = (list(dataset.batches(16, seed=0, epoch=0, as_stored=how)) for how in (False, True))
    assert {batch.audio.dtype for batch in stored} == {torch.float32 if rate == 8000 else torch.int16}
    for one, other in zip(plain, stored, strict=True):
        assert one.audio.dtype == torch.float32
        assert torch.equal(one.audio, other.to("cpu").audio)


def test_random_sampling_draws_a_language_per_clip_and_epoch(split):
    dataset = PairDataset(split, languages=LANGUAGES, sampling="random", captions="random")
    epochs = []
    for epoch in range(30):
        dataset.epoch = epoch
        epochs.append([dataset.texts(i).language for i in range(40)])
    drawn = list(chain.from_iterable(epochs))
    assert epochs[0] != epochs[1]
    for language in LANGUAGES:
        assert drawn.count(language) / len(drawn) == pytest.approx(1 / 3, abs=0.05)
    item = dataset[7]
    assert item.text in split.captions(item.language)[7]
    dataset.epoch = 3
    again = PairDataset(split, languages=LANGUAGES, sampling="random", captions="random")
    again.epoch = 3
    assert [dataset[i].text for i in range(40)] == [again[i].text for i in range(40)]


def test_pairs_and_all_bring_parallel_texts(split):
    pair = PairDataset(split, languages=LANGUAGES, sampling="pair", captions="random")[5]
    assert pair.language == "eng"
    assert pair.parallel_languages[0] in ("fra", "jpn")
    number = split.captions("eng")[5].index(pair.text)
    assert pair.parallel == (split.captions(pair.parallel_languages[0])[5][number],)
    both = PairDataset(split, languages=LANGUAGES, sampling="all")[5]
    assert both.parallel == tuple(split.captions(code)[5][0] for code in ("fra", "jpn"))


def test_wrong_choices_are_told(split):
    with pytest.raises(UnknownNameError, match="random"):
        PairDataset(split, sampling="randomly")
    with pytest.raises(UnknownNameError, match="first"):
        PairDataset(split, captions="last")
    with pytest.raises(UnknownNameError, match="eng"):
        PairDataset(split, languages=("en",))
    with pytest.raises(ValueError, match="needs more languages"):
        PairDataset(split, sampling="pair")
    with pytest.raises(ValueError, match="'fixed' or 'random'"):
        PairDataset(split, languages=LANGUAGES, sampling="all", captions="all")


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_collate_pads_with_zeros_to_the_longest(lengths):
    items = [Item(i, torch.full((n,), 0.5), f"text {i}", "eng", ("autre",), ("fra",)) for i, n in enumerate(lengths)]
    batch = collate(items)
    assert len(batch) == len(lengths)
    assert batch.audio.shape == (len(lengths), max(lengths))
    assert batch.audio.dtype == torch.float32
    assert batch.lengths.tolist() == lengths
    assert batch.index.dtype == batch.lengths.dtype == torch.int64
    assert batch.parallel == (["autre"] * len(lengths),)
    for row, length in zip(batch.audio, lengths, strict=True):
        assert (row[:length] == 0.5).all()
        assert not row[length:].any()


def test_batches_depend_on_seed_and_epoch_alone(split):
    def batches(**options):
        return content(PairDataset(split, languages=LANGUAGES, sampling="random").batches(7, **options))

    assert batches(seed=1, epoch=2) == batches(seed=1, epoch=2)
    assert batches(seed=1, epoch=2) != batches(seed=1, epoch=3)
    assert batches(seed=1, epoch=2) != batches(seed=2, epoch=2)
    torch.manual_seed(99)
    assert batches(seed=1, epoch=2) == batches(seed=1, epoch=2), "not on the global seed"
    dataset = PairDataset(split, languages=LANGUAGES, sampling="random")
    first, _ = (dataset.batches(7, seed=1, epoch=epoch) for epoch in (2, 3))
    assert content(first) == batches(seed=1, epoch=2), "not on when they are drawn"


def test_every_clip_comes_once(split):
    dataset = PairDataset(split)
    whole = [i for batch in dataset.batches(7, seed=0, epoch=0) for i in batch.index.tolist()]
    assert sorted(whole) == list(range(40))
    assert whole != sorted(whole)
    assert [len(batch) for batch in dataset.batches(7, seed=0, epoch=0)] == [7] * 5 + [5]
    assert dataset.steps(7) == 6


def test_no_batch_at_all_is_told(split):
    with pytest.raises(PullPushError, match="batches of 40 clips are too small for 41 processes"):
        PairDataset(split).steps(64, processes=41)
    with pytest.raises(ValueError, match="batch_size"):
        PairDataset(split).batches(0, seed=0, epoch=0)


@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 5))
def test_shares_of_all_processes_are_the_batches_of_one(size, processes, skip):
    dataset = PairDataset(Whole())
    whole = [batch.index.tolist() for batch in dataset.batches(size, seed=3, epoch=1)]
    whole = [rows for rows in whole if len(rows) >= processes]
    if not whole:
        return
    shares = [
        [batch.index.tolist() for batch in dataset.batches(size, seed=3, epoch=1, skip=skip, **here)]
        for here in ({"rank": rank, "processes": processes} for rank in range(processes))
    ]
    assert [list(chain.from_iterable(parts)) for parts in zip(*shares, strict=True)] == whole[skip:]
    assert all(rows for share in shares for rows in share)
    assert dataset.steps(size, processes=processes) == len(whole)


@given(st.integers(0, 50), st.integers(1, 8))
def test_shards_are_the_batch_in_order_and_even(rows, processes):
    parts = [shard(list(range(rows)), rank, processes) for rank in range(processes)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


class Partial:
    """Five clips; clip 1 has no French, clips 2 and 3 only a blank or no Japanese, clip 4 no English."""

    texts: ClassVar = {
        "eng": [["e0", "e0b"], ["e1"], ["e2"], ["e3"], []],
        "fra": [["f0", "f0b"], [], ["f2"], ["f3"], ["f4"]],
        "jpn": [["j0", "j0b"], ["j1"], ["  "], [None], ["j4"]],
    }

    def __len__(self):
        return 5

    def audio(self, index, *, sample_rate=None):
        count = 1 if isinstance(index, int) else len(index)
        return torch.ones(count, 3), torch.full((count,), 3)

    def captions(self, language):
        return self.texts[language]


class Whole(Partial):
    """Eleven clips with one caption each."""

    texts: ClassVar = {"eng": [[f"e{number}"] for number in range(11)]}

    def __len__(self):
        return 11


@pytest.fixture
def partial():
    with pytest.warns(UserWarning, match=r"missing captions \(of 5 clips\): eng 1, fra 1, jpn 2"):
        yield lambda sampling, **options: PairDataset(Partial(), languages=LANGUAGES, sampling=sampling, **options)


def test_missing_captions_are_counted(partial):
    assert partial("all").missing == {"eng": 1, "fra": 1, "jpn": 2}


def test_all_languages_leave_gaps_where_a_translation_is_missing(partial):
    dataset = partial("all")
    batch = collate([dataset[i] for i in range(5)])
    assert batch.texts == ["e0", "e1", "e2", "e3", None]
    assert batch.parallel == (["f0", None, "f2", "f3", "f4"], ["j0", "j1", None, None, "j4"])
    assert batch.parallel_languages == (["fra"] * 5, ["jpn"] * 5)
    assert batch.present == [[text is not None for text in texts] for texts in (batch.texts, *batch.parallel)]


def test_all_captions_of_a_clip_come_in_its_one_language(partial):
    batch = collate([partial("random", captions="all", seed=seed)[i] for seed in range(3) for i in range(5)])
    of_clips = [Partial.texts[language][i] for language, i in zip(batch.languages, batch.index.tolist(), strict=True)]
    assert batch.parallel_languages == (batch.languages,)
    for own, text, further in zip(of_clips, batch.texts, batch.parallel[0], strict=True):
        assert [text, further][: len(own)] == own
        assert (further is None) == (len(own) == 1)


@pytest.mark.parametrize("sampling", ["fixed", "random", "pair"])
def test_languages_are_drawn_among_those_of_the_clip(partial, sampling):
    dataset = partial(sampling, captions="random")
    known = [set(LANGUAGES), {"eng", "jpn"}, {"eng", "fra"}, {"eng", "fra"}, {"fra", "jpn"}]
    seen = [set() for _ in range(5)]
    for epoch in range(30):
        dataset.epoch = epoch
        for item in map(dataset.__getitem__, range(5)):
            languages = (item.language, *item.parallel_languages)
            assert len(set(languages)) == (2 if sampling == "pair" else 1)
            for language, text in zip(languages, (item.text, *item.parallel), strict=True):
                assert text in Partial.texts[language][item.index]
            seen[item.index] |= set(languages)
            if sampling == "pair":
                assert item.language == ("fra" if item.index == 4 else "eng")
    assert seen == known if sampling != "fixed" else all(len(own) == 1 for own in seen)


def test_clips_without_enough_languages_are_told():
    with pytest.raises(PullPushError, match=r"1 of 5 clips .* fewer than 1 of eng, which .* leave out clips \[4\]"):
        PairDataset(Partial())
    with pytest.raises(PullPushError, match=r"3 of 5 clips .* fewer than 2 of eng, jpn.*\[2, 3, 4\]"):
        PairDataset(Partial(), languages=("eng", "jpn"), sampling="pair")


def test_batches_bring_the_columns_that_are_asked_for(split):
    four = split.head(4)
    held = replace(
        four,
        columns={
            **four.columns,
            "clusters": [3, 1, 2, 0],
            "hard_negatives": ["a", "b", None, "d"],
            "teachers": list(np.arange(4 * 2 * 2 * 3, dtype=np.float32).reshape(4, 2, 2, 3)),
            "speaker": ["x"] * 4,
        },
    )
    dataset = PairDataset(held, columns=("clusters", "hard_negatives", "teachers"))
    batch = collate([dataset[row] for row in (2, 0)]).to("cpu")
    assert {*batch.columns} == {"clusters", "hard_negatives", "teachers"}
    assert batch.columns["clusters"].tolist() == [2, 3]
    assert batch.columns["hard_negatives"] == [None, "a"]
    assert batch.columns["teachers"].shape == (2, 2, 2, 3)
    assert batch.columns["teachers"][1, 0, 1, 2] == 5
    dataset.bring(())
    assert collate([dataset[0]]).columns == {}
    with pytest.raises(UnknownNameError, match="did you mean 'clusters'"):
        PairDataset(held, columns=("cluster",))
