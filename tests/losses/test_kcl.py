"""KCL against loops over the sums as ATRI prints them, with and without missing translations."""

import math

import pytest
import torch
from embeddings import sphere
from hypothesis import given, settings, strategies as st

from pullpush.losses import kcl

sizes = {"n": st.integers(1, 6), "k": st.integers(1, 4), "seed": st.integers(0, 10_000)}


def loop_kcl(audio, texts, tau, present=None, candidates="language"):
    """Eq. 9–11, one exponential at a time; texts that are not present do not exist."""
    n, languages = len(audio), texts.shape[1]
    given = [[present is None or bool(present[i, k]) for k in range(languages)] for i in range(n)]
    e = {
        (i, j, k): math.exp(float(audio[i] @ texts[j, k]) / tau)
        for i in range(n)
        for j in range(n)
        for k in range(languages)
        if given[j][k]
    }
    a2t = t2a = count = 0
    for k in range(languages):
        for i in range(n):
            if not given[i][k]:
                continue
            count += 1
            group = range(languages) if candidates == "all" else (k,)
            a2t -= math.log(e[i, i, k] / sum(e[i, j, m] for j in range(n) for m in group if given[j][m]))
            t2a -= math.log(e[i, i, k] / sum(e[j, i, k] for j in range(n)))
    return (a2t + t2a) / (2 * count)


@pytest.mark.parametrize("candidates", ["language", "all"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (1, 3), (4, 1), (5, 3)])
@pytest.mark.parametrize("tau", [0.07, 0.5])
def test_kcl_equals_the_loop(n, k, tau, candidates):
    audio, texts = sphere(n, 6), sphere(n, k, 6, seed=1)
    expected = loop_kcl(audio, texts, tau, candidates=candidates)
    assert kcl(audio, texts, tau, candidates=candidates).item() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(**sizes, candidates=st.sampled_from(["language", "all"]))
def test_missing_translations_do_not_exist(n, k, seed, candidates):
    audio, texts = sphere(n, 5, seed=seed), sphere(n, k, 5, seed=seed + 1)
    present = torch.rand(n, k, generator=torch.Generator().manual_seed(seed)) < 0.6
    present[seed % n, seed % k] = True
    expected = loop_kcl(audio, texts, 0.2, present, candidates)
    texts[~present] = math.nan
    audio.requires_grad_(), texts.requires_grad_()
    loss = kcl(audio, texts, 0.2, present=present, candidates=candidates)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    loss.backward()
    assert audio.grad.isfinite().all()
    assert torch.equal(texts.grad[~present], torch.zeros_like(texts.grad[~present]))


def test_a_language_that_no_clip_has_changes_nothing():
    audio, texts = sphere(4, 5), sphere(4, 3, 5, seed=1)
    present = torch.ones(4, 3, dtype=torch.bool)
    present[:, 1] = False
    assert torch.allclose(kcl(audio, texts, present=present), kcl(audio, texts[:, [0, 2]]))


@pytest.mark.parametrize(
    ("audio", "texts", "options", "message"),
    [
        ((2, 3), (2, 3), {}, r"\(N, K, d\)"),
        ((2, 3), (2, 0, 3), {}, "K ≥ 1"),
        ((2, 3), (3, 2, 3), {}, "row i of each is a pair"),
        ((0, 3), (0, 2, 3), {}, "N ≥ 1"),
        ((2, 3), (2, 2, 3), {"tau": -1}, "tau must be positive"),
        ((2, 3), (2, 2, 3), {"candidates": "none"}, "candidates must be one of"),
        ((2, 3), (2, 2, 3), {"present": torch.ones(2, dtype=torch.bool)}, r"present must have shape \(N, K\)"),
        ((2, 3), (2, 2, 3), {"present": torch.zeros(2, 2, dtype=torch.bool)}, "no text of this batch"),
    ],
)
def test_bad_input_is_named(audio, texts, options, message):
    with pytest.raises(ValueError, match=message):
        kcl(torch.zeros(audio), torch.zeros(texts), **options)
