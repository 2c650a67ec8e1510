"""What a large training takes: counts against formulas by hand, the model against limits that everybody can check."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pullpush.encoders.attention import Size
from pullpush.encoders.spectrogram_vit import Dasheng
from pullpush.errors import DataNotFoundError, UnknownNameError
from pullpush.losses import plain
from pullpush.studies import costs
from pullpush.studies.counting import cost
from pullpush.studies.glap import jobs, reckoning, scale, scale_figures, throughput, training_data
from pullpush.studies.glap.jobs import A800, H200, PAPER, Job, Machine

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
        assert throughput.counts("dasheng", throughput.FORWARD, seconds) == dasheng_flops(768, 12, seconds)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_backward_pass_of_a_convolution_is_two_forward_passes_whatever_its_groups(groups):
    layer, x = nn.Conv1d(8, 8, 3, groups=groups), torch.randn(2, 8, 10, requires_grad=True)
    found = cost(layer, lambda: layer(x))
    assert found.forward == 2 * 2 * 8 * 8 * (8 // groups) * 3
    assert found.both == 3 * found.forward


def test_what_the_book_keeps_was_counted_of_components_as_they_are():
    assert not throughput.stale(), f"`{throughput.COMMAND}` counts anew"
    assert throughput.COMMAND in throughput.origin().data


def test_trained_encoders_cost_about_three_times_their_forward_pass():
    for name in ("dasheng", "ced", "beats", "wavlm", "whisper-small", "sonar"):
        ratio = throughput.counts(name, throughput.BOTH, 10) / throughput.counts(name, throughput.FORWARD, 10)
        assert 2.9 < ratio < 3.2


def test_counts_are_linear_between_sizes_and_in_proportion_beyond_the_longest():
    at = {each: throughput.counts("dasheng", throughput.BOTH, each) for each in (5, 7.5, 10, 20)}
    assert at[7.5] == pytest.approx((at[5] + at[10]) / 2)
    assert at[20] == 2 * at[10]
    whisper = [throughput.counts("whisper-small", throughput.BOTH, each) for each in (1, 30)]
    assert whisper[0] == whisper[1]  # it fills up every clip


@pytest.mark.parametrize("wrong", [("dashing", "weights"), ("dasheng", "FLOPS")])
def test_what_was_not_counted_is_refused(wrong):
    with pytest.raises(UnknownNameError):
        throughput.counts(*wrong, 5)


def test_a_table_that_is_not_there_says_what_makes_it(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"throughput\.py"):
        throughput.table(folder=tmp_path)


def test_new_rows_take_the_place_of_the_same_machines_and_leave_the_others(tmp_path):
    path = tmp_path / "throughput.csv"
    how = throughput.measured("cpu")
    throughput.write(
        [(how, "a", "use", 9, "seconds", 1.0), (how, "b", "use", 9, "seconds", 2.0)], how, 1, "c", path=path
    )
    throughput.write([(how, "a", "use", 9, "seconds", 3.0)], how, 1, "c", path=path)
    throughput.write([(costs.COUNTED, "any", "x", 1, "weights", 4.0)], costs.COUNTED, 1, "c", path=path)
    rows = pd.read_csv(path).set_index(["how", "machine"])["value"]
    assert rows.to_dict() == {(costs.COUNTED, "any"): 4.0, (how, "b"): 2.0, (how, "a"): 3.0}


def test_the_sigmoid_loss_computes_and_keeps_what_the_model_says():
    n, d = 256, 64
    pairs = nn.ParameterList(F.normalize(torch.randn(n, d), dim=1) for _ in range(2))
    found = cost(pairs, lambda: plain.siglip(*pairs))
    assert found.both == scale.loss_cost(Job(batch=n, dim=d))[0]
    assert 2 * n * n * 4 <= found.kept <= scale.COPIES * n * n * 4


# ---------------------------------------------------------------- the model


def seconds(job: Job, machine: Machine) -> dict[str, float]:
    return scale.step(job, machine).set_index("part")["seconds"].to_dict()


def test_a_step_is_arithmetic_of_what_was_counted():
    found = seconds(PAPER, A800)
    flops = 128 * throughput.counts("dasheng", throughput.BOTH, 5)
    assert found[scale.AUDIO] == pytest.approx(flops / (312e12 * A800.utilisation))
    assert found[scale.DECODING] == pytest.approx(1024 * 5 / (A800.cores * A800.decode))
    ring = 2 * 7 / 8 * 4 * throughput.counts("dasheng", throughput.WEIGHTS, 0) / 200e9
    assert found[scale.GRADIENTS] == pytest.approx(ring)


def test_one_device_exchanges_nothing_and_texts_that_are_kept_cost_nothing():
    found = seconds(replace(PAPER, text="kept"), H200)
    assert found[scale.GATHERING] == found[scale.GRADIENTS] == found[scale.TEXT] == 0


@pytest.mark.parametrize(
    ("job", "machine", "short"),
    [
        (PAPER, replace(H200, cores=1), scale.DECODING),
        (PAPER, ENDLESS, scale.AUDIO),
        (replace(PAPER, text="trained", seconds=1.0), ENDLESS, scale.TEXT),
        (replace(PAPER, batch=2**22), ENDLESS, scale.LOSS),
        (replace(PAPER, batch=64), replace(A800, network=1e8, cores=10**9), scale.GRADIENTS),
    ],
)
def test_the_bottleneck_is_what_was_made_short(job, machine, short):
    assert scale.bottleneck(scale.step(job, machine)) == short
    assert scale.outline([job], [machine])["bottleneck"].item() == short


def test_a_machine_twice_as_well_used_computes_twice_as_fast():
    half, whole = (seconds(PAPER, replace(ENDLESS, utilisation=share)) for share in (0.25, 0.5))
    assert half[scale.AUDIO] == pytest.approx(2 * whole[scale.AUDIO])
    assert half[scale.OPTIMISER] == whole[scale.OPTIMISER]


@pytest.mark.parametrize("machine", [replace(A800, cores=10**9), ENDLESS])
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_the_share_that_hours_need_is_the_share_that_gives_these_hours(machine, share):
    hours = scale.outline([PAPER], [replace(machine, utilisation=share)])["hours"].item()
    assert scale.utilisation_of(PAPER, machine, hours) == pytest.approx(share)


def test_hours_that_decoding_alone_takes_are_refused():
    with pytest.raises(ValueError, match="decoding takes"):
        scale.utilisation_of(PAPER, replace(A800, cores=1), hours=36)


def test_with_the_same_pairs_only_the_loss_makes_larger_batches_dearer():
    table = scale.sweep(PAPER, H200, batches=[1024, 4096])
    small, large = table.to_dict("records")
    assert large[scale.LOSS] == pytest.approx(4 * small[scale.LOSS])
    assert large[scale.AUDIO] == pytest.approx(small[scale.AUDIO])
    assert large[scale.OPTIMISER] < small[scale.OPTIMISER]
    more = scale.sweep(PAPER, H200, pairs=[1e6, 3e6])["hours"]
    assert more[1] == pytest.approx(3 * more[0])


def test_chunks_take_less_memory_and_one_more_forward_pass():
    chunked = replace(PAPER, chunk=64)
    extra = seconds(chunked, H200)[scale.AUDIO] / seconds(PAPER, H200)[scale.AUDIO]
    forward, both = (throughput.counts("dasheng", each, 5) for each in (throughput.FORWARD, throughput.BOTH))
    assert extra == pytest.approx(1 + forward / both)
    held = [scale.memory(job, H200).set_index("part")["bytes"]["activations of audio"] for job in (chunked, PAPER)]
    assert held[0] == pytest.approx(held[1] * 64 / 1024)


def test_the_loss_in_tiles_fits_where_the_plain_one_does_not():
    plain_loss, tiles = (
        scale.memory(Job(batch=131_072, chunk=64, loss=loss), H200).set_index("part")["bytes"]["loss"]
        for loss in jobs.LOSSES
    )
    assert plain_loss > H200.memory
    assert tiles < 2 * 2**30


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"text": "read"}, UnknownNameError), ({"loss": "tile"}, UnknownNameError), ({"batch": 0}, ValueError)],
)
def test_jobs_that_cannot_be_are_refused(wrong, error):
    with pytest.raises(error):
        Job(**wrong)


# ---------------------------------------------------------------- the paper, and what was measured


def test_the_paper_sees_less_than_half_of_its_pairs():
    assert PAPER.pairs == training_data.SEEN == 20 * 10_000 * 1024
    table = training_data.passes().set_index("data")["passes"]
    assert table["all, in proportion"] < 0.5
    assert table["speech, balanced"] < table["all, in proportion"] < 1 < table["sound and music, balanced"]
    assert round(training_data.seconds_of_clip()) == PAPER.seconds


def test_every_reading_of_the_paper_needs_far_less_than_the_assumed_utilisation():
    table = reckoning.paper_readings()
    assert (table["hours"] < jobs.PAPER_HOURS).all()
    assert table["utilisation"].between(0.02, 0.2).all()
    assert table["utilisation"].iloc[-1] == table["utilisation"].max()  # padded, and both encoders trained


def test_the_model_is_within_a_factor_of_two_of_the_losses_that_were_measured():
    table = reckoning.against_measured()
    assert len(table) >= 4
    assert table["ratio"].between(0.5, 2).all()


def test_a_core_decodes_many_times_faster_than_it_trains():
    core = reckoning.core()
    assert 0.2 < core.utilisation <= 1.1
    assert scale.bottleneck(scale.step(PAPER, core)) == scale.AUDIO
    assert reckoning.decoded("FLAC, 16 kHz") > reckoning.decoded() > 50


def test_as_many_cores_as_are_needed_decode_as_fast_as_the_device_computes():
    cores = reckoning.cores_needed(PAPER, H200)
    table = scale.step(PAPER, replace(H200, cores=cores)).set_index("part")["seconds"]
    assert table[scale.DECODING] == pytest.approx(table.drop(scale.DECODING).sum())


def test_nothing_measured_on_a_gpu_is_said(tmp_path):
    throughput.write(
        [(costs.COUNTED, "any", "x", 1, "weights", 4.0)], costs.COUNTED, 1, "c", path=tmp_path / "throughput.csv"
    )
    with pytest.raises(UnknownNameError, match="cuda"):
        reckoning.on_gpu(H200, folder=tmp_path)


def test_figures_draw_every_part_and_machine():
    machines = [A800, H200]
    labels = lambda figure: [text.get_text() for text in figure.legends[0].get_texts()]  # noqa: E731
    assert set(labels(scale_figures.parts_of_step(PAPER, machines))) == set(scale.PARTS)
    assert "memory of a device" in labels(scale_figures.parts_of_memory(PAPER, machines))
    by_batch = scale_figures.cost_by_batch(PAPER, A800, [1024, 4096])
    assert {"loss, plain", "loss, tiles", scale.GATHERING} <= set(labels(by_batch))
    by_data = scale_figures.cost_by_data(PAPER, machines, [1e6, 1e8], {"YODAS": 431e6})
    assert labels(by_data) == ["8 × A800", "H200"]
    assert len(by_data.axes[0].lines) == 3
    table = scale_figures.readable(scale.outline([replace(PAPER, batch=65_536)], machines))
    assert table["GB"].str.contains("too much").all()
