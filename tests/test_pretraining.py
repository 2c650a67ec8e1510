"""The script that pretrains: what its objectives are told, that they learn, and that a run that was killed goes on."""

import dataclasses
import importlib.util
import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from pullpush.encoders import create_audio
from pullpush.encoders.audio_transformer import PATCH, Network
from pullpush.errors import TrainingError

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "pretraining"
sys.path.insert(0, str(FOLDER))
import corpus as corpora_module  # noqa: E402
import loop  # noqa: E402
import objectives  # noqa: E402

sys.path.remove(str(FOLDER))
WORDS = ("a", "ba", "", "cab")  # what tiny clips say
SMALL = {"steps": 7, "clips": 16, "width": 8, "layers": 1, "heads": 2}
pytestmark = pytest.mark.usefixtures("home")


class StopError(Exception):
    """A run that is killed."""


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def corpora(home):
    """Few synthetic scenes that somebody seems to speak in."""
    return [
        dataclasses.replace(each, texts=[WORDS[row % len(WORDS)] for row in range(len(each))])
        for each in corpora_module.load_corpus("synthetic")
    ]


def made(name, corpora):
    torch.manual_seed(0)
    return objectives.OBJECTIVES[name](Network(16, 1, 2), *corpora)


@pytest.fixture(params=sorted(objectives.OBJECTIVES))
def objective(request, corpora):
    return made(request.param, corpora)


def test_the_loss_falls_on_clips_that_are_learnt(objective, corpora):
    batch = corpora[0].batch(range(8))
    optimiser = torch.optim.AdamW(objective.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        loss = objective.loss(batch, draws())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in objective.parameters())


def test_longer_rows_change_nothing_but_the_draws(objective, corpora, monkeypatch):
    batch = corpora[0].batch([0, 1, 2])
    hidden = torch.zeros_like(batch.mask)
    hidden[:, 1:5] = True
    longer = batch._replace(patches=F.pad(batch.patches, (0, 0, 0, 7), value=3.0), mask=F.pad(batch.mask, (0, 7)))
    monkeypatch.setattr(objectives, "stretches", lambda mask, _: F.pad(hidden, (0, mask.shape[1] - hidden.shape[1])))
    seen = torch.tensor([[0, 5, 6]] * 3), torch.tensor([[True] * 3, [True] * 3, [True, True, False]])
    monkeypatch.setattr(objectives, "visible", lambda mask, _: seen)
    objective.eval()  # mixes nothing in
    wanted = objective.loss(batch, draws())
    torch.testing.assert_close(objective.loss(longer, draws()), wanted, atol=1e-5, rtol=1e-5)


# ---------------------------------------------------------------- transcription


def test_the_ctc_loss_is_that_of_all_paths_that_write_the_text(corpora):
    transcription = made("transcription", corpora)
    batch = corpora[0].batch([1])  # says "ba"
    short = batch._replace(patches=batch.patches[:, :4], mask=batch.mask[:, :4])
    likely = transcription._log_likelihoods(short)[0].double()
    paths = itertools.product(range(likely.shape[1]), repeat=4)
    logs = [sum(likely[at, here] for at, here in enumerate(path)) for path in paths if transcription.read(path) == "ba"]
    wanted = -torch.stack(logs).logsumexp(dim=0) / 4
    torch.testing.assert_close(transcription.loss(short, draws()).double(), wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("one", "other"), [("", "abc"), ("kitten", "sitting"), ("flaw", "lawn"), ("a", "a")])
def test_distance_is_that_of_the_recursive_definition(one, other):
    def slow(left, right):
        if not left or not right:
            return len(left) + len(right)
        change = slow(left[1:], right[1:]) + (left[0] != right[0])
        return min(slow(left[1:], right) + 1, slow(left, right[1:]) + 1, change)

    assert objectives.distance(one, other) == objectives.distance(other, one) == slow(one, other)


# ---------------------------------------------------------------- masked prediction


def test_only_masked_patches_count_and_they_are_not_seen(corpora, monkeypatch):
    prediction, (train, _) = made("masked-prediction", corpora).eval(), corpora
    batch = train.batch([0, 1])
    masked = torch.zeros_like(batch.mask)
    masked[:, 2:6] = True
    monkeypatch.setattr(objectives, "stretches", lambda mask, _: masked)
    wanted = prediction.loss(batch, draws())
    other = batch._replace(patches=torch.where(masked[..., None], torch.randn(PATCH), batch.patches))
    assert torch.equal(prediction.loss(other, draws()), wanted)  # units are kept of the clips
    units = prediction.units[train]
    for clip in (0, 1):
        units[clip][:2] = 0
        units[clip][6:] = 0
    assert torch.equal(prediction.loss(batch, draws()), wanted)
    for clip in (0, 1):
        units[clip][2:6] = (units[clip][2:6] + 1) % prediction.head.out_features
    assert not torch.equal(prediction.loss(batch, draws()), wanted)


