"""One inference: oracles by loops and scipy, properties, simulated coverage."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import special, stats

from pullpush.metrics.inference import (
    CANNOT_TELL,
    HOLDS,
    NO_EFFECT,
    REVERSED,
    SMALLER,
    Difference,
    Variance,
    conditional_effect,
    difference,
    gap_pseudo_values,
    holm,
    main_effect,
    mean_squares,
    pseudo_values,
    standard_error,
    verdict,
)

shapes = st.tuples(st.integers(2, 5), st.integers(2, 7))
numbers = st.integers(0, 10_000)


def scores(*shape, seed=0, seed_scale=1.0, clip_scale=1.0):
    """Scores with effects of seed and of clip, on two last axes."""
    generator = np.random.default_rng(seed)
    effects = generator.normal(size=(*shape[:-1], 1)) * seed_scale + generator.normal(size=shape[-1]) * clip_scale
    return effects + generator.normal(size=shape)


def interval(d):
    return d.value, d.low, d.high


def made(low, high, p=0.01, **fields):
    """A difference with a given interval."""
    variance = Variance(0.0, 0.0, 0.0, {})
    value, half = (low + high) / 2, (high - low) / 2
    return Difference(value, low, high, half, p, 9.0, 0.95, 10, 100, variance, **fields)


# Oracles


@settings(max_examples=30, deadline=None)
@given(shape=shapes, seed=numbers)
def test_mean_squares_and_components_equal_the_loops(shape, seed):
    (S, C), x = shape, scores(*shape, seed=seed)
    mean = sum(x[s, c] for s in range(S) for c in range(C)) / (S * C)
    row = [sum(x[s, c] for c in range(C)) / C for s in range(S)]
    column = [sum(x[s, c] for s in range(S)) / S for c in range(C)]
    ms_seed = C * sum((value - mean) ** 2 for value in row) / (S - 1)
    ms_clip = S * sum((value - mean) ** 2 for value in column) / (C - 1)
    ms_rest = 0.0
    for s in range(S):
        for c in range(C):
            ms_rest += (x[s, c] - row[s] - column[c] + mean) ** 2 / ((S - 1) * (C - 1))
    assert [float(ms) for ms in mean_squares(x)] == pytest.approx([ms_seed, ms_clip, ms_rest])

    d = difference(x)
    assert d.variance.seed == pytest.approx(max((ms_seed - ms_rest) / C, 0), abs=1e-12)
    assert d.variance.clip == pytest.approx(max((ms_clip - ms_rest) / S, 0), abs=1e-12)
    assert d.variance.interaction == pytest.approx(ms_rest)
    parts = [d.variance.seed / S, d.variance.clip / C, d.variance.interaction / (S * C)]
    assert list(d.variance.shares.values()) == pytest.approx([part / sum(parts) for part in parts])
    assert list(d.variance.shares) == ["seed", "clip", "interaction"]

    few, many, n_few, n_many = (ms_seed, ms_clip, S, C) if S <= C else (ms_clip, ms_seed, C, S)
    few = max(few, stats.f.ppf(0.05, n_few - 1, (S - 1) * (C - 1)) * ms_rest)
    V = few + max(many - ms_rest, 0)
    df = 1 / (few / V / (n_few - 1) + (1 - few / V) / (n_many - 1))
    half = stats.t.ppf(0.975, df) * math.sqrt(V / (S * C))
    assert (d.value, d.df, d.half_width) == pytest.approx((mean, df, half))
    assert (d.low, d.high) == pytest.approx((mean - half, mean + half))
    assert d.p == pytest.approx(2 * stats.t.sf(abs(mean) / math.sqrt(V / (S * C)), df))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 30), seed=numbers, level=st.sampled_from([0.8, 0.95, 0.99]))
def test_one_clip_or_one_seed_is_students_paired_t(n, seed, level):
    ours, theirs = np.random.default_rng(seed).normal(size=(2, n))
    oracle = stats.ttest_rel(ours, theirs)
    low, high = oracle.confidence_interval(level)
    for axis, sampled in ((1, "seeds"), (0, "clips")):
        d = difference(np.expand_dims(ours, axis), np.expand_dims(theirs, axis), level=level)
        assert (d.low, d.high, d.p, d.df) == pytest.approx((low, high, oracle.pvalue, n - 1))
        assert (d.seeds, d.clips) == ((n, 1) if sampled == "seeds" else (1, n))
        assert d.variance.shares[sampled[:-1]] == pytest.approx(1)


def test_without_variance_between_clips_it_is_the_t_test_of_seeds_and_the_reverse():
    effect = np.random.default_rng(0).normal(size=6)
    oracle = stats.ttest_1samp(effect, 0)
    for x in (np.tile(effect[:, None], (1, 50)), np.tile(effect, (4, 1))):
        assert difference(x).p == pytest.approx(oracle.pvalue)
        assert difference(x).df == pytest.approx(5)


# Properties


@settings(max_examples=25, deadline=None)
@given(shape=shapes, seed=numbers, scale=st.floats(0.01, 100))
def test_differences_are_antisymmetric_equivariant_and_blind_to_order(shape, seed, scale):
    ours, theirs = scores(2, *shape, seed=seed)
    d, back = difference(ours, theirs), difference(theirs, ours)
    assert (back.value, back.low, back.high) == pytest.approx((-d.value, -d.high, -d.low))
    assert (back.p, back.df) == pytest.approx((d.p, d.df))
    bigger = difference(scale * ours, scale * theirs)
    assert interval(bigger) == pytest.approx([scale * x for x in interval(d)])
    assert (bigger.p, bigger.variance.clip) == pytest.approx((d.p, scale**2 * d.variance.clip))
    generator = np.random.default_rng(seed)
    seeds, clips = (generator.permutation(n) for n in shape)
    assert interval(difference(ours[seeds][:, clips], theirs[seeds][:, clips])) == pytest.approx(interval(d))
    assert interval(difference(ours, 1.5)) == pytest.approx([x - 1.5 for x in interval(difference(ours))])


def test_identical_systems_differ_by_nothing_with_certainty():
    x = scores(3, 5)
    d = difference(x, x)
    assert (d.value, d.low, d.high, d.half_width, d.p) == (0, 0, 0, 0, 1)
    assert set(d.variance.shares.values()) == {0.0}
    assert not d.stands
    assert str(d) == "+0.00 ± 0.00 [0.00, 0.00]"
    same = difference(np.full((3, 5), 0.5))
    assert (same.low, same.high, same.p) == (0.5, 0.5, 0)


@pytest.mark.parametrize("shape", [(1, 50), (3, 4), (5, 20)])
def test_what_rounding_makes_is_no_difference_and_no_width(shape):
    assert verdict(difference(torch.full(shape, 1 / 3, requires_grad=True)), "higher") == "cannot tell"
    rounded = difference(np.full(shape, 0.1 + 0.2), 0.3)
    assert (rounded.value, rounded.p, rounded.stands) == (0, 1, False)


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (np.zeros((3, 4)), np.zeros((4, 3)), r"same seeds and clips: ours is \(3, 4\), theirs \(4, 3\)"),
        (np.zeros((3, 4)), np.zeros(4), r"theirs \(4,\)"),
        (np.zeros(4), None, r"shape \(4,\), expected \(seeds, clips\).*values\[:, None\]"),
        (1.0, None, r"shape \(\), expected"),
        (np.zeros((2, 3, 4)), None, r"shape \(2, 3, 4\), expected"),
        (np.zeros((0, 4)), None, r"\(0, 4\) has no interval"),
        (np.zeros((1, 1)), None, "two seeds or two clips at least"),
        (
            [[1.0, 2.0], [math.nan, 3.0]],
            None,
            r"ours has 1 values that are not finite, the first at \[1, 0\]: leave out",
        ),
        (np.zeros((2, 2)), [[1.0, 2.0], [3.0, math.inf]], r"theirs has 1 values .* \[1, 1\]"),
        (np.zeros((2, 2)), math.nan, "theirs has 1 values"),
        (np.ma.masked_greater(np.eye(2), 0.5), None, "ours has masked values: leave out"),
    ],
)
def test_bad_scores_are_named(ours, theirs, words):
    with pytest.raises(ValueError, match=words):
        difference(ours, theirs)


@pytest.mark.parametrize("level", [95, 0, 1, -0.5, math.nan])
def test_a_level_is_a_fraction(level):
    with pytest.raises(ValueError, match=r"level is a fraction such as 0\.95|level must be finite"):
        difference(scores(3, 4), level=level)


# Holm


def test_holm_equals_an_example_by_hand():
    adjusted = holm([made(1, 2, p) for p in (0.01, 0.04, 0.03, 0.005)])
    # sorted .005 × 4, .01 × 3, .03 × 2, .04 × 1, which may not fall below that of .03
    assert [d.p_holm for d in adjusted] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [d.stands for d in adjusted] == [True, False, False, True]
    assert made(1, 2, 0.04).stands  # alone
    assert holm([]) == []


# Verdicts


@pytest.mark.parametrize(
    ("low", "high", "effect", "word"),
    [
        (0.5, 2.0, 1.0, HOLDS),
        (0.5, 2.0, 9.0, SMALLER),
        (-2.0, -0.5, -9.0, SMALLER),
        (0.5, 2.0, -1.0, REVERSED),
        (-2.0, -0.5, -1.0, HOLDS),
        (-2.0, -0.5, 1.0, REVERSED),
        (-0.5, 2.0, 3.0, CANNOT_TELL),
        (-2.0, 0.5, -3.0, CANNOT_TELL),
        (-0.5, 2.0, -3.0, CANNOT_TELL),
        (-0.5, 2.0, 1.0, CANNOT_TELL),
        (-0.5, 2.0, 2.0, CANNOT_TELL),
        (-2.0, 0.5, -1.0, CANNOT_TELL),
        (0.0, 2.0, 1.0, CANNOT_TELL),
        (0.5, 2.0, "higher", HOLDS),
        (0.5, 2.0, "lower", REVERSED),
        (-2.0, -0.5, "lower", HOLDS),
        (-0.5, 2.0, "higher", CANNOT_TELL),
        (-2.0, 0.5, "lower", CANNOT_TELL),
    ],
)
def test_a_verdict_follows_from_interval_and_effect(low, high, effect, word):
    assert verdict(made(low, high), effect) == word


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(-0.5, 0.5, HOLDS), (-1, 1, HOLDS), (1.1, 2, REVERSED), (-2, -1.1, REVERSED), (-2, 0, CANNOT_TELL),
     (0.5, 2, CANNOT_TELL), (1, 2, CANNOT_TELL), (-2, 2, CANNOT_TELL)],
)  # fmt: skip
def test_equality_is_judged_by_its_margin(low, high, word):
    assert verdict(made(low, high), "equal", margin=1) == word


@pytest.mark.parametrize(
    ("low", "high", "effect", "word"),
    [
        (-0.4, 0.3, 2.0, NO_EFFECT),
        (-0.4, 0.3, "lower", NO_EFFECT),
        (-0.4, 0.6, 2.0, CANNOT_TELL),
        (0.1, 0.3, 2.0, SMALLER),  # what differs from zero is an effect, however small
        (-0.3, -0.1, "higher", REVERSED),
    ],
)
def test_no_effect_is_an_interval_inside_the_margin_that_holds_zero(low, high, effect, word):
    assert verdict(made(low, high), effect, margin=0.5) == word


@pytest.mark.parametrize(("effect", "word"), [("higher", HOLDS), ("lower", REVERSED), (3.0, SMALLER)])
def test_an_interval_of_no_width_is_evidence_where_it_was_counted_alone(effect, word):
    equal_seeds = difference([[0.5], [0.5], [0.5]])
    assert verdict(equal_seeds, effect) == CANNOT_TELL
    assert verdict(equal_seeds, effect, exact=True) == word


def test_a_verdict_heeds_holm():
    d = made(0.1, 2.0, 0.04)
    assert verdict(d, 1.0) == HOLDS
    with_others = holm([d, made(-1.0, 1.0, 0.9)])[0]
    assert verdict(with_others, 1.0) == CANNOT_TELL
    assert verdict(with_others, 3.0) == CANNOT_TELL
    assert verdict(with_others, 3.0, margin=2.5) == NO_EFFECT
    assert verdict(with_others, "lower") == CANNOT_TELL
    assert verdict(holm([made(1.0, 2.0, 0.001), d])[0], "higher") == HOLDS


@pytest.mark.parametrize(
    ("effect", "margin", "words"),
    [
        ("more", None, "'higher', 'lower', 'equal' or a number other than 0, got 'more'"),
        (0.0, None, "got 0.0"),
        (math.nan, None, "got nan"),
        ("equal", None, "'equal' needs one"),
        ("equal", -1, "a margin is positive"),
        ("higher", 0, "a margin is positive"),
    ],
)
def test_an_effect_without_direction_is_named(effect, margin, words):
    with pytest.raises(ValueError, match=words):
        verdict(made(0, 1), effect, margin=margin)


# Several cells, one effect


def factorial(seeds, clips, seed, effects):
    """Scores of a full design in A, B and C with these effects (name → size), each half of it up, half of it down."""
    generator = np.random.default_rng(seed)
    shared = scores(seeds, clips, seed=seed + 1)
    cells = {}
    for cell in map(frozenset, ("", "A", "B", "C", "AB", "AC", "BC", "ABC")):
        sign = {name: math.prod(1 if letter in cell else -1 for letter in name.split(" × ")) for name in effects}
        noise = generator.normal(size=(seeds, 1)) * 0.2 + generator.normal(size=(seeds, clips))
        cells[cell] = shared + sum(size / 2 * sign[name] for name, size in effects.items()) + noise
    return cells


@pytest.mark.parametrize("name", ["A", "B", "A × B", "A × B × C"])
def test_a_main_effect_is_the_mean_over_all_companies(name):
    cells = factorial(4, 6, 0, {"A": 1.0, "A × B": 0.5})
    letters = name.split(" × ")
    sides = {True: [], False: []}
    for cell, values in cells.items():
        sides[math.prod(1 if letter in cell else -1 for letter in letters) > 0].append(values)
    loops = sum(sides[True]) / 4 - sum(sides[False]) / 4
    assert main_effect(cells, name).value == pytest.approx(loops.mean())
    assert main_effect(cells, name).half_width == pytest.approx(difference(loops).half_width)


def test_the_mean_of_conditional_effects_is_the_main_effect_and_half_their_difference_the_interaction():
    cells = factorial(4, 6, 1, {"A": 1.0, "A × B": 0.5})
    with_b, without = (conditional_effect(cells, "A", beside="B", without=is_alone).value for is_alone in (False, True))
    assert (with_b + without) / 2 == pytest.approx(main_effect(cells, "A").value)
    assert (with_b - without) / 2 == pytest.approx(main_effect(cells, "A × B").value)


def test_a_design_that_is_not_whole_is_refused():
    cells = factorial(2, 3, 0, {})
    with pytest.raises(ValueError, match="'D' must be in half of the cells"):
        main_effect(cells, "D")
    with pytest.raises(ValueError, match="'A' must be in half of the cells"):
        main_effect({cell: values for cell, values in cells.items() if cell != frozenset("AB")}, "A")


def test_effects_of_cells_cover_the_truth_as_often_as_they_say():
    truth = {"A": 0.6, "A × B": 0.4}
    hits = dict.fromkeys(("main", "conditional"), 0)
    for run in range(400):
        cells = factorial(4, 30, 10 * run, truth)
        found = {
            "main": (main_effect(cells, "A"), 0.6),
            "conditional": (conditional_effect(cells, "A", beside="B"), 1.0),
        }
        for name, (interval, value) in found.items():
            hits[name] += interval.low <= value <= interval.high
    assert all(0.92 <= count / 400 <= 0.99 for count in hits.values()), hits


# Pseudo-values


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 12), seed=numbers)
def test_pseudo_values_of_gap_equal_those_by_loops(n, seed):
    vectors = np.random.default_rng(seed).normal(size=(n, 3))

    def gap(rows):
        return math.sqrt(sum((sum(row[k] for row in rows) / len(rows)) ** 2 for k in range(3)))

    loops = [n * gap(vectors) - (n - 1) * gap([vectors[j] for j in range(n) if j != i]) for i in range(n)]
    assert pseudo_values(gap, vectors).tolist() == pytest.approx(loops)
    assert gap_pseudo_values(vectors).tolist() == pytest.approx(loops)


def test_pseudo_values_of_a_mean_are_the_values_and_of_a_variance_unbiased():
    x = scores(1, 20)[0]
    assert pseudo_values(np.mean, x).tolist() == pytest.approx(x.tolist())
    assert pseudo_values(np.var, x).mean() == pytest.approx(x.var(ddof=1))


# Coverage, by simulation

DRAWS = 2000  # a standard error of 0.5 % where intervals are counted; seeds of the draws are fixed


def drawn(seeds, clips, seed, rest, draws, generator):
    """Scores around 0 where seeds, clips and the rest contribute seed, 1 and rest to the variance of the mean."""
    x = generator.standard_normal((draws, seeds, clips), dtype=np.float32) * math.sqrt(rest * seeds * clips)
    x += generator.normal(size=(draws, seeds, 1)) * math.sqrt(seed * seeds)
    x += generator.normal(size=(draws, 1, clips)) * math.sqrt(clips)
    return x


def covers(x, true=0.0):
    """Which of the batch's intervals hold the truth: the inner functions of `difference`, for many designs at once."""
    _, seeds, clips = x.shape
    row, column, rest = (ms / (seeds * clips) for ms in mean_squares(x))
    error, df = standard_error(row - rest, column - rest, rest, seeds, clips)
    return np.abs(x.mean(axis=(1, 2)) - true) <= special.stdtrit(df, 0.975) * error


