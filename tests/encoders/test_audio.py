"""What the audio encoders are made of: masked statistics, masked pooling, positions; and that they learn."""

import pytest
import torch
from published import noise, tune
from torch import nn
from torchaudio.functional import resample

from pullpush.encoders import create_audio
from pullpush.encoders.cnn import CNN, MaskedBatchNorm
from pullpush.encoders.features import Features, Several
from pullpush.errors import AudioError, UnknownNameError


def test_padding_does_not_change_training_of_the_cnn():
    """Batch statistics skip padding: the same clips padded further give the same features and gradients."""
    lengths = torch.tensor([6000, 4000, 2500])
    results = []
    for size in (6000, 9000):
        torch.manual_seed(0)
        model = CNN(channels=(4, 8, 8, 16)).train()
        features = model(noise(3, 9000)[:, :size], lengths)
        features.square().mean().backward()
        results.append((features, model.blocks[0].conv.weight.grad, model.blocks[3].norm.running_var))
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)


def test_cnn_learns_to_tell_pitches_apart():
    torch.manual_seed(0)
    time = torch.arange(8000) / 16_000
    hertz = torch.tensor([300.0, 600, 1200, 2400]).repeat(2)
    audio = 0.1 * torch.sin(2 * torch.pi * hertz[:, None] * time) + noise(8, 8000) * 0.1
    target = torch.arange(4).repeat(2)
    cnn = CNN(channels=(4, 8, 8, 16))
    model = nn.ModuleList([cnn, nn.Linear(cnn.dim, 4)])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(15):
        loss = nn.functional.cross_entropy(model[1](cnn(audio)), target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.1


def test_masked_batch_norm_is_batch_norm_of_the_own_frames():
    x = noise(3, 5, 7, 2)
    mask = torch.arange(7) < torch.tensor([7, 3, 1])[:, None]
    norm, plain = MaskedBatchNorm(5), nn.BatchNorm2d(5)
    out = norm(x, mask)
    own = torch.cat([row[:, m] for row, m in zip(x, mask, strict=True)], dim=1)[None]  # (1, C, frames, M)
    expected = plain(own)
    actual = torch.cat([row[:, m] for row, m in zip(out, mask, strict=True)], dim=1)[None]
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(norm.running_mean, plain.running_mean)
    torch.testing.assert_close(norm.running_var, plain.running_var)
    assert not out.transpose(1, 2)[~mask].any()


def test_features_pass_through_and_other_sizes_are_refused():
    encoder, features = Features(12), noise(3, 12)
    assert encoder(features, torch.full((3,), 12)) is features
    assert encoder.dim == 12
    assert not list(encoder.parameters())
    with pytest.raises(AudioError, match="12 features each, got 8000"):
        encoder(noise(3, 8000))


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
