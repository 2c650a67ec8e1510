"""An encoder of pictures: squares of any size, and what its published weights see in them."""

import numpy as np
import pytest
import torch
from PIL import Image
from published import fetched, pixels

from pullpush.data.recordings import tuxpaint
from pullpush.data.recordings.pictures import flat, square
from pullpush.encoders import create
from pullpush.encoders.pictures import EfficientNetLite
from pullpush.errors import AudioError


@pytest.fixture(scope="module")
def model():
    model = create("efficientnet-lite", "hashed", dim=8, audio_pretrained=False, audio_size=32)
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


SEEN = {  # a stamp → classes of ImageNet of which one has the highest probability
    "animals/birds/ostrich": {9},
    "animals/mammals/cats/tiger": {292},
    "animals/mammals/dogs/dog": set(range(151, 269)),
    "animals/mammals/equines/zebra": {340},
    "food/fruit/banana": {954},
    "household/dishes/teapot": {849},
}
# Of the picture that `chequered` gives, by efficientnet_lite_pytorch 0.1.0 with the same weights: features and logits.
FEATURES = [0.0, 0.0, 1.05262, 0.10442, 0.0, 0.06198, 0.0, 0.05646, 0.0, 0.18321, 0.02781, 0.0, 0.0, 0.00638, 0.0, 0.0]
LOGITS = [1.81428, -2.64861, -1.36387, 0.35954, 0.78054, -2.17073, 0.68382, -0.77892, 4.52097, 1.29782]


@pytest.fixture(scope="module")
def published():
    return fetched(EfficientNetLite).eval()


def chequered(side=224):
    """Waves of three colours, `(1, 3 S²)`: the same on every machine."""
    across, down = torch.meshgrid(*[torch.arange(side, dtype=torch.float64) / side] * 2, indexing="xy")
    waves = [torch.sin(k * 7 * across + k * k * 3 * down) * torch.cos(5 * down) for k in (1, 2, 3)]
    return torch.stack(waves).float().reshape(1, -1)


def test_features_and_logits_are_those_of_the_weights_own_code(published):
    with torch.no_grad():
        features = published(chequered())
        logits = published.classifier(features)
    torch.testing.assert_close(features[0, ::80], torch.tensor(FEATURES), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(logits[0, ::100], torch.tensor(LOGITS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("stamp", SEEN)
def test_what_it_sees_is_what_is_there(published, stamp):
    with Image.open(fetched(tuxpaint.fetch) / f"{stamp}.png") as image:
        seen = torch.from_numpy(flat(square(image.convert("RGBA"), 224)).astype(np.float32))[None] / 127.5 - 1
    assert int(published.classifier(published(seen)).argmax()) in SEEN[stamp]


@pytest.mark.parametrize("size", [0, 16, 100])
def test_a_size_that_would_be_padded_otherwise_is_refused(size):
    with pytest.raises(ValueError, match=f"a multiple of 32, got {size}"):
        EfficientNetLite(pretrained=False, size=size)


def test_all_but_the_classifier_is_trained():
    model = EfficientNetLite(pretrained=False, size=32).train()
    (model(pixels(4, 3 * 32 * 32)) ** 2).sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in model.parameters())
    assert sum(weight.numel() for weight in model.parameters()) == 3_371_008
