"""Whole published models, tiny and random: their embeddings are those of their own classes, whatever the batch."""

import math

import numpy as np
import published
import pytest
import torch
import transformers

from pullpush.encoders.clap import WholeCLAP, tiny_whole
from pullpush.encoders.pe_audio import WholePEAudio
from pullpush.encoders.pretrained import MODELS, open_model, tiny_tokenizer
from pullpush.encoders.remote import EAT, GLAP
from pullpush.encoders.wheels import pinned
from pullpush.errors import PullPushError, UnknownNameError, WeightsError

TEXTS = ["a frog croaks", "bell", "", "a dog barks then a bell rings"]
EXACT = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(scope="module")
def clap():
    torch.manual_seed(0)
    return WholeCLAP(**tiny_whole())


@pytest.fixture(scope="module")
def pe_audio():
    torch.manual_seed(0)
    return WholePEAudio(**MODELS["pe_audio"].probe())


@pytest.fixture(params=["clap", "pe_audio"])
def model(request):
    return request.getfixturevalue(request.param)


def test_neither_padding_nor_the_rest_of_the_batch_matters(model):
    audio, lengths = published.noise(3, 40_000), torch.tensor([40_000, 1, 17_000])
    together, texts = model.encode_audio(audio, lengths), model.encode_text(TEXTS)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(model.encode_audio(audio[[row], :length])[0], together[row], **EXACT)
    for row, text in enumerate(TEXTS):
        torch.testing.assert_close(model.encode_text([text])[0], texts[row], **EXACT)


def test_clap_gives_what_its_own_class_gives(clap):
    sound = published.noise(1, 48_000 * 3)
    inputs = clap.extractor(sound[0].numpy(), sampling_rate=48_000, return_tensors="pt")
    words = clap.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        audio = clap.network.get_audio_features(**inputs).pooler_output
        text = clap.network.get_text_features(words.input_ids, words.attention_mask).pooler_output
    torch.testing.assert_close(clap.encode_audio(sound), audio, **EXACT)
    torch.testing.assert_close(clap.encode_text(TEXTS), text, **EXACT)
    assert clap.tau == pytest.approx(1 / float(clap.network.logit_scale_t.exp()))
    assert clap.sample_rate == 48_000


def test_pe_audio_gives_what_its_own_class_gives(pe_audio):
    sound = published.noise(1, 9601)
    extractor = transformers.PeAudioFeatureExtractor(hop_length=pe_audio.hop)
    inputs = extractor([sound[0].numpy()], sampling_rate=48_000, return_tensors="pt")
    words = pe_audio.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        out = pe_audio.network(
            input_ids=words.input_ids,
            attention_mask=words.attention_mask,
            input_values=torch.as_tensor(np.stack(inputs.input_values)),
        )
    audio, text = (torch.nn.functional.normalize(x, dim=1) for x in (out.audio_embeds, out.text_audio_embeds))
    torch.testing.assert_close(pe_audio.encode_audio(sound), audio, **EXACT)
    torch.testing.assert_close(pe_audio.encode_text(TEXTS), text, **EXACT)


def test_scale_and_bias_of_pe_audio_are_read(tmp_path):
    network = transformers.PeAudioModel(MODELS["pe_audio"].probe()["model"])
    with torch.no_grad():
        network.text_audio_logit_scale.fill_(20.0)
        network.text_audio_logit_bias.fill_(-10.0)
    network.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    transformers.PeAudioFeatureExtractor().save_pretrained(tmp_path)
    model = open_model(f"pe_audio:{tmp_path}")
    assert (model.tau, model.bias, model.sample_rate) == (pytest.approx(0.05), -10.0, 48_000)


