"""The papers' audio encoders, tiny and random: what all share, their front ends, and the names of published weights.

Each network was held against its authors' code with the same random weights, at the time of writing: `dasheng` 0.0.9,
`hear21passt` 0.0.26 and the BEATs of `glap_model` 0.0.13 agree to 1e-6, CED by Dasheng's code with CED's patches.
"""

import copy

import pytest
import torch
import transformers
from safetensors.torch import save_file

from pullpush.encoders import AUDIO, create_audio
from pullpush.encoders.attention import Size
from pullpush.encoders.beats import BEATsNetwork, relative_buckets
from pullpush.encoders.hub_audio import tiny_wavlm
from pullpush.errors import DataNotFoundError, WeightsError

WINDOWED = ["ced", "dasheng", "passt", "beats", "ast_audioset", "clap", "whisper"]
MODELS = [*WINDOWED, "pe_audio", "wavlm", "wavlm-large"]
EXACT = {"atol": 1e-5, "rtol": 1e-4}


def hearing(name, **options):
    base, _, large = name.partition("-")
    return create_audio(base, **{**AUDIO[base].small, **(tiny_wavlm("layer") if large else {}), **options})


def noise(seconds, rate, rows=1, seed=0):
    return torch.randn(rows, round(seconds * rate), generator=torch.Generator().manual_seed(seed)) * 0.1


@pytest.mark.parametrize("name", MODELS)
def test_a_clips_features_depend_on_its_samples_alone(name):
    encoder = hearing(name).eval()
    audio, rate = noise(1.2, encoder.sample_rate, rows=3), encoder.sample_rate
    lengths = torch.tensor([audio.shape[1], 1, round(0.63 * rate)])
    together = encoder(audio, lengths)
    assert together.shape == (3, encoder.dim)
    longer = torch.cat([audio, noise(0.5, rate, rows=3, seed=1)], dim=1)
    torch.testing.assert_close(encoder(longer, lengths), together, **EXACT)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(encoder(audio[[row], :length])[0], together[row], **EXACT)


@pytest.mark.parametrize("name", WINDOWED)
def test_of_long_clips_windows_are_averaged(name):
    encoder = hearing(name).eval()
    window = encoder.window
    audio = noise(2 * window, 1)
    halves = torch.cat([encoder(audio[:, :window]), encoder(audio[:, window:])])
    torch.testing.assert_close(encoder(audio)[0], halves.mean(dim=0), **EXACT)
    assert (halves[0] - halves[1]).norm() > 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_frozen_weights_stay_out_of_training_and_of_checkpoints(name):
    encoder = hearing(name, frozen=True).train()
    assert not list(encoder.parameters())
    assert not encoder.state_dict()
    assert not encoder.network.model.training
    copy.deepcopy(encoder)
    assert not encoder(noise(0.5, encoder.sample_rate)).requires_grad
    assert next(encoder.to(torch.float64).network.model.parameters()).dtype == torch.float64  # it follows the model


def test_a_tone_of_12_khz_reaches_passt():
    encoder = hearing("passt").eval()
    time = torch.arange(encoder.sample_rate) / encoder.sample_rate
    network = encoder.network.model
    level = network._spectrogram(0.1 * torch.sin(2 * torch.pi * 12_000 * time)).mean(dim=1)
    hertz = network.bank[int(level.argmax())].argmax() * encoder.sample_rate / 1024
    assert abs(hertz - 12_000) < 300


