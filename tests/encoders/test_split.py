"""What every encoder in two parts keeps to, with random weights; how kept activations train is in test_upper.py."""

import pytest
import torch

from pullpush.encoders import AUDIO, create

SPLIT = [name for name, card in AUDIO.items() if card.split]
pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.parametrize("name", SPLIT)]


def hearing(name, **options):
    return create(name, "hashed", dim=8, audio_pretrained=False, **options).audio.eval()


def clips(encoder):
    """Noise of 3.1, 0.2 and 1 s."""
    lengths = (torch.tensor([3.1, 0.2, 1.0]) * encoder.sample_rate).long()
    audio = 0.1 * torch.randn(3, int(lengths.max()), generator=torch.Generator().manual_seed(0))
    return audio * (torch.arange(audio.shape[1]) < lengths[:, None]), lengths


def test_both_parts_together_are_the_whole(name):
    encoder = hearing(name)
    audio, lengths = clips(encoder)
    activations, sizes = encoder.lower(audio, lengths)
    assert activations.shape == (3, int(sizes.max()))
    assert (activations.dtype, sizes.dtype) == (torch.float32, torch.int64)
    assert sizes[1] < sizes[0]
    for row, size in enumerate(sizes.tolist()):
        assert not activations[row, size:].any()
    torch.testing.assert_close(encoder.upper(activations, sizes), encoder(audio, lengths))


def test_neither_the_batch_nor_longer_rows_nor_half_precision_change_what_is_heard(name):
    encoder = hearing(name)
    audio, lengths = clips(encoder)
    wanted = encoder(audio, lengths)
    activations, sizes = encoder.lower(audio, lengths)
    for row, size in enumerate(sizes.tolist()):
        alone, alone_size = encoder.lower(audio[[row], : lengths[row]], lengths[[row]])
        assert int(alone_size) == size
        torch.testing.assert_close(alone[0], activations[row, :size], atol=1e-4, rtol=1e-3)
        kept = activations[[row], :size].half().float()  # as they are kept
        torch.testing.assert_close(encoder.upper(kept, sizes[[row]])[0], wanted[row], atol=0.01, rtol=0.02)


def test_only_the_upper_part_is_trained_where_that_is_asked_for(name):
    whole, upper = hearing(name).train(), hearing(name, audio_trainable="upper").train()
    names = [{part for part, _ in encoder.named_parameters()} for encoder in (whole, upper)]
    assert names[1] < names[0]
    audio, lengths = clips(upper)
    activations, _ = upper.lower(audio, lengths)
    assert torch.equal(activations, upper.lower(audio, lengths)[0])  # nothing is drawn below
    upper(audio, lengths).square().sum().backward()
    assert all(weight.grad is not None for weight in upper.parameters())
    assert {part for part in upper.state_dict() if part in names[0]} == names[1]


def test_the_upper_part_alone_goes_on_from_kept_activations(name):
    whole = hearing(name, audio_trainable="upper", seed=3)
    upper = create("upper", "hashed", dim=8, audio_of=name, audio_options={"pretrained": False}, seed=3).audio.eval()
    activations, sizes = whole.lower(*clips(whole))
    assert upper.dim == whole.dim
    torch.testing.assert_close(upper(activations, sizes), whole.upper(activations, sizes))
    trained = [
        {part: weight.shape for part, weight in encoder.named_parameters()} for encoder in (whole, upper.encoder)
    ]
    assert trained[0] == trained[1] != {}
