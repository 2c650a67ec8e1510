"""The cyclic terms against loops over pairs, CyCLIP's published form, and what they are zero for."""

import pytest
import torch
from embeddings import pairs, sphere
from hypothesis import given, settings, strategies as st

from pullpush.losses import cross_cyclic, in_modal_cyclic
from pullpush.training.recipes import recipe

TERMS = [cross_cyclic, in_modal_cyclic]


def by_loops(name, audio, text):
    """The sums as printed, pair by pair."""
    total = 0.0
    for j in range(len(audio)):
        for k in range(len(audio)):
            if name == "cross_cyclic":
                total += float(audio[j] @ text[k] - audio[k] @ text[j]) ** 2
            else:
                total += float(audio[j] @ audio[k] - text[k] @ text[j]) ** 2
    return total


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 7), d=st.integers(1, 6), seed=st.integers(0, 1000))
@pytest.mark.parametrize("term", TERMS)
def test_sum_over_all_pairs(term, n, d, seed):
    audio, text = sphere(n, d, seed=seed), sphere(n, d, seed=seed + 1)
    assert float(term(audio, text)) == pytest.approx(by_loops(term.__name__, audio, text), abs=1e-12)


@pytest.mark.parametrize("term", TERMS)
def test_per_clip_is_the_published_mean_times_the_batch(term):
    audio, text = pairs(7, 5)
    a, t = (audio @ text.T, text @ audio.T) if term is cross_cyclic else (audio @ audio.T, text @ text.T)
    assert float(term(audio, text, per_clip=True)) == pytest.approx(float((a - t).square().mean() * 7))


def test_zero_where_the_geometry_is_consistent():
    audio = sphere(6, 4)
    rotation = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))).Q
    assert float(in_modal_cyclic(audio, audio @ rotation)) == pytest.approx(0, abs=1e-24)
    assert float(cross_cyclic(audio, audio @ rotation)) > 0.1
    symmetric = rotation @ torch.diag(torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)) @ rotation.T
    assert float(cross_cyclic(audio, audio @ symmetric)) == pytest.approx(0, abs=1e-24)


@pytest.mark.parametrize("term", TERMS)
def test_modalities_are_alike(term):
    audio, text = pairs(6, 5)
    assert float(term(audio, text)) == pytest.approx(float(term(text, audio)))


def test_recipe_of_cyclap_adds_them_with_their_weights():
    sum_of_three = recipe("infonce+cross-cyclic+in-modal-cyclic", per_clip=True)
    assert [term.name for term in sum_of_three.terms] == ["infonce", "cross-cyclic", "in-modal-cyclic"]
    assert [term.options for term in sum_of_three.terms] == [{}, {"per_clip": True}, {"per_clip": True}]


def test_equal_captions_ask_for_equal_clips():
    audio, text = pairs(4, 5)
    same = text[:1].expand(4, 5)
    scores = audio @ same[0]
    expected = (scores[:, None] - scores).square().sum()
    torch.testing.assert_close(cross_cyclic(audio, same), expected)
    torch.testing.assert_close(in_modal_cyclic(audio, same), (1 - audio @ audio.T).square().sum())