@pytest.mark.parametrize(
    ("name", "width", "millions"), [("ced", 768, 85.4), ("dasheng", 768, 85.5), ("passt", 768, 85.4)]
)
def test_random_weights_of_a_published_size_need_no_network(name, width, millions, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    encoder = AUDIO[name].make(pretrained=False)
    assert encoder.dim == width
    assert sum(weight.numel() for weight in encoder.parameters()) / 1e6 == pytest.approx(millions, abs=0.4)


def published(name, network):
    """Weights under the names that are published, with what comes beside them."""
    tensors = {label: value.clone() for label, value in network.state_dict().items()}
    width = network.norm.weight.shape[0]
    if name in ("ced", "dasheng"):
        tensors = {f"encoder.{label}": value for label, value in tensors.items()}
        return tensors | {
            "outputlayer.1.weight": torch.zeros(527, width),
            "encoder.init_bn.num_batches_tracked": torch.tensor(3),
        }
    return tensors | {"head.1.weight": torch.zeros(527, width), "head_dist.bias": torch.zeros(527)}


@pytest.mark.parametrize("name", ["ced", "dasheng", "passt"])
def test_published_names_fill_the_network_and_the_classifier_is_left_out(name, tmp_path):
    sizes = {"model": Size(64, 2, 1)}  # heads are told from the width
    one = create_audio(name, seed=1, **sizes).eval()
    file = tmp_path / "model.safetensors"
    save_file(published(name, one.network.model), file)
    sound = noise(0.7, one.sample_rate)
    for model in (str(file), str(tmp_path) if name != "passt" else str(file)):
        assert torch.equal(create_audio(name, model=model, seed=2).eval()(sound), one(sound))
    drawn = create_audio(name, model=str(file), seed=2, pretrained=False).eval()
    assert drawn.dim == one.dim
    assert not torch.allclose(drawn(sound), one(sound))


@pytest.mark.parametrize("name", ["ced", "passt"])
def test_weights_of_another_network_are_refused(name, tmp_path):
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(1)}, file)
    with pytest.raises(WeightsError, match=r"of another network: they have no tensor norm.weight"):
        create_audio(name, model=str(file))


def beats_file(network):
    """A checkpoint of BEATs as its authors write it, for a network of ours."""
    size, tensors = network.size, dict(network.state_dict())
    table = tensors.pop("encoder.relative_attention_bias.weight")
    weight, bias = tensors.pop("encoder.pos_conv.weight"), tensors.pop("encoder.pos_conv.bias")
    length = weight.norm(dim=(0, 1), keepdim=True)
    convolution = torch.nn.utils.parametrizations.weight_norm(
        torch.nn.Conv1d(*weight.shape[:2], weight.shape[2]), dim=2
    )
    assert convolution.parametrizations.weight.original0.shape == length.shape  # torch's own layout
    tensors |= {f"encoder.layers.{i}.self_attn.relative_attention_bias.weight": table for i in range(size.depth)}
    tensors |= {"encoder.pos_conv.0.weight_g": length, "encoder.pos_conv.0.weight_v": 3 * weight}
    tensors |= {"encoder.pos_conv.0.bias": bias, "predictor.weight": torch.zeros(527, size.width)}
    settings = {
        "encoder_embed_dim": size.width,
        "encoder_layers": size.depth,
        "encoder_attention_heads": size.heads,
        "encoder_ffn_embed_dim": size.hidden,
        "embed_dim": size.patch_width,
        "input_patch_size": size.patch,
        "conv_pos": size.conv_positions,
        "conv_pos_groups": size.conv_groups,
        "num_buckets": size.buckets,
        "max_distance": size.furthest,
        "deep_norm": True,
        "gru_rel_pos": True,
        "relative_position_embedding": True,
        "conv_bias": False,
    }
    return {"cfg": settings, "model": tensors}


def test_a_checkpoint_of_beats_is_read_and_one_of_another_kind_refused(tmp_path):
    network = BEATsNetwork(AUDIO["beats"].small["model"]).eval()
    file, sound = tmp_path / "BEATs.pt", noise(0.9, 16_000)
    checkpoint = beats_file(network)
    torch.save(checkpoint, file)
    torch.testing.assert_close(create_audio("beats", model=str(file)).eval()(sound), network(sound, None), **EXACT)
    torch.save({**checkpoint, "cfg": {**checkpoint["cfg"], "gru_rel_pos": False}}, file)
    with pytest.raises(WeightsError, match=r"never published: {'gru_rel_pos': False}"):
        create_audio("beats", model=str(file))
    torch.save({"model": {"a": torch.ones(1)}}, file)
    with pytest.raises(WeightsError, match="no checkpoint of BEATs"):
        create_audio("beats", model=str(file))
    with pytest.raises(DataNotFoundError, match=r"no weights of BEATs at .*from its authors.*\$PULLPUSH_WEIGHTS"):
        create_audio("beats", model="/nowhere/BEATs.pt")


def test_buckets_of_positions_are_those_of_wavlm():
    config = transformers.WavLMConfig(num_buckets=320, max_bucket_distance=800)
    attention = transformers.models.wavlm.modeling_wavlm.WavLMAttention(768, 12, num_buckets=320, max_distance=800)
    place = torch.arange(900)
    theirs = attention._relative_positions_bucket(place[None] - place[:, None])
    assert config.num_buckets == 320
    assert torch.equal(relative_buckets(900, 320, 800, torch.device("cpu")), theirs)
