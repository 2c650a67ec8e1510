"""The weight error bound against torch's own optimisers, and on the small model of features."""

import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from pullpush.losses import cacl, kcl, ml_clap
from pullpush.studies.consistency import bound as study
from pullpush.studies.consistency.data import language_plan

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


def test_log_probability_averages_to_kcl():
    audio, texts = embed(START, torch.arange(CLIPS))
    assert study.log_probability(audio, texts, TAU).mean().item() == pytest.approx(-kcl(audio, texts, TAU).item())


def test_the_bound_equals_its_sum_by_hand():
    # a = 2, D = 0.5, η = 0.1, g = 3, 5, 7: 8·1 + 0.05·(7 + 2·5 + 4·3)
    g_max = torch.tensor([3.0, 5.0, 7.0])
    constants = {"growth": 2.0, "distribution_error": 0.5, "rate": 0.1}
    assert study.weight_error_bound(1.0, g_max, **constants) == pytest.approx(8 + 0.05 * 29)
    assert study.weight_error_bound(1.0, g_max, **constants, first=1) == pytest.approx(8 + 0.05 * 22)
    assert study.weight_error_bound(0.0, g_max, growth=1e300, distribution_error=0.0, rate=0.1) == 0


def test_both_runs_are_those_of_torch_on_kcl_and_on_ml_clap():
    steps = plan("random")
    rows = study.weight_errors(embed, START, steps, rate=0.05, tau=TAU, sampled_loss=True)
    flat = [step for epoch in steps for step in epoch]
    full, sampled = (train(lambda w: torch.optim.SGD(w, lr=0.05), loss, flat) for loss in (kcl_of, ml_clap_of))
    left = [float((full[last][0] - sampled[last][0]).norm()) for last in range(1, len(flat), 2)]
    assert [row.left for row in rows] == pytest.approx(left)


def test_quantities_of_one_step_equal_a_loop_over_pairs():
    (step,), *_ = plan("pair", batch_size=CLIPS)
    (row,) = study.weight_errors(embed, START, [[step]], rate=0.05, tau=TAU)
    weights, gradients = START.clone().requires_grad_(), []
    log_p = study.log_probability(*embed(weights, step.items), TAU)
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
    rate=st.sampled_from([0.01, 0.3]),
    seed=st.integers(0, 1000),
)
def test_the_appendix_bound_holds_and_each_looser_form_is_looser(sampling, rate, seed):
    for row in study.weight_errors(embed, START, plan(sampling, seed=seed), rate=rate, tau=TAU):
        assert 0 < row.left <= row.stepwise * (1 + 1e-9)
        assert row.stepwise <= row.right * (1 + 1e-9)
        assert row.right <= row.expanded * (1 + 1e-9)
        assert row.main_text <= row.right


def test_eq_6_of_the_main_text_fails_with_one_step_an_epoch():
    row = study.weight_errors(embed, START, plan("random", batch_size=CLIPS), rate=0.05, tau=TAU)[0]
    assert row.main_text == 0 < row.left


@pytest.mark.parametrize("sampled_loss", [False, True])
def test_all_languages_leave_no_error(sampled_loss):
    for row in study.weight_errors(embed, START, plan("all"), rate=0.05, tau=TAU, sampled_loss=sampled_loss):
        assert row.left == row.right == row.distribution_error == 0
        assert row.g_max > 0


def test_a_larger_slope_than_the_secant_bounds_more_loosely_and_changes_no_run():
    steps = plan("random", epochs=2)
    given = {kind: study.weight_errors(embed, START, steps, rate=0.05, tau=TAU, lipschitz=kind) for kind in (None, 1e3)}
    for secant, number in zip(*given.values(), strict=True):
        assert secant.left == number.left
        assert secant.right < number.right
        assert number.growth == pytest.approx(1 + 0.05 * 1e3)


