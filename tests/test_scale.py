"""What a large training takes: counts against formulas by hand, the model against limits that everybody can check."""

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pullpush.encoders.attention import Size
from pullpush.encoders.spectrogram_vit import Dasheng
from pullpush.errors import UnknownNameError
from pullpush.losses import plain
from pullpush.studies import measured
from pullpush.studies.counting import cost

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import scale
from scale import A800, H200, PAPER, Job, counts, step

ENDLESS = replace(H200, cores=10**9)


def dasheng_flops(width: int, depth: int, seconds: int) -> int:
    """Of the forward pass by hand: a frame more than hops, four to a patch; mel bands, patches, blocks, attention."""
    frames = 100 * seconds + 1
    places = frames // 4
    bands, patches = 2 * 64 * 257 * frames, 2 * places * 64 * 4 * width
    blocks = 2 * places * width * (3 + 1 + 4 + 4) * width
    return bands + patches + depth * (blocks + 4 * places**2 * width)


def test_what_is_counted_is_what_a_transformer_computes_by_hand():
    encoder = Dasheng(model=Size(32, 2, 2))
    found = cost(encoder, lambda: encoder(torch.randn(1, 16_000)))
    assert found.forward == dasheng_flops(32, 2, 1)
    for seconds in (1, 2, 5, 10):
        assert counts("dasheng", scale.FORWARD, seconds) == dasheng_flops(768, 12, seconds)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_backward_pass_of_a_convolution_is_two_forward_passes_whatever_its_groups(groups):
    layer, x = nn.Conv1d(8, 8, 3, groups=groups), torch.randn(2, 8, 10, requires_grad=True)
    found = cost(layer, lambda: layer(x))
    assert found.forward == 2 * 2 * 8 * 8 * (8 // groups) * 3
    assert found.both == 3 * found.forward


def test_counts_are_linear_between_sizes_and_in_proportion_beyond_the_longest():
    at = {each: counts("dasheng", scale.BOTH, each) for each in (5, 7.5, 10, 20)}
    assert at[7.5] == pytest.approx((at[5] + at[10]) / 2)
    assert at[20] == 2 * at[10]
    whisper = [counts("whisper-small", scale.BOTH, each) for each in (1, 30)]
    assert whisper[0] == whisper[1]  # it fills up every clip
    with pytest.raises(UnknownNameError):
        counts("dashing", "weights", 5)


def test_the_sigmoid_loss_computes_and_keeps_what_the_model_says():
    n, d = 256, 64
    pairs = nn.ParameterList(F.normalize(torch.randn(n, d), dim=1) for _ in range(2))
    found = cost(pairs, lambda: plain.siglip(*pairs))
    assert found.both == scale.loss_cost(Job(batch=n, dim=d))[0]
    assert 2 * n * n * 4 <= found.kept <= scale.COPIES * n * n * 4


def test_a_step_is_arithmetic_of_what_was_counted():
    found = step(PAPER, A800)
    assert found[scale.AUDIO] == pytest.approx(128 * counts("dasheng", scale.BOTH, 5) / (312e12 * A800.utilisation))
    assert found[scale.DECODING] == pytest.approx(1024 * 5 / (A800.cores * A800.decode))
    ring = 2 * 7 / 8 * 4 * counts("dasheng", scale.WEIGHTS) / 200e9
    assert found[scale.GRADIENTS] == pytest.approx(ring)
    alone = step(PAPER, H200)
    assert alone[scale.GATHERING] == alone[scale.GRADIENTS] == 0


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


def test_with_the_same_pairs_only_the_loss_makes_larger_batches_dearer():
    small, large = scale.sweep(PAPER, H200, [1024, 4096]).to_dict("records")
    assert large[scale.LOSS] == pytest.approx(4 * small[scale.LOSS])
    assert large[scale.AUDIO] == pytest.approx(small[scale.AUDIO])
    assert large[scale.OPTIMISER] < small[scale.OPTIMISER]


def test_what_the_book_shows_is_what_the_command_gives(tmp_path, capsys):
    scale.main(["--out", str(tmp_path / "scale.csv")])
    assert "8 × A800" in capsys.readouterr().out
    made, stored = measured.read("scale", folder=tmp_path), measured.read("scale")
    assert made.round(6).equals(stored.round(6))
    scale.main(["--cost", str(tmp_path)])
    for name in ("cost", "cost-small", "cost-scale"):
        pd.testing.assert_frame_equal(measured.read(name, folder=tmp_path), measured.read(name), rtol=1e-4)
    scale.main(["--batch", "131072", "--devices", "1"])
    assert "False" in capsys.readouterr().out, "the plain loss does not fit"
