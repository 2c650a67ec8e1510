"""Where a result comes from: what stamps say, and what they leave out."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from pullpush.lab import provenance
from pullpush.lab.experiments import Experiment
from pullpush.lab.growth import joined
from pullpush.lab.provenance import UNNOTED, Stamp, processor, stamp
from pullpush.lab.scores import Scores


def test_a_stamp_of_now_names_the_processor_and_comes_back_from_its_dictionary():
    made = stamp({"a": "1"}, seeds=[1, 0], seconds=2.0)
    assert made.processor == processor()
    assert made.processor in str(made)
    assert Stamp.from_dict(made.to_dict()) == made


def test_a_stamp_from_before_processors_were_noted_says_nothing_of_one():
    made = replace(stamp({}, seeds=[0], seconds=2.0), processor="")
    assert "processor" not in made.to_dict()
    assert Stamp.from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("processor\t: 0\nmodel name\t: A Chip @ 2 GHz\nflags\t: fpu\n", "A Chip @ 2 GHz"),
        ("", "by its machine"),
    ],
)
def test_a_processor_is_named_by_the_system_and_its_instructions(told, name, monkeypatch):
    monkeypatch.setattr(provenance, "_cpuinfo", lambda: told)
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "by its machine")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "AVX2")
    assert processor.__wrapped__() == f"{name}, AVX2"


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [("A", "A", "A"), ("A", "B", "A and B"), ("A and B", "B", "A and B"), ("", "A", f"{UNNOTED} and A")],
)
def test_runs_of_two_processors_that_are_joined_name_both(old, new, both):
    table = pd.DataFrame({"system": [], "seed": [], "epoch": [], "step": []})
    experiment = Experiment.of("radius", {"InfoNCE": ("infonce", {})}, seeds=(0, 1))
    before, now = (
        Scores(experiment, {}, table, table, replace(stamp({}, seeds=[seed], seconds=1.0), processor=name))
        for seed, name in enumerate((old, new))
    )
    assert joined(before, now).stamp.processor == both
