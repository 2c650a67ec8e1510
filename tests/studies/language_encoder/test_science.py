"""What chapter 4 measures: words are counted, and the rule about when a term pays finds what was planted."""

from __future__ import annotations

import made_up
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from torch.nn import functional as F

from pullpush.data.language.vocabulary import word_frequencies
from pullpush.data.recordings import registry
from pullpush.encoders import create
from pullpush.metrics.geometry import uniformity
from pullpush.studies.language_encoder import science
from pullpush.studies.language_encoder.science import decide, published_captions, statistics

KNOWN = ("log size", "entropy", "ten words", "uniformity before")
QUICK = {"splits": 3, "permutations": 79}


def planted(effect: float, *, count: int = 20, kind: str = "split", noise: float = 0.004, seed: int = 0):
    """Conditions in which one fact alone decides what a term adds."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(count):
        own = dict(zip(KNOWN, (rng.choice([2.6, 3.3]), *rng.uniform((4, 0.2, -3.5), (9, 0.7, -0.5))), strict=True))
        away = own["uniformity before"] + 2
        mean = effect * (np.sign(away) if kind == "split" else away) + rng.normal(0, noise)
        value = mean + rng.normal(0, noise)
        numbers = {"value": value, "low": value - 2 * noise, "high": value + 2 * noise, "error": noise}
        rows.append({"condition": f"c{number}", "baseline": "CLAP", **numbers, "seeds": 3, "clips": 400, **own})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- words


def test_words_are_counted():
    row = statistics(["A dog barks.", "A dog barks.", "The cat, a cat!"])
    counts = np.array([3, 2, 2, 2, 1])  # a, dog, barks, cat, the
    assert [row[name] for name in ("captions", "different captions", "words", "different words")] == [3, 2, 10, 5]
    assert row["words a caption"] == pytest.approx(10 / 3)
    assert row["bits a word"] == pytest.approx(-(counts / 10 * np.log2(counts / 10)).sum())
    assert row["share of top 10"] == row["share of top 100"] == pytest.approx(1)
    assert np.isnan(statistics(["dog"])["slope"])


def test_shares_are_of_the_commonest_words_and_the_slope_is_zipf_s_exponent():
    row = statistics([" ".join(f"w{number}" for number in range(1, 201))] + ["w1 w2"] * 50)
    assert row["share of top 10"] == pytest.approx((2 * 51 + 8) / 300)
    assert row["share of top 100"] == pytest.approx((2 * 51 + 98) / 300)
    texts = [f"w{rank}" for rank in range(1, 101) for _ in range(30_000 // rank)] + [f"x{n}" for n in range(500)]
    assert statistics(texts)["slope"] == pytest.approx(-1, abs=0.001)


def test_published_captions_are_read_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(registry.DATA, str(tmp_path / "data"))
    assert published_captions() == {}
    (tmp_path / "home" / "captions").mkdir(parents=True)
    (tmp_path / "home" / "captions" / "clotho_train.csv").write_text(
        "file_name,caption_1,caption_2\na.wav,A dog barks,A dog is barking\nb.wav,It rains,\n", encoding="utf-8"
    )
    assert published_captions() == {"clotho": ["A dog barks", "A dog is barking", "It rains"]}
    assert published_captions(split="test") == {}


def test_the_encoder_is_asked_without_its_projection_and_once_for_a_text():
    model = create("cnn", "hashed", dim=8, audio_channels=(4, 4, 8)).eval()
    texts = ["a frog croaks", "a bell rings", "rain falls", "a dog barks"]
    features = F.normalize(model.text(texts), dim=1)
    found = science.encoder_uniformity(model, [*texts, *texts], batch_size=3)
    assert found == pytest.approx(uniformity(features).item(), abs=1e-5)


# ---------------------------------------------------------------- a rule


@pytest.mark.parametrize("kind", ["split", "line"])
def test_a_rule_that_was_planted_is_found(kind):
    found = decide(planted(0.02, kind=kind), KNOWN, **QUICK)
    one = found.outcomes.set_index("rule").loc["line"]
    assert one["verdict"] == "predicts"
    assert one["skill"] > 0.3
    assert one["signs"] > max(one["yes"], one["no"])
    assert one["alone"] > 0.5
    assert 0.5 < one["slope"] < 2
    assert abs(one["bias"]) < 0.5
    assert found.reliable > 0.7


def test_the_rule_to_remember_names_the_fact_and_where_it_splits():
    found = decide(planted(0.02), KNOWN, **QUICK)
    one = found.threshold.iloc[0]
    assert one["fact"] == "uniformity before"
    assert -2.7 < one["threshold"] < -1.3
    assert one["below"] < -0.01 < 0.01 < one["above"]


def test_noise_is_told_apart_from_a_rule():
    """Of two tables of noise and two rules each, a level of 5 % may take one for a rule, hardly two."""
    tables = (planted(0.0, seed=seed) for seed in range(2))
    taken = [verdict for table in tables for verdict in decide(table, KNOWN[2:], **QUICK).outcomes["verdict"]]
    assert taken.count("predicts") <= 1
    nothing = decide(planted(0.0, seed=1), KNOWN[2:], **QUICK)
    assert set(nothing.outcomes["verdict"]) == {"cannot tell"}


def test_a_gain_that_is_the_same_everywhere_is_no_rule():
    """Always yes has every sign right, and so has the rule: nothing is learnt about where the term pays."""
    table = planted(0.0, noise=0.001)
    found = decide(table.assign(value=table["value"] + 0.05), KNOWN, **QUICK)
    assert (found.outcomes[["yes", "signs"]] == 1).all(axis=None)
    assert set(found.outcomes["verdict"]) == {"cannot tell"}


def test_predictions_of_a_condition_come_from_rules_that_never_saw_it():
    table = planted(0.02)
    before = decide(table, KNOWN, **QUICK).table
    moved = table.assign(value=table["value"].where(table["condition"] != "c3", 9.0))
    after = decide(moved, KNOWN, **QUICK).table
    held = [t[t["held out"] & (t["condition"] == "c3") & (t["rule"] == "line")]["predicted"] for t in (before, after)]
    np.testing.assert_allclose(*held)
    fitted = [
        t[~t["held out"] & (t["condition"] == "c3") & (t["rule"] == "line")]["predicted"] for t in (before, after)
    ]
    assert not np.allclose(*fitted)


def test_few_conditions_cannot_tell():
    found = decide(planted(0.02, count=5), KNOWN)
    assert found.outcomes.empty
    assert found.threshold.empty


def test_a_condition_stands_there_once():
    table = planted(0.0)
    with pytest.raises(ValueError, match="average it first"):
        decide(pd.concat([table, table.iloc[:1]]), KNOWN, **QUICK)


def test_a_rule_is_the_candidate_that_errs_least_on_conditions_left_out():
    """Each candidate fitted again without each condition, by hand."""
    rng = np.random.default_rng(0)
    x, y, fit = rng.normal(size=(12, 2)), rng.normal(size=(12, 5)), np.arange(12) < 8
    standard = (x - x[fit].mean(axis=0)) / x[fit].std(axis=0)
    design = np.column_stack([np.ones(12), standard])

    def ridge(penalty):
        square = np.diag([0.0, penalty, penalty])
        return lambda rows: design @ np.linalg.solve(design[rows].T @ design[rows] + square, design[rows].T @ y[rows])

    def sides(above):
        return lambda rows: np.where(above[:, None], y[rows & above].mean(axis=0), y[rows & ~above].mean(axis=0))

    def mean(rows):
        return np.broadcast_to(y[rows].mean(axis=0), y.shape)

    def best(candidates):
        left_out = [fit & (np.arange(12) != number) for number in np.flatnonzero(fit)]
        errors = [sum((one(rows) - y)[fit & ~rows][0] ** 2 for rows in left_out) for one in candidates]
        chosen = np.argmin(errors, axis=0)
        return np.column_stack([candidates[number](fit)[:, column] for column, number in enumerate(chosen)])

    lines = [mean, *(ridge(8 * shrinkage) for shrinkage in science.SHRINKAGE)]
    np.testing.assert_allclose(science.line(x, fit, y), best(lines), atol=1e-9)
    halfway = [(np.sort(fact[fit])[1:] + np.sort(fact[fit])[:-1]) / 2 for fact in x.T]
    above = [fact >= number for fact, numbers in zip(x.T, halfway, strict=True) for number in numbers[1:-1]]
    np.testing.assert_allclose(science.split(x, fit, y), best([mean, *map(sides, above)]))


# ---------------------------------------------------------------- what is known


def test_a_world_is_known_by_its_size_and_words(world):
    model = create("cnn", "hashed", dim=8, audio_channels=(4, 4, 8)).eval()
    facts = science.world_facts(world, model)
    captions = [text for texts in world.train.captions("eng") for text in texts]
    counts = word_frequencies(captions)["count"].to_numpy()
    assert facts["log size"] == pytest.approx(np.log10(len(world.train)))
    assert facts["vocabulary"] == len(counts)
    assert facts["entropy"] == pytest.approx(stats.entropy(counts, base=2))
    assert facts["ten words"] == pytest.approx(counts[:10].sum() / counts.sum())
    first = [texts[0] for texts in world.train.captions("eng")]
    assert facts["uniformity before"] == pytest.approx(science.encoder_uniformity(model, first))


def test_conditions_bring_gains_with_their_errors_and_facts():
    scores = made_up.scores({"CLAP": 0.3, "CLAPs": 0.32}, {"world": ("a", "b")})
    points = {name: {"world": name} for name in ("a", "b", "absent")}
    table = science.conditions(scores, ("CLAPs", "CLAP"), points, {"a": {"entropy": 5.0}, "b": {"entropy": 7.0}})
    assert list(table["condition"]) == ["a", "b"]
    assert list(table["entropy"]) == [5, 7]
    one = scores.contrast("CLAPs", "CLAP", "R@1", {"world": "a"})
    assert table.loc[0, "value"] == one.value
    assert table.loc[0, "error"] == pytest.approx(one.half_width / stats.t.ppf(0.975, one.df))
