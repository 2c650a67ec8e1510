"""Packages are fetched once, in the pinned version where it is to be had, and only what is wanted of them is kept."""

import hashlib
import io
import tarfile
from pathlib import Path

import debs
import pytest

from pullpush.data.recordings import debian
from pullpush.data.recordings.debian import SOURCE, Package, tree, trees
from pullpush.errors import DataNotFoundError

FILES = {"usr/share/words/a.ogg": b"a", "usr/share/words/deep/b.ogg": b"b", "usr/share/man/words.1": b"manual"}


@pytest.fixture
def repository(monkeypatch, tmp_path, home):
    """A distribution with two versions of `words` and one of `more`."""

    def write(folder):
        debs.write_deb(folder, "words", FILES, version="1:2.0-1")
        debs.write_deb(folder, "words", {"usr/share/words/new.ogg": b"new"}, version="1:3.0-1")
        debs.write_deb(folder, "more", {"usr/more": b"more"})

    return debs.served(monkeypatch, tmp_path, write)


def pinned(folder: Path, name: str = "words", version: str = "1:2.0-1", **facts) -> Package:
    digest = hashlib.sha256((folder / f"{name}_{version.replace(':', '%3a')}_all.deb").read_bytes()).hexdigest()
    return Package(name, version, digest, 0.1, **facts)


def test_the_pinned_version_is_fetched_where_a_newer_one_is_there(repository, recwarn):
    assert debs.below(tree(pinned(repository))) == FILES
    assert not recwarn.list


def test_another_version_is_taken_with_a_warning_where_the_pinned_one_is_gone(repository):
    (repository / "words_1%3a2.0-1_all.deb").rename(repository.parent / "gone.deb")
    debs.publish(repository)
    with pytest.warns(UserWarning, match=r"words_.*3\.0.* is not words 1:2\.0-1"):
        place = tree(Package("words", "1:2.0-1", "0" * 64, 0.1))
    assert debs.below(place) == {"usr/share/words/new.ogg": b"new"}


def test_only_wanted_files_are_kept(repository):
    ogg = pinned(repository, files=("usr/share/words/*",))
    assert debs.below(tree(ogg)) == {name: content for name, content in FILES.items() if "words/" in name}
    assert tree(pinned(repository)) != tree(ogg)


def test_several_packages_take_one_look_at_the_distribution(repository, monkeypatch, tmp_path):
    calls = tmp_path / "calls"
    spy = tmp_path / "bin" / "apt-get"
    spy.parent.mkdir()
    spy.write_text(f'#!/bin/sh\necho "$*" >> {calls}\nexec /usr/bin/apt-get "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:/usr/bin:/bin")
    words, more = trees([pinned(repository), pinned(repository, "more", "1")])
    assert (debs.below(words), debs.below(more)) == (FILES, {"usr/more": b"more"})
    assert calls.read_text().count(" update") == 1


def test_a_folder_of_packages_serves_without_apt(home, monkeypatch, tmp_path):
    (tmp_path / "mine").mkdir()
    debs.write_deb(tmp_path / "mine", "words", FILES, version="1:2.0-1")
    package = pinned(tmp_path / "mine")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv(SOURCE, str(tmp_path / "mine"))
    assert debs.below(tree(package)) == FILES


def test_without_apt_the_message_says_what_to_do(home, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(DataNotFoundError, match=rf"no apt-get.*{SOURCE}.*words_\*\.deb.*1:2\.0-1"):
        tree(Package("words", "1:2.0-1", "0" * 64, 0.1))
    assert not list((home / "debian").glob("words*")), "nothing half made stays"


@pytest.mark.parametrize(
    "members",
    [
        [("a", "a", None), ("a/b", None, b"")],
        [("a", None, b"x"), ("a/b", None, b"x")],
        [(".", None, b"x")],
        [("", None, b"x")],
        [("n" * 300, None, b"x")],
        [("a", "gone", tarfile.LNKTYPE)],
    ],
)
def test_a_malformed_archive_is_named(tmp_path, members):
    (tmp_path / "tree").mkdir()
    write(tmp_path / "a.tar", members)
    with pytest.raises(DataNotFoundError, match="damaged or incomplete"):
        debian.unpack(tmp_path / "a.tar", tmp_path / "tree")


def test_an_archive_is_unpacked_to_a_size_and_no_further(tmp_path, monkeypatch):
    monkeypatch.setattr(debian, "LARGEST", 10)
    write(tmp_path / "a.tar", [("a", None, bytes(8)), ("b", None, bytes(8))])
    with pytest.raises(debian.UnsafeMember, match="it holds more than"):
        debian.unpack(tmp_path / "a.tar", tmp_path)
    assert not (tmp_path / "b").exists()


def write(path: Path, members: list[tuple]) -> None:
    """A tarball of names with links or contents."""
    with tarfile.open(path, "w") as tar:
        for name, leads, held in members:
            member = tarfile.TarInfo(name)
            if leads:
                member.type, member.linkname = held or tarfile.SYMTYPE, leads
            else:
                member.size = len(held)
            tar.addfile(member, None if leads else io.BytesIO(held))


def test_a_package_that_nobody_has_is_named(repository):
    with pytest.raises(DataNotFoundError, match="Unable to locate package nothing"):
        tree(Package("nothing", "1", "0" * 64, 0.1))
