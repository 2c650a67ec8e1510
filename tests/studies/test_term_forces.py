"""The terms as forces: what each cannot do to a caption or a clip, and what it does to the weights."""

import numpy as np
import pandas as pd
import pytest
import torch
from embeddings import sphere
from loss_ranks import clips
from standin import TinyModel
from torch.nn import functional as F

from pullpush.forces import decompose, tangent
from pullpush.losses import Offer, cross_cyclic, in_modal_cyclic, info_nce, simcse
from pullpush.studies.term_forces import drawn, forces_by_term, forces_of, gradient_cosines, term_forces
from pullpush.training.objective import Objective
from pullpush.training.recipes import recipe

SYSTEM = "infonce-learnable+cyclic+simcse-0.1+nli-0.1"


def offer(n=6, d=5):
    """A batch with all that the terms need, float64."""
    names = ("audio", "text", "second_text", "premise", "second_premise", "entailment", "contradiction")
    return Offer(**{name: sphere(n, d, seed=seed) for seed, name in enumerate(names)})


def norms(one, given, side, part="whole"):
    """The norm of the force on each sample of a side, of a recipe of one term."""
    table = forces_of(given, one)
    return table[(table["side"] == side) & (table["part"] == part)]["norm"].to_numpy()


@pytest.mark.parametrize("side", ["text", "clip"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("infonce", lambda given: info_nce(given["audio"], given["text"])),
        ("cross-cyclic", lambda given: cross_cyclic(given["audio"], given["text"])),
        ("in-modal-cyclic", lambda given: in_modal_cyclic(given["audio"], given["text"])),
        ("simcse-0.1", lambda given: 0.1 * simcse(given["text"], given["second_text"])),
    ],
)
def test_norm_is_that_of_the_gradient_along_the_sphere(name, value, side):
    given = offer()
    leaves = {key: x.clone().requires_grad_() for key, x in given._asdict().items() if torch.is_tensor(x)}
    loss = 6 * value(leaves)
    names = ("text", "second_text") if side == "text" else ("audio",)
    found = torch.autograd.grad(loss, [leaves[key] for key in names], allow_unused=True)
    gradient = sum(x for x in found if x is not None) if any(x is not None for x in found) else torch.zeros(6, 5)
    expected = tangent(gradient, leaves[names[0]].detach()).norm(dim=1).numpy()
    table = forces_of(given, recipe(name))
    rows = table[(table["side"] == side) & (table["part"] == "whole")]
    np.testing.assert_allclose(rows["norm"], expected, atol=1e-12)
    np.testing.assert_allclose(rows["along"] ** 2 + rows["across"] ** 2, rows["norm"] ** 2, atol=1e-9)
    assert (rows["from_mean"].abs() <= rows["norm"] + 1e-12).all()


@pytest.mark.parametrize("direction", ["t2a", "a2t", "both"])
@pytest.mark.parametrize("side", ["text", "clip"])
def test_pull_and_push_are_the_whole(direction, side):
    table = forces_of(offer(), recipe("infonce", direction=direction))
    rows = table[table["side"] == side].pivot(index="sample", columns="part", values="along")
    np.testing.assert_allclose(rows["pull"] + rows["push"], rows["whole"], atol=1e-9)
    assert (rows["pull"] > 0).all()


def test_pull_and_push_are_those_of_chapter_1():
    given = offer()
    forces = decompose(given.text, given.audio, 0.07)
    one = recipe("infonce", direction="t2a")
    for part in ("pull", "push"):
        expected = tangent(getattr(forces, part), given.text).norm(dim=1)
        np.testing.assert_allclose(norms(one, given, "text", part), expected)


def test_the_pull_is_along_the_great_circle():
    table = forces_of(offer(), recipe("infonce"))
    assert (table[table["part"] == "pull"]["across"] < 1e-9).all()


def test_simcse_has_no_force_on_clips_and_spreads_texts():
    given = offer(n=8, d=3)
    near = F.normalize(sphere(8, 3, seed=5) + 2 * sphere(1, 3, seed=6), dim=1)
    given = given._replace(text=near, second_text=near)
    assert not norms(recipe("simcse"), given, "clip").any()
    table = forces_of(given, recipe("simcse"))
    assert table[table["side"] == "text"]["from_mean"].mean() > 0


def test_a_second_pass_counts_as_the_text_itself():
    given = offer()
    text = given.text.clone().requires_grad_()
    (6 * simcse(text, text)).backward()
    expected = tangent(text.grad, given.text).norm(dim=1)
    np.testing.assert_allclose(norms(recipe("simcse"), given._replace(second_text=given.text), "text"), expected)


