from dataclasses import replace

import pytest
import torch
from embeddings import sphere
from hypothesis import given, strategies as st

from pullpush.errors import UnknownNameError
from pullpush.losses import SVR, Offer, apply
from pullpush.training import RECIPES, Recipe, Term
from pullpush.training.recipes import colour, from_json, recipe, title, weighted

SENTENCES = ("premise", "second_premise", "entailment", "contradiction")


def pair(n=5, d=4, parallel=0):
    one, two, *others = sphere(2 + parallel, n, d).unbind()
    return Offer(one, two, tuple(others))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_makes_finite_terms(name):
    one = recipe(name)
    parallel = {"pair": 1, "all": len(one.languages) - 1}.get(one.sampling, 0)
    sides = pair()
    count, dim = sides.audio.shape
    known = {"teacher_similarity": sides.audio @ sides.text.T, "clusters": torch.arange(count) % 3}
    necessary = {"clusters": {"topics": 3, "dim": dim}}  # what nobody but the user knows
    for term in one.terms:
        offer = pair(parallel=parallel)._replace(
            second_text=sides.audio, **dict.fromkeys(SENTENCES, sides.text), **known
        )
        whole = replace(term, options={**necessary.get(term.name, {}), **term.options})
        assert torch.isfinite(apply(whole.create().double(), offer).value)


def test_svr_recipes_are_the_rows_of_the_paper():
    for name, modelling, direction, beta in (
        ("uni-static-svr", "static", "t2a", 0.0),
        ("bi-static-svr", "static", "both", 0.0),
        ("bi-static-svr-constrained", "static", "both", 0.01),
        ("uni-dynamic-svr", "dynamic", "t2a", 0.01),
        ("bi-dynamic-svr", "dynamic", "both", 0.01),
        ("uni-dynamic-svr-unconstrained", "dynamic", "t2a", 0.0),
    ):
        batch, term = pair(), recipe(f"infonce+{name}").terms[1].create(batch_size=5).double()
        reference = SVR(modelling, direction=direction, beta=beta, batch_size=5).double()
        reference.load_state_dict(term.state_dict())
        assert torch.equal(apply(term, batch).value, reference(batch.audio, batch.text).value), name


def test_predictor_is_as_wide_as_the_batch_unless_told():
    width = lambda term, size: term.create(size).predictor.batch_size  # noqa: E731
    assert width(Term("svr"), 7) == 7
    assert width(Term("svr"), None) == 0, "of the first batch that it meets"
    assert width(Term("svr", options={"batch_size": 9}), 7) == 9
    assert Term("infonce").create(7).direction == "both"  # has no such option


@pytest.mark.parametrize(
    ("name", "languages", "sampling"),
    [
        ("ml-clap", 8, "random"),
        ("kcl", 8, "all"),
        ("cacl+bi-dynamic-svr", 8, "pair"),
        ("siglip+uni-static-svr", 1, "fixed"),
    ],
)
def test_sums_sample_languages_as_their_loss_needs(name, languages, sampling):
    one = recipe(name)
    assert (len(one.languages), one.sampling) == (languages, sampling)


def test_overrides_are_fields_or_options_of_terms():
    one = recipe("infonce", epochs=2, tau=0.1, languages="fra")
    assert (one.epochs, one.languages) == (2, ("fra",))
    assert one.terms[0].options == {"tau": 0.1}
    assert RECIPES["infonce"].terms[0].options == {}


def test_an_option_goes_to_every_term_that_has_it_and_a_temperature_to_the_first():
    both = recipe("infonce+siglip", tau=0.2, bias=-1.0, learnable=True)
    infonce, siglip = both.terms
    assert infonce.options == {"tau": 0.2, "learnable": True}
    assert siglip.options == {"form": "siglip", "bias": -1.0}
    assert [term.options for term in recipe("siglip-languages").terms] == [recipe("siglip").terms[0].options]


def test_an_option_with_a_terms_name_goes_to_that_term_alone():
    one = recipe("infonce+bi-dynamic-svr", **{"svr.tau": 0.2, "svr.direction": "t2a"})
    assert [dict(term.options) for term in one.terms] == [{}, {"tau": 0.2}]
    shared = recipe("infonce+bi-dynamic-svr", **{"svr.tau": 0.07, "tau": 0.2})  # whatever the order of a set
    assert [term.settings["tau"] for term in shared.terms] == [0.2, 0.07]


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        (recipe("infonce", tau=0.07), recipe("infonce")),
        (recipe("infonce+bi-dynamic-svr", tau=0.2, **{"svr.tau": 0.2}), recipe("infonce+bi-dynamic-svr", tau=0.2)),
        (recipe("siglip+bi-static-svr", tau=0.1), recipe("siglip+bi-static-svr")),
    ],
)
def test_a_temperature_that_a_term_has_anyway_makes_no_other_recipe(named, plain):
    assert named == plain


