"""Consistency across languages against loops, and the weight error bound against torch's own optimisers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from pullpush.losses.multilingual import kcl, ml_clap
from pullpush.metrics import ranks
from pullpush.metrics.consistency import (
    angle,
    direction_error,
    distance,
    gap,
    language_plan,
    language_ranks,
    log_probability,
    mean_rank_variance,
    momentum_errors,
    pair_distribution,
    rank_variance,
    weight_error_bound,
    weight_errors,
)


def sphere(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


def norm(values):
    return math.sqrt(sum(value * value for value in values))


# Gap and distance


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), k=st.integers(1, 4), seed=st.integers(0, 10_000))
def test_gap_and_distance_equal_the_loops_over_what_is_present(n, k, seed):
    english, other = sphere(n, 4, seed=seed), sphere(n, k, 4, seed=seed + 1)
    present = torch.rand(n, k, generator=torch.Generator().manual_seed(seed)) < 0.6
    present[seed % n] = True
    gaps, distances = [], []
    for language in range(k):
        rows = [i for i in range(n) if present[i, language]]
        differences = [[float(english[i, c] - other[i, language, c]) for c in range(4)] for i in rows]
        gaps.append(norm([sum(column) / len(rows) for column in zip(*differences, strict=True)]))  # Eq. 14
        distances.append(sum(norm(row) for row in differences) / len(rows))  # Eq. 15
    other[~present] = math.nan
    assert gap(english, other, present=present).tolist() == pytest.approx(gaps)
    assert distance(english, other, present=present).tolist() == pytest.approx(distances)
    assert (gap(english, other, present=present) <= distance(english, other, present=present) + 1e-12).all()


def test_one_language_gives_a_number_and_all_present_changes_nothing():
    english, other = sphere(5, 4), sphere(5, 3, 4, seed=1)
    for measure in (gap, distance):
        many = measure(english, other)
        assert many.shape == (3,)
        assert torch.allclose(measure(english, other[:, 1]), many[1])
        assert torch.allclose(measure(english, other, present=torch.ones(5, 3, dtype=torch.bool)), many)
        assert measure(english, english) == 0


def test_gap_is_the_length_of_the_vector_of_eq_14():
    english, other = sphere(5, 4), sphere(5, 4, seed=1)
    vector = gap(english, other, vector=True)
    assert torch.allclose(vector, english.mean(0) - other.mean(0))
    assert torch.allclose(vector.norm(), gap(english, other))


def test_centroids_can_agree_where_no_text_does():
    english = torch.eye(2).double()
    assert gap(english, english.flip(0)) == 0
    assert distance(english, english.flip(0)).item() == pytest.approx(math.sqrt(2))


def test_bad_shapes_and_empty_languages_are_named():
    with pytest.raises(ValueError, match="need english"):
        gap(torch.zeros(3, 4), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="need english"):
        distance(torch.zeros(0, 4), torch.zeros(0, 4))
    with pytest.raises(ValueError, match="no text at all"):
        gap(torch.zeros(3, 4), torch.zeros(3, 4), present=torch.zeros(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="present must be boolean"):
        gap(torch.zeros(3, 4), torch.zeros(3, 4), present=torch.ones(3))


# Ranks


def loop_rank(scores, right, rivals):
    return 1 + sum(scores[j] >= scores[right] for j in rivals)


@settings(max_examples=25, deadline=None)
@given(m=st.integers(1, 5), per_clip=st.integers(1, 3), k=st.integers(1, 3), seed=st.integers(0, 10_000))
def test_language_ranks_equal_the_loop(m, per_clip, k, seed):
    # Small whole numbers tie often, and exactly.
    generator = torch.Generator().manual_seed(seed)
    audio = torch.randint(-1, 2, (m, 3), generator=generator).double()
    texts = torch.randint(-1, 2, (m * per_clip, k, 3), generator=generator).double()
    clip = torch.arange(m).repeat(per_clip)
    t2a = language_ranks(audio, texts, clip=clip)
    a2t = language_ranks(audio, texts, clip=clip, direction="a2t")
    for i, c in enumerate(clip.tolist()):
        for language in range(k):
            by_clip = [float(texts[i, language] @ audio[j]) for j in range(m)]
            assert t2a[i, language] == loop_rank(by_clip, c, [j for j in range(m) if j != c])
            by_text = [float(texts[j, language] @ audio[c]) for j in range(len(texts))]
            assert a2t[i, language] == loop_rank(by_text, i, [j for j in range(len(texts)) if clip[j] != c])


def test_ranks_agree_with_those_of_retrieval():
    audio, texts = sphere(7, 5), sphere(7, 2, 5, seed=1)
    truth = torch.eye(7, dtype=torch.bool)
    for language in range(2):
        similarity = texts[:, language] @ audio.T
        assert torch.equal(language_ranks(audio, texts)[:, language], ranks(similarity, truth))
        assert torch.equal(language_ranks(audio, texts, direction="a2t")[:, language], ranks(similarity.T, truth))


def test_a_model_without_opinion_ranks_last_in_all_languages():
    same = torch.ones(4, 3, 2)
    assert language_ranks(same[:, 0], same).eq(4).all()
    assert mean_rank_variance(language_ranks(same[:, 0], same)) == 0


def test_mean_rank_variance_of_a_case_by_hand():
    # Item 1: mean 2, deviations 1, 0, 1; item 2: mean 4, deviations 3, 3, 0.
    assert rank_variance(torch.tensor([[1, 2, 3], [1, 7, 4]])).tolist() == pytest.approx([2 / 3, 6])
    assert mean_rank_variance(torch.tensor([[1, 2, 3], [1, 7, 4]])).item() == pytest.approx(10 / 3)


def test_rank_variance_of_the_cases_of_table_5():
    ml_clap_ranks = torch.tensor([[5, 4, 5, 2, 4, 5, 8, 13], [2, 4, 4, 7, 12, 12, 0, 3]])
    expected = np.var(ml_clap_ranks.numpy(), axis=1)
    assert rank_variance(ml_clap_ranks).tolist() == pytest.approx(expected.tolist())
    assert rank_variance(ml_clap_ranks + 1).tolist() == pytest.approx(expected.tolist())  # counted from 0 or from 1


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 6), k=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_rank_variance_equals_the_loop_and_knows_no_order(n, k, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(1, 30, (n, k), generator=generator)
    present = torch.rand(n, k, generator=generator) < 0.6
    present[:, seed % k] = True
    expected = [np.var([int(values[i, j]) for j in range(k) if present[i, j]]) for i in range(n)]
    assert rank_variance(values, present=present).tolist() == pytest.approx(expected)
    assert mean_rank_variance(values, present=present).item() == pytest.approx(float(np.mean(expected)))
    items, languages = torch.randperm(n, generator=generator), torch.randperm(k, generator=generator)
    assert torch.allclose(mean_rank_variance(values[items][:, languages]), mean_rank_variance(values))


def test_ranks_that_cannot_be_are_named():
    with pytest.raises(ValueError, match=r"items \[1\] have no language"):
        rank_variance(torch.ones(2, 2), present=torch.tensor([[True, False], [False, False]]))
    with pytest.raises(ValueError, match=r"shape \(N, K\)"):
        rank_variance(torch.ones(2))
    with pytest.raises(ValueError, match="which clip each belongs to"):
        language_ranks(torch.ones(2, 3), torch.ones(4, 2, 3))
    with pytest.raises(ValueError, match="NaN"):
        language_ranks(torch.full((2, 3), math.nan), torch.ones(2, 2, 3))
    with pytest.raises(ValueError, match="direction"):
        language_ranks(torch.ones(2, 3), torch.ones(2, 2, 3), direction="t2t")


# Direction error


def test_angles_in_the_plane():
    turn = torch.tensor([0.0, 1e-6, 30, 90, 180]).double()
    ray = torch.stack([torch.cos(turn.deg2rad()), torch.sin(turn.deg2rad())], dim=1)
    assert angle(ray, 3 * ray[:1]).tolist() == pytest.approx(turn.tolist(), rel=1e-6)
    assert angle(torch.zeros(2), ray[0].float()).isnan()


def test_direction_error_is_the_angle_of_figure_2():
    audio = torch.zeros(1, 2)
    texts = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # the mean lies at 45° from both
    for taken, expected in (([[True, False]], 45), ([[False, True]], 45), ([[True, True]], 0)):
        assert direction_error(audio, texts, torch.tensor(taken)).item() == pytest.approx(expected, abs=1e-5)


def test_more_languages_err_less_on_average():
    audio, texts = sphere(200, 16), sphere(200, 8, 16, seed=1)
    errors = [direction_error(audio, texts, torch.arange(8).expand(200, 8) < k).mean().item() for k in (1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(0, abs=1e-4)


def test_a_clip_without_language_has_no_direction():
    with pytest.raises(ValueError, match="at least one language"):
        direction_error(torch.ones(1, 2), torch.ones(1, 2, 2), torch.zeros(1, 2, dtype=torch.bool))


# The weight error bound

CLIPS, LANGUAGES, FEATURES, DIM = 8, 3, 4, 3
SOUNDS = sphere(CLIPS, FEATURES, seed=5)
WORDS = F.normalize(SOUNDS[:, None] + 0.5 * sphere(CLIPS, LANGUAGES, FEATURES, seed=6), dim=-1)
START = torch.randn(2 * FEATURES * DIM, generator=torch.Generator().manual_seed(7), dtype=torch.float64) / 2
TAU = 0.3


def embed(weights, items):
    """Two linear encoders: small enough to know everything about."""
    audio, text = weights.view(2, FEATURES, DIM)
    return F.normalize(SOUNDS[items] @ audio, dim=-1), F.normalize(WORDS[items] @ text, dim=-1)


def plan(sampling, *, epochs=3, batch_size=4, seed=0):
    return language_plan(CLIPS, LANGUAGES, sampling=sampling, epochs=epochs, batch_size=batch_size, seed=seed)


def train(optimiser, loss, steps):
    """Weights after each step, by a torch optimiser."""
    weights = START.clone().requires_grad_()
    optimiser = optimiser([weights])
    path = []
    for step in steps:
        optimiser.zero_grad()
        loss(weights, step).backward()
        optimiser.step()
        path.append((weights.detach().clone(), optimiser.state[weights].get("exp_avg", weights).detach().clone()))
    return path


def kcl_of(weights, step):
    return kcl(*embed(weights, step.items), TAU)


def ml_clap_of(weights, step):
    audio, texts = embed(weights, step.items)
    return ml_clap(audio, texts[step.taken], TAU)


def test_plans_take_what_their_sampling_says():
    counts = {"random": 1, "pair": 2, "all": LANGUAGES}
    for sampling, count in counts.items():
        epochs = plan(sampling, epochs=20, batch_size=3)
        for epoch in epochs:
            assert sorted(torch.cat([step.items for step in epoch]).tolist()) == list(range(CLIPS))
            assert all((step.taken.sum(dim=1) == count).all() for step in epoch)
        assert torch.cat([step.taken for epoch in epochs for step in epoch]).any(dim=0).all()
        assert torch.equal(epochs[0][0].items, plan("random", epochs=20, batch_size=3)[0][0].items)
    assert all(step.taken[:, 0].all() for epoch in plan("pair") for step in epoch)
    with pytest.raises(ValueError, match="at least two languages"):
        language_plan(4, 1, sampling="pair", epochs=1, batch_size=2)
    with pytest.raises(ValueError, match="sampling must be one of"):
        plan("none")


def test_log_probability_averages_to_kcl():
    audio, texts = embed(START, torch.arange(CLIPS))
    assert log_probability(audio, texts, TAU).mean().item() == pytest.approx(-kcl(audio, texts, TAU).item())


def test_eq_1_as_printed_is_one_distribution_with_no_gradient():
    weights = START.clone().requires_grad_()
    log_p = log_probability(*embed(weights, torch.arange(CLIPS)), TAU, reading="printed")
    audio, texts = embed(START, torch.arange(CLIPS))
    scores = [[math.exp(float(audio[i] @ texts[i, k]) / TAU) for k in range(LANGUAGES)] for i in range(CLIPS)]
    total = sum(map(sum, scores))
    assert log_p.exp().flatten().tolist() == pytest.approx([score / total for row in scores for score in row])
    everything = torch.ones_like(log_p, dtype=torch.bool)
    p = pair_distribution(log_p.detach(), everything, reading="printed")
    (gradient,) = torch.autograd.grad((p * log_p).sum(), weights)
    assert gradient.norm() < 1e-12


def test_distributions_sum_to_one_over_what_is_taken():
    log_p, taken = torch.randn(4, 3).double(), torch.tensor([[True, False, True]] * 4)
    assert torch.allclose(pair_distribution(log_p, taken), taken.double() / 8)
    printed = pair_distribution(log_p, taken, reading="printed")
    assert torch.allclose(printed[taken], log_p[taken].softmax(0))  # Eq. 4
    assert printed[~taken].eq(0).all()


def test_the_bound_equals_its_sum_by_hand():
    # a = 2, D = 0.5, η = 0.1, g = 3, 5, 7: 8·1 + 0.05·(7 + 2·5 + 4·3)
    g_max = torch.tensor([3.0, 5.0, 7.0])
    constants = {"growth": 2.0, "distribution_error": 0.5, "rate": 0.1}
    assert weight_error_bound(1.0, g_max, **constants) == pytest.approx(8 + 0.05 * 29)
    assert weight_error_bound(1.0, g_max, **constants, first=1) == pytest.approx(8 + 0.05 * 22)
    assert weight_error_bound(0.0, g_max, growth=1e300, distribution_error=0.0, rate=0.1) == 0


def test_both_runs_are_those_of_torch_on_kcl_and_on_ml_clap():
    steps = plan("random")
    rows = weight_errors(embed, START, steps, rate=0.05, tau=TAU, own=True)
    flat = [step for epoch in steps for step in epoch]
    full, sampled = (train(lambda w: torch.optim.SGD(w, lr=0.05), loss, flat) for loss in (kcl_of, ml_clap_of))
    left = [float((full[last][0] - sampled[last][0]).norm()) for last in range(1, len(flat), 2)]
    assert [row.left for row in rows] == pytest.approx(left)


def test_quantities_of_one_step_equal_a_loop_over_pairs():
    (step,), *_ = plan("pair", batch_size=CLIPS)
    (row,) = weight_errors(embed, START, [[step]], rate=0.05, tau=TAU)
    weights, gradients = START.clone().requires_grad_(), []
    log_p = log_probability(*embed(weights, step.items), TAU)
    p, q, difference = 1 / (CLIPS * LANGUAGES), 1 / (2 * CLIPS), torch.zeros_like(START)
    error = 0.0
    for i in range(CLIPS):
        for k in range(LANGUAGES):
            (gradient,) = torch.autograd.grad(log_p[i, k], weights, retain_graph=True)
            gradients.append(float(gradient.norm()))
            weight = p - (q if step.taken[i, k] else 0)
            error += abs(weight)
            difference += weight * gradient
    assert row.g_max == pytest.approx(max(gradients))
    assert row.distribution_error == pytest.approx(error)
    assert row.left == pytest.approx(0.05 * float(difference.norm()))
    assert row.right == pytest.approx(0.05 * error * max(gradients))
    assert row.growth == 1  # both runs stand at one point: nothing to grow yet


@settings(max_examples=8, deadline=None)
@given(
    sampling=st.sampled_from(["random", "pair"]),
    reading=st.sampled_from(["data", "printed"]),
    rate=st.sampled_from([0.01, 0.3]),
    seed=st.integers(0, 1000),
)
def test_the_appendix_bound_holds_and_each_looser_form_is_looser(sampling, reading, rate, seed):
    for row in weight_errors(embed, START, plan(sampling, seed=seed), rate=rate, tau=TAU, reading=reading):
        assert 0 < row.left <= row.stepwise * (1 + 1e-9)
        assert row.stepwise <= row.right * (1 + 1e-9)
        assert row.right <= row.expanded * (1 + 1e-9)
        assert row.main_text <= row.right


def test_eq_6_of_the_main_text_fails_with_one_step_an_epoch():
    row = weight_errors(embed, START, plan("random", batch_size=CLIPS), rate=0.05, tau=TAU)[0]
    assert row.main_text == 0 < row.left


@pytest.mark.parametrize("own", [False, True])
def test_all_languages_leave_no_error(own):
    for row in weight_errors(embed, START, plan("all"), rate=0.05, tau=TAU, own=own):
        assert row.left == row.right == row.distribution_error == 0
        assert row.g_max > 0


def test_curvature_and_numbers_bound_more_loosely_than_the_secant():
    steps = plan("random", epochs=2)
    rows = {
        kind: weight_errors(embed, START, steps, rate=0.05, tau=TAU, lipschitz=kind)
        for kind in ("secant", "segment", 1e3)
    }
    for secant, segment, number in zip(*rows.values(), strict=True):
        assert secant.left == segment.left == number.left
        assert secant.right <= segment.right <= number.right
    with pytest.raises(ValueError, match="lipschitz must be"):
        weight_errors(embed, START, steps, rate=0.05, lipschitz="none")


def test_momenta_are_those_of_torch_and_the_bound_holds():
    steps = plan("random")
    flat = [step for epoch in steps for step in epoch]
    rows = momentum_errors(embed, START, steps, rate=0.02, tau=TAU, own=True)
    full, sampled = (train(lambda w: torch.optim.Adam(w, lr=0.02), loss, flat) for loss in (kcl_of, ml_clap_of))
    for row, one, other in zip(rows, full, sampled, strict=True):
        assert row.weights == pytest.approx(float((one[0] - other[0]).norm()), rel=1e-6)
        assert row.left == pytest.approx(float((one[1] - other[1]).norm()), rel=1e-6)
    for row in momentum_errors(embed, START, steps, rate=0.02, tau=TAU):
        assert row.left <= row.right * (1 + 1e-9)


def test_eq_28_as_it_ends_fails_when_the_sampling_stops():
    """The old difference of the momenta is still there; ‖w − w'‖, which stands in its place, can be far smaller."""
    steps = [*plan("random", epochs=1), *plan("all", epochs=1)]
    row = momentum_errors(embed, START, steps, rate=1e-4, tau=TAU)[2]
    assert row.printed < row.left <= row.right * (1 + 1e-9)
