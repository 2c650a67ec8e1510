import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from pandas.testing import assert_frame_equal
from standin import TinyClips, TinyModel
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from pullpush.data.batches import PairDataset, collate
from pullpush.encoders.pretrained import Pretrained
from pullpush.errors import DataNotFoundError, PullPushError, TrainingError
from pullpush.losses import InfoNCE
from pullpush.training import Diagnostics, Term, checkpoints, loop, recipe, train
from pullpush.training.loop import numbers
from pullpush.training.objective import Objective
from pullpush.training.optimiser import clip_gradients, make_optimiser, rate, update

RECIPE_FIELDS = ("epochs", "batch_size", "lr", "scalar_lr", "balance", "optimiser", "checkpoint", "tau", "tau_end")
TINY = {"epochs": 3, "batch_size": 7, "dim": 8}


def fit(out=None, *, model=None, clips=30, seed=0, name="infonce", dataset=None, **options):
    overrides = {**TINY, **{key: options.pop(key) for key in list(options) if key in RECIPE_FIELDS}}
    model = TinyModel() if model is None else model
    dataset = dataset or PairDataset(TinyClips(clips), captions="random")
    return train(model, recipe(name, **overrides), dataset, TinyClips(12, seed=1), out=out, seed=seed, **options)


def state(result):
    return {name: value.clone() for name, value in result.model.state_dict().items()}


def assert_same(one, other):
    assert_frame_equal(one.history, other.history, check_exact=True)
    assert_frame_equal(one.steps, other.steps, check_exact=True)
    assert one.best == other.best
    for name, value in state(one).items():
        assert torch.equal(value, state(other)[name]), name


def test_learns_to_retrieve():
    result = fit(epochs=15, lr=1e-2)
    assert result.history["loss"].iloc[-1] < 0.7 * result.history["loss"].iloc[0]
    assert result.best["R@1"] > 1 / 12
    assert not result.model.training


def test_tables_have_a_row_for_each_step_and_epoch():
    result = fit()
    assert list(result.history["epoch"]) == [1, 2, 3]
    assert list(result.steps["step"]) == list(range(1, 16))  # 30 clips make batches of 7, 7, 7, 7 and 2
    assert list(result.steps["clips"][:5]) == [7, 7, 7, 7, 2]
    last = result.steps[result.steps["epoch"] == 3]
    expected = (last["loss"] * last["clips"]).sum() / 30
    assert result.history["loss"].iloc[-1] == pytest.approx(expected)
    assert list(result.history["R@1"]) == pytest.approx(list(result.history[["T2A R@1", "A2T R@1"]].mean(axis=1)))


def test_same_seed_same_numbers_other_seed_others():
    assert_same(fit(seed=1), fit(seed=1))
    assert not fit(seed=1).steps["loss"].equals(fit(seed=2).steps["loss"])


def test_callers_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_model_has_the_weights_of_the_best_epoch(tmp_path):
    result = fit(tmp_path, epochs=6, lr=3e-2)
    saved, row = checkpoints.read(tmp_path / "best.safetensors")
    assert row == result.best
    assert result.best["R@1"] == result.history["R@1"].max()
    for name, value in result.model.state_dict().items():
        assert torch.equal(value, saved[f"model.{name}"])


def test_the_last_epoch_may_be_kept_and_nothing_else_changes(tmp_path):
    best, last = fit(epochs=6, lr=3e-2), fit(tmp_path, epochs=6, lr=3e-2, checkpoint="last")
    assert_frame_equal(best.history, last.history, check_exact=True)
    assert last.best["epoch"] == 6 != best.best["epoch"]
    saved, _ = checkpoints.read(tmp_path / "best.safetensors")
    assert all(torch.equal(value, saved[f"model.{name}"]) for name, value in last.model.state_dict().items())


def test_a_temperature_that_anneals_goes_by_one_factor_a_step():
    found = fit(tau=0.2, tau_end=0.1).steps["tau"]
    assert list(found) == pytest.approx([0.2 * 0.5 ** (step / 15) for step in range(15)])
    for name in ("infonce-learnable", "siglip"):
        with pytest.raises(ValueError, match="has tau_end, and no fixed temperature"):
            fit(name=name, tau_end=0.1)


