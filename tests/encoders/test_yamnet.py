"""YAMNet: its front end by loops, its network by ONNX's own evaluation, what it hears, and its two parts."""

import math
import zipfile
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from published import fetched, noise, stamp
from torch import Tensor
from torchaudio.functional import melscale_fbanks

from pullpush.encoders import TEXT, AudioEncoder, TextEncoder, yamnet
from pullpush.encoders.frontend import LogMelPatches
from pullpush.encoders.wheels import QUANTISERS, unpacked
from pullpush.encoders.yamnet import WHEEL, Bridge, YAMNet, class_names

HEARD = {  # a recording → classes of which one is among the three with the highest scores
    "animals/mammals/bovines/cow_white": {"Moo", "Cattle, bovinae"},
    "animals/birds/crow": {"Caw", "Crow"},
    "animals/mammals/aquatic/whale": {"Whale vocalization"},
    "animals/amphibians/frog": {"Frog"},
    "animals/insects/bee": {"Insect", "Bee, wasp, etc."},
    "animals/mammals/bovines/sheep": {"Sheep"},
}


@pytest.fixture(scope="module")
def published():
    return fetched(YAMNet).eval()


def hear(model, recording):
    with torch.no_grad():
        return model.tag(recording[None])[0]


# What it hears


@pytest.mark.parametrize("recording", HEARD)
def test_what_it_hears_is_what_was_recorded(published, recording):
    names, scores = fetched(class_names), hear(published, stamp(recording, sample_rate=16_000))
    assert HEARD[recording] & {names[place] for place in scores.topk(3).indices}


def test_classes_are_audiosets():
    names = fetched(class_names)
    assert len(names) == len(set(names)) == 521
    assert (names[0], names[494]) == ("Speech", "Silence")


# Against the graph itself


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """The graph in the wheel without its quantising nodes: patches `(1, 1, 96, 64)` → features and class logits."""
    folder = tmp_path_factory.mktemp("graph")
    kept = fetched(lambda: unpacked(replace(WHEEL, kept=(yamnet.ARCHIVE,)), yamnet.read))
    with zipfile.ZipFile(kept / "YamNet_w8a8.onnx.zip") as archive:
        archive.extractall(folder)
    model = onnx.load(next(folder.rglob("*.onnx")))
    before = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type in QUANTISERS}

    def source(name):
        return source(before[name]) if name in before else name

    nodes = [node for node in model.graph.node if node.op_type not in QUANTISERS]
    for node in nodes:
        node.input[:] = [source(name) for name in node.input]
    ends = ["/model/Reshape_output_0", "class_scores_updated"]
    inputs, outputs = (
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names]
        for names in (["audio"], ends)
    )
    weights = [tensor for tensor in model.graph.initializer if any(tensor.name in node.input for node in nodes)]
    return ReferenceEvaluator(
        onnx.helper.make_model(
            onnx.helper.make_graph(nodes, "float", inputs, outputs, weights), opset_imports=model.opset_import
        )
    )


def test_features_and_scores_are_those_of_the_graph(published, graph):
    recording = stamp("animals/birds/crow", sample_rate=16_000)[None]
    patches, counts = published.patches(recording)
    features, logits = zip(
        *(graph.run(None, {"audio": patch[None, None].numpy()}) for patch in patches[0]), strict=True
    )
    assert len(features) == int(counts) == 3
    torch.testing.assert_close(
        published(recording)[0], torch.from_numpy(np.mean(features, axis=0)[0]), atol=1e-4, rtol=1e-4
    )
    wanted = torch.from_numpy(np.concatenate(logits)).sigmoid().mean(dim=0)
    torch.testing.assert_close(published.tag(recording)[0], wanted, atol=1e-4, rtol=1e-4)


# Front end


