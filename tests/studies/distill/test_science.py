"""Chapter 6's lab: claims ask for systems that there are, and measures find what was planted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from embeddings import pairs
from scipy.stats import spearmanr

from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.lab import arrays, claims, compute, session
from pullpush.lab.comparisons import levels as levels_of
from pullpush.lab.ledger import Ledger
from pullpush.lab.scores import Scores
from pullpush.metrics.cards import METRICS
from pullpush.metrics.ensembles import combine, score
from pullpush.site import verify
from pullpush.studies.distill import experiments, science
from pullpush.studies.distill.data import Context
from pullpush.studies.distill.stages import DOSED, ENCODERS, GRID, SYSTEMS

LAB = "06-distill-cluster-lab"
SEEDS = (0, 1, 2)
METRIC = [score.name for score in METRICS["annotations"].scores]


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return Context(session.start(LAB, profile="smoke", out=tmp_path_factory.mktemp("out")))


@pytest.fixture(scope="module")
def declared(ground):
    return {name: experiments.experiment(ground, name, SEEDS) for name in experiments.ROWS}


def scores(experiment, level, *, clips=60, noise=0.01):
    """Scores that nobody trained: level(trial, metric), and noise of each clip and run; validation follows mAP@16."""
    rng = np.random.default_rng(0)
    found = {
        (str(trial), seed): {name: level(trial, name) + rng.normal(0, noise, clips) for name in METRIC}
        for trial, seed in experiment.cells
    }
    history = pd.DataFrame(
        [
            {"system": trial.system, **trial.where, "seed": seed, "epoch": epoch, "step": epoch}
            | {"R@1": level(trial, "mAP@16 multiple")}
            for trial, seed in experiment.cells
            for epoch in (1, 2)
        ]
    )
    return Scores(experiment, found, history, history, None)  # pyrefly: ignore[bad-argument-type]


STEPS = {"1": 0.3, "1, finetuned": 0.32, "1, again": 0.33, "2": 0.4, "2, again": 0.41, "3": 0.42, "3, again": 0.43}
SLOPES = {"soft labels": 0.1, "truth": 0.2}
STEPS |= {"4": 0.46, "5": 0.48}


@pytest.fixture(scope="module")
def found(declared):
    def of_systems(trial, metric):
        heard = {"yamnet": 0.1, "reconstruction": 0.05, "prediction": 0.0}[trial.where["ears"]]
        fewer = 0.02 if (trial.system, trial.where["ears"]) == ("4", "prediction") else 0.0
        return STEPS[trial.system] + heard - fewer - 0.05 * ("single" in metric and trial.system == "2")

    levels = {
        "systems": of_systems,
        "teachers": lambda trial, metric: 0.4 + 0.05 * (trial.system == "ensemble"),
        "softness": lambda trial, metric: 0.4 - 0.1 * (trial.where["at"] == 0.4),
        "ambiguity": lambda trial, metric: 0.4 + 0.1 * (trial.where["world"] == "single") * ("topics" in trial.system),
        "dose": lambda trial, metric: 0.4 + SLOPES.get(trial.system, 0) * DOSED[trial.where["world"]],
        "moved": lambda trial, metric: 0.4 + 0.05 * (trial.system == "truth"),
        "augmentation": lambda trial, metric: 0.4 + 0.03 * (trial.system == "mix"),
        "topics": lambda trial, metric: 0.4 + 0.02 * (trial.system == "generic, 48"),
    }
    again = scores(replace(declared["systems"], name="systems-again"), of_systems)  # the other is a part of it
    found = {name: scores(declared[name], level) for name, level in levels.items()}
    return found | dict.fromkeys(("systems-again", "augmented-again"), again)


def test_systems_called_by_numbers_are_found_in_what_was_kept(found):
    kept = found["softness"].history.assign(system=lambda table: table["system"].astype(int))  # as a file gives it
    scores = replace(found["softness"], history=kept)
    reached = [experiments.validated(scores, trial) for trial in scores.experiment.trials]
    assert reached == pytest.approx([0.4] * 5 + [0.3])


def test_planted_gains_are_found(found):
    values = {name: measure.of(found).value for name, measure in experiments.MEASURES.items()}
    assert values == pytest.approx(
        {"teacher-temperature": 0.1, "number-of-topics": 0.02, "cluster-gain-by-ears": 0.02}
        | {"ambiguity-slope": 0.1, "ambiguity-slope-truth": 0.2},
        abs=0.006,
    )


def test_every_claim_of_the_lab_is_judged(found):
    ledger = Ledger(LAB)
    for name in found:
        ledger.judge_by(found, experiments.MEASURES, name)
    assert {*experiments.MEASURES} <= {claim.judged.get("measure") for claim in ledger.judged}
    left = {claim.judged.get("measure") for claim in ledger.open if "measure" in claim.judged}
    assert left == {"members-without-weight", "first-ears-weigh-most", "ensemble-over-single", "generic-topics"}
    named = {claim.judged["experiment"] for claim in ledger.open if "experiment" in claim.judged}
    assert named == {"ensembles-again", "several-encoders", "models-topics"}, "those that need models"
    table = ledger.table().set_index("id")
    assert table.loc["distill_cluster-t2-distill-passt", "value"] == pytest.approx(8, abs=0.6)
    assert table.loc["distill_cluster-t2-distill-passt", "verdict"] == "holds"
    assert table.loc["distill_cluster-t2-passt-best", "value"] == pytest.approx(5, abs=0.6)
    assert not [row["reason"] for row in ledger.table().to_dict("records") if "not in this" in row["reason"]]


def test_claims_of_the_paper_are_all_judged_or_have_a_true_reason():
    of_paper = claims.load("distill_cluster")
    assert not [claim.id for claim in of_paper if claim.reason and "not written" in claim.reason["why"]]


def test_searches_have_the_same_grid_for_every_system_of_a_stage(ground):
    for kind in GRID:
        search = experiments.search(ground, kind, ENCODERS, (1000,))
        by_system = {}
        for trial in search.trials:
            by_system.setdefault(trial.system, []).append(trial.overrides["lr"])
        assert {tuple(values) for values in by_system.values()} == {GRID[kind]}


def test_experiments_share_what_they_can(ground, declared):
    """The ensemble's student of five experiments is one run."""
    view = SYSTEMS["2"].name
    for name in ("systems", "teachers", "softness", "augmentation"):
        same = [t for t in declared[name].trials if t.data == view and t.recipe == "infonce+distillation"]
        plain = [t for t in same if t.overrides == ground.system(SYSTEMS["2"])[1]]
        assert len(plain) == 1, name