def test_a_term_cannot_learn_a_temperature_that_is_fixed_elsewhere():
    with pytest.raises(ValueError, match="shares that of 'kcl', which is fixed: name 'infonce' first"):
        recipe("kcl+infonce-learnable")
    with pytest.raises(ValueError, match="shares that of 'infonce'"):
        recipe("infonce+kcl", **{"kcl.learnable": True})
    assert recipe("infonce-learnable+kcl").terms[0].settings["learnable"]
    assert all(term.settings["learnable"] for term in recipe("infonce+kcl", learnable=True).terms)


def test_sum_takes_what_a_part_sets_and_refuses_contradictions(monkeypatch):
    rows = dict(RECIPES)
    rows["all"] = replace(rows["siglip"], name="all", sampling="all")
    rows["pair"] = replace(rows["siglip"], name="pair", sampling="pair")
    monkeypatch.setattr("pullpush.training.recipes.RECIPES", rows)
    assert recipe("infonce+all").sampling == "all"
    with pytest.raises(ValueError, match="disagree on sampling"):
        recipe("all+pair")


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: recipe("infonse"), "infonce"),
        (lambda: recipe("infonce+siglib"), "siglip"),
        (lambda: recipe("infonce", epoch=3), "epochs"),
        (lambda: recipe("infonce", taw=3), "tau"),
        (lambda: recipe("infonce+bi-static-svr", **{"svr.raduis": 3}), "svr.radius"),
        (lambda: recipe("infonce", optimiser="adamv"), "adamw"),
        (lambda: recipe("infonce", schedule="cosin"), "cosine"),
        (lambda: recipe("infonce", sampling="randon"), "random"),
        (lambda: Term("sigmoid_lip"), "siglip"),
        (lambda: Term("infonce", options={"directions": "t2a"}), "direction"),
    ],
)
def test_unknown_names_give_the_nearest(call, near):
    with pytest.raises(UnknownNameError, match=f"did you mean .*'{near}'"):
        call()


@pytest.mark.parametrize(
    "bad", [{"epochs": 0}, {"lr": 0}, {"batch_size": 0}, {"warmup": 1.5}, {"clip": -1}, {"scalar_lr": -1}]
)
def test_numbers_out_of_range_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        recipe("infonce", **bad)


@given(
    name=st.sampled_from([*RECIPES, "infonce+siglip"]),
    lr=st.floats(1e-6, 1),
    tau=st.floats(0.01, 1),
    languages=st.lists(st.sampled_from(["eng", "fra", "zho"]), min_size=1, unique=True),
)
def test_json_round_trip(name, lr, tau, languages):
    tempered = {"tau": tau} if any("tau" in term.settings for term in recipe(name).terms) else {}
    one = recipe(name, lr=lr, **tempered, languages=languages, encoder_options={"width": 8})
    assert from_json(one.to_json()) == one
    assert isinstance(from_json(one.to_json()), Recipe)


@pytest.mark.parametrize(
    ("name", "shown", "role"),
    [
        ("infonce", "InfoNCE", "blue"),
        ("ml-clap", "ML-CLAP", "purple"),
        ("siglip+bi-static-svr", "SigLIP + bi-StaticSVR", "sky"),
        ("infonce + bi-dynamic-svr", "InfoNCE + bi-DynamicSVR", "orange"),
        ("uni-dynamic-svr-unconstrained", "uni-DynamicSVR, unconstrained", ""),
        ("something else", "something else", ""),
    ],
)
def test_figures_ask_for_titles_and_roles_of_colours(name, shown, role):
    assert (title(name), colour(name)) == (shown, role)


NAME = "infonce-learnable+cyclic+simcse-0.1"


def test_named_terms_change_and_the_others_stay():
    one = recipe(NAME, **weighted(NAME, simcse=0.5))
    weights = {term.name: term.weight for term in one.terms}
    assert weights == {"infonce": 1, "cross-cyclic": 0.25, "in-modal-cyclic": 0.25, "simcse": 0.5}
    assert [term.options for term in one.terms] == [term.options for term in recipe(NAME).terms]
    assert recipe(NAME, **weighted(NAME)) == recipe(NAME)
    assert recipe(NAME, **weighted(NAME, simcse=0)).terms == recipe("infonce-learnable+cyclic").terms  # left out


def test_options_still_reach_the_terms():
    one = recipe(NAME, tau=0.2, duplicates="mask", **weighted(NAME, simcse=0.5))
    assert one.terms[0].options["tau"] == 0.2
    assert one.terms[-1].options == {"duplicates": "mask"}


def test_a_term_that_the_recipe_has_not_is_named():
    with pytest.raises(UnknownNameError, match=r"unknown term of .*'simcs': did you mean 'simcse'"):
        weighted(NAME, simcs=0.5)