@pytest.mark.parametrize("rest", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("seed", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("clips", [100, 500])
@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
def test_intervals_hold_the_truth_in_95_of_100_draws(seeds, clips, seed, rest):
    generator = np.random.default_rng([seeds, clips, int(10 * seed), int(rest)])
    degrees = np.array([seeds - 1, clips - 1, (seeds - 1) * (clips - 1)])[:, None]
    true = np.array([seed + rest, 1 + rest, rest])[:, None]
    row, column, both = true * generator.chisquare(degrees, (3, DRAWS)) / degrees  # the law of the mean squares
    error, df = standard_error(row - both, column - both, both, seeds, clips)
    half = special.stdtrit(df, 0.975) * error / math.sqrt(seed + 1 + rest)
    assert 93 <= 100 * np.mean(2 * special.ndtr(half) - 1) <= 97  # exact given the mean squares


@pytest.mark.parametrize("rest", [0.0, 1.0])
@pytest.mark.parametrize("seed", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("seeds", "clips"), [(3, 100), (5, 100), (3, 500)])
def test_difference_holds_the_truth_in_95_of_100_draws(seeds, clips, seed, rest):
    x = drawn(seeds, clips, seed, rest, DRAWS, np.random.default_rng([seeds, clips, int(10 * seed), int(rest)]))
    held = np.array([d.low <= 0 <= d.high for d in map(difference, x)])
    assert 93 <= 100 * held.mean() <= 97
    assert (held == covers(x.astype(np.float64))).all()


def test_two_systems_of_right_and_wrong_are_covered():
    """0/1 scores of retrieval: logistic, clips hard or easy for both systems, and each better at some of them."""
    generator = np.random.default_rng(1)
    for seeds, clips, sigma_seed, sigma_clip in [
        (3, 100, 0.05, 0.3), (3, 500, 0.3, 0.5), (5, 100, 0.3, 0.5), (5, 500, 0.05, 0.0), (10, 100, 0.1, 1.0),
    ]:  # fmt: skip
        n = DRAWS
        shared = generator.normal(size=(n, 1, clips)) * 1.5 + generator.normal(size=(n, seeds, 1)) * 0.2

        def right(mean, shared=shared, n=n, seeds=seeds, clips=clips, sigma_seed=sigma_seed, sigma_clip=sigma_clip):
            logit = mean + shared + generator.normal(size=(n, seeds, 1)) * sigma_seed
            logit += generator.normal(size=(n, 1, clips)) * sigma_clip
            return (generator.random((n, seeds, clips), dtype=np.float32) < special.expit(logit)).astype(np.float64)

        def expected(mean, sigma_seed=sigma_seed, sigma_clip=sigma_clip):
            nodes, weights = np.polynomial.hermite_e.hermegauss(60)
            sigma = math.sqrt(1.5**2 + 0.2**2 + sigma_seed**2 + sigma_clip**2)
            return float(weights @ special.expit(mean + sigma * nodes)) / math.sqrt(2 * math.pi)

        held = covers(right(0.0) - right(-0.3), true=expected(0.0) - expected(-0.3))
        assert 93 <= 100 * held.mean() <= 97, (seeds, clips, sigma_seed, sigma_clip)


def test_gaps_by_pseudo_values_are_covered():
    generator, (seeds, clips, width) = np.random.default_rng(2), (5, 60, 4)
    held = []
    for _ in range(500):
        theirs = generator.normal(size=(1, clips, width)) + generator.normal(size=(seeds, clips, width))
        theirs += generator.normal(size=(seeds, 1, width)) * 0.1
        ours = theirs + generator.normal(size=(seeds, clips, width)) * 0.5
        ours[..., 0] += 1.0
        theirs[..., 0] += 2.0
        rows = [[gap_pseudo_values(vectors) for vectors in system] for system in (ours, theirs)]
        d = difference(*rows)
        held.append(d.low <= -1 <= d.high)
    assert 92 <= 100 * np.mean(held) <= 98  # 500 draws have a standard error of 1 %
