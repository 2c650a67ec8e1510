"""Versions: what a component does, and not how it is written, decides what it is called."""

import importlib
import math
import socket

import numpy as np
import pytest
import torch
from toys import DISTANCE

from pullpush import golden
from pullpush.errors import UnknownNameError
from pullpush.golden import GoldenError, agreed, version
from pullpush.losses import _info_nce

versions = importlib.import_module("pullpush.golden.versions")
LOOKED_AT = agreed._as_in_files
REWORDED = '''
    """The same, said in other words."""
    from pullpush.losses import Loss, LossCard, Output


    def apart(left, right):
        return ((left - right) ** 2).sum() / len(left)


    class Far(Loss):
        def __init__(self, scale: float = 1.0):
            super().__init__()
            self._factor = scale

        def forward(self, audio, text):
            value = apart(text, audio)
            return Output(value * self._factor)


    CARD = LossCard(name="far", make=Far, title="How far", about="Something else.", colour="sky")
'''


@pytest.fixture
def files(monkeypatch, tmp_path):
    """Golden files of InfoNCE alone, that a test may change."""
    monkeypatch.setattr(versions, "FILES", tmp_path / "files")
    versions.accept("losses/infonce")
    return tmp_path / "files/losses"


def scaled(function, value=1.0, gradient=1.0):
    """A loss multiplied by one number in value and by another in gradient."""

    def other(*given, **named):
        loss = function(*given, **named)
        return value * loss.detach() + gradient * (loss - loss.detach())

    return other


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise OSError("a probe asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("name", golden.names())
def test_each_agrees_with_its_file_and_needs_no_network(name, no_network):
    assert not list(golden.check([name]))
    assert "NaN" not in (golden.FILES / f"{name}.json").read_text(encoding="utf-8")


def test_a_version_is_the_hash_of_the_file_where_both_agree(files, monkeypatch):
    before = version("losses/infonce")
    assert len(before) == 12
    monkeypatch.setattr(versions, "_known", {})
    monkeypatch.setattr(_info_nce, "info_nce", scaled(_info_nce.info_nce, 1 + 1e-9, 1 + 1e-9))
    assert version("losses/infonce") == before, "the last bits of a sum"
    assert not [*golden.check(["losses/infonce"])]


def test_a_gradient_that_is_a_thousandth_larger_is_another_version(monkeypatch):
    before = version("losses/infonce")
    monkeypatch.setattr(versions, "_known", {})
    monkeypatch.setattr(_info_nce, "info_nce", scaled(_info_nce.info_nce, gradient=1.001))
    assert version("losses/infonce") != before
    (found,) = golden.check(["losses/infonce"])
    assert found.name == "losses/infonce"
    assert "plain: gradient of audio differs by up to" in found.how
    assert "plain: value" not in found.how


def test_each_component_has_a_version_of_its_own():
    asked = golden.versions("losses/kcl", "losses/infonce", "metrics/closeness", "losses/kcl")
    assert [*asked] == ["losses/infonce", "losses/kcl", "metrics/closeness"]
    assert len({*asked.values()}) == 3


def test_a_reader_s_own_loss_is_told_by_what_it_does(add):
    add("losses/distance.py", DISTANCE)
    add("losses/far.py", REWORDED)
    add("losses/other.py", DISTANCE.replace(".mean()", ".sum()").replace('name="distance"', 'name="other"'))
    assert version("losses/distance") == version("losses/far") != version("losses/other")
    assert {"losses/distance", "losses/far"} <= {*golden.names()}
    assert golden.check(["losses/distance"]).__next__() == ("losses/distance", "has no golden file")


def test_what_cannot_be_tried_is_another_thing_at_each_look(add):
    add("losses/distance.py", DISTANCE.replace("super().__init__()", "super().__init__(); assert scale > 3"))
    with pytest.warns(UserWarning, match="cannot be tried on small inputs"):
        first = version("losses/distance")
    with pytest.warns(UserWarning, match="AssertionError"):
        assert version("losses/distance") != first


def test_a_damaged_file_is_named_with_its_cure(files):
    (files / "infonce.json").write_text('{"plain: value": [1.0')
    with pytest.raises(GoldenError, match=r"infonce\.json is damaged .*pullpush golden losses/infonce --accept"):
        version("losses/infonce")
    assert golden.accept("losses/infonce")
    assert not [*golden.check(["losses/infonce"])]


def test_a_file_is_written_where_something_has_changed_alone(files, monkeypatch):
    written = (files / "infonce.json").read_bytes()
    assert not golden.accept("losses/infonce")
    before = version("losses/infonce")
    monkeypatch.setattr(_info_nce, "info_nce", scaled(_info_nce.info_nce, value=2.0))
    assert golden.accept("losses/infonce")
    assert (files / "infonce.json").read_bytes() != written
    assert version("losses/infonce") != before


def test_probes_without_files_and_files_without_probes_are_named(files, monkeypatch):
    monkeypatch.setattr(versions, "HOMES", {"losses": "losses"})
    (files / "gone.json").write_text("{}")
    found = dict(golden.check())
    assert found.pop("losses/gone") == "has a golden file and no probe"
    assert found.pop("losses/kcl") == "has no golden file"
    assert "losses/infonce" not in found


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'infonce'"):
        version("losses/infonze")
    with pytest.raises(UnknownNameError, match="kind of component"):
        version("lesson/infonce")


def test_the_process_is_left_as_it_was():
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    torch.set_default_dtype(torch.float64)
    threads = torch.get_num_threads()
    try:
        with torch.inference_mode():
            first = versions.probe("losses/svr")
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    drawn = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    assert drawn == (torch.rand(1), np.random.rand())  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert not golden.differences(first, versions.probe("losses/svr"), 0.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "how"),
    [
        (1.1, 1.0, "differs by up to 0.1, of numbers up to 1"),
        (1.0 + 1e-7, 1.0, ""),
        (1e-15, 0.0, ""),
        ([1.0, 1e-9], [1.0, 0.0], ""),
        ([1.0, 1e-3], [1.0, 0.0], "differs by up to 0.001, of numbers up to 1"),
        ([1, 2], [1, 3], "is another"),
        ([0.5, math.nan], [0.5 + 1e-9, math.nan], ""),
        ([0.5, math.nan], [0.5, 0.0], "is not a number elsewhere"),
        ([math.inf], [math.inf], ""),
        ([1.0, 2.0], [[1.0, 2.0]], "has the shape (2,) in place of (1, 2)"),
        ([["a", 1.0], ["b", 2.0]], [["a", 1.0 + 1e-9], ["b", 2.0]], ""),
        ([["a", 1.0], ["b", 2.0]], [["a", 1.0], ["b", 2.1]], "differs by up to 0.1, of numbers up to 2.1"),
        ([["a", 1.0]], [["c", 1.0]], "is another"),
        ([[1.0], [1.0, 2.0]], [[1.0], [1.0 - 1e-9, 2.0]], ""),
        ([[1.0], [1.0, 2.0]], [[1.0]], "has 2 items in place of 1"),
        (None, 1.0, "is another"),
        ("a", "a", ""),
        ([], [], ""),
    ],
)
def test_numbers_are_compared_as_numbers_wherever_they_stand(ours, theirs, how):
    assert golden.differences({"it": ours}, {"it": theirs}, 1e-6) == ({"it": how} if how else {})


