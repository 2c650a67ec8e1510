"""What metrics refuse: a number that would come of it would be wrong, and nobody would see it."""

import numpy as np
import pytest
import torch

from pullpush import metrics
from pullpush.metrics._language import intrinsic, probed
from pullpush.metrics._retrieval import precision_by_chance, recall_by_chance
from pullpush.metrics.annotations import annotated_by_clip, graded_by_clip
from pullpush.metrics.geometry import space

EYE = torch.eye(4)
NAN = EYE * float("nan")
LABELS = torch.arange(4)
SCORES = [[1.0, 2.0, 4.0], [2.0, 3.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.zero_shot_predictions(NAN, EYE), "audio has 16 values that are NaN or infinite"),
        (lambda: metrics.zero_shot_predictions(EYE, NAN), "prompts has 16 values that are NaN or infinite"),
        (lambda: metrics.zero_shot_predictions(EYE.numpy(), EYE), "audio must be a floating-point tensor, got a NumPy"),
        (lambda: metrics.zero_shot_predictions(EYE, torch.empty(3, 0, 4)), r"must share d, got .* and \(3, 0, 4\)"),
        (lambda: metrics.zero_shot_predictions(EYE, torch.empty(0, 4)), r"must share d, got \(4, 4\) and \(0, 4\)"),
        (lambda: metrics.alignment(EYE, EYE[:1]), r"audio \(4, 4\) and text \(1, 4\) must have one shape"),
        (lambda: metrics.alignment(EYE, EYE[0]), "must have one shape"),
        (lambda: metrics.alignment(EYE[:0], EYE[:0]), "with N ≥ 1"),
        (lambda: metrics.alignment(NAN, EYE), "audio has 16 values"),
        (lambda: metrics.uniformity(NAN), "embeddings has 16 values"),
        (lambda: metrics.uniformity(EYE, t=0), "t must be positive and at most 100.0, got 0"),
        (lambda: metrics.retrieval(EYE, EYE.bool(), ks=(-1,)), "ks: a cut-off must be at least 1, got -1"),
        (lambda: metrics.retrieval(EYE, EYE.bool(), ks=(0,)), "ks: a cut-off must be at least 1, got 0"),
        (lambda: metrics.retrieval(EYE, EYE.bool(), ks=5), "ks must be a sequence of whole numbers"),
        (lambda: metrics.retrieval(EYE, EYE.bool(), map_at=(1.5,)), "map_at: a cut-off must be a whole number"),
        (lambda: metrics.retrieval(EYE.half(), EYE), "similarity in torch.float16 makes ties of neighbours"),
        (lambda: metrics.retrieval(EYE, NAN), r"relevance must be in \[0, 1\], got nan"),
        (lambda: metrics.retrieval(EYE, EYE - 2), r"relevance must be in \[0, 1\], got -1"),
        (lambda: metrics.retrieval(EYE, EYE.numpy()), "relevance must be a boolean or floating-point tensor"),
        (
            lambda: metrics.retrieval(EYE, 3 * EYE),
            r"relevance must be in \[0, 1\], got 3: divide grades by the highest",
        ),
        (lambda: metrics.adjusted([[0.01, 0.04]]), r"p must be \(n,\), numbers from 0 to 1, got \(1, 2\)"),
        (lambda: metrics.adjusted([0.5, -0.2]), "numbers from 0 to 1, got .* from -0.2"),
        (lambda: intrinsic(EYE, EYE), r"need text \(N, C, d\) and relevance \(N, N\), got \[4, 4\] and"),
        (lambda: intrinsic(NAN[:, None], EYE), "text has 16 values"),
        (lambda: intrinsic(EYE[:, None], EYE[:1]), r"and relevance \(N, N\), got \[4, 1, 4\] and \[1, 4\]"),
        (lambda: probed(EYE[:, None], LABELS[:2].numpy()), r"and classes \(N,\), got \[4, 1, 4\] and \[2\]"),
        (lambda: metrics.retrieval(EYE, EYE.long()), "must be a boolean or floating-point tensor, got torch.int64"),
        (lambda: metrics.retrieval(EYE.numpy(), EYE), "similarity must be a floating-point tensor"),
        (lambda: metrics.retrieval(EYE, EYE, threshold=float("nan")), "threshold must be finite, got nan"),
        (lambda: metrics.by_clip(NAN, EYE), "audio has 16 values"),
        (lambda: metrics.by_clip(EYE, EYE[:, :3]), "text must be"),
        (lambda: metrics.by_caption(EYE, EYE, LABELS + 1), "clip must be 0 … 3, got 1 … 4"),
        (lambda: metrics.caption_relevance(0, 1), "clips must be at least 1, got 0"),
        (lambda: metrics.language_ranks(EYE, NAN[:, None]), "texts has 16 values"),
        (lambda: metrics.gap(EYE, EYE[:1]), "need english"),
        (lambda: metrics.gap(EYE, EYE.double()), "must have one type"),
        (lambda: metrics.angle(EYE.numpy(), EYE), "one must be a floating-point tensor"),
        (lambda: metrics.difference(np.ones((2, 2)) * 1j), "ours must be real numbers, got complex ones"),
        (lambda: metrics.difference(SCORES, level=95), "level is a fraction such as 0.95, got 95"),
        (lambda: metrics.difference(SCORES, level="95"), "level must be a number, got str '95'"),
        (lambda: recall_by_chance(0, 1, 4), "k must be at least 1, got 0"),
        (lambda: precision_by_chance(1, 5, 4), "relevant must be at least 1 and at most 4, got 5"),
        (lambda: space(NAN, EYE), "audio has 16 values"),
        (lambda: graded_by_clip(EYE, EYE[:, None], EYE[:1]), r"relevance \(N, N\), got .*\(1, 4\)"),
        (lambda: annotated_by_clip(EYE[:3], EYE), "3 captions are no multiple of 4 clips"),
        (lambda: annotated_by_clip(EYE, -EYE), r"relevance must be in \[0, 1\], got -1"),
    ],
)
def test_what_would_be_silently_wrong_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_what_is_right_is_taken():
    assert metrics.retrieval(EYE, EYE, ks=range(1, 3), map_at=[np.int64(2)])["R@2"] == 1
    assert metrics.retrieval(EYE - torch.tensor([0, 0, 0, torch.inf]), EYE.bool().roll(1, 0) | EYE.bool(), map_at=())


def test_no_queries_no_cut_offs_and_lists_in_place_of_tensors():
    assert metrics.retrieval(EYE, EYE.bool(), (), ()) == {}
    with pytest.raises(ValueError, match="no queries"):
        metrics.retrieval(torch.zeros(0, 4), torch.zeros(0, 4).bool())
    with pytest.raises(TypeError, match="clip must be a tensor"):
        metrics.by_caption(EYE, EYE, [0, 1, 2, 3])