def log_mel_by_loops(wave, frames):
    """One clip's log-mel, a frame at a time, with NumPy's FFT in float64."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    bank = melscale_fbanks(257, 125.0, 7500.0, 64, 16_000, mel_scale="htk").double().numpy()
    wave = np.concatenate([wave, np.zeros(frames * 160 + 400)])
    rows = [wave[160 * frame : 160 * frame + 400] * window for frame in range(frames)]
    return np.array([np.log(np.abs(np.fft.rfft(row, 512)) @ bank + 0.001) for row in rows])


@pytest.mark.parametrize("length", [1, 399, 15_600, 15_601, 40_000])
def test_patches_are_cut_from_a_spectrogram_that_loops_give(length):
    audio = noise(1, length)
    patches, counts = LogMelPatches()(audio)
    frames = max(96, -(-max(length - 400, 0) // 160) + 1)
    expected = log_mel_by_loops(audio[0].double().numpy(), frames)
    assert int(counts) == patches.shape[1] == -(-frames // 96)
    np.testing.assert_allclose(patches[0, 0].numpy(), expected[:96], atol=2e-4)
    np.testing.assert_allclose(patches[0, -1].numpy(), expected[-96:], atol=2e-4)


@pytest.mark.parametrize(("hop", "patches"), [(0.96, 5), (0.48, 8), (0.24, 14)])
def test_patches_follow_each_other_by_no_more_than_the_hop(hop, patches):
    clip = noise(1, 64_000)  # 399 frames
    found, counts = LogMelPatches(hop=hop)(clip)
    whole = torch.from_numpy(log_mel_by_loops(clip[0].double().numpy(), 399)).float()
    starts = [int(((whole - patch[0]).abs().sum(dim=1)).argmin()) for patch in found[0]]
    assert int(counts) == patches
    assert starts[0] == 0
    assert starts[-1] == 399 - 96
    assert max(np.diff(starts)) <= round(hop * 100)


@pytest.mark.parametrize("hop", [0, 0.97, -1])
def test_a_hop_that_would_skip_samples_is_refused(hop):
    with pytest.raises(ValueError, match=r"hop must lie in 0\.01 … 0\.96 s, got"):
        LogMelPatches(hop=hop)


# Trained whole, in part, or not at all


def test_published_weights_are_the_same_however_much_is_trained(published):
    clip = noise(1, 16_000)
    for options in ({"frozen": True}, {"trainable": "upper"}):
        assert torch.equal(fetched(lambda options=options: YAMNet(**options))(clip), published(clip))


QUERIES = {
    "A cow is mooing in the meadow.": "animals/mammals/bovines/cow_white",
    "You can hear the cawing of a crow.": "animals/birds/crow",
    "A bumblebee buzzes past.": "animals/insects/bee",
    "Someone plays a fanfare on a brass instrument.": "military/final-roll-call",
    "A lamb is bleating.": "animals/mammals/bovines/sheep",
    "A fire engine drives by with its siren on.": "vehicles/emergency/firetruck",
}
MEANINGS = {"low": [1.0, 0.0], "high": [0.0, 2.0], "a deep tone": [3.0, 1.0]}


class Tagger(AudioEncoder):
    """Scores of two classes are the first two samples."""

    def tag(self, audio, lengths):
        return audio[:, :2]


class Reader(TextEncoder):
    """Meanings by heart."""

    def forward(self, texts, languages=None):
        return Tensor([MEANINGS[text] for text in texts])


def test_similarity_is_the_formula_by_loops():
    model = Bridge(Tagger(), ["low", "high"], Reader(), softness=0.5)
    found = float(model.encode_text(["a deep tone"]) @ model.encode_audio(torch.tensor([[0.64, 0.09, 0.5]])).T)
    cosines = 3 / math.sqrt(10), 1 / math.sqrt(10)
    low, high = (math.exp(cosine / 0.5) for cosine in cosines)
    heard = math.sqrt(0.64), math.sqrt(0.09)
    assert found == pytest.approx((low * heard[0] + high * heard[1]) / math.hypot(low, high) / math.hypot(*heard))
    assert float(model.weights(["a deep tone"])[0, 0]) == pytest.approx(low / (low + high))


def test_there_is_nothing_in_it_to_train():
    model = Bridge(YAMNet(pretrained=False, frozen=True), ["class"] * 521, TEXT["hashed"].make())
    assert not model.encode_audio(torch.ones(1, 16_000)).requires_grad


def test_sentences_find_sounds_without_training(home):
    model = Bridge(fetched(lambda: YAMNet(frozen=True)), fetched(class_names), TEXT["use"].make())
    clips = [stamp(name, sample_rate=model.sample_rate)[None] for name in QUERIES.values()]
    similarity = model.encode_text(list(QUERIES)) @ torch.cat([model.encode_audio(clip) for clip in clips]).T
    assert (similarity.argmax(dim=1) == torch.arange(len(QUERIES))).sum() >= 5
