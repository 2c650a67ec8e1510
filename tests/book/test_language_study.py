"""The measurements of the chapter on languages, against naive loops and on spaces whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional as F

from pullpush.book import language_study as study
from pullpush.book.language_study import Space
from pullpush.data.tuxpaint import Stamps
from pullpush.data.vocabulary import LANGUAGES, Event
from pullpush.encoders import create
from pullpush.lab import compare, session
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import recipe
from pullpush.training.runs import base_model, trained


def unit(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def toy(clips: int = 12, captions: int = 2, languages: int = 3, noise: float = 0.3) -> Space:
    audio = unit(clips, 6)
    return Space(audio, F.normalize(audio[:, None, None] + noise * unit(clips, captions, languages, 6, seed=1), dim=-1))


@pytest.fixture(scope="module")
def heard(home, world):
    base = base_model(world, text="hashed", dim=8, epochs=1, batch_size=8, progress=False)
    return encoded(world, base)


@pytest.fixture(scope="module")
def run(heard):
    plan = recipe("kcl", **on_features(heard), text="hashed", dim=8, epochs=1, batch_size=8)
    return trained(heard, plan, progress=False)


# Scores


def test_a_perfect_space_scores_one_in_every_language():
    one = toy(noise=0.0)
    scored = study.scores({("kcl", 0): one}, LANGUAGES[:3])
    assert scored.table["language"].tolist() == list(LANGUAGES[:3])
    assert np.allclose(scored.table[["T2A R@1", "A2T R@1", "A2T mAP@10"]], 1)
    assert scored.clips["kcl", 0]["T2A R@1"].shape == (12, 3)


def test_tables_average_languages_and_gains_are_paired():
    spaces = {(name, s): toy(noise=noise) for name, noise in (("kcl", 0.2), ("ml-clap", 3.0)) for s in (0, 1)}
    scored = study.scores(spaces, LANGUAGES[:3])
    table = study.language_table(scored.table, ["T2A R@1"], ["ml-clap", "kcl"])
    assert table.index[-1] == "avg"
    assert table.loc["avg"].tolist() == pytest.approx(table.iloc[:-1].mean().tolist())
    (row,) = compare.gains(scored, [("kcl", "ml-clap")], [0, 1], ["T2A R@1"]).itertuples()
    assert row.value == pytest.approx(table.loc["avg", ("T2A R@1", "kcl")] - table.loc["avg", ("T2A R@1", "ml-clap")])
    assert row.low <= row.value <= row.high


# Consistency


def test_the_gap_is_never_more_than_the_distance():
    table = study.consistency({("kcl", 0): toy()}, ("eng", "fra", "deu"))
    assert set(table["language"]) == {"eng", "fra", "deu"}
    assert (table["Gap"] <= table["Dis"] + 1e-12).all()


def test_languages_that_agree_have_no_distance_and_no_variance():
    one = toy()
    same = Space(one.audio, one.texts[:, :, :1].expand(-1, -1, 3, -1))
    assert study.consistency({("kcl", 0): same}, ("eng", "fra", "deu")).query("language != 'eng'")["Dis"].max() == 0
    row = study.rank_variances({("kcl", 0): same}).iloc[0]
    assert row["MRV"] == row["log"] == row["low"] == row["high"] == 0


def test_ranks_count_the_clips_that_lie_nearer():
    one = toy(noise=1.5)
    ranks = study.ranks(one)
    for number, rank in enumerate(ranks.tolist()):
        clip, caption = divmod(number, one.texts.shape[1])
        for k, own in enumerate(rank):
            near = one.audio @ one.texts[clip, caption, k]
            assert own == 1 + int((near > near[clip]).sum())


def test_worst_cases_are_uneven_and_different():
    one = toy(noise=1.5)
    variance = study.ranks(Space(one.audio, one.texts[:, :1])).double().var(1, unbiased=False)
    cases = study.worst_cases({"ml-clap": one, "kcl": one})
    assert cases["ml-clap"] == int(variance.argmax())
    assert cases["kcl"] != cases["ml-clap"]


# Direction


def test_more_languages_taken_err_less_and_all_do_not_err():
    table = study.direction_by_count({("kcl", 0): toy(clips=200, languages=4, noise=0.8)})
    some = table[table["what"] == "m of all"].set_index("count")["error"]
    assert some[4] == pytest.approx(0, abs=1e-4)
    assert some.is_monotonic_decreasing
    one = table[table["what"] == "one of K"].set_index("count")["error"]
    assert one[1] == pytest.approx(0, abs=1e-4)
    assert one.is_monotonic_increasing
    assert one[4] == pytest.approx(some[1])


def test_what_is_taken_is_what_the_scheme_takes():
    generator = torch.Generator().manual_seed(0)
    random = study.take(50, 4, "random", generator)
    pair = study.take(50, 4, "pair", generator)
    assert (random.sum(1) == 1).all()
    assert random.any(0).all()
    assert (pair.sum(1) == 2).all()
    assert pair[:, 0].all()


def test_the_probe_watches_without_changing_the_run(heard, tmp_path):
    book = session.start("03-consistency", profile="smoke", out=tmp_path)
    table = study.direction_history(book, heard, [0], points=1, languages=("eng", "fra", "deu"))
    assert list(dict.fromkeys(table["recipe"])) == list(study.SCHEMES)
    assert table[list(study.PROBED)].to_numpy().min() >= 0
    assert table[list(study.PROBED)].to_numpy().max() <= 180


# The bound


@pytest.fixture(scope="module")
def model(heard, run):
    return study.tiny(heard, run.model.text, clips=8, features=4, dim=3)


def test_the_tiny_model_is_on_the_sphere(model):
    audio, texts = model(model.start(0), torch.arange(5))
    assert audio.shape == (5, 3)
    assert texts.shape == (5, 8, 3)
    assert torch.allclose(texts.norm(dim=-1), torch.ones(5, 8, dtype=torch.float64))
    assert not torch.equal(model.start(0), model.start(1))


def test_the_bound_holds_and_kcl_has_no_error(model):
    table = study.bound_table(model, [0], epochs=2, batch_size=4)
    assert set(table["sampling"]) == set(study.SAMPLINGS)
    assert (table["left"] <= table["right"] + 1e-12).all()
    assert table.query("sampling == 'all'")[["left", "right", "distribution_error"]].to_numpy().max() == 0
    adam = study.bound_table(model, [0], epochs=2, batch_size=4, adam=True, rate=0.01)
    assert (adam["left"] <= adam["right"] + 1e-12).all()


def test_as_printed_nothing_moves(model):
    assert study.printed_gradient(model, 0, clips=8) < 1e-12


# Translations, languages never heard


def test_a_caption_is_nearer_to_its_own_clip(run, heard):
    table = study.translation_check(run.model.text, heard.test).set_index("language")
    assert list(table.index) == list(LANGUAGES)
    assert table.loc["eng", "same"] > table.loc["eng", "other"]


def stamps() -> Stamps:
    rows = [
        ("animals/dog", "it", "Un cane.", "it"),
        ("animals/dog", "zho", "狗。", "zh_CN"),
        ("animals/cat", "zho", "貓。", "zh_TW"),
        ("animals/cat2", "it", "Un gatto.", "it"),
    ]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    empty = pd.DataFrame(columns=["stamp", "path"])
    return Stamps(captions, empty, empty, empty)


EVENTS = (
    Event("cat", "mammal", ("animals/cat", "animals/cat2"), {}),
    Event("dog", "mammal", ("animals/dog",), {}),
    Event("emu", "bird", ("animals/emu",), {}),
)


def test_missing_translations_are_named_and_substitutes_counted():
    found = study.stamp_texts(stamps(), EVENTS, "it")
    assert found.texts == {0: "Un gatto.", 1: "Un cane."}
    assert found.missing == ("emu",)
    chinese = study.stamp_texts(stamps(), EVENTS, "zho")
    assert chinese.texts == {0: "貓。", 1: "狗。"}
    assert chinese.substitute == 1
    table = study.coverage(stamps(), EVENTS, ["it", "zho"]).set_index("language")
    assert table.loc["zho"].tolist() == [2, 1, 1, 2, 1]


def test_a_bank_without_stamps_lends_its_labels(world):
    events = world.bank.events
    own = study.stamp_texts(study.labels_as_stamps(events), events, "fra")
    assert own.texts == {number: event.phrases["fra"].label for number, event in enumerate(events)}
    assert not own.missing
    assert not own.substitute


def test_only_events_with_a_caption_are_asked(run, heard):
    events = tuple(replace(event, recordings=(event.name,)) for event in heard.bank.events)
    heard = heard._replace(bank=replace(heard.bank, events=events))
    rows = [(event.name, "it", event.name, "it") for event in events[:3]]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    own = Stamps(captions, captions, captions, captions)
    table = study.zero_shot_stamps({("kcl", 0): run}, heard, own, ["it"])
    assert table.loc[0, "events"] == 3
    assert table.loc[0, "chance"] == pytest.approx(1 / 3)
    assert 0 <= table.loc[0, "accuracy"] <= 1


def test_languages_come_one_by_one(heard, tmp_path):
    book = session.start("03-consistency", profile="smoke", out=tmp_path)
    runs, used = study.languages_by_count(book, heard, [0], counts=(1, 3))
    assert used[1, 0] == ("eng",)
    assert len(set(used[3, 0])) == 3
    scored = study.scores({key: study.space(one.model, heard.test) for key, one in runs.items()})
    table = study.by_count(scored, used)
    assert set(table.query("K == 1")["group"]) == {"English", "never trained on", "all eight"}
    assert len(table.query("K == 3")) == 4


# Maps, batches


def test_maps_hold_every_text_and_tight_clusters_are_tight():
    table = study.maps({"kcl": toy(captions=1, noise=0.05)}, range(10), methods=("t-SNE",))
    assert len(table) == 10 * 4
    assert set(table["language"]) == {"audio", "eng", "fra", "deu"}
    assert study.tightness(table)["ratio"].item() < 0.5


def test_each_scheme_draws_its_own_batch(world):
    batches = dict(study.scheme_batches(world.train, 4))
    assert {name: len(batch.parallel) for name, batch in batches.items()} == {"ml-clap": 0, "cacl": 1, "kcl": 7}
    assert all(len(batch) == 4 for batch in batches.values())
    assert create("cnn", "hashed", dim=4).encode_text(batches["kcl"].parallel[0]).shape == (4, 4)


# Longer


def test_training_longer_counts_steps_and_texts_by_what_a_scheme_reads(home, heard):
    book = session.start("03-consistency", profile="smoke", out=home)
    book = replace(book, settings=replace(book.settings, dim=8, epochs=1))
    table = study.longer(book, heard, [0], (1, 2)).set_index(["system", "times"])
    assert (table.xs(2, level="times")["steps"] == 2 * table.xs(1, level="times")["steps"]).all()
    assert table["texts"].to_dict() == {
        (name, times): texts * times for name, texts in (("ml-clap", 1), ("cacl", 2), ("kcl", 8)) for times in (1, 2)
    }
    assert table[list(study.METRICS)].notna().all(axis=None)


def test_gains_pair_the_seeds_that_both_have():
    rows = [("a", 0, 0.1), ("a", 1, 0.2), ("b", 0, 0.3), ("b", 1, 0.5), ("b", 2, 0.9)]
    found = study.seed_gains(pd.DataFrame(rows, columns=["label", "seed", "R@1"]), [("b", "a")], ["R@1"])
    assert found["value"].item() == pytest.approx(0.25)
    assert found["low"].item() == pytest.approx(0.25 - 12.706 * 0.05, abs=1e-3)
    assert found["wins"].item() == "2/2"


def test_the_words_compare_at_equal_steps_and_at_equal_texts():
    rows = [("ml-clap", 0, 8, 64, 0.3, 9.0), ("kcl", 0, 8, 8, 0.2, 5.0), ("kcl", 0, 64, 64, 0.5, 1.0)]
    curve = pd.DataFrame(rows, columns=["system", "seed", "texts", "steps", "T2A R@1", "MRV"])
    text = study.told(curve)
    assert "After 64 steps: ML-CLAP 30.0% (MRV 9), KCL 50.0% (MRV 1)." in text
    assert "After 8 texts a clip: ML-CLAP 30.0% (MRV 9), KCL 20.0% (MRV 5)." in text