def test_cepstra_are_cosine_transforms_with_their_slopes():
    patches = torch.randn(4, PATCH)
    found = objectives.cepstrum(patches)
    frames = patches.view(4, 64, 4).mean(dim=2).double().numpy()
    angle = np.pi * (np.arange(64) + 0.5) / 64
    second = frames @ np.cos(angle) * math.sqrt(2 / 64)
    np.testing.assert_allclose(found[:, 1], second, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1:3, 14], (second[2:] - second[:-2]) / 2, rtol=1e-4, atol=1e-5)
    assert found.shape == (4, 39)
    assert np.isfinite(objectives.cepstrum(patches[:1])).all()


# ---------------------------------------------------------------- masked reconstruction


def test_hidden_patches_are_not_seen_and_seen_ones_do_not_count(corpora, monkeypatch):
    reconstruction = made("masked-reconstruction", corpora)
    batch = corpora[0].batch([0, 1])
    kept = torch.tensor([[1, 4, 7]] * 2), torch.ones(2, 3, dtype=torch.bool)
    monkeypatch.setattr(objectives, "visible", lambda mask, _: kept)
    drawn, wanted = reconstruction.drawn(batch, draws())
    seen = torch.zeros_like(batch.mask)
    seen[:, [1, 4, 7]] = True
    assert len(drawn) == int((batch.mask & ~seen).sum())
    torch.testing.assert_close(wanted, objectives.standardised(batch.patches[batch.mask & ~seen]))
    hidden = batch._replace(patches=torch.where(seen[..., None], batch.patches, torch.randn(PATCH)))
    assert torch.equal(reconstruction.drawn(hidden, draws())[0], drawn)
    shown = batch._replace(patches=torch.where(seen[..., None], torch.randn(PATCH), batch.patches))
    assert not torch.allclose(reconstruction.drawn(shown, draws())[0], drawn)


# ---------------------------------------------------------------- runs


def test_a_run_that_was_killed_goes_on_to_the_same_weights(tmp_path, corpora, monkeypatch):
    budget, done, update = loop.Budget(**SMALL, kept_every=2), [], loop.update
    whole, state = loop.pretrain("masked-prediction", *corpora, tmp_path / "whole", 0, budget)

    def until_killed(*arguments):
        if len(done) == 5:
            raise StopError
        done.append(0)
        return update(*arguments)

    monkeypatch.setattr(loop, "update", until_killed)
    with pytest.raises(StopError):
        loop.pretrain("masked-prediction", *corpora, tmp_path / "killed", 0, budget)
    done.clear()
    again, resumed = loop.pretrain("masked-prediction", *corpora, tmp_path / "killed", 0, budget)
    assert len(done) == 3  # from step 4, where the last checkpoint was
    assert resumed.history == state.history
    torch.testing.assert_close(again.network.state_dict(), whole.network.state_dict(), rtol=0, atol=0)
    with pytest.raises(TrainingError, match="another run"):
        loop.pretrain("masked-prediction", *corpora, tmp_path / "killed", 1, budget)


def test_the_command_writes_weights_that_the_encoder_loads_and_says_how(tmp_path):
    spec = importlib.util.spec_from_file_location("pretraining_command", FOLDER / "__main__.py")
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    sizes = [f"--{name}={value}" for name, value in SMALL.items()]
    assert command.main(["--objective", "tagging", "--corpus", "synthetic", "--out", str(tmp_path), *sizes]) == 0
    card = json.loads((tmp_path / "tagging.json").read_text(encoding="utf-8"))
    assert "--objective tagging --corpus synthetic --seed 0 --steps 7" in card["command"]
    assert card["epochs"] == [1, 2, 2.33]  # 48 clips by 16
    assert card["data"]["train"]["clips"] == {"sound": 48}
    assert card["held-out scores"].keys() == {"mean average precision", "by chance"}
    tensors = load_file(tmp_path / "tagging.safetensors")
    assert all(tensor.dtype == torch.float16 for tensor in tensors.values())
    encoder = create_audio(
        "audio_transformer", weights=str(tmp_path / "tagging.safetensors"), width=8, layers=1, heads=2
    )
    assert encoder(torch.zeros(1, 16_000)).shape == (1, 8)