def test_cyclic_terms_rest_where_the_geometry_is_consistent():
    given = offer()
    rotation = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))).Q
    rotated = given._replace(text=given.audio @ rotation)
    mirror = rotation @ torch.diag(torch.tensor([1.0, -1, 1, -1, 1], dtype=torch.float64)) @ rotation.T
    mirrored = given._replace(text=given.audio @ mirror)
    for side in ("text", "clip"):
        np.testing.assert_allclose(norms(recipe("in-modal-cyclic"), rotated, side), 0, atol=1e-12)
        assert (norms(recipe("cross-cyclic"), rotated, side) > 1e-3).all()
        np.testing.assert_allclose(norms(recipe("cross-cyclic"), mirrored, side), 0, atol=1e-12)
        assert (norms(recipe("in-modal-cyclic"), given, side) > 1e-3).all()


def test_nli_on_other_sentences_moves_no_caption_and_no_clip():
    for side in ("text", "clip"):
        assert not norms(recipe("nli"), offer(), side).any()
        assert not norms(recipe("sentence-simcse"), offer(), side).any()


def test_forces_grow_with_the_weight_and_with_what_a_learnable_temperature_starts_from():
    given = offer()
    np.testing.assert_allclose(norms(recipe("simcse-0.1"), given, "text"), norms(recipe("simcse"), given, "text") / 10)
    learnt = norms(recipe("infonce-learnable", tau=0.05), given, "text")
    np.testing.assert_allclose(learnt, norms(recipe("infonce", tau=0.05), given, "text"), rtol=1e-6)


def test_texts_must_be_there():
    with pytest.raises(ValueError, match="texts are missing"):
        forces_of(offer()._replace(present=torch.tensor([[True], [False]] * 3)), recipe("infonce"))


# --- a model and its batches


@pytest.fixture(scope="module")
def found():
    """Forces and cosines of a model with dropout on three batches, and the model's weights and modes before."""
    model, one = TinyModel(dropout=0.2).eval(), recipe(SYSTEM, dim=8, batch_size=8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    given = drawn(clips(20), one, 3)
    return model, one, given, before, term_forces(model, one, given), gradient_cosines(model, one, given)


def test_batches_are_as_many_as_asked_for_or_as_an_epoch_has(found):
    _, one, given, *_ = found
    assert len(given) == len(drawn(clips(20), one, 99)) == 3
    assert len(drawn(clips(20), one, 1)) == 1
    assert all({"premise", "entailment", "contradiction"} <= batch.columns.keys() for batch in given)


def test_the_model_is_left_as_it_was_and_draws_are_repeated(found):
    model, one, given, before, forces, cosines = found
    assert not model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    state = torch.get_rng_state()
    pd.testing.assert_frame_equal(term_forces(model, one, given), forces)
    pd.testing.assert_frame_equal(gradient_cosines(model, one, given), cosines)
    assert torch.equal(torch.get_rng_state(), state)
    assert not term_forces(model, one, given, seed=1)["norm"].equals(forces["norm"]), "other dropout"


def test_cosines_are_those_of_one_backward_pass_a_term():
    model, one = TinyModel(dropout=0), recipe(SYSTEM, dim=8, batch_size=8)
    (batch,) = drawn(clips(8), one, 1)
    table = gradient_cosines(model, one, [batch]).set_index(["encoder", "term", "other"])
    gradients = {}
    for number, term in enumerate(one.terms):
        objective = Objective(TinyModel(dropout=0), one).train()
        (term.weight * objective(batch).terms[number]).backward()
        gradients[term.name] = torch.cat([x.grad.flatten() for x in objective.model.text.parameters()])
    for term, other in (("infonce", "nli"), ("simcse", "cross-cyclic")):
        expected = F.cosine_similarity(gradients[term], gradients[other], dim=0)
        assert table.loc[("text", term, other), "cosine"] == pytest.approx(expected.item(), abs=1e-5)
        assert table.loc[("text", other, term), "cosine"] == pytest.approx(expected.item(), abs=1e-5)
        assert table.loc[("text", term, other), "norm"] == pytest.approx(gradients[term].norm().item(), rel=1e-4)


def test_nli_reaches_captions_through_the_weights_of_their_encoder_alone(found):
    table = found[5].set_index(["encoder", "term", "other"]).sort_index()
    assert table.loc[("text", "nli", "infonce"), "cosine"].notna().all()
    assert (table.loc[("text", "nli", "infonce"), "norm"] > 0).all()
    assert table.loc[("clip", "nli", "infonce"), "cosine"].isna().all()
    assert table.loc[("clip", "in-modal-cyclic", "infonce"), "cosine"].notna().all()


def test_frozen_weights_do_not_count():
    model, one = TinyModel(dropout=0), recipe("infonce+nli-0.1", dim=8, batch_size=8)
    model.audio.requires_grad_(False)
    table = gradient_cosines(model, one, drawn(clips(8), one, 1))
    assert set(table["encoder"]) == {"text"}


def test_figures_name_the_terms(found):
    *_, forces, _ = found
    left, right = forces_by_term(forces).axes
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "InfoNCE",
        "InfoNCE, pull",
        "InfoNCE, push",
        "cross-modal cyclic",
        "in-modal cyclic",
        "SimCSE",
        "NLI",
    ]
    assert [ax.get_title() for ax in (left, right)] == ["on a text", "on a clip"]
