"""Chapter 8: clips and classes asked for by each other, ranks with intervals, confusions; no recording is needed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pullpush.metrics import METRICS
from pullpush.studies.recordings import data, science


class Planted:
    """Values of one system, as `Scores` gives them."""

    def __init__(self, **values):
        self.held = values

    def seeds(self, system):
        return range(3)

    def values(self, system, metric, *, seeds):
        return np.asarray(self.held[metric], float)[list(seeds)]


def test_clips_and_classes_are_asked_for_by_each_other():
    prompts = torch.eye(3)
    clips = torch.nn.functional.normalize(torch.tensor([[1.0, 0.1, 0], [0.2, 1, 0], [0.9, 0.8, 0]]), dim=1)
    embedded = SimpleNamespace(singles=clips, labels=torch.tensor([0, 1, 1]), prompts=lambda language: prompts)
    found = METRICS["named-clips"].make(embedded)
    assert found["class R@1"].tolist() == [1, 1, 0]
    assert found["class mAP@10"].tolist() == [1, 1, 0.5]
    assert found["sound mAP@10"].tolist() == [1, 1], "a class without clips is not asked for"
    assert (found["predicted"].tolist(), found["class"].tolist()) == ([0, 1, 0], [0, 1, 1])


def test_every_class_is_of_one_group_and_the_named_ones_are_events_of_the_book():
    from pullpush.data.language.vocabulary import load_events

    assert len(set(data.CLASSES)) == 50
    assert not data.NAMED.keys() & data.RELATED.keys()
    assert {*data.NAMED, *data.RELATED} < {*data.CLASSES}
    assert {*data.NAMED.values(), *data.RELATED.values()} <= {event.name for event in load_events()}


@pytest.mark.parametrize(("turned", "expected"), [(False, 1.0), (True, -1.0)])
def test_ranks_say_whether_an_order_carries_over(turned, expected):
    clear = np.array([0.2, 0.5, 0.9])
    systems = {}
    for row, name in enumerate("abc"):
        there, here = clear[row], clear[::-1][row] if turned else clear[row]
        systems[name] = Planted(**{"R@1": np.full((3, 40), there), science.NAMED_BY: np.full((3, 50), here)})
    table, spearman = science.ranks(systems, "abc")
    assert table[table["place"] == "scenes"]["value"].tolist() == [3, 2, 1]
    assert spearman == pytest.approx({"value": expected, "low": expected, "high": expected})
    assert (table["low"] == table["high"]).all()
