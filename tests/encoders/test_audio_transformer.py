"""The audio transformer: patches that cover a clip, weights by name or from a file, attention on a CPU."""

import json

import pytest
import torch
from published import tune
from safetensors.torch import save_file

from pullpush.encoders import audio_transformer, create_audio
from pullpush.encoders.attention import attend
from pullpush.encoders.audio_transformer import FRAMES, MELS, PRETRAINED, WEIGHTS, AudioTransformer, Network
from pullpush.errors import UnknownNameError, WeightsError
from pullpush.training.trunk import Published

SMALL = {"width": 8, "layers": 1, "heads": 2}


def test_patches_are_stretches_of_the_spectrogram_and_cover_the_clip():
    encoder = AudioTransformer(**SMALL)
    audio, lengths = torch.stack([tune(1, 16_000)] * 2), torch.tensor([16_000, 5000])
    mel, frames = encoder.frontend(audio, lengths)
    patches, own = encoder.patches(audio, lengths)
    for clip, count in enumerate(frames.sum(dim=1).tolist()):
        assert own[clip].sum() == -(-count // FRAMES)
    for place in (0, 7, 23):
        stretch = mel[0, :, place * FRAMES : (place + 1) * FRAMES]
        torch.testing.assert_close(patches[0, place].view(MELS, FRAMES), stretch)
    assert patches.shape[1] * FRAMES >= mel.shape[2]


def test_weights_come_from_a_file_that_pretraining_wrote(tmp_path):
    torch.manual_seed(1)
    network = Network(**SMALL)
    file = tmp_path / "mine.safetensors"
    save_file({name: value.half() for name, value in network.state_dict().items()}, file)
    loaded = AudioTransformer(weights=file, **SMALL).network.model
    for name, value in loaded.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, network.state_dict()[name].half().float())
    with pytest.raises(WeightsError, match="of another network"):
        AudioTransformer(weights=file, **{**SMALL, "width": 16})
    with pytest.raises(UnknownNameError, match="unknown pretrained weights 'taging'"):
        AudioTransformer(weights="taging")


def test_weights_that_were_changed_since_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(audio_transformer, "WEIGHTS", tmp_path)
    monkeypatch.setitem(PRETRAINED, "tagging", "0" * 64)
    with pytest.raises(WeightsError, match="is not there: these weights lie in the repository, not in its wheel"):
        AudioTransformer(weights="tagging")
    (tmp_path / "tagging.safetensors").write_bytes(b"other")
    with pytest.raises(WeightsError, match=r"is damaged: .* take the file from a clone"):
        AudioTransformer(weights="tagging")


@pytest.mark.parametrize("name", sorted(PRETRAINED))
def test_weights_that_travel_are_those_of_their_card_and_of_one_budget(name):
    card = json.loads((WEIGHTS / f"{name}.json").read_text(encoding="utf-8"))
    assert card["sha256"] == PRETRAINED[name]
    encoder = create_audio("audio_transformer", weights=name, frozen=True)
    assert sum(value.numel() for value in encoder.network.model.parameters()) == card["weights"]
    untrained = create_audio("audio_transformer", seed=0)
    for mine, drawn in zip(encoder.network.model.parameters(), untrained.network.model.parameters(), strict=True):
        assert not torch.equal(mine, drawn)
    others = [json.loads((WEIGHTS / f"{other}.json").read_text(encoding="utf-8")) for other in PRETRAINED]
    assert all(other["data"] == card["data"] for other in others)
    for same in card["budget"].keys() - {"half"}:
        assert all(other["budget"][same] == card["budget"][same] for other in others)


def test_what_is_kept_of_clips_is_named_by_the_weights_that_heard_them(monkeypatch):
    def named(weights):
        return Published("audio_transformer", {"weights": weights}).digest

    monkeypatch.setitem(PRETRAINED, "tagging", "1" * 64)
    monkeypatch.setitem(PRETRAINED, "transcription", "2" * 64)
    before = named("tagging"), named("transcription"), named(None)
    assert len(set(before)) == 3
    monkeypatch.setitem(PRETRAINED, "tagging", "3" * 64)
    assert named("tagging") != before[0]
    assert (named("transcription"), named(None)) == before[1:]


def test_attention_in_half_precision_is_computed_in_single_on_a_cpu():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4)
    mask = (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None]
    wanted = attend(q, k, v, mask)
    scores = (q.double() @ k.double().mT / 2).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(wanted.double(), scores.softmax(dim=-1) @ v.double(), atol=1e-5, rtol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(attend(q, k, v, mask), wanted)
