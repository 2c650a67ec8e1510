"""Each adapter hands its loss the embeddings that the loss is about."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from pullpush.losses import CACL, KCL, SVR, InfoNCE, cacl, info_nce, kcl
from pullpush.training.adapters import OnEachLanguage, OnLanguages, OnPair, OnTriplet, Pair


def pair(parallel, n=4, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    audio, text, *others = F.normalize(torch.randn(2 + parallel, n, d, generator=generator), dim=-1).unbind()
    return Pair(audio, text, tuple(others))


def flat(one):
    return one.audio, one.text, *one.parallel


@given(parallel=st.integers(0, 4), seed=st.integers(0, 1000))
def test_on_languages_stacks_the_main_text_first(parallel, seed):
    one = pair(parallel, seed=seed)
    texts = torch.empty(4, 1 + parallel, 3)
    for number, text in enumerate([one.text, *one.parallel]):
        texts[:, number] = text
    torch.testing.assert_close(OnLanguages(KCL())(one), kcl(one.audio, texts))


@given(parallel=st.integers(0, 4), seed=st.integers(0, 1000))
def test_on_each_language_is_the_mean_over_texts(parallel, seed):
    one = pair(parallel, seed=seed)
    expected = sum(info_nce(one.audio, text).item() for text in (one.text, *one.parallel)) / (1 + parallel)
    assert OnEachLanguage(InfoNCE())(one).item() == pytest.approx(expected, rel=1e-5)


def test_on_each_language_is_on_pair_with_one_language():
    one, loss = pair(0), SVR(batch_size=4)
    assert torch.equal(OnEachLanguage(loss)(one), OnPair(loss)(one))


@settings(max_examples=30, deadline=None)
@given(
    parallel=st.integers(0, 4),
    modelling=st.sampled_from(["static", "dynamic"]),
    direction=st.sampled_from(["both", "t2a", "a2t"]),
    seed=st.integers(0, 1000),
)
def test_all_languages_in_one_call_are_the_loop_over_them(parallel, modelling, direction, seed):
    audio, text, *others = (x.double().requires_grad_() for x in flat(pair(parallel, seed=seed)))
    loss = SVR(modelling, direction=direction, beta=0.3, batch_size=5, hidden=8).double()
    if modelling == "dynamic":
        nn.init.normal_(loss.predictor.layers[-1].weight, generator=torch.Generator().manual_seed(seed))
    leaves = (audio, text, *others, *loss.parameters())
    expected, radii = [], []
    for language in (text, *others):
        expected.append(loss(audio, language))
        radii.append(loss.report()["radius"])
    expected = torch.stack(expected).mean()
    everywhere = torch.ones(4, 1 + parallel, dtype=torch.bool)
    for present in (None, everywhere):  # at once, one by one
        term = OnEachLanguage(loss)
        value = term(Pair(audio, text, tuple(others), present))
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(term.report()["radius"], torch.stack(radii).mean(), rtol=1e-12, atol=1e-12)
        gradients = [torch.autograd.grad(x, leaves, retain_graph=True) for x in (value, expected)]
        for ours, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_loss_of_groups_is_called_once_and_language_by_language_where_texts_are_missing():
    class Counted(SVR):
        calls = 0

        def forward(self, audio, text):
            self.calls += 1
            return super().forward(audio, text)

    loss, one = Counted("static"), pair(3)
    OnEachLanguage(loss)(one)
    assert loss.calls == 1
    present = torch.ones(4, 4, dtype=torch.bool)
    present[0, 2] = False
    OnEachLanguage(loss)(one._replace(present=present))
    assert loss.calls == 1 + 4


def test_on_pair_leaves_parallel_texts_alone():
    one = pair(2)
    assert torch.equal(OnPair(InfoNCE())(one), info_nce(one.audio, one.text))


def test_on_triplet_takes_the_one_other_text():
    one = pair(1)
    assert torch.equal(OnTriplet(CACL())(one), cacl(one.audio, one.text, one.parallel[0]))


@pytest.mark.parametrize("parallel", [0, 2])
def test_on_triplet_says_which_sampling_it_needs(parallel):
    with pytest.raises(ValueError, match=rf'CACL takes .* got {parallel} others: .* sampling="pair"'):
        OnTriplet(CACL())(pair(parallel))


def test_radius_is_reported_over_all_languages():
    class Told(nn.Module):
        said = 0.0

        def forward(self, audio, text):
            self.said += 1.0
            return text.sum()

        def report(self):
            return {"radius": torch.tensor(self.said)}

    term = OnEachLanguage(Told())
    assert term.report() == {}
    term(pair(2))
    assert term.report() == {"radius": torch.tensor(2.0)}  # of 1, 2 and 3
    term(pair(0))
    assert term.report() == {"radius": torch.tensor(4.0)}  # the last batch alone
    assert OnPair(InfoNCE()).report() == {}
