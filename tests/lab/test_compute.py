"""Experiments: what is declared is trained, scored and compared; the arithmetic against plain loops."""

import miniature
import numpy as np
import pandas as pd
import pytest
import torch

from pullpush.data.clips import load_data
from pullpush.data.recordings.corpora import CorpusConfig
from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment, ExperimentError, Trial
from pullpush.metrics import METRICS, difference
from pullpush.metrics.cards import MetricCard, Score
from pullpush.training import recipe
from pullpush.training.runs import Plan

PAIR = {"InfoNCE": ("infonce", {}), "with SVR": ("infonce+bi-static-svr", {"radius": 0.2})}


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return material.of(session.start("02-svr", profile="smoke", out=tmp_path_factory.mktemp("out")))


@pytest.fixture(scope="module")
def scores(ground):
    return compute.run(ground, Experiment.of("pair", PAIR, seeds=(0, 1), evaluations=("retrieval", "closeness")))


def test_an_experiment_gives_a_row_for_each_system_and_seed(scores):
    assert list(zip(scores.table["system"], scores.table["seed"], strict=True)) == [
        (system, seed) for system in PAIR for seed in (0, 1)
    ]
    assert scores.table["R@1"].between(0, 1).all()
    assert set(scores.history["system"]) == set(PAIR)
    assert not scores.stored


def test_a_contrast_is_the_books_one_inference_paired_in_seed_and_clip(scores):
    ours, theirs = (np.stack([scores.clips[name, seed]["A2T mAP@10"] for seed in (0, 1)]) for name in PAIR)
    assert scores.contrast("InfoNCE", "with SVR", "A2T mAP@10") == difference(ours, theirs)
    assert scores.contrast("InfoNCE", None, "positive cosine").value == pytest.approx(
        np.mean([scores.clips["InfoNCE", seed]["positive cosine"] for seed in (0, 1)])
    )


def test_gains_hold_the_differences_adjusted_within_the_table(scores):
    table = scores.gains([("with SVR", "InfoNCE")])
    assert list(table["metric"]) == ["T2A R@1", "A2T R@1"]
    one = scores.contrast("with SVR", "InfoNCE", "T2A R@1")
    assert table.loc[0, "value"] == one.value
    assert table.loc[0, "p"] >= one.p
    assert table.loc[0, "half width"] == pytest.approx((one.high - one.low) / 2)


def test_a_second_call_trains_and_scores_nothing(ground, scores, monkeypatch):
    monkeypatch.setattr("pullpush.training.runs.train", lambda *_, **__: pytest.fail("trained again"))
    again = compute.run(ground, scores.experiment)
    assert again.table.equals(scores.table)


def test_a_damaged_table_of_a_run_is_written_again_from_its_checkpoint(ground, scores):
    plan = next(iter(compute.plans_of(ground, scores.experiment).values()))
    steps = plan.path / "steps.csv"
    whole = steps.read_bytes()
    steps.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    assert compute.compute(ground, scores.experiment).steps.equals(scores.steps)
    assert steps.read_bytes() == whole


def test_a_metric_of_a_cell_is_asked_each_time_since_its_probe_may_not_see_what_it_reads(ground, monkeypatch):
    seen = {"clips": 20}  # more than a probe has

    def make(embedded):
        return {"seen": np.full(len(embedded.audio), len(embedded.audio[: seen["clips"]]))}

    card = MetricCard(name="seen", make=make, title="Seen", about="Clips.", needs=("audio",), scores=(Score("seen"),))
    METRICS.add(card)
    try:
        one = Experiment.of("seen", {"InfoNCE": PAIR["InfoNCE"]}, seeds=(0,), evaluations=("seen",))
        for seen["clips"] in (20, 22):
            assert compute.run(ground, one).clips["InfoNCE", 0]["seen"].max() == seen["clips"]
    finally:
        METRICS._added.clear()


def test_test_captions_that_were_mended_are_scored_anew(home, tmp_path):
    rows = [(split, f"{split}{n}.wav", miniature.sentence(n)) for split in ("train", "valid", "test") for n in range(4)]
    for number, (_, name, _) in enumerate(rows):
        miniature.tone(tmp_path / "audio" / name, number)
    one, found = Experiment.of("own", {"InfoNCE": ("infonce", {})}, seeds=(0,), evaluations=("retrieval",)), []
    for told in (rows, [*rows[:-1], (*rows[-1][:2], "mended")]):
        miniature.table(tmp_path / "captions.csv", told, ["split", "file_name", "caption"])
        world = load_data(CorpusConfig(f"folder:{tmp_path}"))
        plan = Plan(world, recipe("infonce", audio="cnn", text="hashed", dim=8, epochs=1, batch_size=4))
        compute.scored(one, plan, [world])
        found.append((plan.key, len(list((home / "scores").glob("[!.]*.npz")))))
    assert found[1] == (found[0][0], found[0][1] + 1), "the run is the same, its scores are others"