def test_table_2_stands_beside_the_paper(found):
    levels = levels_of(found["systems"], experiments.TABLE_2)
    shown = experiments.table_2(levels).set_index(["system", "hears"])
    assert shown.loc[("paper: 2", "PaSST"), "mAP@16 multiple"] == "46.6"
    assert ("paper: 1, finetuned", "PaSST") not in shown.index, "which the paper has not"
    ours = float(shown.loc[("2", "yamnet"), "mAP@16 multiple"])
    assert ours == pytest.approx(50, abs=0.6)


# ---------------------------------------------------------------- ensembles


@pytest.fixture(scope="module")
def sums():
    """Two systems × two encoders that know different halves of the queries, and one system that knows nothing."""
    n = 40
    eye, generator = torch.eye(n), torch.Generator().manual_seed(0)
    members = torch.stack([
        0.9 * (torch.arange(n) % 2 == encoder).float()[:, None] * (system == 0) * eye
        + torch.rand(n, n, generator=generator)
        for system in range(2)
        for encoder in range(2)
    ])  # fmt: skip
    return members, science.sums_of(members, members, eye, eye, shape=(2, 2), step=0.5)


def test_members_that_complement_each_other_get_the_weight(sums):
    _, found = sums
    for name in ("E1", "E3", "learned"):
        assert found[name]["weight"].sum() == pytest.approx(1)
        assert found[name]["weight"][:2].sum() > found[name]["weight"][2:].sum(), name
    assert found["E1"]["R@1 single"].mean() > found["best member"]["R@1 single"].mean() + 0.1


def test_runners_up_have_other_weights_and_no_better_score(sums):
    members, found = sums
    weights = [torch.from_numpy(found[name]["weight"]) for name in ("E1", "E2")]
    first, second = (score(combine(members, each), torch.eye(40), **science.PROTOCOL) for each in weights)
    assert second <= first == found["E1"]["landscape"].max()
    assert not torch.equal(*weights)


def test_equal_members_are_the_mean_of_their_matrices(sums):
    members, found = sums
    right = members.mean(dim=0).argmax(dim=1) == torch.arange(40)
    assert np.array_equal(found["equal"]["R@1 single"], right.double().numpy())
    assert [len(found["equal"][f"mAP@16 of {size}"]) for size in (1, 2, 3, 4)] == [4, 6, 4, 1]


def test_what_models_give_together_is_an_experiment_of_its_own(ground, declared):
    ensembles, several, labels, models = science.derived(ground, declared["systems"])
    assert {each.source.name for each in (ensembles, several, models)} == {"systems"}
    assert {trial.data for trial in labels.source.trials} >= {"untrained/yamnet", "pretrain/prediction"}
    fewer = replace(labels.reduced(1), source=labels.source.reduced(1))
    found = compute.compute(ground, fewer)
    assert found.values("truth", "rank correlation").mean() == pytest.approx(1)
    table = levels_of(found, science.RIGHT)
    assert table["system"].value_counts()[science.BINARY] == 1
    assert set(table["seeds"]) == {1}
    stored = arrays.from_bytes(arrays.to_bytes(arrays.dataset_of(found, LAB)))
    again = arrays.scores_of(stored, fewer, found.stamp)
    assert again.clips.keys() == found.clips.keys()
    assert again.values("ensemble", science.RIGHT[1]) == pytest.approx(found.values("ensemble", science.RIGHT[1]))
    assert verify.numbers(again, fewer.trials[1], 0).keys() == {*science.RIGHT}


