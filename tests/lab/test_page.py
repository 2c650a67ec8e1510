"""A lab's page: tables of scores, verdicts of whole families, gaps where nothing was kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pullpush.lab import gaps, page as page_module
from pullpush.lab.comparisons import differences, gains, levels, shown
from pullpush.lab.experiments import Experiment
from pullpush.lab.ledger import Ledger, Measure
from pullpush.lab.page import Page
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.metrics.inference import difference, holm

SEEDS, CLIPS = (0, 1, 2), 40
TRUE = {"InfoNCE": 0.3, "SVR": 0.4}


@pytest.fixture
def scores():
    """Two systems at two radii, SVR a tenth ahead, in the first two seeds alone at the second radius."""
    declared = Experiment.of(
        "radius",
        {name: ("infonce", {}) for name in TRUE},
        seeds=SEEDS,
        varies={"radius": {0.1: {"tau": 0.1}, 0.2: {"tau": 0.2}}},
    )
    rng = np.random.default_rng(0)
    clips = {
        (str(trial), seed): {"R@1": TRUE[trial.system] + rng.normal(0, 0.05, CLIPS), "R@5": rng.random(CLIPS)}
        for trial, seed in declared.cells
        if seed < 2 or trial.where["radius"] == 0.1
    }
    history = pd.DataFrame({"system": [], "seed": [], "epoch": [], "step": []})
    return Scores(declared, clips, history, history, Stamp("2026-01-01", "pullpush sweep x", SEEDS, 1.0, {}))


def test_levels_are_those_of_the_one_inference_at_every_point(scores):
    table = levels(scores, ["R@1", "R@5"])
    assert list(table) == ["radius", "system", "metric", "value", "low", "high", "seeds", "clips"]
    assert len(table) == 2 * 2 * 2
    row = table[(table["system"] == "SVR") & (table["radius"] == 0.2) & (table["metric"] == "R@1")].iloc[0]
    expected = difference(scores.values("SVR", "R@1", {"radius": 0.2}))
    assert (row["value"], row["low"], row["high"], row["seeds"]) == (expected.value, expected.low, expected.high, 2)
    assert levels(scores, ["R@1"], [{"radius": 0.1}])["system"].tolist() == ["InfoNCE", "SVR"]


def test_a_point_may_be_a_language_of_what_was_scored(scores):
    spoken = replace(scores.experiment, languages=("eng", "fra"))
    clips = {key: {"R@1": np.stack([values["R@1"], values["R@1"] + 1], 1)} for key, values in scores.clips.items()}
    points = [{"radius": 0.1, "language": code} for code in spoken.languages]
    table = levels(replace(scores, experiment=spoken, clips=clips), ["R@1"], points)
    assert table["language"].tolist() == ["eng", "eng", "fra", "fra"]
    assert (table["value"].to_numpy()[2:] - table["value"].to_numpy()[:2]).tolist() == pytest.approx([1, 1])


def test_points_with_names_are_written_by_them(scores):
    points = {"cold": {"radius": 0.1}, "absent": {"radius": 0.3}}
    table = levels(scores, ["R@1"], points)
    assert list(table)[:3] == ["point", "system", "metric"]
    assert set(table["point"]) == {"cold"}
    assert table["value"].tolist() == levels(scores, ["R@1"], [{"radius": 0.1}])["value"].tolist()
    gained = gains(scores, [("SVR", "InfoNCE")], ["R@1"], points)
    assert gained["point"].tolist() == ["cold"]
    assert gained["value"].tolist() == gains(scores, [("SVR", "InfoNCE")], ["R@1"], [{"radius": 0.1}])["value"].tolist()
    assert list(levels(scores, ["R@1"], {"absent": {"radius": 0.3}}))[:2] == ["point", "system"]


def test_gains_are_adjusted_over_the_whole_table_and_skip_what_was_not_trained(scores):
    wheres = [{"radius": value} for value in (0.1, 0.2, 0.3)]
    table = gains(scores, [("SVR", "InfoNCE")], ["R@1"], wheres)
    assert table["radius"].tolist() == [0.1, 0.2], "no trial has the third"
    by_hand = holm([scores.contrast("SVR", "InfoNCE", "R@1", where) for where in wheres[:2]])
    assert table["p"].tolist() == [one.p_holm for one in by_hand]
    assert table["half width"].tolist() == [one.half_width for one in by_hand]
    assert table["value"].between(0.05, 0.15).all()
    assert differences([]).empty
    assert gains(replace(scores, clips={}), [("SVR", "InfoNCE")], ["R@1"]).empty


def test_a_table_is_printed_with_metrics_side_by_side():
    rows = [
        {"world": "a", "system": "SVR", "baseline": "InfoNCE", "metric": metric, "value": 0.012, "half width": 0.004}
        for metric in ("T2A R@1", "A2T R@1")
    ]
    table = shown(pd.DataFrame(rows))
    assert table.to_dict("records") == [
        {"system": "SVR", "over": "InfoNCE", "world": "a", "T2A R@1": "+1.2 ± 0.4", "A2T R@1": "+1.2 ± 0.4"}
    ]
    counted = pd.DataFrame([{**row, "wins": f"{n}/5", "seed": 0.1 * n} for n, row in enumerate(rows)])
    assert shown(counted).to_dict("records") == table.to_dict("records"), "what else `Scores.gains` says is left out"
    level = pd.DataFrame([{"system": "SVR", "metric": "R@1", "value": 0.4567, "low": 0.4, "high": 0.5}])
    assert shown(level).to_dict("records") == [{"system": "SVR", "R@1": "45.7"}]


# ---------------------------------------------------------------- the page


def ledger_of(folder, judged):
    """The ledger of a chapter whose claims, of one family, are judged so."""
    claim = "claim: SVR is ahead., source: [Table 1], direction: higher, unit: points"
    claims = [f"  - {{id: p-{id}, {claim}, judged: {{chapter: 11-tiny, {by}}}}}" for id, by in judged.items()]
    (folder / "p.yaml").write_text("\n".join(["paper: p", "title: P", "cite: p", "claims:", *claims]))
    return Ledger("11-tiny", folder=folder)


@pytest.fixture
def page(scores, tmp_path, monkeypatch):
    """A page whose two claims are one family, of two experiments; what it has displayed; and what `run` gives."""
    by = "experiment: %s, system: SVR, baseline: InfoNCE, metric: R@1, where: {radius: 0.1}"
    ledger = ledger_of(tmp_path, {name: by % name for name in ("radius", "later")})
    displayed = []
    monkeypatch.setattr(page_module, "Ledger", lambda chapter: ledger)
    monkeypatch.setattr(page_module, "display", displayed.append)
    found = {"radius": scores, "later": replace(scores, experiment=replace(scores.experiment, name="later"))}
    monkeypatch.setattr(page_module.compute, "run", lambda ground, experiment, chapter="": found[experiment.name])
    saved = {}
    book = SimpleNamespace(chapter="11-tiny", seeds=range(3), save=lambda table, name: saved.update({name: table}))
    made = Page(SimpleNamespace(book=book))
    return SimpleNamespace(page=made, displayed=displayed, found=found, saved=saved)


def test_verdicts_wait_for_their_whole_family(page, scores):
    page.page.run(page.found["radius"].experiment)
    page.page.verdicts()
    assert page.displayed == [], "the other claim of Table 1 is open, and moves this one's p"
    page.page.run(page.found["later"].experiment)
    page.page.verdicts("Table 2")
    assert page.displayed == [], "another place of the paper"
    page.page.verdicts("Table 1")
    page.page.verdicts()
    (listed,) = page.displayed
    assert listed.data.count("**holds**") == 2


def test_a_table_is_saved_printed_and_drawn(page):
    scores = page.page.run(page.found["radius"].experiment)
    table = page.page.table(
        "radius", scores, ["R@1"], pairs=[("SVR", "InfoNCE")], wheres=[{"radius": 0.1}, {"radius": 0.2}],
        rows="radius", number="2L.1", caption="Gains.", alt="Two dots.",
    )  # fmt: skip
    assert page.saved["radius"] is table
    assert table["radius"].tolist() == [0.1, 0.2]
    assert "+" in page.displayed[0].to_html()


def test_what_was_not_kept_is_an_error_that_says_how_to_get_it_and_its_claims_are_left(page):
    page.found["radius"] = replace(page.found["radius"], clips={}, stored=True)
    with pytest.raises(gaps.NotKeptError, match=r"pullpush sweep x.*compute_long true"):
        page.page.run(page.found["radius"].experiment)
    assert page.page.ledger.table().set_index("id").loc["p-radius", "reason"].startswith("radius is long")


def test_fewer_seeds_stand_in_for_what_was_not_kept_and_the_page_says_so(page, scores):
    page.found["radius"] = replace(page.found["radius"], clips={}, stored=True)
    fewer = replace(scores, experiment=replace(scores.experiment, name="models"))
    assert page.page.run(page.found["radius"].experiment, otherwise=fewer) is fewer
    assert "takes long and was not kept" in page.displayed[0].data
    assert page.page.ledger.table().set_index("id").loc["p-radius", "seeds"] == len(SEEDS)


def test_runs_of_another_experiment_stand_beside_those_that_do_not_repeat_them(page, scores):
    alone = replace(scores.experiment, trials=scores.experiment.trials[1::2])
    once = Experiment.of("once", {"plain": ("infonce", {})}, seeds=SEEDS)
    clips = {("plain", seed): scores.clips["InfoNCE radius=0.1", seed] | {"more": np.ones(1)} for seed in SEEDS}
    page.found["radius"], at = replace(scores, experiment=alone), {"radius": 0.1}
    beside = replace(scores, experiment=once, clips=clips).placed(["plain"], at, labels={"plain": "InfoNCE"})
    found = page.page.run(alone, beside=beside)
    assert [str(trial) for trial in found.experiment.trials] == ["InfoNCE radius=0.1", *map(str, alone.trials)]
    assert found.contrast("SVR", "InfoNCE", where=at) == scores.contrast("SVR", "InfoNCE", where=at)
    assert "more" not in found.clips["InfoNCE radius=0.1", 0]
    history = pd.DataFrame({"system": ["SVR", "SVR", "InfoNCE"], "radius": [0.0, 0.1, 0.1], "seed": 0, "epoch": 1})
    moved = replace(scores, history=history).placed(["SVR"], {"R": 1}, at=at)
    assert moved.values("SVR", "R@1", {"R": 1}) == pytest.approx(scores.values("SVR", "R@1", at))
    assert moved.history.to_dict("records") == [{"system": "SVR", "seed": 0, "epoch": 1, "R": 1}]


def test_an_experiment_stands_in_only_where_it_is_needed(page, scores):
    asked = page.found["later"].experiment
    assert page.page.run(page.found["radius"].experiment, otherwise=asked) is scores
    page.found["radius"] = replace(scores, clips={})
    assert page.page.run(replace(asked, name="radius"), otherwise=asked) is page.found["later"]


def test_claims_may_be_judged_by_a_part_of_what_was_found(page, scores):
    cold = scores.experiment.trials[:2]
    page.page.judge(replace(scores, experiment=replace(scores.experiment, trials=cold)), "radius")
    assert [claim.id for claim in page.page.ledger.open] == ["p-later"]
    assert page.displayed == []


def test_measures_are_judged_once_the_experiments_they_need_are_there(scores, tmp_path):
    computed = []

    def gain(found, baseline="InfoNCE"):
        computed.append(baseline)
        return found["radius"].contrast("SVR", baseline, "R@1", {"radius": 0.1})

    measures = {
        "one": Measure(("radius",), gain),
        "two": Measure(("radius", "later"), lambda found: pytest.fail("its experiment is not there")),
        "none": Measure(("empty",), lambda found: pytest.fail("it was not kept")),
        "lacks": Measure(("radius",), lambda found: gain(found, "KCL")),
    }
    named = {name: name for name in measures} | {"same": "one", "page": "handed in by the page"}
    ledger = ledger_of(tmp_path, {id: f"measure: {name}" for id, name in named.items()})
    found = {"radius": scores, "empty": replace(scores, clips={})}
    for name in found:
        ledger.judge_by(found, measures, name)
    assert computed == ["InfoNCE", "KCL"], "once for all claims of a measure"
    table = ledger.table().set_index("id")
    assert table.index[table["verdict"] == "holds"].tolist() == ["p-one", "p-same"]
    assert table["reason"][["p-two", "p-page"]].tolist() == ["not judged yet", "not judged yet"]
    assert "was not computed" in table["reason"]["p-none"]
    assert "not in this profile's experiment" in table["reason"]["p-lacks"]


def test_an_experiment_is_reduced_to_its_first_values_and_seeds(scores):
    declared = Experiment.of(
        "x",
        {"a": ("infonce", {})},
        seeds=range(5),
        varies={"tau": {value: {"tau": value} for value in (0.05, 0.1, 0.2)}},
    )
    small = declared.reduced()
    assert [trial.where["tau"] for trial in small.trials] == [0.05, 0.1]
    assert small.seeds == (0, 1)
    tried = Experiment.of(
        "x",
        {"a": ("infonce", {})},
        seeds=(0,),
        settings={"tau": {v: {"tau": v} for v in (0.05, 0.1, 0.2)}, "lr": {1e-3: {}}},
    )
    assert [trial.where["value"] for trial in tried.reduced().trials] == [0.05, 0.1, 1e-3], "two of each setting"
    assert declared.reduced(9) == declared
    named = Experiment.of("x", {"a": ("infonce", {})}, seeds=(0,), varies={"test": {name: {} for name in "abc"}})
    assert named.reduced() == named, "pages ask for what has a name"
