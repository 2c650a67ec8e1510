"""SigLIP of several languages against SigLIP of each."""

import pytest
import torch
from embeddings import sphere

from pullpush.losses import Offer, SigLIP
from pullpush.losses._siglip import SigLIPLanguages
from pullpush.losses.offer import apply


@pytest.mark.parametrize("languages", [1, 2, 5])
def test_it_is_the_mean_over_languages(languages):
    audio = sphere(6, 4, seed=0, dtype=torch.float64)
    texts = [sphere(6, 4, seed=1 + number, dtype=torch.float64) for number in range(languages)]
    offer = Offer(audio, texts[0], tuple(texts[1:]))
    expected = torch.stack([SigLIP(0.1, -0.5).double()(audio, text).value for text in texts]).mean()
    torch.testing.assert_close(apply(SigLIPLanguages(0.1, -0.5).double(), offer).value, expected)


def test_one_bias_and_one_temperature_learn_from_all_languages():
    audio, first, second = (sphere(6, 4, seed=number, dtype=torch.float64) for number in range(3))
    together = SigLIPLanguages(0.1, -0.5).double()
    apply(together, Offer(audio, first, (second,))).value.backward()
    each = []
    for text in (first, second):
        alone = SigLIP(0.1, -0.5).double()
        alone(audio, text).value.backward()
        each.append(alone.bias.grad)
    torch.testing.assert_close(together.bias.grad, torch.stack(each).mean())
