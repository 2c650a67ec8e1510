"""What a recording holds reaches the encoder: each hears at its rate, resampled once from the source."""

import numpy as np
import pytest
import soundfile
import torch
from toys import add  # noqa: F401 - a fixture

from pullpush.data.batches import PairDataset
from pullpush.encoders import create
from pullpush.errors import AudioError
from pullpush.lab import common, material, session
from pullpush.training import embed, encoded, recipe, train
from pullpush.training.trunk import Published

RATE, TONE = 48_000, 12_000  # Hz
ENCODER = """
    import torch
    from torch import nn
    from pullpush.encoders import AudioEncoder, AudioEncoderCard

    class Wide(AudioEncoder):
        '''The share of power below and above 8 kHz, of audio at 48 kHz.'''

        dim, sample_rate, max_seconds = 2, 48_000, 2.0

        def __init__(self, *, pretrained=True, frozen=False):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(2))

        def forward(self, audio, lengths=None):
            power = torch.fft.rfft(audio).abs().square()
            hertz = torch.fft.rfftfreq(audio.shape[1], 1 / self.sample_rate)
            high = power[:, hertz > 8000].sum(1) / power.sum(1)
            return torch.stack([1 - high, high], dim=1) * self.gain

    CARD = AudioEncoderCard(
        name="wide", make=Wide, title="Wide", about="Two bands.", licence="MIT", pretrained=True, sample_rate=48_000
    )
"""


@pytest.fixture
def ground(home, add, tmp_path):  # noqa: F811 - the fixture
    """WAV files at 48 kHz, tones of 12 kHz and of 1 kHz, for a profile whose encoder hears at that rate."""
    rows = ["file_name,caption,split"]
    for number, (split, count) in enumerate((("train", 8), ("valid", 4), ("test", 4))):
        for row in range(count):
            name, hertz = f"{number}-{row}.wav", (TONE, 1000)[row % 2]
            wave = 0.3 * np.sin(2 * np.pi * hertz * np.arange(RATE // 2 + 100 * row) / RATE)
            soundfile.write(tmp_path / name, wave, RATE)
            rows.append(f"{name},{'a whistle' if row % 2 == 0 else 'a hum'} {row},{split}")
    (tmp_path / "captions.csv").write_text("\n".join(rows))
    add("encoders/wide.py", ENCODER)
    (tmp_path / "mine.yaml").write_text("like: smoke\naudio: wide\nbatch_size: 4\nepochs: 1\n")
    return material.of(session.start("02-svr", profile=str(tmp_path / "mine.yaml"), out=tmp_path), f"folder:{tmp_path}")


def loudest(wave, rate):
    """The frequency with most power, in Hz."""
    return float(torch.fft.rfftfreq(len(wave), 1 / rate)[torch.fft.rfft(wave).abs().argmax()])


def test_a_tone_of_12_khz_goes_from_a_file_through_a_dataset_to_the_encoder(ground):
    clips = ground.data().test
    assert clips.sample_rate == RATE
    assert loudest(clips.audio(0)[0][0], RATE) == pytest.approx(TONE, abs=5)
    heard = encoded(ground.data(), ground.trunk()).test.audio(slice(None))[0]
    torch.testing.assert_close(heard, torch.tensor([[0.0, 1.0], [1.0, 0.0]] * 2), atol=1e-3, rtol=0)


def test_an_encoder_of_16_khz_is_asked_for_less_of_the_same_recordings(ground):
    clips = ground.data().test
    low = create("cnn", "hashed", dim=4, audio_channels=(4, 4))
    assert low.sample_rate == 16_000
    audio, lengths = clips.audio(1, sample_rate=low.sample_rate)
    assert lengths.tolist() == [-(-int(clips.lengths[1]) // 3)]
    assert loudest(audio[0], 16_000) == pytest.approx(1000, abs=5)
    wanted = low.eval().encode_audio(*clips.audio(slice(None), sample_rate=16_000))
    torch.testing.assert_close(embed(low, clips)[0], wanted.detach())


def test_training_asks_clips_for_the_rate_of_its_model(ground):
    data, seen = ground.data(), []
    model = create("wide", "hashed", dim=4)
    model.audio.register_forward_pre_hook(lambda encoder, given: seen.append(given[1]))
    pairs = PairDataset(data.train)
    train(model, recipe("infonce", epochs=1, batch_size=4), pairs, data.valid)
    assert pairs.sample_rate == RATE
    assert int(torch.cat(seen).min()) == RATE // 2
    end_to_end = common.train(ground.book, data, "infonce")
    assert np.isfinite(end_to_end.history["loss"]).all()


def test_features_are_asked_for_at_no_rate(ground):
    features = encoded(ground.data(), Published("wide"))
    with pytest.raises(AudioError, match="features have no sample rate, got 48000"):
        embed(create("wide", "hashed", dim=4), features.test)