def test_every_ears_stand_for_a_model_of_the_paper():
    assert {experiments.printed("3", ears, "R@1 single") for ears in ENCODERS} == {27.2, 27.52, 25.51}


# ---------------------------------------------------------------- labels against the truth

N = 8


def test_fitting_clips_are_those_with_the_same_events(home):
    clips = load_world(WorldConfig("synthetic", n_train=24, n_valid=2, n_test=8, n_single_per_event=1)).train
    scenes = clips.columns["scene"]
    expected = [sum(sorted(a.events) == sorted(b.events) for b in scenes) for a in scenes]
    assert science.fitting(clips).tolist() == expected


def test_rank_correlations_are_scipy_s():
    rng = np.random.default_rng(0)
    labels, relevance = rng.random((4, 9)), rng.choice([0, 0.25, 0.75, 1], (4, 9))
    relevance[:, 0], relevance[:, 1] = 1, 0
    expected = [spearmanr(*rows).statistic for rows in zip(labels, relevance, strict=True)]
    assert science.against_truth(torch.from_numpy(labels), torch.from_numpy(relevance)) == pytest.approx(expected)
    assert science.against_truth(torch.ones(4, 9), torch.from_numpy(relevance)).tolist() == [0] * 4


def test_smoothed_labels_have_the_entropy_of_soft_ones():
    audio, text = pairs(N, 5)
    soft = (text @ audio.T / 0.3).softmax(dim=1)
    label = science.smoothed(soft)
    entropies = [torch.special.entr(each).sum(dim=1) for each in (label, soft)]
    torch.testing.assert_close(*entropies, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(label.sum(dim=1), torch.ones(N).double())
    off = label[0, 1:]
    assert off.max() == pytest.approx(off.min())


def test_weights_on_a_text_are_the_gradient_s():
    audio, text = pairs(N, 5)
    relevance = torch.eye(N)
    table = science.push_by_truth(text @ audio.T, text @ audio.T, relevance, 0.5, size=N).set_index("label")
    q = (text @ audio.T / 0.5).softmax(dim=1)
    off = ~torch.eye(N, dtype=torch.bool)
    assert table.loc["binary", "weight"] == pytest.approx(float(q[off].mean()))
    assert table.loc["soft", "weight"] == pytest.approx(0, abs=1e-12)  # the student is its own teacher
    assert table.loc["binary and soft", "weight"] == pytest.approx(float(q[off].mean()))
    assert table.loc["binary", "pairs"] == N * (N - 1)


def test_a_binary_label_only_pushes_and_the_truth_pulls_what_fits():
    audio, text = pairs(N, 5)
    relevance = torch.eye(N)
    relevance[0, 1] = relevance[1, 0] = 1.0
    table = science.push_by_truth(text @ audio.T, relevance, relevance, 0.1, size=N).set_index(["label", "level"])
    same = "the same scene"
    assert (table.loc["binary", "weight"] > 0).all()
    assert table.loc[("soft", same), "weight"] < 0 < table.loc[("binary", same), "weight"]
    assert table.loc[("smoothed", same), "pairs"] == 2
    both = table.loc["binary", "weight"] + table.loc["soft", "weight"]
    assert np.allclose(table.loc["binary and soft", "weight"], both[table.loc["binary and soft"].index])


# Topics


def test_each_different_caption_has_one_place_and_the_topic_of_its_first():
    near = np.eye(4).repeat(25, axis=0) + np.random.default_rng(0).normal(0, 0.02, (100, 4))
    texts = [f"caption {min(row, 97)}" for row in range(100)]
    points, topics = science.plane(near.astype(np.float32), texts, np.arange(100), umap=False)
    assert points.shape == (98, 2)
    assert topics.tolist() == list(range(98))


def test_topics_that_audio_follows_agree_with_its_groups():
    topics = np.arange(60) % 3
    drawn = [torch.randn(60, 3, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1)]
    near = torch.eye(3)[torch.from_numpy(topics)] + 0.01 * drawn[0]
    assert science.groups_agree(near, topics) > 0.95
    assert abs(science.groups_agree(drawn[1], topics)) < 0.2
    unknown = np.where(np.arange(60) < 30, -1, topics)
    assert science.groups_agree(near, unknown) > 0.95