def test_what_varies_tells_trials_apart(ground):
    radii = {"radius": {r: {"radius": r} for r in (0.0, 0.5)}}
    varied = Experiment.of("radius", {"SVR": PAIR["with SVR"]}, seeds=(0,), varies=radii)
    found = compute.run(ground, varied)
    assert list(found.table["radius"]) == [0.0, 0.5]
    one = found.contrast("SVR", metric="R@1", where={"radius": 0.5}, baseline_where={"radius": 0.0})
    assert one.seeds == 1
    with pytest.raises(ExperimentError, match="2 trials of 'SVR'"):
        found.contrast("SVR", metric="R@1")
    crossed = radii | {"tau": {tau: {"tau": tau} for tau in (0.1, 0.2)}}
    trials = Experiment.of("crossed", {"SVR": PAIR["with SVR"]}, seeds=(0,), varies=crossed).trials
    assert [tuple(each.where.values()) for each in trials] == [(0.0, 0.1), (0.0, 0.2), (0.5, 0.1), (0.5, 0.2)]
    assert all({**each.overrides, **each.where} == each.overrides for each in trials)


def test_languages_are_columns_and_a_contrast_takes_one_or_their_mean(ground):
    two = Experiment.of(
        "two", {"KCL": ("kcl", {})}, seeds=(0,), languages=("eng", "fra"), evaluations=("retrieval", "consistency")
    )
    found = compute.run(ground, two)
    values = found.clips["KCL", 0]["T2A R@1"]
    assert values.shape[1] == 2
    assert found.contrast("KCL", None, "T2A R@1").value == pytest.approx(values.mean())
    assert found.contrast("KCL", None, "T2A R@1", {"language": "fra"}).value == pytest.approx(values[:, 1].mean())
    assert list(found.table["language"]) == ["eng", "fra"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.contrast("InfoNSE", "with SVR"), "did you mean 'InfoNCE'"),
        (lambda s: s.contrast("InfoNCE", "with SVR", "T2A R@2"), "unknown metric 'T2A R@2'"),
        (lambda s: s.contrast("InfoNCE", None, where={"radius": 1}), "0 trials of 'InfoNCE'"),
    ],
)
def test_what_is_not_in_an_experiment_is_named(scores, call, message):
    with pytest.raises(ExperimentError, match=message):
        call(scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": ()}, "at least one system and one seed"),
        ({"trials": (Trial("a", "infonce"), Trial("a", "siglip"))}, "holds a twice"),
        ({"evaluations": ("retreival",)}, "did you mean 'retrieval'"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Experiment(**{"name": "x", "trials": (Trial("a", "infonce"),), "seeds": (0,), **options})


def test_steps_are_averaged_over_stretches():
    steps = pd.DataFrame({"step": range(1, 11), "loss": range(10), "note": "x", "seen": [1.0, None] * 5})
    table = compute.stretches(steps, points=5)
    assert list(table.columns) == ["step", "loss", "seen"]
    assert table["step"].tolist() == [1.5, 3.5, 5.5, 7.5, 9.5]
    assert table["loss"].tolist() == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert table["seen"].tolist() == [1.0] * 5, "steps that were not watched do not count"


class Staged:
    """A second stage that starts from the first one's runs, and learns from data of its seed."""

    def __init__(self, ground):
        self.ground, self.book, self.name, self.compute_long = ground, ground.book, "staged", False
        self.parts, self.asked = ground.parts, []

    def first(self, seed):
        return compute.plan_of(self, Experiment.of("first", {"InfoNCE": PAIR["InfoNCE"]}, seeds=(seed,)), FIRST, seed)

    def taught(self, seed):
        self.asked.append(seed)
        return self.ground.view("frozen").data

    def view(self, name):
        if name != "second":
            return self.ground.view(name)
        return self.ground.view("frozen")._replace(
            base=self.first, taught=self.taught, before=lambda seed: [[self.first(seed)]]
        )


FIRST = Trial("InfoNCE", "infonce")


def test_a_stage_starts_from_the_run_of_its_seed_which_is_trained_before(ground):
    staged = Staged(ground)
    second = Experiment.of(
        "second", {"on": ("infonce", {"lr": 1e-12, "weight_decay": 0.0})}, seeds=(5, 6), data="second"
    )
    cells = compute.plans_of(staged, second)
    assert [plan.base for plan in cells.values()] == [staged.first(seed).path for seed in (5, 6)]
    assert staged.asked == [5, 6], "data of each seed"
    stages = compute.rounds(staged, second, cells)
    assert [[plan.seed for plan in stage] for stage in stages] == [[5, 6], [5, 6]]
    assert not any(plan.finished for stage in stages for plan in stage)
    scores = compute.run(staged, second)
    assert all(plan.finished for stage in stages for plan in stage)
    for (system, seed), run in scores.runs.items():
        started = staged.first(seed).train().model
        for name, weight in started.named_parameters():
            torch.testing.assert_close(run.model.get_parameter(name), weight, msg=f"{system} goes on from {seed}")