def test_weights_come_from_a_folder_and_a_fused_clap_is_refused(tmp_path):
    for name, fused in (("plain", False), ("fused", True)):
        folder = tmp_path / name
        config = tiny_whole()["model"]
        config.audio_config.enable_fusion = fused
        transformers.ClapModel(config).save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
        transformers.ClapFeatureExtractor(truncation="fusion" if fused else "rand_trunc").save_pretrained(folder)
    assert open_model(f"clap:{tmp_path / 'plain'}").encode_text(TEXTS).shape == (4, 8)
    with pytest.raises(WeightsError, match=r"fused CLAP.*at random"):
        open_model(f"clap:{tmp_path / 'fused'}")


def test_a_wrong_name_or_option_is_told():
    with pytest.raises(UnknownNameError, match="did you mean 'clap'"):
        open_model("clapp")
    with pytest.raises(UnknownNameError, match="unknown option of clap 'trust'"):
        open_model("clap", trust=True)
    with pytest.raises(ValueError, match="no tokenizer"):
        WholeCLAP(model=tiny_whole()["model"])


@pytest.mark.parametrize("make", [GLAP, EAT])
def test_code_of_a_publisher_runs_only_where_it_is_asked_for_at_one_commit(make):
    with pytest.raises(PullPushError, match=r"would run on this machine: read it.*trust_remote_code=True"):
        make()
    with pytest.raises(PullPushError, match=r"run at one commit alone: name the one that you have read, .*@COMMIT"):
        make(trust_remote_code=True)


REMOTE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel


class TinyConfig(PretrainedConfig):
    model_type = "tiny-remote"


class TinyModel(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.scale = torch.nn.Parameter(torch.ones(1))
        self.post_init()

    def encode_audio(self, audio):
        return torch.stack([audio.mean(1), audio.std(1)], 1) * self.scale

    def encode_text(self, texts, device="cpu", source_lang="eng_Latn"):
        return torch.tensor([[1.0, sum(map(ord, source_lang)) / 100 + len(text)] for text in texts])

    def extract_features(self, mel):
        assert mel.shape[1:] == (1, 1024, 128)
        return mel.mean((1, 2, 3))[:, None, None] * self.scale.expand(1, 2, 768)
"""


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """A folder with a model and its code, as the hub has them."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "tiny_remote.py").write_text(REMOTE)
    places = '{"AutoConfig": "tiny_remote.TinyConfig", "AutoModel": "tiny_remote.TinyModel"}'
    (folder / "config.json").write_text(f'{{"model_type": "tiny-remote", "auto_map": {places}}}')
    torch.save({"scale": torch.ones(1)}, folder / "pytorch_model.bin")
    return folder


def test_glap_marks_languages_and_hears_clips_of_one_length_at_a_time(remote):
    model = GLAP(model=str(remote), trust_remote_code=True)
    sound, lengths = published.noise(2, 20_000), torch.tensor([20_000, 9000])
    wanted = torch.stack([torch.stack([clip.mean(), clip.std()]) for clip in (sound[0], sound[1, :9000])])
    torch.testing.assert_close(model.encode_audio(sound, lengths), wanted / wanted.norm(dim=1, keepdim=True), **EXACT)
    english, french, default = model.encode_text(["a frog"] * 3, ["eng", "fra", "eng"])
    assert torch.equal(english, default)
    assert not torch.equal(english, french)
    assert model.tau == 0.01
    with pytest.raises(UnknownNameError, match="unknown language 'fre': did you mean 'fra'"):
        model.encode_text(["a"], ["fre"])


def test_eat_takes_its_first_token_of_a_filled_up_window(remote):
    encoder = EAT(model=str(remote), trust_remote_code=True, frozen=True)
    features = encoder(published.noise(2, 20_000), torch.tensor([20_000, 300]))
    assert features.shape == (2, 768)
    assert not features.requires_grad
    assert math.isfinite(float(features.sum()))


def test_cards_say_which_run_code_and_the_others_are_pinned():
    assert {name for name, card in MODELS.items() if card.remote} == {"glap"}
    for name in ("clap", "pe_audio"):
        assert pinned(MODELS[name].weights.removeprefix("hub "))[1].keys() == {"revision"}
