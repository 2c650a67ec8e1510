"""Windows of long clips: they cover the clip, are full and of even weight, and leave short clips as they are."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from published import noise
from torchaudio.functional import melscale_fbanks

from pullpush.encoders.frontend import DB_CENTRE, DB_SPREAD, LogMel
from pullpush.encoders.windows import over_windows, windows

LONGEST = 10


@given(st.lists(st.integers(1, 57), min_size=1, max_size=5))
def test_windows_are_full_cover_every_sample_and_are_as_few_as_can_be(lengths):
    audio = torch.arange(max(lengths)).repeat(len(lengths), 1).float()
    cut = windows(audio, torch.tensor(lengths), LONGEST)
    for clip, length in enumerate(lengths):
        rows = [int(row) for row in torch.nonzero(cut.clip == clip).flatten()]
        heard = [cut.audio[row, : cut.lengths[row]].long().tolist() for row in rows]
        assert len(rows) == max(1, -(-length // LONGEST))
        assert all(len(samples) == min(length, LONGEST) for samples in heard)
        assert all(samples == list(range(samples[0], samples[-1] + 1)) for samples in heard)
        assert set().union(*heard) == set(range(length))


def test_features_are_the_mean_over_windows_and_gradients_flow():
    audio = torch.randn(2, 25, requires_grad=True)
    lengths = torch.tensor([25, 4])
    features = over_windows(lambda cut, sizes: cut.sum(1, keepdim=True), audio, lengths, LONGEST)
    by_hand = [torch.stack([audio[0, start : start + 10].sum() for start in (0, 8, 15)]).mean(), audio[1, :4].sum()]
    torch.testing.assert_close(features[:, 0], torch.stack(by_hand))
    features.sum().backward()
    assert (audio.grad[1, 4:] == 0).all()
    assert (audio.grad[0] != 0).all()


def mel_by_loops(wave, hop):
    """One clip's scaled log-mel, a frame at a time, with NumPy's FFT in float64."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    bank = melscale_fbanks(257, 50.0, 8000.0, 64, 16_000).double().numpy()
    frames = []
    for start in range(0, max(1, len(wave) - 400 + hop), hop):
        frame = np.zeros(400)
        part = wave[start : start + 400]
        frame[: len(part)] = part
        power = np.abs(np.fft.rfft(frame * window, 512)) ** 2 @ bank
        frames.append((10 * np.log10(np.maximum(power, 1e-10)) - DB_CENTRE) / DB_SPREAD)
    return np.array(frames).T


@pytest.mark.parametrize("hop", [0.010, 0.020])
@pytest.mark.parametrize("length", [1, 399, 400, 401, 3210, 4000])
def test_spectrogram_equals_a_loop_over_frames(length, hop):
    audio = noise(1, length)
    mel, mask = LogMel(hop=hop)(audio)
    expected = mel_by_loops(audio[0].double().numpy(), round(hop * 16_000))
    assert mask.all()
    assert mel.shape == (1, 64, expected.shape[1])
    np.testing.assert_allclose(mel[0].numpy(), expected, atol=2e-4)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=4), st.integers(0, 3000))
def test_a_clip_has_the_same_frames_alone_and_in_a_padded_batch(lengths, more):
    audio = noise(len(lengths), max(lengths) + more)  # noise in the padding too: it must not matter
    front = LogMel()
    mel, mask = front(audio, torch.tensor(lengths))
    assert not mel[~mask[:, None].expand_as(mel)].any()
    for row, length in enumerate(lengths):
        alone, own = front(audio[row : row + 1, :length])
        assert own.sum() == mask[row].sum() == front.frames(torch.tensor(length))
        torch.testing.assert_close(mel[row, :, mask[row]], alone[0], atol=1e-4, rtol=1e-4)


def test_augmentation_acts_in_training_mode_only_and_leaves_the_mask():
    audio = noise(4, 16_000)
    front = LogMel(spec_augment=True)
    torch.manual_seed(0)
    changed, mask = front.train()(audio)
    plain, same_mask = front.eval()(audio)
    torch.testing.assert_close(plain, LogMel()(audio)[0])
    assert (changed != plain).any()
    assert (changed[changed != plain] == 0).all()
    assert torch.equal(mask, same_mask)
    blanked = (changed != plain).flatten(1).float().mean(1)
    assert (blanked < 0.3).all()


def test_augmentation_blanks_at_most_an_eighth_of_a_clips_own_frames_however_far_it_is_padded():
    lengths = torch.tensor([4_000, 16_000]).repeat(32)  # beside clips of 16 s
    front = LogMel(spec_augment=True).train()
    mel, mask = front(noise(64, 256_000), lengths)
    blank = (mel == 0).all(1) & mask
    assert (blank.sum(1) <= front.frames(lengths) / 8).all()
    assert blank[::2].any()
    assert blank[1::2].any()


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="positive"):
        LogMel(hop=0)
