"""What lesson 5 computes: weights of pairs, biases that balance, shares of a batch, what local losses leave out."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from embeddings import pairs

from pullpush import forces, losses
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import create
from pullpush.lab import session
from pullpush.studies.glap import figures, science
from pullpush.studies.glap.data import DOMAINS, Grounds
from pullpush.training.recipes import recipe

N = 12


@pytest.fixture(scope="module")
def ground(module_home, tmp_path_factory):
    return Grounds(session.start("05-glap", profile="smoke", out=tmp_path_factory.mktemp("out")))


def run_of(name: str, *, step: float = 3.0, **options):
    """A finished run with four steps: of tau and bias, and a model of no training."""
    one = recipe(name, audio="cnn", text="hashed", dim=8, batch_size=8, **options)
    steps = pd.DataFrame({"step": [1, 2, 3, 4], "tau": [0.1, 0.09, 0.08, 0.07]})
    if name != "infonce":
        steps["bias"] = [-1.0, -2.0, -3.0, -4.0]
    return SimpleNamespace(recipe=one, steps=steps, best={"step": step}, model=create("cnn", "hashed", dim=8).eval())


# Weights


def test_the_weights_of_a_sigmoid_are_its_probabilities():
    audio, text = pairs(N, 5)
    similarity, tau, bias = text @ audio.T, 0.2, -1.5
    found = science.pair_weights(partial(losses.siglip, tau=tau, bias=bias, form="siglip"), similarity, tau)
    expected = (similarity / tau + bias).sigmoid() - torch.eye(N)
    torch.testing.assert_close(found, expected)


def test_the_weights_of_a_softmax_are_those_of_its_forces():
    audio, text = pairs(N, 5)
    found = science.pair_weights(partial(losses.info_nce, tau=0.2, direction="t2a"), text @ audio.T, 0.2)
    parts = forces.decompose(text, audio, 0.2)
    torch.testing.assert_close(found @ audio / 0.2, parts.gradient)
    pull, push = science.pull_and_push(found)
    torch.testing.assert_close(pull, 1 - parts.p_positive)
    torch.testing.assert_close(push, pull)


@pytest.mark.parametrize("count", [2, 16, 500])
def test_the_bias_that_balances_does(count):
    loss = partial(losses.siglip, tau=1.0, bias=science.balancing_bias(count), form="siglip")
    pull, push = science.pull_and_push(science.pair_weights(loss, torch.zeros(count, count).double(), 1.0))
    torch.testing.assert_close(pull, push)
    assert float(pull[0]) == pytest.approx(1 - 1 / count)


def test_only_the_push_of_a_sigmoid_grows_with_the_batch():
    audio, text = pairs(N, 5)
    sigmoid = science.Space(audio, text, partial(losses.siglip, tau=0.2, bias=-2.0, form="siglip"), 0.2)
    softmax = science.Space(audio, text, partial(losses.info_nce, tau=0.2, direction="t2a"), 0.2)
    table = science.over_batch_sizes({"sigmoid": sigmoid, "softmax": softmax}, [2, N, 99], draws=300)
    means = table.groupby(["system", "clips"])[["pull", "push"]].mean()
    assert set(table["clips"]) == {2, N}
    few, all_of_them = means.loc["sigmoid", 2], means.loc["sigmoid", N]
    assert few["pull"] == pytest.approx(all_of_them["pull"], rel=0.05)
    assert all_of_them["push"] == pytest.approx((N - 1) * few["push"], rel=0.1)
    np.testing.assert_allclose(means.loc["softmax", "pull"], means.loc["softmax", "push"], rtol=1e-6)


def test_weights_by_domain_add_up():
    matrix = torch.rand(6, 6, generator=torch.Generator().manual_seed(1))
    matrix -= torch.eye(6)
    table = science.by_domain({"SigLIP": matrix}, ["sound", "sound", "sound", "music", "speech", "speech"])
    assert table["domain"].tolist() == list(DOMAINS)
    pull, push = science.pull_and_push(matrix)
    assert (table["pairs"] * table["pull"]).sum() == pytest.approx(float(pull.sum()), rel=1e-5)
    assert (table["pairs"] * (table["same"] + table["other"])).sum() == pytest.approx(float(push.sum()), rel=1e-5)
    assert table.set_index("domain").loc["music", "same"] == 0


def test_what_was_learnt_is_read_where_the_model_was_taken():
    assert science.learnt(run_of("siglip")) == {"tau": 0.08, "bias": -3.0}
    assert science.learnt(run_of("infonce")) == {"tau": 0.08}


def test_the_loss_of_a_run_is_its_own():
    both = pairs(N, 5)
    for name, form in (("siglip", "siglip"), ("siglip", "glap")):
        loss = science.loss_of(run_of(name, form=form))
        torch.testing.assert_close(loss(*both), losses.siglip(*both, 0.08, -3.0, form))
    torch.testing.assert_close(science.loss_of(run_of("infonce"))(*both), losses.info_nce(*both, 0.08, "t2a"))


# Starts and biases


def test_a_bias_is_given_beside_the_similarity_over_the_temperature_in_both_forms():
    beside, within = (science.ends(run_of("siglip", form=form, tau=0.5, bias=-2.0)) for form in ("siglip", "glap"))
    assert [beside[name].item() for name in ("start", "bias", "moved")] == pytest.approx([-2, -3, 1])
    assert [within[name].item() for name in ("start", "bias")] == pytest.approx([-2 / 0.5, -3 / 0.08])


def test_the_systems_are_one_softmax_and_three_starts_of_a_sigmoid():
    made = {label: recipe(name, **options).terms[0] for label, (name, options) in science.systems(128).items()}
    assert [term.name for term in made.values()] == ["infonce", *["siglip"] * 3]
    assert [made[label].settings["form"] for label in (science.SIGMOID, science.BALANCED)] == ["siglip"] * 2
    assert made[science.BALANCED].settings["bias"] == pytest.approx(-math.log(127))
    printed = made[science.PRINTED].settings
    assert (printed["form"], printed["tau"], printed["bias"]) == ("glap", 0.07, -10)


def test_a_softmax_is_a_sigmoid_with_the_bias_of_its_batch():
    left, right = figures.push_curves({"one": (0.1, -5.0)}, tau=0.1).axes
    similarity, weight = right.lines[-1].get_data()  # N = 16
    scores = np.exp(np.stack([similarity, np.full_like(similarity, 0.3), *np.zeros((14, len(similarity)))]) / 0.1)
    np.testing.assert_allclose(weight, scores[0] / scores.sum(axis=0))
    np.testing.assert_allclose(left.lines[0].get_ydata(), 1 / (1 + np.exp(5 - 10 * similarity)))


# Several processes


def test_local_losses_leave_nothing_out_of_one_process(ground):
    config = WorldConfig("synthetic", n_train=16, n_valid=2, n_test=2, n_single_per_event=1)
    clips = load_world(config).train
    for name in ("siglip", "infonce"):
        one, four = (science.gradient_left_out(run_of(name), clips, count) for count in (1, 4))
        assert one.shape == four.shape == (1, 2)
        np.testing.assert_allclose(one, 0, atol=1e-5)
        assert (four > 0.05).all()


# Clips of three domains


def test_examples_are_one_of_each_domain(ground):
    assert list(science.one_of_each(ground, "violin").columns["domain"]) == list(DOMAINS)


def test_every_prompt_of_the_paper_is_tried_on_every_domain(ground):
    model = create("cnn", "hashed", dim=8)
    table = science.named_by_prompts(model, {"sound": ground.test("sound").singles})
    assert len(table) == 3
    assert "{label}" in set(table["prompt"])
    assert table["accuracy"].between(0, 1).all()
