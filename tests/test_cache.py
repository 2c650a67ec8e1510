"""Caches are whole or absent."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import field, make_dataclass
from pathlib import Path

import pytest

from pullpush import cache
from pullpush.errors import CacheError

pytestmark = pytest.mark.usefixtures("own_home")


def test_home_is_the_platforms_cache_unless_told(monkeypatch, own_home):
    assert cache.home() == own_home
    monkeypatch.delenv("PULLPUSH_HOME")
    assert cache.home().name == "pullpush"


def test_content_key_is_the_same_in_another_process():
    program = "from pullpush.cache import content_key; print(content_key({'b': [1.5, None], 'a': 'é'}))"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert other.strip() == cache.content_key({"a": "é", "b": (1.5, None)})


def test_a_field_that_came_later_changes_no_key_until_it_is_set():
    before, after = (
        make_dataclass("Settings", fields)
        for fields in (["a"], ["a", ("b", int, field(default=0, metadata=cache.LATER))])
    )
    assert cache.content_key(before(1)) == cache.content_key(after(1)) != cache.content_key(after(1, 2))


def test_content_key_refuses_what_has_no_lasting_form():
    with pytest.raises(TypeError, match="plain data"):
        cache.content_key(object())


def test_a_folder_is_built_once():
    calls = []

    def build(folder: Path) -> None:
        calls.append(folder)
        (folder / "x").write_text("whole")

    first, second = (cache.cached_dir("things", "k", build) for _ in range(2))
    assert first == second
    assert (first / "x").read_text() == "whole"
    assert len(calls) == 1


def test_a_failed_build_leaves_nothing_and_can_be_repeated(own_home):
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.cached_dir("things", "k", fail)
    assert [path.name for path in (own_home / "things").iterdir()] == [".k.lock"]
    assert cache.cached_dir("things", "k", lambda folder: None).is_dir()


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden"])
def test_keys_are_plain_names(name):
    with pytest.raises(ValueError, match="plain names"):
        cache.cached_dir("things", name, lambda folder: None)


def _build_slowly(home: str, log: str) -> None:
    os.environ["PULLPUSH_HOME"] = home

    def build(folder: Path) -> None:
        with open(log, "a") as file:
            file.write("built\n")
        time.sleep(0.3)
        (folder / "x").write_text("whole")

    assert (cache.cached_dir("things", "k", build) / "x").read_text() == "whole"


def test_of_two_processes_one_builds_and_both_read(own_home, tmp_path):
    context = multiprocessing.get_context("spawn")
    log = tmp_path / "log"
    both = [context.Process(target=_build_slowly, args=(str(own_home), str(log))) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert log.read_text() == "built\n"


def test_what_a_killed_builder_left_is_removed(own_home):
    program = (
        "import time\nfrom pullpush.cache import cached_dir\n"
        "def build(folder):\n    (folder / 'half').write_text('x'); print('writing', flush=True); time.sleep(60)\n"
        "cached_dir('things', 'k', build)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
    assert not (own_home / "things" / "k").exists()
    folder = cache.cached_dir("things", "k", lambda folder: (folder / "x").write_text("whole"))
    assert [path.name for path in folder.glob("[!.]*")] == ["x"]
    assert sorted(path.name for path in folder.parent.iterdir()) == [".k.lock", "k"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def write_half() -> None:
        with cache.atomic_path(path) as partial:
            partial.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    with cache.atomic_path(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_a_full_disk_says_what_to_do_and_leaves_nothing(own_home):
    def build(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CacheError, match=r"no space left.*PULLPUSH_HOME"):
        cache.cached_dir("things", "k", build)
    assert not (own_home / "things" / "k").exists()


def test_a_read_only_home_says_what_to_do(tmp_path, monkeypatch):
    if os.geteuid() == 0:  # root may write anywhere, so refuse as the system would

        def refuse(*args, **kwargs):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", refuse)
    else:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        monkeypatch.setenv("PULLPUSH_HOME", str(locked / "home"))
    with pytest.raises(CacheError, match="PULLPUSH_HOME"):
        cache.cached_dir("things", "k", lambda folder: None)
