"""The upper part of an encoder, trained on kept activations of its lower part."""

import numpy as np
import pytest
import torch

from pullpush.cache import home
from pullpush.data.scenes.world import WorldConfig, load_world
from pullpush.encoders import create
from pullpush.errors import AudioError, TrainingError, UnknownNameError
from pullpush.training import encoded, on_features, recipe
from pullpush.training.runs import Plan
from pullpush.training.trunk import Published

pytestmark = pytest.mark.usefixtures("home")

PARTS = """
    import torch
    from torch import nn
    from pullpush.encoders import AudioEncoderCard, SplitAudioEncoder
    from pullpush.encoders.pretrained import Pretrained
    from pullpush.encoders.windows import length_mask, masked_mean

    class Parts(SplitAudioEncoder):
        '''Frames of 160 samples, one layer below, one above, the mean over frames.'''

        def __init__(self, *, trainable="all", pretrained=True, frozen=False, gain=1.0):
            super().__init__(trainable=trainable)
            self.dim, self.gain = 6, gain
            self.below = Pretrained(nn.Linear(160, 4), frozen=trainable == "upper")
            self.above = nn.Linear(4, self.dim)
            with torch.no_grad():
                for number, weight in enumerate(self.parameters_of_both()):
                    weight.copy_(torch.sin(torch.arange(weight.numel()).view_as(weight) * 0.7 + number))

        def parameters_of_both(self):
            return [*self.below.model.parameters(), *self.above.parameters()]

        def lower(self, audio, lengths=None):
            frames = nn.functional.pad(audio, (0, -audio.shape[1] % 160)).view(len(audio), -1, 160)
            values = torch.round(self.below(frames).relu() * 64) / 64 * self.gain  # what float16 holds exactly
            counts = -(-lengths // 160)
            return values.masked_fill(~length_mask(counts, frames.shape[1])[..., None], 0).flatten(1), counts * 4

        def upper(self, activations, sizes):
            frames = activations.view(len(activations), -1, 4)
            return masked_mean(self.above(frames).mT, length_mask(sizes // 4, frames.shape[1]))

    CARD = AudioEncoderCard(
        name="parts", make=Parts, title="Parts", about="Two layers.", licence="MIT", pretrained=True, split=True
    )
"""
SMALL = {"text": "hashed", "dim": 8, "epochs": 2, "batch_size": 8, "lr": 1e-2}


@pytest.fixture
def parts(add):
    """The encoder "parts", in a file that a reader adds."""
    add("encoders/parts.py", PARTS)


@pytest.fixture(scope="module")
def world(home):
    scene = {"duration": 1.5, "min_duration": 1.0, "max_events": 2}
    return load_world(WorldConfig("synthetic", n_train=24, n_valid=8, n_test=8, n_single_per_event=1, scene=scene))


@pytest.fixture
def below(parts, world):
    return encoded(world, Published("parts"), level="lower")


def test_activations_go_through_the_upper_part_to_the_features_of_the_whole(world, below):
    assert len(set(world.test.lengths.tolist())) > 1
    whole = create("parts", "hashed", dim=8).eval()
    upper = create(on_features(below)["audio"], "hashed", dim=8, **on_features(below)["encoder_options"]).eval()
    torch.testing.assert_close(
        upper.encode_audio(*below.test.audio(slice(None))), whole.encode_audio(*world.test.audio(slice(None)))
    )


def test_each_clip_has_the_activations_of_its_length(world, below):
    assert below.test.lengths.tolist() == [-(-length // 160) * 4 for length in world.test.lengths.tolist()]
    values, lengths = below.test.audio([5, 2])
    assert lengths.tolist() == below.test.lengths[[5, 2]].tolist()
    assert values.shape == (2, max(lengths))
    assert values.dtype == torch.float32
    part = below.test.select([5, 2]).audio(slice(None))
    assert torch.equal(part[0], values)
    assert below.test.head(3).captions("eng") == world.test.captions("eng")[:3]
    assert below.test.select([5, 2]).key != below.test.key


def test_training_on_activations_is_training_of_the_upper_part_on_clips(world, below):
    """What is kept is exact here, so that both see the same numbers, step by step."""
    fast = Plan(below, recipe("infonce", **SMALL, **on_features(below)), seed=3).train()
    options = {"audio_trainable": "upper"}
    slow = Plan(world, recipe("infonce", **SMALL, audio="parts", encoder_options=options), seed=3).train()
    np.testing.assert_allclose(fast.steps["loss"], slow.steps["loss"], rtol=1e-5)
    np.testing.assert_allclose(fast.steps["gradient"], slow.steps["gradient"], rtol=1e-4)
    torch.testing.assert_close(fast.model.audio.encoder.above.weight, slow.model.audio.above.weight)
    begun = create("parts", "hashed", dim=8).audio.above.weight
    assert (slow.model.audio.above.weight - begun).norm() > 1e-2


def test_activations_are_computed_once_and_have_keys_of_their_own(world, below, monkeypatch):
    heard = encoded(world, Published("parts"))
    assert heard.test.audio(0)[0].shape == (1, 6)
    one = recipe("infonce", **SMALL, **on_features(heard))
    assert Plan(below, one).key != Plan(heard, one).key
    monkeypatch.setattr(Published, "load", lambda trunk: pytest.fail("encoded again"))
    again = encoded(world, Published("parts", level="lower"))
    assert again.train.key == below.train.key
    assert np.array_equal(again.train.features, below.train.features)
    assert again.train.features.dtype == np.float16
    sizes = [path.stat().st_size for path in (home() / "features").glob("*/values.f16")]
    assert 2 * int(below.train.lengths.sum()) in sizes


def test_what_has_no_lower_part_says_so(parts, world, below):
    with pytest.raises(UnknownNameError, match=r"unknown audio encoder in two parts 'clap': .*parts"):
        Published("clap", level="lower")
    with pytest.raises(UnknownNameError, match="unknown level 'middle'"):
        Published("parts", level="middle")
    base = Plan(world, recipe("infonce", **{**SMALL, "epochs": 1}, audio="parts")).train()
    assert encoded(world, base).test.audio(0)[0].shape == (1, 6)
    with pytest.raises(TrainingError, match=r"kept as features alone, not 'lower'.*Published"):
        encoded(world, base, level="lower")
    with pytest.raises(UnknownNameError, match="unknown audio encoder in two parts 'cnn'"):
        create("upper", "hashed", audio_of="cnn")
    with pytest.raises(UnknownNameError, match="trainable part 'lower'"):
        create("parts", "hashed", audio_trainable="lower")
    with pytest.raises(AudioError, match="activations need lengths"):
        create("upper", "hashed", audio_of="parts").audio(below.test.audio(0)[0])


def test_activations_beyond_half_precision_are_refused(parts, world):
    with pytest.raises(TrainingError, match=r"activations of Parts .* 65504.*train the encoder whole"):
        encoded(world, Published("parts", {"gain": 1e6}), level="lower").train  # noqa: B018 - made when it is asked for
    assert world.trunk is None
