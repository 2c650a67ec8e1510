"""The measurements of the chapter on languages, against naive loops and on spaces whose answer is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional as F

from pullpush.data.tuxpaint import Stamps
from pullpush.data.vocabulary import LANGUAGES, Event
from pullpush.encoders import create
from pullpush.lab import session
from pullpush.lab.experiments import Experiment, Scores, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scoring import consistency
from pullpush.metrics import distance
from pullpush.studies.consistency import consistency as study
from pullpush.studies.consistency.consistency import Space
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan


def unit(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def toy(clips: int = 12, captions: int = 2, languages: int = 3, noise: float = 0.3) -> Space:
    audio = unit(clips, 6)
    return Space(audio, F.normalize(audio[:, None, None] + noise * unit(clips, captions, languages, 6, seed=1), dim=-1))


@pytest.fixture(scope="module")
def heard(home, world):
    base = Plan(world, recipe("infonce", text="hashed", dim=8, epochs=1, batch_size=8)).train()
    return encoded(world, base)


@pytest.fixture(scope="module")
def run(heard):
    plan = recipe("kcl", **on_features(heard), text="hashed", dim=8, epochs=1, batch_size=8)
    return Plan(heard, plan).train()


# Scores


def made(
    systems: dict[str, float], *, languages: tuple[str, ...] = ("eng", "fra", "deu"), clips: int = 12, **trials: Any
) -> Scores:
    """Scores of runs that nobody trained: each clip's R@1 is its system's level, a seed's and a clip's own part."""
    points = [
        Trial(name, name, where={key: value}) for key, values in trials.items() for value in values for name in systems
    ]
    experiment = Experiment(
        "made", tuple(points or [Trial(name, name) for name in systems]), (0, 1), languages=languages
    )
    rng, values, rows = np.random.default_rng(0), {}, []
    part = 0.01 * rng.standard_normal((clips, len(languages)))
    for trial, seed in experiment.cells:
        level = systems[trial.system] + 0.01 * seed + 0.001 * rng.standard_normal((clips, len(languages)))
        values[str(trial), seed] = {"R@1": level + part, "MRV": np.arange(clips, dtype=float), "T2A R@1": level}
        values[str(trial), seed] |= {"log rank variance": level[:, 0], "mean rank": level[:, 0]}
        head = {"system": trial.system, **trial.where, "seed": seed}
        rows += [{**head, "epoch": epoch, "step": 10 * epoch, "R@1": 0.1 * epoch} for epoch in (1, 2)]
    return Scores(experiment, values, pd.DataFrame(rows), pd.DataFrame(), Stamp("now", "", (0, 1), 0.0, {}))


def test_a_row_a_run_holds_the_mean_over_languages():
    scores = made({"kcl": 0.5, "ml-clap": 0.4})
    table = study.by_run(scores.table)
    assert list(zip(table["system"], table["seed"], strict=True)) == [
        (s, n) for s in ("kcl", "ml-clap") for n in (0, 1)
    ]
    assert table.loc[0, "R@1"] == pytest.approx(scores.clips["kcl", 0]["R@1"].mean())
    assert table["steps"].tolist() == [20] * 4


def test_the_table_of_languages_ends_with_their_average():
    table = study.language_table(made({"kcl": 0.5, "ml-clap": 0.4}).table, ["R@1"], ["ml-clap", "kcl"])
    assert list(table.columns) == [("R@1", "ml-clap"), ("R@1", "kcl")]
    assert table.loc["avg"].tolist() == pytest.approx(table.iloc[:-1].mean().tolist())


def test_gains_of_single_languages_are_contrasts_adjusted_within_the_table():
    scores = made({"kcl": 0.5, "ml-clap": 0.4})
    table = study.gains_by_language(scores, [("kcl", "ml-clap")], "R@1").set_index("language")
    one = scores.contrast("kcl", "ml-clap", "R@1", {"language": "fra"})
    assert table.loc["fra", ["value", "low", "high"]].tolist() == [one.value, one.low, one.high]
    assert table.loc["fra", "p"] >= one.p
    shown = study.points(table.reset_index())
    assert shown.loc[1, "difference (points)"].startswith("+10.")
    assert shown.loc[1, ["system", "over", "n"]].tolist() == ["KCL", "ML-CLAP", "2 × 12"]


def test_ranks_are_summed_up_by_run_with_the_share_of_the_worst_clips():
    table = study.rank_table(made({"kcl": 0.5}, clips=20))
    assert table["median"].tolist() == [9.5, 9.5]
    assert table["worst"].tolist() == pytest.approx([19 / 190] * 2)


def test_longer_runs_count_the_texts_that_a_scheme_reads():
    scores = made({"kcl": 0.5, "ml-clap": 0.4}, times=(1, 2))
    table = study.longer_table(scores, epochs=4)
    texts = table.drop_duplicates(["system", "times"]).set_index("label")["texts"].to_dict()
    assert texts == {"kcl": 32, "kcl ×2": 64, "ml-clap": 4, "ml-clap ×2": 8}
    (row,) = study.longer_gains(scores, [(("kcl", 1), ("ml-clap", 2))], ["R@1"]).to_dict("records")
    assert (row["system"], row["baseline"]) == ("kcl ×1", "ml-clap ×2")
    assert row["value"] == pytest.approx(0.1, abs=0.01)
    assert study.named(pd.DataFrame({"label": ["ml-clap ×2"]}))["label"].item() == "ML-CLAP ×2"


# Consistency


def test_languages_are_compared_with_the_reference_and_its_own_column_holds_their_mean(run, heard):
    languages = LANGUAGES[:3]
    values = consistency(run.model, heard, languages)
    own = study.space(run.model, heard.test, languages).texts
    far = [distance(own[:, 0, 0], own[:, 0, k]).item() for k in (1, 2)]
    assert values["Dis"].mean(0) == pytest.approx([np.mean(far), *far], rel=1e-5)
    assert values["Dis within eng"].mean() == pytest.approx(distance(own[:, 0, 0], own[:, 1, 0]).item(), rel=1e-5)
    assert values["Gap"][:, 0] == pytest.approx(values["Gap"][:, 1:].mean(1))
    assert set(consistency(run.model, heard, ("eng",))) >= {"Dis within eng", "MRV"}


def test_distances_stand_by_language_then_their_average_and_the_yardstick(run, heard):
    values = consistency(run.model, heard, ("eng", "fra", "deu"))
    experiment = Experiment("one", (Trial("kcl", "kcl"),), (0,), languages=("eng", "fra", "deu"))
    history = pd.DataFrame({"system": ["kcl"], "seed": [0], "epoch": [1], "step": [1], "R@1": [0.1]})
    scores = Scores(experiment, {("kcl", 0): values}, history, pd.DataFrame(), Stamp("now", "", (0,), 0.0, {}))
    table = study.distance_table(scores.table)
    assert list(table.index) == ["fra", "deu", "avg", "eng, second caption"]
    assert table.loc["avg", ("Dis", "kcl")] == pytest.approx(table.loc[["fra", "deu"], ("Dis", "kcl")].mean())
    assert table.loc["eng, second caption", ("Gap", "kcl")] == pytest.approx(values["Gap within eng"].mean())
    assert scores.values("kcl", "Dis").mean() == pytest.approx(table.loc["avg", ("Dis", "kcl")])


def test_ranks_count_the_clips_that_lie_nearer():
    one = toy(noise=1.5)
    ranks = study.ranks(one)
    for number, rank in enumerate(ranks.tolist()):
        clip, caption = divmod(number, one.texts.shape[1])
        for k, own in enumerate(rank):
            near = one.audio @ one.texts[clip, caption, k]
            assert own == 1 + int((near > near[clip]).sum())


def test_captions_that_agree_are_tight():
    spaces = {(name, s): toy(noise=noise) for name, noise in (("kcl", 0.05), ("ml-clap", 2.0)) for s in (0, 1)}
    tight, loose = (study.tightness(spaces, name) for name in ("kcl", "ml-clap"))
    assert tight.shape == (2, 12)
    assert tight.mean() < 0.1 < loose.mean()


def test_worst_cases_are_uneven_and_different():
    one = toy(noise=1.5)
    variance = study.ranks(Space(one.audio, one.texts[:, :1])).double().var(1, unbiased=False)
    cases = study.worst_cases({"ml-clap": one, "kcl": one})
    assert cases["ml-clap"] == int(variance.argmax())
    assert cases["kcl"] != cases["ml-clap"]
    table = study.case_ranks({("ml-clap", 0): one, ("kcl", 0): one, ("kcl", 1): one}, 0)
    assert len(table) == 2 * 2 * 3
    first = table.query("`worst of` == 'ml-clap' and system == 'kcl'")["rank"].tolist()
    assert first == study.ranks(one)[cases["ml-clap"] * 2].tolist()


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
    last = table.query("recipe == 'kcl'").sort_values("step")["pair"].iloc[-1]
    assert study.last_angles(table, "kcl", "pair").tolist() == [[last]]


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
    assert study.violated(adam).tolist() == study.violated(table).tolist() == [[0.0]]
    assert study.at_end(table, "pair", "distribution_error") == pytest.approx(2 * (1 - 2 / 8))


def test_a_slope_known_beforehand_is_that_of_another_seed(model):
    size = {"epochs": 2, "batch_size": 4}
    table = study.bound_table(model, [0, 1], **size)
    predicted = study.predicted_bound(model, table, **size)
    assert predicted["left"].to_numpy() == pytest.approx(table.sort_values("seed", kind="stable")["left"].to_numpy())
    loose = study.looseness(table, predicted)
    assert loose["system"].tolist() == ["ml-clap"] * 2 + ["cacl"] * 2
    assert (loose["right"] >= 1).all()
    assert (loose["before"] / loose["right"]).max() > 1
    (end,) = study.nearer({"all": table}).to_dict("records")
    assert end["value"] == pytest.approx(end["CACL"] - end["random"])
    slope = (table.query("seed == 1")["growth"].max() - 1) / study.RATE
    assert predicted.query("seed == 0")["growth"].to_numpy() == pytest.approx(1 + study.RATE * slope)


def test_as_printed_nothing_moves(model):
    assert study.printed_gradient(model, 0, clips=8) < 1e-12


# Translations, languages never heard


def test_a_caption_is_nearer_to_its_own_clip(run, heard):
    same = study.caption_cosines(run.model.text, heard.test)
    other = study.caption_cosines(run.model.text, heard.test, stranger=True)
    assert list(same) == list(LANGUAGES)
    assert same["eng"].mean() > other["eng"].mean()


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
    found = study.zero_shot_stamps({("kcl", 0): run, ("kcl", 1): run, ("cacl", 1): run}, heard, own, ["it"])
    table = study.by_language(found)
    assert table.loc[0, "events"] == 3
    assert table.loc[0, "chance"] == pytest.approx(1 / 3)
    assert table["accuracy"].between(0, 1).all()
    (gain,) = study.unheard_gains(found, {"it": "new"}, [("kcl", "cacl")]).to_dict("records")
    assert (gain["languages"], gain["value"], gain["seeds"], gain["clips"]) == ("new", 0, 1, 3)


def test_languages_come_one_by_one():
    order = study.language_order(0)
    assert order[0] == "eng"
    assert sorted(order) == sorted(LANGUAGES)


def test_scores_stand_apart_for_languages_that_were_trained_on():
    trials = [
        Trial("kcl", "kcl", {"languages": study.language_order(s)[:k]}, {"K": k, "order": s}, seeds=(s,))
        for s in (0, 1)
        for k in (1, 3)
    ]
    experiment = Experiment("languages", tuple(trials), (0, 1), languages=LANGUAGES)
    level = {name: 0.1 * number for number, name in enumerate(LANGUAGES)}
    clips = {
        (str(trial), seed): {"T2A R@1": np.tile(list(level.values()), (4, 1)) + trial.where["K"]}
        for trial, seed in experiment.cells
    }
    scores = Scores(experiment, clips, pd.DataFrame(), pd.DataFrame(), Stamp("now", "", (0, 1), 0.0, {}))
    table = study.by_count(scores).set_index(["K", "seed", "group"])["T2A R@1"].sort_index()
    assert set(table.loc[1, 0].index) == {"English", "never trained on", "all eight"}
    assert table[3, 1, "English"] == pytest.approx(3 + level["eng"])
    trained = study.language_order(1)[1:3]
    assert table[3, 1, "trained on"] == pytest.approx(3 + np.mean([level[name] for name in trained]))
    gains = study.count_gains(scores, [(3, 1)])
    assert gains["languages"].tolist() == ["all eight", "English"]
    assert gains["value"].tolist() == pytest.approx([2, 2])


# Maps, batches


def test_maps_hold_every_text_and_tight_clusters_are_tight():
    table = study.maps({"kcl": toy(captions=1, noise=0.05)}, range(10), methods=("t-SNE",))
    assert len(table) == 10 * 4
    assert set(table["language"]) == {"audio", "eng", "fra", "deu"}
    assert study.map_tightness(table)["ratio"].item() < 0.5


def test_each_scheme_draws_its_own_batch(world):
    batches = dict(study.scheme_batches(world.train, 4))
    assert {name: len(batch.parallel) for name, batch in batches.items()} == {"ml-clap": 0, "cacl": 1, "kcl": 7}
    assert all(len(batch) == 4 for batch in batches.values())
    assert create("cnn", "hashed", dim=4).encode_text(batches["kcl"].parallel[0]).shape == (4, 4)
