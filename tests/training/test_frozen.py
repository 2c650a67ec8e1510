"""The fast path on the synthetic bank: features of a frozen trunk in place of waveforms."""

import pytest
import torch
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset
from pullpush.data.language.grammar import prompts
from pullpush.encoders import create
from pullpush.errors import DataNotFoundError, TrainingError
from pullpush.training import Diagnostics, embed, encoded, on_features, recipe, retrieval_table, train, zero_shot
from pullpush.training.frozen import Encoded
from pullpush.training.runs import Plan

SMALL = {"epochs": 2, "batch_size": 16, "dim": 16, "text": "hashed"}
TRUNK = {"encoder_options": {"audio_channels": (8, 8, 16)}}
SPLITS = ("train", "valid", "test", "singles")


@pytest.fixture(scope="module")
def base(world):
    return Plan(world, recipe("infonce", **SMALL, **TRUNK)).train()


@pytest.fixture
def fast(world, base):
    return encoded(world, base)


def test_all_but_the_audio_is_the_worlds_own(world, fast):
    assert (fast.config, fast.bank) == (world.config, world.bank)
    assert tuple(fast.splits) == SPLITS
    for name, split in fast.splits.items():
        plain = world.split(name)
        assert isinstance(split, Encoded)
        assert (len(split), split.columns, split.name) == (len(plain), plain.columns, plain.name)
        assert split.captions("jpn") == plain.captions("jpn")
        assert torch.equal(split.relevance(), plain.relevance())
        assert split.key != plain.key
    assert torch.equal(fast.singles.labels, world.singles.labels)


def test_audio_is_what_the_trunk_hears(world, base, fast):
    audio, lengths = world.test.audio([3])
    with torch.no_grad():
        expected = base.model.audio(audio, lengths)
    features, sizes = fast.test.audio(3)
    assert features.dtype == torch.float32
    assert features.shape == (1, fast.test.dim) == (1, base.model.audio.dim)
    assert sizes.tolist() == [fast.test.dim]
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)


def test_rows_are_chosen_as_in_a_split(fast):
    everything, lengths = fast.test.audio(slice(None))
    assert everything.shape == (10, fast.test.dim)
    assert lengths.tolist() == [fast.test.dim] * 10
    for index, rows in ((4, [4]), (-1, [9]), ([7, 2], [7, 2]), (torch.tensor([5]), [5]), (slice(2, 4), [2, 3])):
        assert torch.equal(fast.test.audio(index)[0], everything[rows])
    with pytest.raises(IndexError):
        fast.test.audio(10)
    fast.test.audio(0)[0].zero_()  # a copy
    assert torch.equal(fast.test.audio(0)[0], everything[:1])


def test_embeddings_equal_those_of_the_base_with_its_projections(world, base, fast):
    """Copied by hand, and by starting from the base with a rate that moves nothing."""
    model = create("features", "hashed", dim=16, audio_dim=fast.test.dim)
    model.audio_projection.load_state_dict(base.model.audio_projection.state_dict())
    model.text_projection.load_state_dict(base.model.text_projection.state_dict())
    started = Plan(
        fast, recipe("infonce", **{**SMALL, "epochs": 1, "lr": 1e-12}, **on_features(fast)), base=base.path
    ).train()
    for own in (model, started.model):
        torch.testing.assert_close(embed(own, fast.test), embed(base.model, world.test), rtol=1e-4, atol=1e-5)


def test_training_learns_and_evaluates(fast):
    one = recipe("infonce+bi-dynamic-svr", **{**SMALL, "epochs": 8, "lr": 1e-2}, **on_features(fast))
    result = Plan(fast, one, diagnostics=Diagnostics(every=3)).train()
    assert result.history["loss"].iloc[-1] < 0.7 * result.history["loss"].iloc[0]
    assert result.steps["radius"].notna().all()
    assert set(retrieval_table(result.model, fast.test, ("eng", "zho"))["language"]) == {"eng", "zho"}
    assert zero_shot(result.model, fast.singles, prompts(fast.bank.events, "eng"))["value"].between(0, 1).all()


def test_run_key_knows_the_trunk(world, base, fast):
    one = recipe("infonce", **SMALL, **on_features(fast))
    other = Plan(world, recipe("infonce", **SMALL, **TRUNK, tau=0.2)).train()
    keys = {Plan(world, one).key, Plan(fast, one).key, Plan(encoded(world, other), one).key}
    assert len(keys) == 3
    assert Plan(encoded(world, base.path), one).key == Plan(fast, one).key


def test_what_cannot_be_encoded_is_named(world, base, fast, tmp_path):
    with pytest.raises(ValueError, match=r"encoded by .* already"):
        encoded(fast, base)
    with pytest.raises(ValueError, match="holds waveforms"):
        on_features(world)
    with pytest.raises(DataNotFoundError, match="no finished run"):
        encoded(world, tmp_path)
    dataset = PairDataset(TinyClips(8))
    memory = train(TinyModel(), recipe("infonce", epochs=1, batch_size=8), dataset, TinyClips(4))
    with pytest.raises(TrainingError, match="in memory only"):
        encoded(world, memory)
