"""The table of counted costs, and the stamp that says where it comes from."""

from __future__ import annotations

import pandas as pd
import pytest

from pullpush.errors import DataNotFoundError, UnknownNameError
from pullpush.metrics.inference import verdict
from pullpush.studies import costs

SVR = "InfoNCE + bi-DynamicSVR"


def test_what_the_book_keeps_was_counted_of_components_as_they_are():
    assert not costs.stale(), f"`{costs.COMMAND}` counts anew"


def test_the_losses_that_were_counted_are_in_the_stamp():
    assert {"losses/svr", "losses/kcl"} <= set(costs.made().versions)


def test_what_was_measured_before_versions_were_noted_is_older_than_all_components():
    assert costs.stale(costs.MEASURED) == tuple(sorted(costs.PARTS))
    assert f"and {len(costs.PARTS) - costs.NAMED} more" in costs.origin(costs.MEASURED).data


def test_a_changed_loss_is_noticed_and_said(tmp_path, monkeypatch):
    costs.write_stamp(costs.COUNTED, 60, "count", path=tmp_path / "paper-sizes.csv")
    assert costs.stale(folder=tmp_path) == ()
    assert "`count`" in costs.origin(folder=tmp_path).data
    assert "Older" not in costs.origin(folder=tmp_path).data
    changed = {**costs.made(folder=tmp_path).versions, "losses/svr": "another"}
    monkeypatch.setattr(costs, "versions", lambda *names: {name: changed[name] for name in names})
    assert costs.stale(folder=tmp_path) == ("losses/svr",)
    assert "Older than today's** losses/svr." in costs.origin(folder=tmp_path).data


def test_each_way_of_finding_has_its_own_stamp(tmp_path):
    for how in (costs.COUNTED, costs.MEASURED):
        costs.write_stamp(how, 60, f"by {how}", path=tmp_path / "paper-sizes.csv")
    assert costs.made(costs.COUNTED, folder=tmp_path).command == "by counted"
    assert costs.made(costs.MEASURED, folder=tmp_path).command == f"by {costs.MEASURED}"


@pytest.mark.parametrize("call", [costs.made, lambda folder: costs.table("02-svr", folder=folder)])
def test_what_is_missing_says_what_makes_it(call, tmp_path):
    with pytest.raises(DataNotFoundError, match="paper_sizes"):
        call(folder=tmp_path)


def test_ratios_are_to_the_first_system_of_the_chapter():
    table = costs.ratios("02-svr")
    assert list(table.index) == ["InfoNCE", "InfoNCE + bi-StaticSVR", SVR]
    assert (table.loc["InfoNCE"] == 1).all()
    rows = costs.table("02-svr").set_index(["system", "text_encoder", "quantity"])["value"]
    more = rows[SVR, "frozen", "FLOPs"] / rows["InfoNCE", "frozen", "FLOPs"]
    assert table.loc[SVR, "FLOPs, text frozen"] == pytest.approx(more, abs=1e-7)


def test_a_counted_number_has_no_width_and_still_a_verdict():
    more = costs.extra("02-svr", SVR, "bytes")
    assert more.low == more.value == more.high
    assert more.half_width == 0
    assert more.value == pytest.approx(costs.ratios("02-svr").loc[SVR, "bytes, text trained"] - 1)
    assert verdict(more, "equal", margin=0.05) == "holds"
    assert verdict(costs.exact(0.5), "higher") == "holds"
    assert verdict(costs.exact(0.0), "higher") == "cannot tell"


@pytest.mark.parametrize(
    "names", [("no-chapter", SVR, "bytes"), ("02-svr", "InfoNCE + bi-DinamicSVR", "bytes"), ("02-svr", SVR, "byte")]
)
def test_unknown_names_are_refused(names):
    with pytest.raises(UnknownNameError):
        costs.extra(*names)


def test_a_table_without_rows_found_so_is_refused(tmp_path):
    pd.DataFrame({"chapter": ["02-svr"], "how": ["counted"]}).to_csv(tmp_path / "paper-sizes.csv", index=False)
    with pytest.raises(UnknownNameError, match="measured"):
        costs.table("02-svr", costs.MEASURED, folder=tmp_path)
