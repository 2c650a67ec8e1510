"""Each adapter hands its loss the embeddings that the loss is about."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from pullpush.losses import CACL, KCL, SVR, InfoNCE, cacl, info_nce, kcl
from pullpush.training.adapters import OnEachLanguage, OnLanguages, OnPair, OnTriplet, Pair


def pair(parallel, n=4, d=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    audio, text, *others = F.normalize(torch.randn(2 + parallel, n, d, generator=generator), dim=-1).unbind()
    return Pair(audio, text, tuple(others))


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
