"""What a run is asked about hard negatives, on a tiny world."""

import pandas as pd
import pytest
import torch
from miniature import SMALL
from torch.nn import functional as F

from pullpush.errors import PullPushError
from pullpush.golden.tiny import LANGUAGES, alone, tiny_recipe, trained
from pullpush.losses import RadiusPredictor
from pullpush.studies.consistency.space import DirectionProbe
from pullpush.studies.svr import hardness
from pullpush.studies.svr.hardness import HardnessProbe
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.frozen import on_features
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan
from pullpush.training.terms import Term


def _watched(heard, **probe):
    plan = recipe("infonce+bi-dynamic-svr", **on_features(heard), **SMALL, text="hashed")
    return Plan(heard, plan, diagnostics=HardnessProbe(every=4, **probe))


def test_a_run_is_asked_at_every_degree_of_hardness(heard):
    plan = _watched(heard, ks=(0, 2), anchors=4, pool=12)
    table = hardness.by_hardness({("dynamic", 0): plan.train()})
    assert plan.finished, "its version is the same at each look"
    assert set(table["kind"]) == {"similar", "graph"}
    assert set(table["K"]) == {0, 2}
    assert sorted(table["step"].unique()) == [1, 5]
    start = table[(table["step"] == 5) & (table["K"] == 0)]
    assert start["radius"].std() < 0.05, "without hard negatives both kinds ask alike"


def test_the_push_of_a_batch_of_ones_own_is_that_of_autograd():
    text, audio = (F.normalize(torch.randn(n, 5, dtype=torch.float64), dim=1) for n in (3, 9))
    chosen, tau = torch.tensor([[3, 4, 5], [6, 7, 8], [8, 3, 6]]), 0.2
    found = hardness._of_batches(text, audio, chosen, tau, RadiusPredictor(4).double())
    norms = []
    for at, others in enumerate(chosen):
        leaf = text[at].clone().requires_grad_()
        batch = torch.cat([audio[[at]], audio[others]])
        scores = batch @ leaf / tau
        (gradient,) = torch.autograd.grad(-scores.log_softmax(0)[0], leaf)
        push = gradient - (scores.softmax(0)[0] - 1).detach() * audio[at] / tau
        unit = F.normalize(audio[at] - text[at], dim=0)
        norms.append([(push - (push @ unit) * unit).norm(), (push @ unit).abs()])
    expected = torch.tensor(norms, dtype=torch.float64).mean(0).tolist()
    assert [found["perpendicular"], found["parallel"]] == pytest.approx(expected)
    assert found["sideways"] < found["perpendicular"]


def test_a_batch_that_the_clips_do_not_fill_is_refused_before_training(heard):
    for few in ({"anchors": 0}, {"pool": 3}):
        with pytest.raises(PullPushError, match="are too few, or fit too many captions"):
            _watched(heard, **few).train()


def test_a_recipe_without_a_radius_is_refused(heard):
    plan = recipe("infonce", **on_features(heard), **SMALL, text="hashed")
    with pytest.raises(PullPushError, match="predicts no radius"):
        Plan(heard, plan, diagnostics=HardnessProbe()).train()


@pytest.mark.parametrize("watch", [Diagnostics(), HardnessProbe(), DirectionProbe(languages=LANGUAGES)])
def test_watching_changes_neither_running_statistics_nor_weights(watch):
    plan = tiny_recipe((Term("infonce"), Term("svr", options={"modelling": "dynamic"})), batch_size=5)
    with alone():
        usual, watched = (trained(plan, diagnostics=each) for each in (None, watch))
    pd.testing.assert_frame_equal(watched.history, usual.history)
    for name, value in usual.model.state_dict().items():
        torch.testing.assert_close(watched.model.state_dict()[name], value, rtol=0, atol=0)