def test_of_sums_that_cancel_the_largest_is_the_measure():
    sums, moved = {"it": [1000.0, 0.50]}, {"it": [1000.0, 0.55]}
    assert golden.differences(moved, sums, 1e-4, small=1.0) == {}
    assert golden.differences(moved, sums, 1e-5, small=1.0)
    assert golden.differences(moved, sums, 1e-4)


@pytest.fixture
def memory(monkeypatch, tmp_path):
    """The components that are probed, by processes that share a cache."""
    monkeypatch.undo()
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "shared"))
    exact, probed = versions.probe, []
    monkeypatch.setattr(versions, "probe", lambda name: probed.append(name) or exact(name))
    monkeypatch.setattr(agreed, "_as_in_files", lambda second: True)
    monkeypatch.setattr(agreed, "_state", lambda: "one")

    def anew(name="losses/infonce"):
        monkeypatch.setattr(versions, "_known", {})
        return version(name)

    return anew, probed


def test_what_agreed_is_not_probed_by_the_next_process(memory):
    anew, probed = memory
    assert anew() == anew()
    assert anew("losses/kcl") == anew("losses/kcl") != anew()
    assert probed == ["losses/infonce", "losses/kcl"]


@pytest.mark.parametrize(
    "what", ["a byte", "a golden file", "a function", "a file of the reader's", "a younger file", "damage"]
)
def test_what_agreed_is_probed_again_where_anything_is_another(memory, monkeypatch, tmp_path, what):
    anew, probed = memory
    before = anew()
    if what == "a byte":
        monkeypatch.setattr(agreed, "_state", lambda: "another")
    elif what == "a golden file":
        monkeypatch.setattr(versions, "FILES", tmp_path / "files")
        versions.accept("losses/infonce")
        path = tmp_path / "files/losses/infonce.json"
        path.write_text(path.read_text().replace("4.80737888", "4.81"))
        assert path.read_text() != (golden.FILES / "losses/infonce.json").read_text()
    elif what == "a younger file":
        monkeypatch.setattr(agreed, "_state", lambda: "")
    elif what == "damage":
        agreed._place().write_text("{")
    else:
        monkeypatch.setattr(agreed, "_as_in_files", LOOKED_AT)
        LOOKED_AT.cache_clear()
        if what == "a function":
            monkeypatch.setattr(_info_nce, "info_nce", scaled(_info_nce.info_nce))
        else:
            monkeypatch.setenv("PULLPUSH_EXTRA", str(tmp_path))
    probed.clear()
    assert (anew() == before) is (what != "a golden file")
    assert "losses/infonce" in probed


def test_a_state_is_the_librarys_bytes(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("1")
    monkeypatch.setattr(agreed, "LIBRARY", tmp_path)
    states = []
    for text, started in (("1", math.inf), ("2", math.inf), ("1", math.inf), ("1", 0.0)):
        (tmp_path / "a.py").write_text(text)
        monkeypatch.setattr(agreed, "STARTED", started)
        agreed._state.cache_clear()
        states.append(agreed._state())
    agreed._state.cache_clear()
    assert states[0] == states[2] != states[1]
    assert states[3] == "", "it is younger than the process"
