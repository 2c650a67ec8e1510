"""What every loss must satisfy; a new one is tested by having a card."""

import pytest
import torch
from loss_contract import CHECKS, check_half_precision, check_scale

from pullpush.losses import TERMS, InfoNCE, Loss, Output


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", TERMS)
def test_keeps_the_contract(name, check):
    check(name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", TERMS)
def test_half_precision_is_computed_in_single(name, dtype):
    check_half_precision(name, dtype)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0])
@pytest.mark.parametrize("name", TERMS)
def test_is_finite_at_any_scale(name, scale):
    check_scale(name, scale)


def test_a_loss_whose_forward_is_not_as_declared_is_refused():
    with pytest.raises(TypeError, match=r"Odd.forward takes \(audio, texts\), but .* needs = \('audio', 'text'\)"):

        class Odd(Loss):
            def forward(self, audio, texts):
                return Output(texts.sum())

    with pytest.raises(ValueError, match="need of the loss Odder 'txt': did you mean 'text'"):

        class Odder(Loss):
            needs = ("audio", "txt")

            def forward(self, audio, txt):
                return Output(txt.sum())

    with pytest.raises(TypeError, match="for losses of audio and text"):

        class Oddest(Loss):
            needs, languages = ("audio", "texts"), "each"

            def forward(self, audio, texts):
                return Output(texts.sum())


@pytest.mark.parametrize(
    ("given", "named"),
    [((0.07,), {}), ((), {"tau": 0.07}), ((), {"audio": torch.eye(3)})],
    ids=["more", "tau", "twice"],
)
def test_what_a_loss_does_not_take_is_refused(given, named):
    with pytest.raises(TypeError, match=r"InfoNCE takes \(audio, text\), each once"):
        InfoNCE()(torch.eye(3), torch.eye(3), *given, **named)


def test_what_a_loss_gives_back_has_names():
    value, report = InfoNCE()(torch.eye(3), torch.eye(3))
    assert value == InfoNCE()(text=torch.eye(3), audio=torch.eye(3)).value
    assert dict(report) == {}
