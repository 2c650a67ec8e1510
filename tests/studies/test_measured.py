"""Tables that were counted or measured elsewhere, and the stamps that say where they come from."""

import json

import pandas as pd
import pytest

from pullpush.errors import DataNotFoundError, UnknownNameError
from pullpush.lab.kept import KeptError
from pullpush.metrics.inference import verdict
from pullpush.studies import measured

SVR = "InfoNCE + bi-DynamicSVR"
SIZES = "paper-sizes"
PARTS = measured.SOURCES[SIZES].parts


@pytest.mark.parametrize("name", [SIZES, "throughput", "scale"])
def test_what_the_book_keeps_was_counted_of_components_as_they_are(name):
    assert not measured.stale(name), f"`{measured.SOURCES[name].command}` counts anew"
    assert measured.SOURCES[name].command in measured.origin(name).data


def test_the_losses_that_were_counted_are_in_the_stamp():
    assert {"losses/svr", "losses/kcl"} <= set(measured.made(SIZES)["versions"])


def test_what_was_measured_before_versions_were_noted_is_older_than_all_components():
    assert measured.stale(SIZES, measured.MEASURED) == tuple(sorted(PARTS))
    assert f"and {len(PARTS) - measured.NAMED} more" in measured.origin(SIZES, measured.MEASURED).data


def test_a_changed_loss_is_noticed_and_said(tmp_path, monkeypatch):
    path = tmp_path / f"{SIZES}.csv"
    path.write_text("chapter\n")
    measured.note(SIZES, measured.COUNTED, 60, "count", path=path)
    assert measured.stale(SIZES, folder=tmp_path) == ()
    assert "`count`" in measured.origin(SIZES, folder=tmp_path).data
    assert "Older" not in measured.origin(SIZES, folder=tmp_path).data
    changed = {**measured.made(SIZES, folder=tmp_path)["versions"], "losses/svr": "another"}
    monkeypatch.setattr(measured, "versions", lambda *names: {name: changed[name] for name in names})
    assert measured.stale(SIZES, folder=tmp_path) == ("losses/svr",)
    assert "Older than today's** losses/svr." in measured.origin(SIZES, folder=tmp_path).data


def test_a_table_awaits_a_gpu_where_it_is_not_there_not_whole_or_from_before_the_code_was_faster(tmp_path):
    name, path = "gpu-throughput", tmp_path / "gpu-throughput.csv"
    assert measured.awaited(name, folder=tmp_path) == "not measured"
    path.write_text("loss\n")
    now = {"versions": measured.versions(*measured.SOURCES[name].parts), "complete": True}
    measured.seal(path, now | {"made": measured.SOURCES[name].since})
    assert measured.awaited(name, folder=tmp_path) == ""
    measured.seal(path, now | {"made": "2026-11-01 00:00", "complete": False})
    assert measured.awaited(name, folder=tmp_path) == "broken off; older than today's speed"


def test_each_way_of_finding_has_its_own_stamp(tmp_path):
    (tmp_path / f"{SIZES}.csv").write_text("chapter\n")
    for how in (measured.COUNTED, measured.MEASURED):
        measured.note(SIZES, how, 60, f"by {how}", path=tmp_path / f"{SIZES}.csv")
    for how in (measured.COUNTED, measured.MEASURED):
        assert measured.made(SIZES, how, folder=tmp_path)["command"] == f"by {how}"
    assert set(json.loads((tmp_path / f"{SIZES}.json").read_text())) > {measured.COUNTED, measured.MEASURED}


@pytest.mark.parametrize("file", [f"{SIZES}.csv", f"{SIZES}.json"])
def test_a_digit_that_changed_is_told(file, tmp_path):
    path = tmp_path / f"{SIZES}.csv"
    path.write_text("chapter,value\n02-svr,1.25\n")
    measured.note(SIZES, measured.COUNTED, 25, "count", path=path)
    assert measured.read(SIZES, folder=tmp_path)["value"].tolist() == [1.25]
    (tmp_path / file).write_text((tmp_path / file).read_text().replace("25", "26", 1))
    with pytest.raises(KeptError, match=rf"{SIZES}.* is damaged .*both files from the repository"):
        measured.read(SIZES, folder=tmp_path)


@pytest.mark.parametrize("call", [measured.made, measured.read])
@pytest.mark.parametrize(("name", "makes"), [(SIZES, "paper_sizes"), ("gpu-tiles", "make gpu")])
def test_what_is_missing_says_what_makes_it(call, name, makes, tmp_path):
    with pytest.raises(DataNotFoundError, match=makes):
        call(name, folder=tmp_path)
    assert makes in measured.origin(name, folder=tmp_path).data


def test_rows_are_chosen_by_their_values(tmp_path):
    pd.DataFrame({"how": ["a", "b", "b"], "what": ["x", "x", "y"], "value": [1, 2, 3]}).to_csv(
        tmp_path / "throughput.csv", index=False
    )
    measured.seal(tmp_path / "throughput.csv", {})
    found = measured.read("throughput", folder=tmp_path, how="b", what="y")
    assert found.to_dict("records") == [{"value": 3}]
    with pytest.raises(UnknownNameError, match="what"):
        measured.read("throughput", folder=tmp_path, how="a", what="y")
    with pytest.raises(UnknownNameError, match="measured table"):
        measured.read("through", folder=tmp_path)


def test_ratios_are_to_the_first_system_of_the_chapter():
    table = measured.ratios("02-svr")
    assert list(table.index) == ["InfoNCE", "InfoNCE + bi-StaticSVR", SVR]
    assert (table.loc["InfoNCE"] == 1).all()
    rows = measured.read(SIZES, chapter="02-svr", how=measured.COUNTED).set_index(
        ["system", "text_encoder", "quantity"]
    )["value"]
    more = rows[SVR, "frozen", "FLOPs"] / rows["InfoNCE", "frozen", "FLOPs"]
    assert table.loc[SVR, "FLOPs, text frozen"] == pytest.approx(more, abs=1e-7)


def test_a_counted_number_has_no_width_and_still_a_verdict():
    more = measured.extra("02-svr", SVR, "bytes")
    assert more.low == more.value == more.high
    assert more.half_width == 0
    assert more.value == pytest.approx(measured.ratios("02-svr").loc[SVR, "bytes, text trained"] - 1)
    assert verdict(more, "equal", margin=0.05, exact=True) == "holds"
    assert verdict(measured.exact(0.5), "higher", exact=True) == "holds"
    assert verdict(measured.exact(0.0), "higher", exact=True) == "cannot tell"


@pytest.mark.parametrize(
    "names", [("no-chapter", SVR, "bytes"), ("02-svr", "InfoNCE + bi-DinamicSVR", "bytes"), ("02-svr", SVR, "byte")]
)
def test_unknown_names_are_refused(names):
    with pytest.raises(UnknownNameError):
        measured.extra(*names)