def test_diagnostics_do_not_change_the_run():
    plain, watched = fit(), fit(diagnostics=Diagnostics(every=2))
    assert_frame_equal(plain.history, watched.history, check_exact=True)
    assert_frame_equal(plain.steps, watched.steps[plain.steps.columns], check_exact=True)
    assert watched.steps["pull"].notna().tolist() == [True, False] * 7 + [True]


@pytest.mark.parametrize("name", ["infonce", "infonce-learnable", "siglip"])
def test_one_clip_in_a_batch_and_in_the_set(name):
    model = TinyModel(dropout=0)  # batch normalisation needs two
    result = fit(model=model, clips=1, name=name, diagnostics=Diagnostics())
    assert result.steps["loss"].notna().all()


def test_frozen_parameters_stay_and_are_not_saved(tmp_path):
    model = TinyModel()
    model.text.requires_grad_(False)
    before = model.text[1].weight.clone()
    fit(tmp_path, model=model)
    assert torch.equal(model.text[1].weight, before)
    saved = checkpoints.read(tmp_path / "best.safetensors")[0]
    assert "model.audio.0.weight" in saved
    assert "model.text.1.weight" not in saved


class Interrupted(Exception):
    pass


class FailingDataset(PairDataset):
    """Raises at its n-th item."""

    count = 0
    limit = 0

    def texts(self, index):
        self.count += 1
        if self.count > self.limit:
            raise Interrupted
        return super().texts(index)


def assert_goes_on(out, limit, pairs=None, **options):
    """A run that is interrupted as it asks for its `limit`-th text, and goes on, is the one that never was."""
    clips = TinyClips(30, columns=pairs and {"group": ["a"] * 5 + ["b"] * 25})
    pairs = {"captions": "random", **(pairs or {})}
    dataset = FailingDataset(clips, **pairs)
    dataset.limit = limit
    with pytest.raises(Interrupted):
        fit(out, dataset=dataset, save_after=0, **options)
    resumed = fit(out, dataset=PairDataset(clips, **pairs), save_after=0, **options)
    assert_same(resumed, fit(dataset=PairDataset(clips, **pairs), **options))
    return resumed


@pytest.mark.parametrize("limit", [5, 16, 30, 31, 61, 89])
def test_resumed_run_equals_the_uninterrupted_one(tmp_path, limit):
    assert_goes_on(tmp_path, limit, diagnostics=Diagnostics())


@pytest.mark.parametrize("limit", [5, 31])
def test_batches_made_ahead_by_a_thread_are_the_same_and_go_on(tmp_path, limit, monkeypatch):
    alone = fit()
    monkeypatch.setattr(TinyModel, "sample_rate", 160)
    assert_same(assert_goes_on(tmp_path, limit), alone)


def test_no_thread_outlives_an_error_of_a_batch_or_of_a_step(monkeypatch):
    monkeypatch.setattr(TinyModel, "sample_rate", 160)
    before, dataset, seen = set(threading.enumerate()), FailingDataset(TinyClips(30)), []
    dataset.limit = 12
    with pytest.raises(Interrupted) as caught:  # which holds the frames of the run
        fit(dataset=dataset)
    seen.append(set(threading.enumerate()))
    monkeypatch.setattr(loop, "update", lambda *given: given[0].lost)
    with pytest.raises(AttributeError, match="lost") as also:
        fit()
    seen.append(set(threading.enumerate()))
    assert caught.tb
    assert also.tb
    assert not [each.name for each in (seen[0] | seen[1]) - before if each.name.startswith("ThreadPool")]


def test_complete_run_is_read_not_trained(tmp_path):
    first = fit(tmp_path)
    dataset = FailingDataset(TinyClips(30), captions="random")  # raises at its first item
    assert_same(fit(tmp_path, dataset=dataset, model=TinyModel(seed=9)), first)


