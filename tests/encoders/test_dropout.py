"""Frozen features behind dropout: two views in training, one in evaluation."""

import pytest
import torch

from pullpush.encoders import TEXT, create
from pullpush.encoders.dropout import DropoutText
from pullpush.errors import UnknownNameError

TEXTS = ["a frog croaks", "a bell rings", "une cloche sonne"]


def test_in_evaluation_it_is_the_encoder_itself():
    assert torch.equal(DropoutText(of="hashed").eval()(TEXTS), TEXT["hashed"].make()(TEXTS))


def test_in_training_a_share_of_the_features_is_left_out_and_the_mean_stays():
    text, wanted = DropoutText(of="hashed", rate=0.25), TEXT["hashed"].make()(TEXTS)
    torch.manual_seed(0)
    views = torch.stack([text(TEXTS) for _ in range(400)])
    left_out = ((views == 0) & (wanted != 0)).float().sum() / (views.shape[0] * (wanted != 0).sum())
    assert left_out == pytest.approx(0.25, abs=0.01)
    assert (views.mean(dim=0) - wanted).abs().max() < 0.05


def test_two_passes_of_a_model_differ_in_training_alone():
    model = create("features", "dropout", dim=8, audio_dim=4, text_of="hashed")
    assert not torch.equal(model.encode_text(TEXTS), model.encode_text(TEXTS))
    model.eval()
    assert torch.equal(model.encode_text(TEXTS), model.encode_text(TEXTS))


def test_an_encoder_that_learns_is_refused():
    with pytest.raises(UnknownNameError, match="frozen text encoder 'words'"):
        DropoutText(of="words")
