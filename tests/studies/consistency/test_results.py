"""Scores in many languages, summed up as the papers print them; stages; and captions of stamps."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pullpush.data.language.vocabulary import LANGUAGES, Event
from pullpush.data.recordings.tuxpaint import Stamps
from pullpush.lab.claims import of_chapter
from pullpush.lab.compute import Embedded
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.metrics import METRICS, distance
from pullpush.studies.consistency import results
from pullpush.studies.consistency.space import embed

ORDERS = (("eng", "fra", "jpn", "deu"), ("eng", "cat", "zho", "spa"))
BEST = {"ml-clap": 0.1, "kcl": 0.01}  # the rate that validation prefers


def test_every_measure_is_named_by_a_claim():
    assert {*results.MEASURES} <= {claim.judged.get("measure") for claim in of_chapter("03-consistency-lab")}


def staged(level=0.1):
    """Scores at two rates: the better one on validation is the worse one on the test."""
    trials = [
        Trial(system, system, {"lr": lr}, {"telling": telling, "start": start, "lr": lr}, seeds=seeds)
        for telling, seeds in (("aligned", (0, 1)), ("retold", (0,)))
        for start in ("ml-clap", "nothing")
        for lr in (0.01, 0.1)
        for system in BEST
    ]
    experiment = Experiment("starts", tuple(trials), (0, 1), languages=("eng", "fra"))
    rng, values, rows = np.random.default_rng(0), {}, []
    for trial, seed in experiment.cells:
        good = BEST[trial.system] == trial.where["lr"]
        value = level * (trial.system == "kcl") + 0.3 - 0.2 * good + 0.01 * rng.standard_normal((6, 2))
        values[str(trial), seed] = {"T2A R@1": value} | {name: value[:, 0] + 1 for name in results.CONSISTENCY}
        head = {"system": trial.system, **trial.where, "seed": seed}
        rows += [{**head, "epoch": n, "step": n, "R@1": 0.1 + 0.1 * good} for n in (1, 2)]
    history = pd.DataFrame(rows)
    return Scores(experiment, values, history, history, Stamp("now", "", (0, 1), 0.0, {}))


def validation():
    """What the same runs score on validation: English alone would choose the other rate."""
    of = staged().experiment
    values = {}
    for trial, seed in of.cells:
        good = BEST[trial.system] == trial.where["lr"]
        value = np.array([[0.5 - 0.1 * good, 0.1 + 0.5 * good]] * 6)
        values[str(trial), seed] = {"R@1": value}
    return replace(staged(), experiment=of, clips=values)


def test_validation_in_all_languages_chooses_the_rate_and_the_test_has_no_say():
    table = results.rates_table(validation())
    assert len(table) == 16
    assert table["valid R@1"].tolist() == pytest.approx([0.5 if each else 0.3 for each in table["chosen"]])
    best = set(table[table["chosen"]][["system", "lr"]].itertuples(index=False, name=None))
    assert best == set(BEST.items())
    one = results.stages(staged(), validation())["aligned", "nothing"]
    trial = staged().trial("kcl", {"telling": "aligned", "start": "nothing", "lr": BEST["kcl"]})
    np.testing.assert_array_equal(one.clips["kcl", 1]["T2A R@1"], staged().clips[str(trial), 1]["T2A R@1"])


def test_a_stage_is_an_experiment_in_which_nothing_varies():
    scores = results.stages(staged(), validation())
    assert set(scores) == {(telling, start) for telling in ("aligned", "retold") for start in ("ml-clap", "nothing")}
    assert next(iter(scores)) == ("aligned", "ml-clap")
    one = scores["aligned", "ml-clap"]
    assert set(one.clips) == {(system, seed) for system in BEST for seed in (0, 1)}
    assert {"telling", "start", "lr"}.isdisjoint(one.table.columns)
    assert one.contrast("kcl", "ml-clap", "T2A R@1").value == pytest.approx(0.1, abs=0.02)
    assert one.table["unconverged"].tolist() == pytest.approx([0] * len(one.table))


def test_nothing_stands_in_for_runs_or_a_validation_that_were_not_kept():
    nothing = replace(staged(), clips={})
    assert results.stages(nothing, validation()) == {}
    assert results.stages(staged(), nothing) == {}


def test_the_table_of_languages_ends_with_their_average(scores_of):
    table = results.by_language(scores_of({"ml-clap": 0.4, "kcl": 0.5}), ["R@1", "T2A R@1"])
    assert list(table)[:3] == ["R@1 ML-CLAP", "R@1 KCL", "T2A R@1 ML-CLAP"]
    assert list(table.index) == ["eng", "fra", "deu", "avg"]
    assert table.loc["avg"].tolist() == pytest.approx(table.iloc[:-1].mean().tolist())


def test_ranks_are_summed_up_by_run_with_the_share_of_the_worst_clips(scores_of):
    table = results.rank_table(scores_of({"kcl": 0.5}, clips=20))
    assert table["median"].tolist() == [9.5, 9.5]
    assert table["worst"].tolist() == pytest.approx([19 / 190] * 2)


def test_languages_are_compared_with_the_reference_and_its_own_column_holds_their_mean(run, heard):
    languages = LANGUAGES[:3]
    score = METRICS["consistency"].make
    values = score(Embedded(lambda: run.model, heard, languages))
    texts = embed(run.model, heard.test, languages).texts
    far = [distance(texts[:, 0, 0], texts[:, 0, k]).item() for k in (1, 2)]
    assert values["Dis"].mean(0) == pytest.approx([np.mean(far), *far], rel=1e-5)
    assert values["Dis within eng"].mean() == pytest.approx(distance(texts[:, 0, 0], texts[:, 1, 0]).item(), rel=1e-5)
    assert values["Gap"][:, 0] == pytest.approx(values["Gap"][:, 1:].mean(1))
    assert set(score(Embedded(lambda: run.model, heard, ("eng",)))) >= {"Dis within eng", "MRV"}


def test_distances_stand_by_language_then_their_average_and_the_yardstick(run, heard):
    values = METRICS["consistency"].make(Embedded(lambda: run.model, heard, ("eng", "fra", "deu")))
    experiment = Experiment("schemes", (Trial("kcl", "kcl"),), (0,), languages=("eng", "fra", "deu"))
    history = pd.DataFrame({"system": ["kcl"], "seed": [0], "epoch": [1], "step": [1], "R@1": [0.1]})
    scores = Scores(experiment, {("kcl", 0): values}, history, pd.DataFrame(), Stamp("now", "", (0,), 0.0, {}))
    table = results.distance_table(scores)
    assert list(table.index) == ["fra", "deu", "avg", "eng, second caption"]
    assert table.loc["avg", "Dis KCL"] == pytest.approx(table.loc[["fra", "deu"], "Dis KCL"].mean())
    assert table.loc["eng, second caption", "Gap KCL"] == pytest.approx(values["Gap within eng"].mean())
    assert scores.values("kcl", "Dis").mean() == pytest.approx(table.loc["avg", "Dis KCL"])


def test_a_caption_is_nearer_to_its_own_clip(run, heard):
    same, other = (results.caption_cosines(run.model.text, heard.test, shift=shift) for shift in (0, 1))
    assert list(same) == list(LANGUAGES)
    assert same["eng"].mean() > other["eng"].mean()
    assert results.caption_cosines(run.model.text, heard.test, shift=len(heard.test))["fra"] == pytest.approx(
        same["fra"]
    )


def test_west_is_nearer_than_east():
    cosines = {"fra": 0.9, "deu": 0.7, "spa": 0.8, "nld": 0.8, "cat": 0.3, "jpn": 0.5, "zho": 0.6}
    same = {code: np.full(4, cosine) for code, cosine in cosines.items()}
    assert results.west_less_east(same).value == pytest.approx(0.7 - 0.55)
    with pytest.raises(results.LanguagesError, match=r"captions\.zho\.csv"):
        results.west_less_east({code: same["fra"] for code in (*results.WEST, "jpn")})


def test_scores_stand_apart_for_languages_that_were_trained_on():
    trials = [
        Trial("kcl", "kcl", {"languages": ORDERS[s][:k]}, {"K": k, "order": s}, seeds=(s,))
        for s in (0, 1)
        for k in (1, 3)
    ]
    experiment = Experiment("languages", tuple(trials), (0, 1), languages=LANGUAGES)
    level = {name: 0.1 * number for number, name in enumerate(LANGUAGES)}
    clips = {
        (str(trial), seed): {"T2A R@1": np.tile(list(level.values()), (4, 1)) + trial.where["K"]}
        for trial, seed in experiment.cells
    }
    rows = [{"system": "kcl", **trial.where, "seed": seed} for trial, seed in experiment.cells]
    history = pd.DataFrame(rows).assign(epoch=1, step=1, **{"R@1": 0.1})
    scores = Scores(experiment, clips, history, pd.DataFrame(), Stamp("now", "", (0, 1), 0.0, {}))
    table = results.by_count(scores).set_index(["K", "seed", "group"])["T2A R@1"].sort_index()
    assert set(table.loc[1, 0].index) == {"English", "never trained on", "all eight"}
    assert table[3, 1, "English"] == pytest.approx(3 + level["eng"])
    trained = ORDERS[1][1:3]
    assert table[3, 1, "trained on"] == pytest.approx(3 + np.mean([level[name] for name in trained]))


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


def test_missing_translations_are_counted_and_substitutes_taken():
    found = results.event_captions(stamps(), EVENTS, "it")
    assert found["text"].to_dict() == {0: "Un gatto.", 1: "Un cane."}
    chinese = results.event_captions(stamps(), EVENTS, "zho")
    assert chinese["text"].to_dict() == {0: "貓。", 1: "狗。"}
    assert chinese["code"].to_dict() == {0: "zh_TW", 1: "zh_CN"}
    table = results.coverage(stamps(), EVENTS, ["it", "zho"]).set_index("language")
    assert table.loc["zho"].tolist() == [2, 1, 1, 2, 1]


def test_only_events_with_a_caption_are_asked(run, heard):
    events = tuple(replace(event, recordings=(event.name,)) for event in heard.bank.events)
    heard = replace(heard, bank=replace(heard.bank, events=events))
    rows = [(event.name, "it", event.name, "it") for event in events[:3]]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text", "code"])
    own = Stamps(captions, captions, captions, captions)
    found = results.zero_shot_stamps({("kcl", 0): run, ("kcl", 1): run, ("cacl", 1): run}, heard, own, ["it"])
    assert set(found["event"]) == {0, 1, 2}
    assert found["chance"].unique() == pytest.approx([1 / 3])
    assert found["accuracy"].between(0, 1).all()
    (gain,) = results.of_groups(found, [("kcl", "cacl")]).to_dict("records")
    assert (gain["languages"], gain["value"], gain["seeds"], gain["clips"]) == ("new, known to the encoder", 0, 1, 3)
    (kcl,) = results.of_groups(found, [("kcl", None)]).to_dict("records")
    assert (kcl["system"], kcl["seeds"], kcl["clips"]) == ("kcl", 2, 3)
    assert kcl["value"] == pytest.approx(found["accuracy"].mean())
