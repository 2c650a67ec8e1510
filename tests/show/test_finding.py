"""The picture on the first page is drawn from kept runs, and its words are true of them."""

from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

IMAGES = Path(__file__).parents[2] / "book" / "images"


@pytest.fixture(scope="module")
def finding() -> ModuleType:
    spec = util.spec_from_file_location("finding", IMAGES / "finding.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_less_push_across_the_way_costs_recall_and_so_does_more(finding):
    doses = finding.doses()
    assert doses["protocol"].nunique() == 3
    changed = doses[doses["factor"] != 1]
    assert (changed["value"] < 0).all()
    assert (changed.query("factor < 1")["high"] < 0).all()


def test_svr_is_ahead_in_the_first_quarter_of_training_and_not_in_the_last(finding):
    leads = finding.leads()
    assert leads["protocol"].nunique() == 4
    assert (leads.query("quarter == 1")["low"] > 0).all()
    assert (leads.query("quarter == 4")["low"] <= 0).all()


def test_systems_of_the_right_panel_stand_at_one_temperature_and_rate(finding):
    steps = list(finding.RUNS["steps column"].values)
    for protocol, system in finding.LEADING.items():
        for column in ("tau", "lr"):
            ours, theirs = (finding.of(protocol, name, "steps")[:, steps.index(column)] for name in (system, "infonce"))
            assert ours == pytest.approx(theirs, nan_ok=True)


def test_the_picture_is_twice_as_wide_as_high_and_sharp_at_800_pixels():
    with Image.open(IMAGES / "finding.png") as picture:
        width, height = picture.size
    assert width == 2 * height
    assert width >= 1600
