"""Damage is repaired and said; what killed processes left goes; a disk that cannot be written can be read."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from filelock import FileLock

from pullpush import cache
from pullpush.cache import inventory, locks, sums
from pullpush.errors import CacheError

pytestmark = [pytest.mark.deep, pytest.mark.usefixtures("own_home")]


def folder() -> Path:
    return cache.cached_dir("things", "k", build)


def build(place: Path) -> None:
    (place / "deep").mkdir()
    (place / "deep" / "x").write_text("whole")
    (place / "y").write_text("whole, too")


def file() -> Path:
    return cache.cached_file("files", "a.txt", lambda partial: partial.write_text("whole"))


def run() -> Path:
    """Content that grows under a lock, as that of a run."""
    with cache.locked("runs", "r") as place:
        for name in ("a.csv", "b.csv"):
            if not (place / name).exists():
                with cache.atomic_path(place / name) as partial:
                    partial.write_text("whole")
    return place


def later() -> None:
    """As if another process came."""
    sums._trusted.clear()
    locks._swept.clear()


MAKERS = {"folder": (folder, "deep/x"), "file": (file, ""), "run": (run, "b.csv")}
DAMAGES = {
    "cut": lambda path: path.write_text("who"),
    "flipped": lambda path: path.write_text("whale"),
    "emptied": lambda path: path.write_text(""),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_damaged_is_made_again_with_a_word(kind, damage):
    make, inside = MAKERS[kind]
    path = make() / inside
    DAMAGES[damage](path)
    later()
    if (kind, damage) == ("file", "gone"):  # that is as if it had never been
        make()
    else:
        with pytest.warns(UserWarning, match=r"is damaged \(.*\): (it is made again|put aside .* begun anew)") as said:
            make()
        assert len(said) == 1
    assert path.read_text() == "whole"
    later()
    with warnings.catch_warnings(action="error"):
        make()


def test_a_size_is_compared_each_time_a_checksum_once_a_process(own_home):
    path = file()
    path.write_text("whale")
    assert file().read_text() == "whale"
    path.write_text("whales")
    with pytest.warns(UserWarning, match="6 bytes in place of 5"):
        assert file().read_text() == "whole"


def test_what_an_earlier_version_made_is_taken_as_it_is():
    (folder() / ".sums").unlink()
    (folder() / "y").write_text("of old")
    later()
    assert (folder() / "y").read_text() == "of old"


def test_a_run_goes_on_where_it_was_killed_between_a_file_and_its_sum(own_home, monkeypatch):
    place = run()

    replace = os.replace

    def killed(old, new):
        if Path(new).name == "b.csv":
            raise KeyboardInterrupt
        replace(old, new)

    def grow():
        with cache.locked("runs", "r"), cache.atomic_path(place / "b.csv") as partial:
            partial.write_text("grown")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            grow()
    later()
    assert (run() / "b.csv").read_text() == "whole", "it was announced, and never came"
    grow()
    later()
    assert (run() / "b.csv").read_text() == "grown"


def test_leftovers_go_after_days_and_at_once_where_nobody_can_be_at_work(own_home):
    place = run()
    (place / "best.safetensors").write_text("x")
    old = [own_home / "things" / ".partial-x", own_home / "runs" / ".partial-abc"]
    new = [place / ".partial-1.csv", place / ".tmpAdzxOV"]
    for path in (*old, *new):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    for path in old:
        os.utime(path, (1, 1))
    fresh = own_home / "things" / ".partial-fresh"
    fresh.write_text("half")
    assert set(inventory.leftovers()) == set(old)
    later()
    run()
    folder()
    assert not any(path.exists() for path in (*old, *new))
    assert fresh.exists(), "somebody may be at work on it"


@pytest.fixture
def read_only(monkeypatch):
    """A disk that cannot be written, for root, too."""

    def use():
        def refuse(*args, **kwargs):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr("pullpush.cache.entries.tempfile.mkstemp", refuse)
        monkeypatch.setattr(FileLock, "acquire", refuse)

    return use


def test_a_warm_cache_on_a_read_only_disk_can_be_read(read_only):
    for make, _ in MAKERS.values():
        make()
    read_only()
    later()
    for make, inside in MAKERS.values():
        assert (make() / inside).read_text() == "whole"
    with cache.locked("runs", "r") as place, cache.atomic_path(place / "b.csv") as again:
        again.write_text("whole")  # as a finished run writes its tables whenever it is read
    with pytest.raises(CacheError, match="cannot write"), cache.atomic_path(place / "b.csv") as again:
        again.write_text("other")
    with pytest.raises(CacheError, match="PULLPUSH_HOME"):
        cache.cached_dir("things", "new", build)


@pytest.mark.parametrize("kind", MAKERS)
def test_damage_on_a_read_only_disk_is_said(kind, read_only):
    make, inside = MAKERS[kind]
    (make() / inside).write_text("whale")
    read_only()
    later()
    with pytest.raises(CacheError, match=r"damaged \(.*doctor --repair"):
        make()


def test_who_waits_is_told_for_whom(own_home, monkeypatch):
    program = (
        "import time\nfrom pullpush.cache import locked\n"
        "with locked('runs', 'r'):\n    print('held', flush=True); time.sleep(60)"
    )
    monkeypatch.setattr(locks, "PATIENCE", 0.2)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        (own_home / "runs" / "r").mkdir()
        (entry,) = inventory.entries(["runs"])
        assert not inventory.drop(entry), "an entry in use is left"
        threading.Timer(1.0, other.kill).start()
        with pytest.warns(UserWarning, match=f"process {other.pid} of this machine"):
            run()


@pytest.mark.parametrize(
    ("below", "message"), [("", "is a file: set PULLPUSH_HOME to a folder"), ("deeper", "is a file: set PULLPUSH_HOME")]
)
def test_a_home_that_is_a_file_says_so(tmp_path, monkeypatch, below, message):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "file" / below))
    for make in (folder, file, run):
        with pytest.raises(CacheError, match=message):
            make()


def test_what_is_written_again_from_the_rest_is_no_reason_to_begin_anew():
    (run() / "b.csv").write_text("whale")
    later()
    assert not cache.damage(cache.home() / "runs" / "r", only=["a.csv"])
    with warnings.catch_warnings(action="error"), cache.locked("runs", "r", again=["b.csv"]) as place:
        assert sorted(path.name for path in place.glob("*.csv")) == ["a.csv"]
    assert (run() / "b.csv").read_text() == "whole"


@pytest.mark.parametrize("put", [Path.mkdir, lambda p: p.symlink_to("nowhere"), lambda p: p.write_text("x")])
@pytest.mark.parametrize("kind", MAKERS)
def test_an_entry_of_the_wrong_kind_is_made_again(kind, put, own_home):
    make, inside = MAKERS[kind]
    place = own_home / {"folder": "things/k", "file": "files/a.txt", "run": "runs/r"}[kind]
    place.parent.mkdir(parents=True)
    put(place)
    with warnings.catch_warnings(action="ignore"):
        held = (make() / inside).read_text()
    assert held == ("x" if kind == "file" and place.stat().st_size == 1 else "whole")
    assert place.is_dir() == (kind != "file")


def test_a_folder_that_lost_its_files_or_sums_is_made_again():
    place = folder()
    shutil.rmtree(place)
    place.mkdir()
    later()
    assert (folder() / "y").read_text() == "whole, too"
    (folder() / ".sums").write_text("{}")
    later()
    with pytest.warns(UserWarning, match="its checksums are gone"):
        folder()


def test_a_folder_in_place_of_what_the_cache_keeps_beside_an_entry_is_named(own_home):
    for name in (".a.txt.lock", ".a.txt.sums"):
        (own_home / "files" / name).mkdir(parents=True)
        with pytest.raises(CacheError, match=f"{name} is a folder where a file belongs: remove it"):
            file()
        (own_home / "files" / name).rmdir()
