"""Encoders of pictures: what both keep to, and what the small network does to pictures while it trains."""

from __future__ import annotations

import pytest
import torch
from published import pixels

from pullpush.encoders import create
from pullpush.encoders.pictures import PictureCNN, varied
from pullpush.errors import AudioError

OPTIONS = {
    "picture-cnn": {"audio_channels": (4, 8, 8)},
    "efficientnet-lite": {"audio_pretrained": False, "audio_size": 32},
}


@pytest.fixture(scope="module", params=OPTIONS)
def model(request):
    model = create(request.param, "hashed", dim=8, **OPTIONS[request.param])
    model.encode_audio(pixels(4, 3 * 24 * 24))  # what counts as it trains is not as it was made
    return model.eval()


@pytest.mark.parametrize("side", [1, 7, 24, 33])
def test_pictures_of_any_size_become_unit_rows(model, side):
    embedding = model.encode_audio(pixels(3, 3 * side * side))
    assert embedding.shape == (3, 8)
    torch.testing.assert_close(embedding.norm(dim=1), torch.ones(3))


def test_other_pictures_of_the_batch_do_not_matter(model):
    rows = pixels(4, 3 * 24 * 24)
    torch.testing.assert_close(model.encode_audio(rows)[[2]], model.encode_audio(rows[[2]]), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("numbers", [9000, 3 * 24 * 24 + 1, 2])
def test_waveforms_are_refused(model, numbers):
    with pytest.raises(AudioError, match=rf"3 S² pixels in a row, got {numbers} numbers"):
        model.encode_audio(pixels(2, numbers))


def test_every_weight_has_a_gradient_and_there_are_less_than_a_million():
    encoder = PictureCNN().train()
    (encoder(pixels(4, 3 * 64 * 64)) ** 2).sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in encoder.parameters())
    assert sum(weight.numel() for weight in encoder.parameters()) < 1_000_000


def test_half_precision_stays_close_to_full(model):
    rows = pixels(4, 3 * 24 * 24)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model.encode_audio(rows)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, model.encode_audio(rows), atol=0.05, rtol=0)


def test_variations_move_a_picture_on_white():
    torch.manual_seed(0)
    image = torch.ones(1, 3, 40, 40)
    image[:, 1:, 15:25, 10:16] = -1  # a red bar, left of the middle
    found = varied(image.expand(200, -1, -1, -1))
    torch.testing.assert_close(found[:, 0], torch.ones(200, 40, 40), atol=1e-4, rtol=0)
    ink = (1 - found[:, 1]) / 2
    area = ink.sum(dim=(1, 2)) / 60
    assert area.min() == pytest.approx(1 / 1.2**2, abs=0.1)
    assert area.max() == pytest.approx(1 / 0.8**2, abs=0.1)
    column = (ink.sum(dim=1) * torch.arange(40)).sum(dim=1) / ink.sum(dim=(1, 2))
    assert 0.35 < (column > 19.5).float().mean() < 0.65  # mirrored half of the time
    assert column.std() > 1
