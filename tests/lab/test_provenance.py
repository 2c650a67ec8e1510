"""Where a result comes from: what stamps say, and what they leave out."""

import subprocess
from dataclasses import replace

import pytest

from pullpush.lab import provenance
from pullpush.lab.provenance import UNNOTED, Stamp, processor, stamp


def test_a_stamp_of_now_names_the_processor_and_comes_back_from_its_dictionary():
    made = stamp({"losses/svr": "1"}, seeds=[1, 0], seconds=2.0)
    assert made.processor == processor()
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
    before, now = (
        replace(stamp({"losses/svr": "1"}, seeds=[seed], seconds=1.5), processor=name, data={"frozen": [f"d{seed}"]})
        for seed, name in enumerate((old, new))
    )
    found = before.joined(now)
    assert found.processor == both
    assert (found.seeds, found.seconds) == ((0, 1), 3.0)
    assert found.data == {"frozen": ["d0", "d1"]}
    assert found.versions == {"losses/svr": "1"}


def test_a_stamp_of_earlier_times_is_read_without_what_is_no_more():
    data = stamp({}, seeds=[0], seconds=2.0).to_dict() | {"code": {"pullpush.losses": "1"}, "confirmed": {}}
    assert Stamp.from_dict(data) == Stamp.from_dict({k: v for k, v in data.items() if k not in ("code", "confirmed")})
    del data["made"]
    with pytest.raises(TypeError, match="made"):
        Stamp.from_dict(data)


def test_the_commit_is_that_of_the_repository_and_none_where_there_is_none(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "_toc.yml").touch()
    monkeypatch.setenv("PULLPUSH_BOOK", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.commit() == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    assert len(provenance.commit()) == 40