def test_the_secant_is_the_change_of_each_pairs_gradient_over_the_distance_of_the_weights():
    (step,) = plan("pair", epochs=1, batch_size=CLIPS)[0]
    there = START + 0.1 * torch.randn(len(START), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    slope = 0.0
    for i in range(CLIPS):
        for k in range(LANGUAGES):
            ends = []
            for point in (START, there):
                weights = point.clone().requires_grad_()
                log_p = study.log_probability(*embed(weights, step.items), TAU)
                ends.append(torch.autograd.grad(log_p[i, k], weights)[0])
            weight = float(step.taken[i, k]) / (2 * CLIPS)
            slope += weight * float((ends[1] - ends[0]).norm() / (there - START).norm())
    assert study.compare(embed, START, there, step, tau=TAU).slope == pytest.approx(slope)


def test_momenta_are_those_of_torch_and_the_bound_holds():
    steps = plan("random")
    flat = [step for epoch in steps for step in epoch]
    rows = study.momentum_errors(embed, START, steps, rate=0.02, tau=TAU, sampled_loss=True)
    full, sampled = (train(lambda w: torch.optim.Adam(w, lr=0.02), loss, flat) for loss in (kcl_of, ml_clap_of))
    for row, of_full, of_sampled in zip(rows, full, sampled, strict=True):
        assert row.weights == pytest.approx(float((of_full[0] - of_sampled[0]).norm()), rel=1e-6)
        assert row.left == pytest.approx(float((of_full[1] - of_sampled[1]).norm()), rel=1e-6)
    for row in study.momentum_errors(embed, START, steps, rate=0.02, tau=TAU):
        assert row.left <= row.right * (1 + 1e-9)


def test_eq_28_as_it_ends_fails_when_the_sampling_stops():
    """The old difference of the momenta is still there; ‖w − w'‖, which stands in its place, can be far smaller."""
    steps = [*plan("random", epochs=1), *plan("all", epochs=1)]
    row = study.momentum_errors(embed, START, steps, rate=1e-4, tau=TAU)[2]
    assert row.printed < row.left <= row.right * (1 + 1e-9)


def test_with_pairs_of_texts_the_sampled_run_climbs_the_whole_of_cacl():
    (step,) = plan("pair", epochs=1, batch_size=CLIPS)[0]
    seen = study.compare(embed, START, START, step, tau=TAU, sampled_loss=True, text_share=1 / 3)
    weights = START.clone().requires_grad_()
    audio, texts = embed(weights, step.items)
    cacl(audio, texts[:, 0], texts[:, 1:][step.taken[:, 1:]], TAU).backward()
    torch.testing.assert_close(seen.sampled_gradient, -weights.grad)
    # Of p' two thirds are on 2N pairs of clips and texts, a third on N pairs of texts that p does not have.
    taken = 2 * abs(1 / 3 - 1 / LANGUAGES)
    assert seen.distribution_error == pytest.approx(taken + (LANGUAGES - 2) / LANGUAGES + 1 / 3)


# The small model


def test_the_tiny_model_is_on_the_sphere(tiny):
    audio, texts = tiny(tiny.start(0), torch.arange(5))
    assert audio.shape == (5, 3)
    assert texts.shape == (5, 8, 3)
    assert torch.allclose(texts.norm(dim=-1), torch.ones(5, 8, dtype=torch.float64))
    assert not torch.equal(tiny.start(0), tiny.start(1))


def test_the_bound_of_the_tiny_model_holds(tiny):
    table = study.bound_table(tiny, [0], epochs=2, batch_size=4)
    assert set(table["sampling"]) == {"random", "pair"}
    assert (table["left"] <= table["right"] + 1e-12).all()
    adam = study.bound_table(tiny, [0], epochs=2, batch_size=4, adam=True, rate=0.01)
    assert study.violated(adam).tolist() == study.violated(table).tolist() == [[0.0]]
    assert study.at_end(table, "pair", "distribution_error") == pytest.approx(2 * (1 - 2 / 8))


def test_a_slope_known_beforehand_is_that_of_another_seed(tiny):
    size = {"epochs": 2, "batch_size": 4}
    table = study.bound_table(tiny, [0, 1], **size)
    predicted = study.predicted_bound(tiny, table, **size)
    assert predicted["left"].to_numpy() == pytest.approx(table.sort_values("seed", kind="stable")["left"].to_numpy())
    slope = (table.query("seed == 1")["growth"].max() - 1) / study.RATE
    assert predicted.query("seed == 0")["growth"].to_numpy() == pytest.approx(1 + study.RATE * slope)


def test_the_whole_of_cacl_errs_otherwise_than_its_sampling_and_keeps_the_bound(tiny):
    size = {"epochs": 2, "batch_size": 4}
    alone, whole = (study.bound_table(tiny, [0], english_other=each, **size) for each in (False, True))
    assert study.at_end(whole, "pair") != pytest.approx(study.at_end(alone, "pair"))
    assert study.at_end(whole, "random") == pytest.approx(study.at_end(alone, "random"))
    assert study.violated(whole).tolist() == [[0.0]]
