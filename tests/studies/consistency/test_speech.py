"""Spoken queries: ranks against a loop, baselines whose answer is known, and the whole study on a small folder."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import soundfile
import torch

from pullpush.data import store
from pullpush.data.clips import Clips, StoredClips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.speech import translations
from pullpush.data.speech.stamps import load_speech, same_group
from pullpush.lab import common, session, trunks
from pullpush.metrics import difference
from pullpush.studies.consistency import speech as study
from pullpush.studies.consistency.data import SCHEMES
from pullpush.training.frozen import encoded, on_features

CODES = ("fr", "de", "es", "nl", "ca", "ja", "zh_CN", "ru", "bg")


@pytest.fixture(scope="module")
def root(home, tmp_path_factory):
    """Stamps whose longer captions are spoken longer; the second lacks Chinese."""
    root = tmp_path_factory.mktemp("speech") / "stamps"
    (root / "animals").mkdir(parents=True)
    rate, rng = 8000, np.random.default_rng(0)
    for number in range(40):
        text = f"{number:02d} " + "long " * (number % 8)
        codes = [code for code in CODES if number != 1 or code != "zh_CN"]
        lines = [f"A {text}.", *(f"{code}.utf8={code} {text}." for code in codes)]
        (root / "animals" / f"{number:02d}.txt").write_text("\n".join(lines), encoding="utf-8")
        for code in ("fr", "ru", "bg"):
            wave = 0.2 * rng.standard_normal(round(rate * 0.1 * (1 + number % 8)))
            soundfile.write(root / "animals" / f"{number:02d}_desc_{code}.ogg", wave.astype(np.float32), rate)
    return root


@pytest.fixture(scope="module")
def voices(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_TUXPAINT", str(root))  # other processes ask for it, too
        yield load_speech()


@pytest.fixture(scope="module")
def book(home):
    started = session.start("03-consistency-lab", profile="smoke", out=home)
    return replace(started, settings=replace(started.settings, dim=8, seeds=1))


@pytest.fixture
def asked(tmp_path) -> Clips:
    """Recordings of six stamps with captions of 1, 2, 3 … letters."""
    names = [f"s{number}" for number in range(6)]
    texts = {code: {name: "x" * (i + 1) for i, name in enumerate(names)} for code in study.TEXTS}
    store.write(tmp_path, [np.ones(9, dtype=np.int16) for _ in names])
    columns = {"stamp": names, "group": names, "spoken": ["ru"] * len(names)}
    write = partial(translations, texts, column="stamp")
    return StoredClips("test", "key", store.read(tmp_path), np.arange(len(names)), columns, write, same_group)


def ranks(system: str, rank: int, seed: int = 0, items: int = 21, spoken: str = "ru") -> pd.DataFrame:
    rows = [(system, seed, study.SETS["test"], f"s{i}", spoken, text) for i in range(4) for text in study.TEXTS]
    table = pd.DataFrame(rows, columns=["system", "seed", "set", "stamp", "spoken", "text"])
    shares = {"R@10": float(rank <= 10), "ahead": (rank - 1) / (items - 1), "ahead of like": (rank - 1) / (items - 1)}
    return table.assign(rank=rank, items=items, **shares)


def test_ranks_are_those_of_a_loop_and_ties_count_against(asked):
    values = torch.rand(6, 6, generator=torch.Generator().manual_seed(0)).round(decimals=1)
    table = study.ranks_among(asked, lambda texts, language: values, ("eng",))
    expected = [sum(float(values[i, j]) >= float(values[i, i]) for j in range(6)) for i in range(6)]
    assert table["rank"].tolist() == expected


def test_texts_of_like_length_are_the_nearest_in_letters(asked, monkeypatch):
    monkeypatch.setattr(study, "LIKE", 2)
    values = torch.zeros(6, 6)
    values[0, 1] = values[0, 5] = 1  # of these two only the first is near in length
    values[range(6), range(6)] = 0.5
    table = study.ranks_among(asked, lambda texts, language: values, ("eng",))
    assert table.loc[0, ["rank", "items", "like", "like items", "R@10"]].tolist() == [3, 6, 2, 3, 1]
    assert table.loc[0, ["ahead", "ahead of like"]].tolist() == [2 / 5, 1 / 2]


def test_only_stamps_with_all_captions_are_asked(voices):
    split = voices.train
    assert "animals/01" not in set(study.complete(split).columns["stamp"])
    assert len(study.complete(split, ("eng",))) == len(split)


def test_length_alone_finds_texts_as_long_as_the_speech(voices):
    table = study.length_ranks(voices, voices.test)
    assert table["ahead"].mean() < 0.3


def test_intervals_are_those_of_the_books_one_inference_over_seeds_and_stamps():
    table = pd.concat([ranks("kcl", 1), ranks("kcl", 11, seed=1)])
    (row,) = study.speech_table(table, ("system",)).to_dict("records")
    assert (row["R@10"], row["ahead"], row["queries"], row["seeds"], row["stamps"]) == (0.5, 0.25, 4, 2, 4)
    expected = difference([[0.0] * 4, [0.5] * 4])
    assert (row["ahead low"], row["ahead high"]) == pytest.approx((expected.low, expected.high))


def test_gains_are_paired_by_stamp():
    gain = study.over_stamps(ranks("kcl", 1), "R@10", ranks("ml-clap", 11))
    assert (gain.value, gain.low, gain.high, gain.seeds, gain.clips) == (1, 1, 1, 1, 4)


def test_equal_ranks_in_all_languages_have_no_variance_and_independent_ones_that_of_chance():
    rng, same = np.random.default_rng(0), ranks("kcl", 5)
    parts = [same.assign(stamp=same["stamp"] + f" {n}", rank=rng.integers(1, 22, len(same))) for n in range(200)]
    noise = pd.concat(parts).assign(system="noise")
    table = study.rank_spread(pd.concat([same, noise])).set_index("system")
    assert table.loc["kcl", "MRV"] == 0
    assert table.loc["noise", "MRV"] == pytest.approx(table.loc["noise", "MRV by chance"], rel=0.05)
    assert table.loc["noise", "log"] == pytest.approx(table.loc["noise", "log by chance"], rel=0.1)


def test_the_study_runs_from_recordings_to_ranks_and_is_read_from_the_cache_after(book, voices, monkeypatch):
    monkeypatch.setattr(study, "TRUNK_EPOCHS", 1)
    monkeypatch.setattr(study, "HEAD_EPOCHS", 1)
    base = trunks.trained(study.spoken_trunk(book, voices))
    heard = encoded(voices, base)
    assert heard.train.dim == on_features(heard)["encoder_options"]["audio_dim"]
    assert torch.equal(heard.test.select([3]).audio(0)[0], heard.test.audio(3)[0])
    heads = study.train_heads(book, heard, ["kcl", "cacl"])
    assert list(heads) == [("kcl", 0), ("cacl", 0)]
    sounds, options = heads["kcl", 0], {"epochs": 1, "batch_size": study.BATCH, "diagnostics": None}
    assert sounds.path == common.train(book, heard, "kcl", **options, **on_features(heard)).path, "as one at a time"
    assert sounds.recipe.terms != heads["cacl", 0].recipe.terms
    table = study.study(book, voices, {0: sounds}, base)
    assert set(table["system"]) == {study.LENGTH, study.UNTRAINED, *SCHEMES}
    assert table["rank"].between(1, table["items"]).all()
    assert table.equals(study.study(book, voices, {0: sounds}, base))
    fresh = table[(table["set"] == study.SETS["test"]) & table["text"].isin(LANGUAGES)]
    stamp, places = study.example(fresh, "ru", 0.0)
    of_kcl = fresh[(fresh["system"] == "kcl") & (fresh["spoken"] == "ru")].set_index("stamp")["rank"]
    logs = np.log(of_kcl).groupby("stamp").mean()
    assert logs[stamp] == logs.min()
    assert places["KCL"] == of_kcl[stamp].tolist()
    assert set(places) == {"ML-CLAP", "CACL", "KCL"}
    assert all(len(ranks) == len(LANGUAGES) for ranks in places.values())
