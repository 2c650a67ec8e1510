"""Designs against a published table, and against what orthogonality asks of them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pullpush.errors import UnknownNameError
from pullpush.studies.together import terms
from pullpush.studies.together.design import DesignError, fraction, full, resolution_name

# Box, Hunter & Hunter, Statistics for Experimenters, 2nd ed., Table 6.22: factors, generators, runs, resolution.
PUBLISHED = [
    ("ABC", "C=AB", 4, "III"),
    ("ABCD", "D=ABC", 8, "IV"),
    ("ABCDE", "E=ABCD", 16, "V"),
    ("ABCDE", "D=AB E=AC", 8, "III"),
    ("ABCDEF", "F=ABCDE", 32, "VI"),
    ("ABCDEF", "E=ABC F=BCD", 16, "IV"),
    ("ABCDEF", "D=AB E=AC F=BC", 8, "III"),
    ("ABCDEFG", "G=ABCDEF", 64, "VII"),
    ("ABCDEFG", "F=ABCD G=ABDE", 32, "IV"),
    ("ABCDEFG", "E=ABC F=BCD G=ACD", 16, "IV"),
    ("ABCDEFG", "D=AB E=AC F=BC G=ABC", 8, "III"),
    ("ABCDEFGH", "G=ABCD H=ABEF", 64, "V"),
    ("ABCDEFGH", "F=ABC G=ABD H=BCDE", 32, "IV"),
    ("ABCDEFGH", "E=BCD F=ACD G=ABC H=ABD", 16, "IV"),
]


def read(text):
    return dict(pair.split("=") for pair in text.split())


@st.composite
def designs(draw):
    """Regular fractions of up to seven factors."""
    count = draw(st.integers(2, 7))
    names = "ABCDEFG"[:count]
    basic = draw(st.integers(2, count))
    parts = st.lists(st.sampled_from(names[:basic]), min_size=2, max_size=basic, unique=True)
    return fraction(names, {name: draw(parts) for name in names[basic:]})


@pytest.mark.parametrize(("factors", "generators", "runs", "resolution"), PUBLISHED)
def test_runs_and_resolution_are_those_of_the_published_table(factors, generators, runs, resolution):
    design = fraction(factors, read(generators))
    assert len(design) == runs
    assert resolution_name(design) == resolution


@settings(max_examples=40, deadline=None)
@given(design=designs())
def test_main_effects_are_balanced_and_two_are_orthogonal_unless_they_are_aliases(design):
    for name in design.factors:
        assert design.contrast(name).sum() == 0 or (name,) in design.words
    for one, other in combinations(design.factors, 2):
        product = design.contrast(one) @ design.contrast(other)
        aliased = (other,) in design.aliases(one)
        assert abs(product) == (len(design) if aliased else 0)


@settings(max_examples=25, deadline=None)
@given(design=designs())
def test_aliases_are_the_effects_with_the_same_column_of_signs(design):
    every = design.effects(len(design.factors))
    for effect in every[:12]:
        column = design.contrast(*effect)
        same = [other for other in every if other != effect and np.array_equal(design.contrast(*other), column)]
        assert sorted(same) == sorted(other for other in design.aliases(*effect) if other)


@settings(max_examples=25, deadline=None)
@given(design=designs())
def test_a_saturated_set_of_contrasts_is_an_orthogonal_basis(design):
    columns = np.stack([np.ones(len(design)), *(design.contrast(*one) for one in design.saturated())])
    assert np.array_equal(columns @ columns.T, len(design) * np.eye(len(design)))


def test_a_fraction_is_a_part_of_the_full_design():
    whole = {tuple(row) for row in full("ABCDE").signs.tolist()}
    part = [tuple(row) for row in fraction("ABCDE", {"E": "ABCD"}).signs.tolist()]
    assert len(set(part)) == len(part) == 16
    assert set(part) < whole


def test_the_chapters_design_tells_main_effects_and_two_way_interactions_apart():
    design = terms.half()
    assert (len(design), resolution_name(design)) == (64, "VII")
    assert np.linalg.matrix_rank(design.model()) == 1 + 7 + 21
    assert min(len(alias) for effect in design.effects() for alias in design.aliases(*effect)) == 5


def test_the_smaller_design_keeps_main_effects_clear_of_interactions():
    design = terms.eighth()
    assert (len(design), resolution_name(design)) == (16, "IV")
    assert all(not design.aliases(name, up_to=2) for name in design.factors)
    assert {len(design.aliases(*pair, up_to=2)) for pair in combinations(design.factors, 2)} == {2}


@pytest.mark.parametrize(
    ("factors", "generators", "message"),
    [
        ("AAB", {}, "each its own"),
        ("ABC", {"C": "A"}, "two factors or more"),
        ("ABCD", {"C": "AB", "D": "AC"}, "none generated"),
    ],
)
def test_designs_that_cannot_be_are_refused(factors, generators, message):
    with pytest.raises(DesignError, match=message):
        fraction(factors, generators)


def test_a_factor_that_is_not_there_is_named():
    with pytest.raises(UnknownNameError, match="'D'"):
        fraction("ABC", {"C": "AD"})
    with pytest.raises(UnknownNameError, match="'E'"):
        full("ABC").contrast("E")