def test_a_short_run_writes_one_checkpoint_of_tables_alone(tmp_path, monkeypatch):
    save, written = checkpoints.save, []
    monkeypatch.setattr(checkpoints, "save", lambda *given: (written.append(given[3].step), save(*given)))
    fit(tmp_path)
    assert written == [15]
    tensors = checkpoints.read(tmp_path / "checkpoint.safetensors")[0]
    assert {name.split("/")[0] for name in tensors} == {"steps", "history"}


def test_a_folder_of_a_run_on_other_captions_is_refused(tmp_path):
    def on(word):
        clips = TinyClips(30, columns={"captions": [[word]] * 30})
        clips.captions = lambda language: clips.columns["captions"]
        train(TinyModel(), recipe("infonce", epochs=1, batch_size=8), PairDataset(clips), TinyClips(8), out=tmp_path)

    on("bark"), on("bark")
    with pytest.raises(TrainingError, match="another run"):
        on("roar")


def test_folder_of_another_run_is_refused(tmp_path):
    fit(tmp_path, epochs=1)
    with pytest.raises(TrainingError, match="another run"):
        fit(tmp_path, epochs=2)
    with pytest.raises(ZeroDivisionError):
        fit(tmp_path, epochs=2, resume=False, after_epoch=lambda row: 1 / 0)
    assert not any(tmp_path.glob("*.*")), "nothing of the other run stands beside this one"
    assert len(fit(tmp_path, epochs=2, resume=False).history) == 2


def test_damaged_checkpoint_says_what_to_do(tmp_path):
    fit(tmp_path, epochs=1)
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(TrainingError, match="resume=False"):
        fit(tmp_path, epochs=1)


def test_base_gives_its_best_weights(tmp_path):
    base = fit(tmp_path / "base")
    model = TinyModel(seed=3)
    checkpoints.load_model(model, tmp_path / "base")
    assert torch.equal(model.audio[0].weight, base.model.audio[0].weight)
    once = fit(base=tmp_path / "base", model=TinyModel(seed=3))
    again = fit(base=tmp_path / "base" / "best.safetensors", model=TinyModel(seed=4))
    assert_same(once, again)
    assert not once.steps["loss"].equals(fit().steps["loss"])
    model.requires_grad_(False).text[1].weight.zero_()
    assert torch.equal(checkpoints.load_model(model, tmp_path / "base").text[1].weight, base.model.text[1].weight)


def test_base_of_another_model_or_none_is_refused(tmp_path):
    fit(tmp_path / "base", epochs=1)
    with pytest.raises(TrainingError, match="another model"):
        fit(base=tmp_path / "base", model=TinyModel(dim=4))
    with pytest.raises(DataNotFoundError, match="train that run first"):
        fit(base=tmp_path / "nothing")
    checkpoints.write(tmp_path / "best.safetensors", {"model.tower.inside.weight": torch.ones(3, 2)}, {})
    with pytest.raises(TrainingError, match="has trained tower, which stays as published here"):
        checkpoints.load_model(nn.ModuleDict({"tower": Pretrained(nn.Linear(2, 3), frozen=True)}), tmp_path)


def test_a_tower_that_learns_nothing_is_watched_and_clips_to_choose_by_are_looked_at_first():
    (model := TinyModel()).text.requires_grad_(False)
    assert fit(model=model, diagnostics=Diagnostics()).steps["gradient_drift"].isna().all()
    (valid := TinyClips(12)).captions = lambda language: [[]] * 12
    with pytest.raises(ValueError, match="no clip to choose the best epoch by"):
        train(TinyModel(), recipe("infonce"), PairDataset(TinyClips(9)), valid, after_epoch=lambda row: 1 / 0)
    with pytest.raises(ValueError, match="tau must be positive"):
        Diagnostics(tau=0.0)


def test_radius_is_in_the_steps_table_and_learns():
    steps = fit(name="infonce+bi-static-svr", lr=1e-2).steps
    assert steps["radius"].iloc[0] == pytest.approx(0.1)  # as it was in the step
    assert steps["radius"].nunique() == len(steps)
    assert steps["loss_gradient"].gt(0).all()
    plain = fit().steps
    assert not {"radius", "loss_gradient"} & set(plain)


