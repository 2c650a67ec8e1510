"""Encoders side by side: their features are the members' own, each heard at its rate."""

from __future__ import annotations

import pytest
import torch
from published import tune
from torchaudio.functional import resample

from pullpush.encoders import create_audio
from pullpush.encoders.features import Several
from pullpush.errors import UnknownNameError


def unit(x):
    return x / x.pow(2).mean(dim=1, keepdim=True).sqrt()


def test_features_are_those_of_the_members_one_after_the_other_and_equally_large():
    both = Several(members=("yamnet", "speech_embedding"), pretrained=False, seed=3).eval()
    audio, lengths = torch.stack([tune(2, 16_000), tune(2, 16_000).flip(0)]), torch.tensor([32_000, 20_000])
    alone = [
        create_audio(name, seed=3, pretrained=False).eval()(audio, lengths) for name in ("yamnet", "speech_embedding")
    ]
    assert alone[1].abs().mean() > 3 * alone[0].abs().mean()  # why they are divided
    torch.testing.assert_close(both(audio, lengths), torch.cat([unit(x) for x in alone], dim=1))


def test_a_member_with_a_lower_rate_hears_the_clip_resampled():
    both = Several(members=("cnn", "pitch"), pretrained=False).eval()
    assert both.sample_rate == 22_050
    audio = tune(2, 22_050)[None]
    own = create_audio("cnn").eval()(resample(audio, 22_050, 16_000))
    torch.testing.assert_close(both(audio)[:, : own.shape[1]], unit(own), atol=1e-4, rtol=1e-4)
    longer = torch.cat([audio, torch.ones(1, 500)], dim=1)
    torch.testing.assert_close(both(longer, torch.tensor([audio.shape[1]])), both(audio), atol=1e-4, rtol=1e-3)


def test_members_are_named_and_hear_waveforms():
    with pytest.raises(UnknownNameError, match="did you mean 'yamnet'"):
        Several(members=("yamnett",))
    with pytest.raises(ValueError, match="at least one"):
        Several(members=())
    with pytest.raises(ValueError, match="encoders of waveforms"):
        Several(members=("cnn", "features"))
