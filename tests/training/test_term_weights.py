"""Other weights for the terms of a recipe."""

import pytest

from pullpush.errors import UnknownNameError
from pullpush.training.recipes import recipe, weighted

NAME = "infonce-learnable+cyclic+simcse-0.1"


def weights(one):
    return {term.name: term.weight for term in one.terms}


def test_named_terms_change_and_the_others_stay():
    one = recipe(NAME, **weighted(NAME, simcse=0.5))
    assert weights(one) == {"infonce": 1, "cross-cyclic": 0.25, "in-modal-cyclic": 0.25, "simcse": 0.5}
    assert [term.options for term in one.terms] == [term.options for term in recipe(NAME).terms]
    assert recipe(NAME, **weighted(NAME)) == recipe(NAME)


def test_options_still_reach_the_terms():
    one = recipe(NAME, tau=0.2, duplicates="mask", **weighted(NAME, simcse=0.5))
    assert one.terms[0].options["tau"] == 0.2
    assert one.terms[-1].options == {"duplicates": "mask"}


def test_a_weight_of_zero_leaves_a_term_out():
    one = recipe(NAME, **weighted(NAME, simcse=0))
    assert one.terms == recipe("infonce-learnable+cyclic").terms


def test_a_term_that_the_recipe_has_not_is_named():
    with pytest.raises(UnknownNameError, match=r"unknown term of .*'simcs': did you mean 'simcse'"):
        weighted(NAME, simcs=0.5)