def test_a_loss_that_reports_under_a_name_of_the_table_is_refused(monkeypatch):
    monkeypatch.setattr(InfoNCE, "learnt", property(lambda loss: {"clips": torch.ones(())}))
    with pytest.raises(TrainingError, match="a loss reports 'clips', a column that a run has anyway"):
        fit()


def test_loss_with_random_weights_depends_on_the_seed_alone(tmp_path):
    options = {"name": "infonce+bi-dynamic-svr", "model": None}
    torch.manual_seed(1)
    one = fit(**options)
    torch.manual_seed(2)
    assert_same(fit(tmp_path, **options), one)
    assert_same(fit(tmp_path, **options), one)  # read back, radii too


STEEP = '''
    """A loss with a parameter whose gradient is huge; it adds nothing to that of the embeddings."""
    import torch
    from pullpush.losses import Loss, LossCard, Output


    class Steep(Loss):
        def __init__(self, slope=1e4):
            super().__init__()
            self.slope, self.level = slope, torch.nn.Parameter(torch.zeros(()))

        def forward(self, audio, text):
            return Output(self.slope * self.level)


    CARD = LossCard(name="steep", make=Steep, title="Steep", about="A steep slope.")
'''


@pytest.mark.parametrize("clip", [0.0, 0.1])
def test_gradient_of_the_loss_does_not_shorten_that_of_the_encoders(add, clip):
    add("losses/steep.py", STEEP)
    terms = (Term("infonce"), Term("steep"))
    seen = []

    def run(*terms):
        objective = Objective(TinyModel(dropout=0), recipe("infonce", terms=terms, clip=clip, batch_size=7))
        one = collate([PairDataset(TinyClips(7))[row] for row in range(7)])
        objective(one).loss.backward()
        norms = {name: float(norm) for name, norm in clip_gradients(objective, recipe("infonce", clip=clip)).items()}
        seen.append(norms)
        return objective

    plain, steep = run(terms[0]), run(*terms)
    for (name, one), (_, other) in zip(plain.model.named_parameters(), steep.model.named_parameters(), strict=True):
        assert torch.equal(one.grad, other.grad), name
    assert seen[0] == {"gradient": seen[1]["gradient"]}
    assert seen[1]["loss_gradient"] == pytest.approx(1e4)
    assert steep.terms[1].level.grad.item() == pytest.approx(clip or 1e4, rel=1e-4)


