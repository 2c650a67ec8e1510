"""Probes of losses: they agree with their files, need no word beside the card, and see what a training would feel."""

import importlib
from typing import Literal

import pytest
import torch

from pullpush import golden
from pullpush.golden import losses
from pullpush.losses import TERMS, Loss, Output, Tempered

versions = importlib.import_module("pullpush.golden.versions")


def found(name):
    return versions.probe(f"losses/{name}")


def numbers_of(make):
    return losses.PROBES.flat(losses.numbers_of(make))


def changed(before, after):
    """The values that another version of a component gives otherwise."""
    return {*golden.differences(after, before, losses.PROBES.tolerance)}


@pytest.mark.parametrize("name", TERMS)
def test_every_card_is_seen_in_value_and_gradient(name, monkeypatch):
    make, before = TERMS[name].make, found(name)
    forward = make.forward

    def other(self, *given, **named):
        value, report = forward(self, *given, **named)
        return Output(value.detach() + 1.001 * (value - value.detach()), report)

    monkeypatch.setattr(make, "forward", other)
    wrong = changed(before, found(name))
    assert wrong
    assert all("gradient" in value for value in wrong)
    monkeypatch.setattr(
        make, "forward", lambda self, *given, **named: Output(1.001 * forward(self, *given, **named)[0])
    )
    assert {value for value in changed(before, found(name)) if value.endswith("plain: value")}


class Own(Tempered):
    """With options of all kinds, of which some must be given."""

    uses = ("clusters", "teacher_similarity")
    needs = ("audio", "text")

    def __init__(
        self, share: float, tau: float = 0.1, *, kind: Literal["a", "b"] = "a", many: int = 2, soft: float | None = None
    ) -> None:
        super().__init__(tau)
        self.share, self.kind, self.many, self.soft = share, kind, many, soft
        self.layer = torch.nn.Linear(losses.D, losses.D)

    def forward(self, audio, text, clusters=None, teacher_similarity=None):
        away = (self.layer(audio) - text).square().sum(dim=1).mean() / self.tau
        if clusters is not None:
            away = away + clusters.double().mean()
        return Output(away * self.share * self.many + (self.kind == "b") + (self.soft or 0.0))


def test_options_are_tried_by_their_types():
    values = numbers_of(Own)
    cases = {value.partition(":")[0] for value in values}
    assert {"tau=0.125", "kind='b'", "many=3", "soft=0.3", "one clip", "without what it uses"} <= cases
    assert values["kind='b': value"] == pytest.approx(float(values["plain: value"]) + 1)
    assert values["many=3: value"] != values["plain: value"]
    assert values["declared"] == [["audio", "text"], ["clusters", "teacher_similarity"], "main", True]


def test_what_a_loss_refuses_is_told_and_its_default_must_run():
    class Picky(Loss):
        def __init__(self, power: float = 1.0):
            super().__init__()
            if power != 1:
                raise ValueError("one alone")

        def forward(self, audio, text):
            if len(audio) == 1:
                raise RuntimeError("no negatives")
            return Output((audio * text).sum())

    values = numbers_of(Picky)
    assert [name for name, value in values.items() if isinstance(value, str) and value == "refused"] == [
        "power=1.25",
        "one clip",
    ]

    class Broken(Loss):
        def forward(self, audio, text):
            raise RuntimeError("never")

    with pytest.raises(RuntimeError, match="never"):
        numbers_of(Broken)
