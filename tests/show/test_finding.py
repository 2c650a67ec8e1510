"""The picture on the first page is drawn from kept runs, and its words are true of them."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pullpush.metrics import difference

IMAGES = Path(__file__).parents[2] / "book" / "images"


@pytest.fixture(scope="module")
def finding() -> ModuleType:
    spec = util.spec_from_file_location("finding", IMAGES / "finding.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def steps(finding: ModuleType) -> pd.DataFrame:
    return finding.steps_of_runs()


def test_recall_rises_with_svr_and_not_with_the_loss_counted_twice(finding):
    gains = finding.gains().set_index("name")
    svr = gains[gains.index.str.contains("SVR")]
    assert (svr["low"] > 0).all()
    twice = gains.drop(svr.index)
    assert ((twice["low"] < 0) & (twice["high"] > 0)).all()


def test_gains_are_mean_differences_of_the_runs_in_the_table(finding):
    scores = finding.RUNS[["T2A R@1", "A2T R@1", "system"]].mean("clip").to_dataframe()
    scores = scores.groupby("system")[["T2A R@1", "A2T R@1"]].mean()
    expected = (scores.loc[finding.SVR] - scores.loc["infonce"]).to_numpy()
    rows = finding.gains().query("name.str.contains('Dynamic')")
    np.testing.assert_allclose(rows["value"], expected, atol=1e-4)


def test_captions_go_no_straighter(finding, steps):
    cosine = steps[steps["step"] > steps["step"].max() / 2].groupby(["system", "seed"])["update_drift_tangent"].mean()
    found = difference(cosine[finding.SVR].to_numpy()[:, None], cosine["infonce"].to_numpy()[:, None])
    assert found.low < 0
    assert found.high < 0.01


def test_the_push_is_nearly_all_perpendicular(steps):
    late = steps[(steps["system"] == "infonce") & (steps["step"] > 100)]
    assert late["perpendicular_share"].mean() > 0.9


def test_the_picture_is_twice_as_wide_as_high_and_sharp_at_800_pixels():
    with Image.open(IMAGES / "finding.png") as picture:
        width, height = picture.size
    assert width == 2 * height
    assert width >= 1600