def test_rate_warms_up_and_falls_to_zero():
    one = recipe("infonce", warmup=0.1)
    rates = [rate(step, 100, one) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == rates[10] == 1
    assert all(later < earlier for earlier, later in pairwise(rates[10:]))
    assert rates[-1] < 0.001
    assert rate(99, 100, recipe("infonce", schedule="constant")) == 1


def test_balanced_run_goes_on_to_the_same_numbers(tmp_path):
    weights = {"a": 1.0, "b": 1.0}
    assert_goes_on(tmp_path, 45, {"weights": weights}, balance=weights)  # in the second epoch


def test_texts_that_are_drawn_otherwise_than_the_recipe_says_are_told_of():
    with pytest.warns(UserWarning, match="captions of the recipe and of its training pairs differ"):
        fit(dataset=PairDataset(TinyClips(14), captions="random"), epochs=1)


def test_balance_of_recipe_and_pairs_must_agree():
    with pytest.raises(TrainingError, match=r"balances \{'a': 1\}, its training pairs \{\}: .* weights=recipe.balance"):
        fit(balance={"a": 1})


def test_adam_of_eight_bits_says_what_to_install(monkeypatch):
    monkeypatch.setattr("pullpush.training.optimiser.find_spec", lambda name: None)
    with pytest.raises(PullPushError, match=r"pip install 'pullpush\[8bit\]'"):
        fit(optimiser="adam8bit")


class Counting(torch.optim.SGD):
    """Momentum in bytes and a step count that is no tensor, as in bitsandbytes."""

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                slot = self.state[parameter]
                slot["step"] = slot.get("step", 0) + 1
                slot["code"] = torch.full_like(parameter, slot["step"] % 256, dtype=torch.uint8)
                parameter.data.add_(parameter.grad, alpha=-group["lr"] / slot["step"])


def test_state_of_eight_bits_is_kept_in_checkpoints(tmp_path, monkeypatch):
    bits = SimpleNamespace(Adam8bit=Counting)
    monkeypatch.setattr("pullpush.training.optimiser.find_spec", lambda name: True)
    monkeypatch.setattr("pullpush.training.optimiser.import_module", lambda name: bits)
    assert_goes_on(tmp_path, 45, optimiser="adam8bit")


SCRIPT = """
import sys, time
sys.path.insert(0, {folder!r})
from standin import TinyClips, TinyModel
from pullpush.data.batches import PairDataset
from pullpush.training import Diagnostics, recipe, train

class Slow(PairDataset):
    def texts(self, index):
        time.sleep(0.002)
        return super().texts(index)

one = recipe("infonce", epochs=3, batch_size=7, dim=8)
dataset = Slow(TinyClips(30), captions="random")
train(TinyModel(), one, dataset, TinyClips(12, seed=1), out={out!r}, save_after=0, diagnostics=Diagnostics())
"""


@pytest.mark.deep
def test_killed_run_goes_on_bit_for_bit(tmp_path):
    """SIGKILL in the middle of an epoch, at whatever instant it falls."""
    script = SCRIPT.format(folder=str(Path(__file__).parent), out=str(tmp_path / "run"))
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}  # as many round alike
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, **threads})
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    deadline = time.monotonic() + 300
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"
    done = checkpoints.read(checkpoint)[1]["step"]
    assert 1 <= done < 15
    resumed = fit(tmp_path / "run", save_after=0, diagnostics=Diagnostics())
    assert_same(resumed, fit(diagnostics=Diagnostics()))


def test_numbers_of_a_loss_learn_at_their_own_rate():
    objective = Objective(TinyModel(), recipe("siglip+bi-dynamic-svr", lr=1e-3, scalar_lr=20.0, network_lr=2.0))
    factors = {
        id(parameter): group["factor"]
        for group in make_optimiser(objective, recipe("siglip", scalar_lr=20.0, network_lr=2.0)).param_groups
        for parameter in group["params"]
    }
    assert all(factors[id(parameter)] == 1 for parameter in objective.model.parameters())
    for name, parameter in objective.terms.named_parameters():
        assert factors[id(parameter)] == (2.0 if "predictor" in name else 20.0), name


class Reads(TorchDispatchMode):
    """Counts how often a number is read that depends on the weights: a GPU would be waited for."""

    LOOKS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero")

    def __init__(self, model):
        super().__init__()
        self.count, self.of_weights = 0, WeakIdKeyDictionary(dict.fromkeys(model.parameters(), True))

    def __torch_dispatch__(self, op, types, given=(), named=None):
        result, name = op(*given, **(named or {})), op.__name__.split(".")[0]
        flat, made = ([x for x in tree_leaves(each) if torch.is_tensor(x)] for each in ((given, named), result))
        if any(x in self.of_weights for x in flat):
            self.count += name in self.LOOKS or (name == "index" and any(x.dtype == torch.bool for x in flat[1:]))
            self.of_weights.update(dict.fromkeys([*made, *(flat[:1] if name.endswith("_") else [])], True))
        return result


@pytest.mark.parametrize("name", ["infonce", "kcl", "infonce-learnable", "siglip+bi-dynamic-svr", "focal"])
def test_nothing_is_asked_of_the_device_between_two_looks(name, monkeypatch):
    """On a CPU, where losses look at their own numbers, which they leave alone on a GPU."""
    monkeypatch.setattr("pullpush.precision._DONE", {"cpu"})
    for module in ("temperature", "_radius", "_info_nce", "_siglip", "_svr", "_kcl", "_focal"):
        for check in ("check_number", "check_temperature"):
            monkeypatch.setattr(f"pullpush.losses.{module}.{check}", lambda *given, **options: None, raising=False)
    model, looks = TinyModel(), []
    one = recipe(name, **TINY | {"epochs": 2, "audio": "features"}, languages=("eng", "fra"))
    with Reads(model) as reads:
        monkeypatch.setattr(loop, "numbers", lambda rows: (looks.append(reads.count), numbers(rows))[1])
        pairs = PairDataset(TinyClips(30), languages=one.languages, sampling=one.sampling)
        train(model, one, pairs, TinyClips(12, seed=1))
    assert looks[0] == 0  # of five steps
    assert looks[1] > 0  # of the validation


