"""Probes of training: they agree with their files, see what decides a run, and compute alone on every machine."""

import importlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from pandas.testing import assert_frame_equal

from pullpush import golden
from pullpush.golden import tiny, training
from pullpush.training import Diagnostics, checkpoints, chunked, diagnostics, distributed, evaluate, loop, objective
from pullpush.training.terms import Term

versions = importlib.import_module("pullpush.golden.versions")
RECIPE = tiny.tiny_recipe((Term("infonce", options={"learnable": True}), Term("svr", 0.5)))


def found(name):
    return versions.probe(f"training/{name}")


@pytest.mark.parametrize(
    ("name", "module", "attribute", "replacement"),
    [
        ("loop", loop, "reseed", lambda seed, step: None),
        ("loop", loop, "clip_mean", lambda rows: sum(row["loss"] for row in rows) / len(rows)),
        ("loop", loop, "rate", lambda step, total, recipe: 1.0),
        ("loop", loop, "clip_gradients", lambda *given: {"gradient": 1.0}),
        ("loop", checkpoints, "load_weights", lambda module, tensors: None),
        ("loop", checkpoints, "load_model", lambda model, base: model),
        ("objective", objective, "share_temperature", lambda losses, recipe: None),
        ("objective", objective, "parts_of", lambda offer, count: [offer]),
        ("objective", objective, "present", lambda batch: None),
        ("chunked", chunked.torch, "set_rng_state", lambda state: None),
        ("diagnostics", diagnostics, "sideways", lambda push, text, audio: 2 * push),
        ("diagnostics", diagnostics, "tangent", lambda vector, at: vector),
        ("evaluate", evaluate, "_interval", lambda values: (values.mean().item(), 0.0, 1.0)),
        ("evaluate", evaluate, "_blocks", lambda count, size: iter([range(count - 1)] * 2)),
    ],
)
def test_what_decides_a_run_is_seen(name, module, attribute, replacement, monkeypatch):
    before = found(name)
    monkeypatch.setattr(module, attribute, replacement)
    try:
        after = found(name)
    except (IndexError, KeyError, RuntimeError, ValueError):
        after = {}  # it does not run at all
    assert golden.differences(after, before, training.PROBES.tolerance)


def test_a_run_that_went_on_is_the_one_that_was_never_killed():
    held = golden.expected("training/loop")
    for value in ("weights", "best", "loss of epochs"):
        assert held[f"went on: {value}"] == held[f"read: {value}"] == held[f"plain: {value}"]
        assert held[f"from a base: {value}"] != held[f"plain: {value}"]


def test_alone_it_computes_what_accelerate_does():
    with tiny.alone():
        alone = tiny.trained(RECIPE)
    with tiny.replaced(loop, "Objective", lambda *given: objective.Objective(*given).double()):
        usual = tiny.trained(RECIPE)
    assert_frame_equal(alone.steps, usual.steps, rtol=1e-9)
    for name, value in alone.model.state_dict().items():
        torch.testing.assert_close(value, usual.model.state_dict()[name], rtol=1e-9, atol=1e-12)


def test_it_is_alone_in_any_group_of_processes_and_beside_a_gpu(monkeypatch):
    before = found("loop")
    monkeypatch.setattr(distributed, "accelerator", lambda: pytest.fail("a probe asked for other processes"))
    for module in (distributed, loop, objective):
        monkeypatch.setattr(module, "world", lambda: (1, 4))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    for name in ("loop", "features"):
        assert not [*golden.check([f"training/{name}"])]
    assert not golden.differences(found("loop"), before, 0.0)
    assert loop.world() == (1, 4), "as before"


def test_other_threads_train_as_they_did():
    with tiny.alone(), ThreadPoolExecutor(1) as others:
        assert others.submit(loop.world).result() == (0, 1)
        assert isinstance(distributed.accelerator(), tiny.Alone)
        elsewhere = others.submit(distributed.accelerator).result()
    assert not isinstance(elsewhere, tiny.Alone)


class Lengths(Diagnostics):
    """A measurement of a reader's own: the mean distance of two texts."""

    def before(self, objective, batch):
        return torch.empty(0)

    def after(self, objective, batch, offer, start):
        return {"apart": float(torch.pdist(offer.text.detach()).mean())}


class Doubled(Lengths):
    """Another one."""

    def after(self, *given):
        return {name: 2 * value for name, value in super().after(*given).items()}


def test_a_measurement_is_told_by_what_it_reports():
    watch = Lengths(every=1000)
    values = training.diagnostics_numbers(watch)
    assert [*values] == ["apart"]
    assert np.shape(values["apart"]) == (3,)
    assert np.isfinite(values["apart"]).all()
    assert watch.every == 1000
    told = [
        golden.version_of_diagnostics(each) for each in (watch, Lengths(), Doubled(), Diagnostics(), Diagnostics(tau=1))
    ]
    assert told[0] == told[1]
    assert told[3] == told[4] == golden.version("training/diagnostics"), "keys hold the fields beside it"
    assert len({*told}) == 3
