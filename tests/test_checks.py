"""What losses and forces refuse: what would be silently wrong, with a message that names it."""

import numpy as np
import pytest
import torch
from embeddings import pairs
from tempered import TEMPERED

from pullpush import forces, losses, metrics

WITH_TEMPERATURE = {**TEMPERED, "decompose": forces.decompose}


@pytest.mark.parametrize("name", WITH_TEMPERATURE)
@pytest.mark.parametrize(
    ("tau", "message"),
    [
        ("0.1", "tau must be a number, got str '0.1'"),
        (None, "tau must be a number, got None"),
        (True, "tau must be a number, got bool True"),
        (np.full(8, 0.1), "tau must be a number, got a NumPy array"),
        (torch.tensor(-0.1), "tau must be positive, got -0.1"),
        (torch.full((8,), 0.1), r"tau must be a number or a 0-d tensor, got a tensor of shape \(8,\)"),
        (float("inf"), "tau must be finite, got inf"),
        (float("nan"), "tau must be finite, got nan"),
    ],
)
def test_a_temperature_that_is_none_is_named(name, tau, message):
    with pytest.raises((TypeError, ValueError), match=message):
        WITH_TEMPERATURE[name](*pairs(8, dtype=torch.float32), tau=tau)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, t: losses.siglip(a, t, bias=float("nan")), "bias must be finite, got nan"),
        (lambda a, t: losses.SigLIP(bias=float("nan")), "bias must be finite, got nan"),
        (lambda a, t: losses.simple_reweight(a, t, float("nan")), "weight must be finite, got nan"),
        (lambda a, t: losses.simple_reweight(a, t, 0.0, form="softmax"), "weight must be positive, got 0.0"),
        (lambda a, t: losses.svr(a, t, "0.1"), "radius must be a number, got str '0.1'"),
        (lambda a, t: losses.svr(a, t, torch.full((8,), float("nan"))), "radius must be finite"),
        (lambda a, t: losses.SVR(alpha=float("nan")), "alpha must be finite, got nan"),
        (lambda a, t: losses.SVR(batch_size=2.5), "batch_size must be a whole number, got float 2.5"),
        (lambda a, t: losses.InfoNCE(max_scale=-1.0, learnable=True), "max_scale must be positive, got -1.0"),
        (lambda a, t: losses.info_nce(a.numpy(), t.numpy()), r"audio .* got a NumPy array \(torch.from_numpy makes"),
        (lambda a, t: losses.info_nce(a, t[:1]), "row i of each is a pair"),
        (lambda a, t: losses.info_nce(a, t[0]), r"text must have shape \(N, d\)"),
        (lambda a, t: losses.info_nce(a[:0], t[:0]), "N ≥ 1"),
        (lambda a, t: losses.info_nce(a, t, direction=1), "direction must be one of .* got 1"),
        (lambda a, t: losses.label_smoothing(a, t, epsilon="1"), "epsilon must be a number, got str '1'"),
        (lambda a, t: forces.decompose(a.numpy(), t), "anchor must be a floating-point tensor, got a NumPy array"),
        (lambda a, t: forces.decompose(a, t.double()), "torch.float32 and candidates torch.float64 must have one type"),
        (lambda a, t: forces.decompose(a, t, positive=torch.full((8,), 8)), "positive must be 0 … 7, got 8 … 8"),
        (lambda a, t: forces.decompose(a, t, positive=torch.zeros(8)), "positive must be a tensor of whole numbers"),
        (lambda a, t: forces.drift(a, t[:1]), r"update \(8, 6\) and pull \(1, 6\) must have one shape"),
        (lambda a, t: forces.tangent(a, t[0]), r"vector \(8, 6\) and at \(6,\) must have one shape"),
        (lambda a, t: forces.sideways(a, t, t[:1]), "must have one shape"),
        (lambda a, t: forces.distance_change(a, t, t[0]), "must have shape|must have one shape"),
        (lambda a, t: forces.local_global(a, t, batch_size=2.0), "batch_size must be a whole number, got float 2.0"),
        (lambda a, t: forces.distance_change(a, t, t, step=torch.ones(8, 1)), "step must be a number or a 0-d tensor"),
        (lambda a, t: forces.distance_change(a, t, t, step=float("nan")), "step must be finite, got nan"),
        (lambda a, t: forces.step_parts(losses.info_nce, a, t, batch_size=1), "at least 2 and at most 8, got 1"),
        (lambda a, t: metrics.angle(a, t[:1]), r"one \(8, 6\) and other \(1, 6\) must have one shape"),
        (lambda a, t: metrics.direction_error(a, a[:, None], torch.ones(8, 1)), "taken must be boolean"),
        (lambda a, t: metrics.direction_error(a, torch.ones(8, 0, 6), torch.ones(8, 0).bool()), "K ≥ 1"),
        (lambda a, t: metrics.gap(a, torch.ones(8, 0, 6)), "need english"),
        (lambda a, t: metrics.language_ranks(a, torch.ones(8, 0, 6)), "K ≥ 1"),
        (lambda a, t: metrics.rank_variance(torch.tensor([[-1, 3]])), "counted from 0 or 1, got -1"),
        (lambda a, t: forces.step_parts(losses.info_nce, a, t, batch_size=9), "at least 2 and at most 8, got 9"),
    ],
)
def test_what_would_be_silently_wrong_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(*pairs(8, dtype=torch.float32))


@pytest.mark.parametrize("change", [lambda x: x.to_sparse(), lambda x: x.to("meta")], ids=["sparse", "meta"])
def test_a_tensor_that_is_not_dense_is_named(change):
    audio, text = pairs(8, dtype=torch.float32)
    with pytest.raises(TypeError, match="audio must be a dense tensor"):
        losses.info_nce(change(audio), text)


def test_other_types_are_computed_in_the_wider_one():
    audio, text = pairs(8, dtype=torch.float32)
    exact = losses.info_nce(audio.double(), text.double())
    assert losses.info_nce(audio.double(), text) == pytest.approx(exact.item(), rel=1e-6)
    assert losses.siglip(audio, text.double(), bias=-1.0).dtype == torch.float64


def test_siglip_of_float16_does_not_overflow():
    audio, text = pairs(4096, 8, dtype=torch.float16)
    found = losses.siglip(audio, text)
    assert found.isfinite()
    assert torch.equal(found, losses.siglip(audio.float(), text.float()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("loss", [losses.info_nce, losses.simcse, lambda a, t: losses.nli(a, t, t.flip(0))])
def test_functions_give_single_precision_of_half(loss, dtype):
    audio, text = pairs(6, 8, dtype=dtype)
    assert torch.equal(loss(audio, text), loss(audio.float(), text.float()))


def test_a_loss_beyond_float16_is_given_in_float32():
    audio, text = pairs(4096, 8, dtype=torch.float16)
    found = losses.cross_cyclic(audio, text)
    assert torch.finfo(torch.float16).max < found < torch.inf
    assert torch.equal(found, losses.cross_cyclic(audio.float(), text.float()))


def test_a_temperature_that_learns_is_positive_too():
    for loss in (losses.info_nce, forces.decompose):
        with pytest.raises(ValueError, match="tau must be positive, got -1"):
            loss(torch.eye(3), torch.eye(3), torch.tensor(-1.0, requires_grad=True))