OPENED = []  # what was asked of the disk; an audit hook cannot be taken away again
sys.addaudithook(lambda event, given: OPENED.append(event) if event in ("open", "os.listdir", "os.scandir") else None)


@pytest.mark.parametrize("name", ["infonce", "kcl", "siglip+bi-dynamic-svr"])
def test_no_folder_is_listed_and_no_file_is_opened_between_two_steps(name, tmp_path, monkeypatch):
    one = recipe(name, **TINY, languages=("eng", "fra"))
    pairs = PairDataset(TinyClips(30), languages=one.languages, sampling=one.sampling, captions="random")
    train(TinyModel(), one, pairs, TinyClips(12, seed=1))  # what is imported once
    asked = []
    monkeypatch.setattr(loop, "update", lambda *given: (update(*given), asked.append(len(OPENED))))
    train(TinyModel(), one, pairs, TinyClips(12, seed=1), out=tmp_path)
    assert len(OPENED) > asked[-1]  # of the tables, when all is done
    assert [*map(len, map(set, (asked[:5], asked[5:10], asked[10:])))] == [1, 1, 1]  # of five steps an epoch


@pytest.mark.parametrize("audio", ["cnn", "features"])
def test_a_step_that_is_not_finite_moves_no_weight(audio, monkeypatch):
    clips, seen = TinyClips(30), []
    clips.waves[17, :50] = float("nan")
    monkeypatch.setattr(loop, "update", lambda *given: (update(*given), seen.append(model.text[1].weight.clone())))
    model = TinyModel()
    one = recipe("infonce", **TINY | {"audio": audio})
    with pytest.raises(TrainingError, match=r"step \d+ of epoch 1, with clips \[.*\b17\b.*\]") as caught:
        train(model, one, PairDataset(clips), TinyClips(12, seed=1))
    assert len(seen) == 5  # the epoch went to its end
    step = int(re.search(r"step (\d+)", str(caught.value))[1])
    before = [TinyModel().text[1].weight, *seen][step - 1]
    assert all(torch.equal(weight, before) for weight in seen[step - 1 :])


class Keyed(TinyClips):
    """Clips that say which they are."""

    def __init__(self, count=30, seed=0):
        super().__init__(count, seed)
        self.key = f"{count} of {seed}"


def test_a_finished_run_is_not_taken_for_one_on_other_clips_or_captions(tmp_path):
    first = fit(tmp_path, dataset=PairDataset(Keyed(30, 0)))
    assert_same(fit(tmp_path, dataset=PairDataset(Keyed(30, 0))), first)
    for other in (
        PairDataset(Keyed(30, 99)),
        PairDataset(Keyed(30, 0), languages=("fra",)),
        PairDataset(Keyed(30, 0), captions="random"),
    ):
        with pytest.raises(TrainingError, match="another run"):
            fit(tmp_path, dataset=other)


def test_weights_are_read_of_a_result_and_of_a_text(tmp_path):
    result = fit(tmp_path / "run")
    for place in (result, str(tmp_path / "run"), tmp_path / "run" / "best.safetensors"):
        model = checkpoints.load_model(TinyModel(), place)
        assert all(torch.equal(value, state(result)[name]) for name, value in model.state_dict().items())


def test_where_nothing_learns_it_is_told():
    with pytest.raises(TrainingError, match="nothing learns"):
        fit(model=TinyModel().requires_grad_(False))


def test_a_single_clip_that_is_left_over_is_told_where_batches_are_normalised():
    with pytest.raises(TrainingError, match=r"step 5.*take another batch size"):
        fit(clips=29)
