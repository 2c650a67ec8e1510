"""Each loss is given the part of a batch that it declares, in several languages and where texts are missing."""

import pytest
import torch
from embeddings import DIRECTIONS, sphere
from hypothesis import given, settings, strategies as st
from torch import nn

from pullpush.losses import CACL, KCL, SVR, InfoNCE, Loss, Offer, Output, apply, info_nce, kcl

PRESENT = torch.tensor([[i != 5, i != 4, i % 3 != 0] for i in range(7)])


class OfEachLanguage(InfoNCE):
    """InfoNCE, one call for each language."""

    languages = "each"


def offer(parallel, n=4, d=3, seed=0):
    audio, text, *others = sphere(2 + parallel, n, d, seed=seed).unbind()
    return Offer(audio, text, tuple(others))


def gaps(seed=0):
    """Seven clips in three languages, with texts missing in each."""
    return offer(2, n=7, d=5, seed=seed)._replace(present=PRESENT)


def value(loss, one):
    return apply(loss, one).value


@given(parallel=st.integers(0, 4), seed=st.integers(0, 1000))
def test_all_texts_come_at_once_with_the_main_one_first(parallel, seed):
    one = offer(parallel, seed=seed)
    texts = torch.empty(4, 1 + parallel, 3, dtype=torch.float64)
    for number, text in enumerate([one.text, *one.parallel]):
        texts[:, number] = text
    torch.testing.assert_close(value(KCL(), one), kcl(one.audio, texts))


@settings(max_examples=30, deadline=None)
@given(
    parallel=st.integers(0, 4),
    modelling=st.sampled_from(["static", "dynamic"]),
    direction=st.sampled_from(DIRECTIONS),
    seed=st.integers(0, 1000),
)
def test_all_languages_in_one_call_are_the_loop_over_them(parallel, modelling, direction, seed):
    one = offer(parallel, seed=seed)
    audio, text, *others = (x.clone().requires_grad_() for x in (one.audio, one.text, *one.parallel))
    loss = SVR(modelling, direction=direction, beta=0.3, batch_size=5, hidden=8).double()
    if modelling == "dynamic":
        nn.init.normal_(loss.predictor.layers[-1].weight, generator=torch.Generator().manual_seed(seed))
    leaves = (audio, text, *others, *loss.parameters())
    outputs = [loss(audio, language) for language in (text, *others)]
    expected = torch.stack([output.value for output in outputs]).mean()
    radius = torch.stack([output.report["radius"] for output in outputs]).mean()
    everywhere = torch.ones(4, 1 + parallel, dtype=torch.bool)
    for present in (None, everywhere):  # at once, one by one
        found, report = apply(loss, Offer(audio, text, tuple(others), present))
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(report["radius"], radius, rtol=1e-12, atol=1e-12)
        gradients = (torch.autograd.grad(x, leaves, retain_graph=True) for x in (found, expected))
        torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_a_loss_of_groups_is_called_once_and_language_by_language_where_texts_are_missing():
    class Counted(SVR):
        calls = 0

        def forward(self, audio, text):
            self.calls += 1
            return super().forward(audio, text)

    loss, one = Counted("static"), offer(3)
    apply(loss, one)
    assert loss.calls == 1
    present = torch.ones(4, 4, dtype=torch.bool)
    present[0, 2] = False
    apply(loss, one._replace(present=present))
    assert loss.calls == 1 + 4


@pytest.mark.parametrize("parallel", [0, 2])
def test_a_loss_of_one_other_text_says_which_sampling_it_needs(parallel):
    with pytest.raises(ValueError, match=rf'CACL takes .* got {parallel} others: .* sampling="pair"'):
        apply(CACL(), offer(parallel))


# --- missing texts


def test_a_loss_of_pairs_sees_the_pairs_whose_text_is_present():
    one = gaps()
    rows = [0, 1, 2, 3, 4, 6]
    torch.testing.assert_close(value(InfoNCE(), one), info_nce(one.audio[rows], one.text[rows]))
    with pytest.raises(ValueError, match="no clip of this batch has a text in the main language"):
        apply(InfoNCE(), one._replace(present=PRESENT & torch.tensor([False, True, True])))


def test_what_goes_with_the_main_texts_is_left_out_with_them():
    class Rows(Loss):
        needs = ("text", "second_text", "teacher_similarity", "ids")

        def forward(self, text, second_text, teacher_similarity, ids):
            report = {"ids": ids.sum(), "corner": teacher_similarity[-1, -1], "n": torch.tensor(len(second_text))}
            return Output(text.sum(), report)

    grid = torch.arange(49.0).view(7, 7)
    ids = torch.arange(7)
    report = apply(Rows(), gaps()._replace(second_text=torch.ones(7, 5), teacher_similarity=grid, ids=ids)).report
    assert report["ids"] == 0 + 1 + 2 + 3 + 4 + 6
    assert report["corner"] == grid[6, 6]
    assert report["n"] == 6


def test_a_language_counts_as_often_as_it_is_present():
    one = gaps()
    total = sum(
        int(rows.sum()) * info_nce(one.audio[rows], text[rows])
        for rows, text in zip(PRESENT.T, (one.text, *one.parallel), strict=True)
    )
    torch.testing.assert_close(value(OfEachLanguage(), one), total / PRESENT.sum())
    whole = one._replace(present=torch.ones(7, 3, dtype=torch.bool))
    torch.testing.assert_close(value(OfEachLanguage(), whole), value(OfEachLanguage(), one._replace(present=None)))


def test_a_loss_of_all_texts_says_whether_it_bears_gaps():
    class Whole(Loss):
        needs = ("texts",)

        def forward(self, texts):
            return Output(texts.sum())

    assert value(Whole(), gaps()._replace(present=None)) == gaps().texts.sum()
    with pytest.raises(ValueError, match="texts are missing, which Whole needs"):
        apply(Whole(), gaps())


def test_what_is_not_offered_is_named():
    class Grouped(Loss):
        needs = ("audio", "clusters")

        def forward(self, audio, clusters):
            return Output(audio.sum())

    with pytest.raises(ValueError, match="Grouped needs clusters, which this batch does not offer"):
        apply(Grouped(), offer(0))


def test_a_batch_without_texts_and_marks_of_another_form_are_told():
    one = offer(0)
    none = one._replace(present=torch.zeros(4, 1, dtype=torch.bool))
    for loss in (SVR("static"), InfoNCE()):
        with pytest.raises(ValueError, match="no clip of this batch has a text"):
            apply(loss, none)
    for wrong in (torch.ones(4, dtype=torch.bool), torch.ones(4, 1), torch.ones(4, 2, dtype=torch.bool)):
        with pytest.raises(ValueError, match=r"present must be boolean \(4, 1\)"):
            apply(SVR("static"), one._replace(present=wrong))
