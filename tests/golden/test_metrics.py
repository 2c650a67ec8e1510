"""Probes of metrics: they agree with their files, need no word beside the card, and see every score."""

import dataclasses
import importlib

import pytest

from pullpush import golden
from pullpush.golden import metrics
from pullpush.golden.metrics import Known
from pullpush.metrics import METRICS, inference

versions = importlib.import_module("pullpush.golden.versions")


def numbers_of(card):
    return metrics.PROBES.flat(metrics.numbers_of(card))


@pytest.mark.parametrize("name", METRICS)
def test_the_scores_of_a_card_are_seen(name):
    card = METRICS[name]
    before = numbers_of(card)
    for score in [*card.make(Known())][:8]:

        def other(known, score=score):
            values = card.make(known)
            return values | {name: found * 1.001 + 1e-4 for name, found in values.items() if name == score}

        assert golden.differences(
            numbers_of(dataclasses.replace(card, make=other)), before, metrics.PROBES.tolerance
        ), score


@pytest.mark.parametrize("name", ["standard_error", "mean_squares"])
def test_inference_is_seen(name, monkeypatch):
    right, before = getattr(inference, name), versions.probe("metrics/inference")
    monkeypatch.setattr(inference, name, lambda *given: tuple(x * 1.0001 for x in right(*given)))
    assert golden.differences(versions.probe("metrics/inference"), before, metrics.PROBES.tolerance)
