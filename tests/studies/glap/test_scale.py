"""What a large training takes: counts against formulas by hand, the model against limits that everybody can check."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pullpush.encoders.attention import Size
from pullpush.encoders.spectrogram_vit import Dasheng
from pullpush.errors import UnknownNameError
from pullpush.losses import plain
from pullpush.studies.counting import cost
from pullpush.studies.glap import scale
from pullpush.studies.glap.scale import A800, H200, PAPER, Job, counts, step

ENDLESS = replace(H200, cores=10**9)


def dasheng_flops(width: int, depth: int, seconds: int) -> int:
    """Of the forward pass by hand: a frame more than hops, four to a patch; mel bands, patches, blocks, attention."""
    frames = 100 * seconds + 1
    places = frames // 4
    bands, patches = 2 * 64 * 257 * frames, 2 * places * 64 * 4 * width
    blocks = 2 * places * width * (3 + 1 + 4 + 4) * width
    return bands + patches + depth * (blocks + 4 * places**2 * width)


@pytest.mark.parametrize("seconds", [1, 2])
def test_what_is_counted_is_what_a_transformer_computes_by_hand(seconds):
    encoder = Dasheng(model=Size(32, 2, 2))
    found = cost(encoder, lambda: encoder(torch.randn(1, 16_000 * seconds)))
    assert found.forward == dasheng_flops(32, 2, seconds)


def test_the_counts_that_the_book_keeps_are_those_of_the_published_sizes():
    for seconds in (1, 2, 5, 10):
        assert counts("dasheng", scale.FORWARD, seconds) == dasheng_flops(768, 12, seconds)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_backward_pass_of_a_convolution_is_two_forward_passes_whatever_its_groups(groups):
    layer, x = nn.Conv1d(8, 8, 3, groups=groups), torch.randn(2, 8, 10, requires_grad=True)
    found = cost(layer, lambda: layer(x))
    assert found.forward == 2 * 2 * 8 * 8 * (8 // groups) * 3
    assert found.both == 3 * found.forward


def test_trained_encoders_cost_about_three_times_their_forward_pass():
    for name in ("dasheng", "ced", "beats", "wavlm", "whisper-small", "sonar"):
        ratio = counts(name, scale.BOTH, 10) / counts(name, scale.FORWARD, 10)
        assert 2.9 < ratio < 3.2


def test_counts_are_linear_between_sizes_and_in_proportion_beyond_the_longest():
    at = {each: counts("dasheng", scale.BOTH, each) for each in (5, 7.5, 10, 20)}
    assert at[7.5] == pytest.approx((at[5] + at[10]) / 2)
    assert at[20] == 2 * at[10]
    whisper = [counts("whisper-small", scale.BOTH, each) for each in (1, 30)]
    assert whisper[0] == whisper[1]  # it fills up every clip


@pytest.mark.parametrize("wrong", [("dashing", "weights"), ("dasheng", "FLOPS")])
def test_what_was_not_counted_is_refused(wrong):
    with pytest.raises(UnknownNameError):
        counts(*wrong, 5)


def test_the_sigmoid_loss_computes_and_keeps_what_the_model_says():
    n, d = 256, 64
    pairs = nn.ParameterList(F.normalize(torch.randn(n, d), dim=1) for _ in range(2))
    found = cost(pairs, lambda: plain.siglip(*pairs))
    assert found.both == scale.loss_cost(Job(batch=n, dim=d))[0]
    assert 2 * n * n * 4 <= found.kept <= scale.COPIES * n * n * 4


# ---------------------------------------------------------------- the model


def test_the_paper_sees_20_epochs_of_10000_batches():
    assert PAPER.pairs == 20 * 10_000 * 1024


def test_a_step_is_arithmetic_of_what_was_counted():
    found = step(PAPER, A800)
    assert tuple(found) == scale.PARTS
    assert found[scale.AUDIO] == pytest.approx(128 * counts("dasheng", scale.BOTH, 5) / (312e12 * A800.utilisation))
    assert found[scale.DECODING] == pytest.approx(1024 * 5 / (A800.cores * A800.decode))
    ring = 2 * 7 / 8 * 4 * counts("dasheng", scale.WEIGHTS) / 200e9
    assert found[scale.GRADIENTS] == pytest.approx(ring)


def test_one_device_exchanges_nothing():
    found = step(PAPER, H200)
    assert found[scale.GATHERING] == found[scale.GRADIENTS] == 0


@pytest.mark.parametrize(
    ("job", "machine", "short"),
    [
        (PAPER, replace(H200, cores=1), scale.DECODING),
        (PAPER, ENDLESS, scale.AUDIO),
        (replace(PAPER, tokens=200.0, seconds=1.0), ENDLESS, scale.TEXT),
        (replace(PAPER, batch=2**22), ENDLESS, scale.LOSS),
        (replace(PAPER, batch=64), replace(A800, network=1e8, cores=10**9), scale.GRADIENTS),
    ],
)
def test_the_bottleneck_is_what_was_made_short(job, machine, short):
    assert scale.outline(job, machine)["bottleneck"] == short


def test_a_step_takes_what_decoding_takes_or_all_else_together():
    parts = step(PAPER, ENDLESS)
    others = sum(seconds for part, seconds in parts.items() if part != scale.DECODING)
    assert scale.outline(PAPER, ENDLESS)["seconds a step"] == pytest.approx(others)
    slow = replace(H200, cores=1)
    assert scale.outline(PAPER, slow)["seconds a step"] == pytest.approx(step(PAPER, slow)[scale.DECODING])


def test_a_machine_twice_as_well_used_computes_twice_as_fast():
    half, whole = (step(PAPER, replace(ENDLESS, utilisation=share)) for share in (0.25, 0.5))
    assert half[scale.AUDIO] == pytest.approx(2 * whole[scale.AUDIO])
    assert half[scale.OPTIMISER] == whole[scale.OPTIMISER]


def test_with_the_same_pairs_only_the_loss_makes_larger_batches_dearer():
    small, large = scale.sweep(PAPER, H200, [1024, 4096]).to_dict("records")
    assert large[scale.LOSS] == pytest.approx(4 * small[scale.LOSS])
    assert large[scale.AUDIO] == pytest.approx(small[scale.AUDIO])
    assert large[scale.OPTIMISER] < small[scale.OPTIMISER]
    once, thrice = (scale.outline(replace(PAPER, pairs=pairs), H200)["hours"] for pairs in (1e6, 3e6))
    assert thrice == pytest.approx(3 * once)


def test_the_loss_in_tiles_fits_where_the_plain_one_does_not():
    plain_loss, tiles = (scale.memory(Job(batch=131_072, loss=loss), H200)["loss"] for loss in scale.LOSSES)
    assert plain_loss > H200.memory
    assert tiles < 2 * 2**30
    assert not scale.outline(Job(batch=131_072), H200)["fits"]


@pytest.mark.parametrize(("wrong", "error"), [({"loss": "tile"}, UnknownNameError), ({"batch": 0}, ValueError)])
def test_jobs_that_cannot_be_are_refused(wrong, error):
    with pytest.raises(error):
        Job(**wrong)
