"""Archives unpacked without trust in what they hold: Debian packages and tarballs."""

from __future__ import annotations

import io
import lzma
import os
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from pullpush.errors import DataNotFoundError, PullPushError


class UnsafeMember(PullPushError):
    """A member of an archive that would be written outside its place, or that is no file at all."""


def unpack(archive: Path, tree: Path, files: Sequence[str] = ("*",)) -> None:
    """Unpack a .deb or a tarball below `tree`, which is there and empty.

    Nothing is written outside: paths and links that lead out of the archive, and devices, are refused.

    Args:
        archive: a file.
        tree: a folder.
        files: patterns of the paths that are wanted, such as "usr/share/sounds/*"; a * stands for slashes, too.

    Raises:
        UnsafeMember: such a member is in it.
        DataNotFoundError: the archive is damaged or incomplete.
    """
    try:
        with _tar_of(archive) as tar:
            _extract(tar, tree, files)
    except UnsafeMember as error:
        raise UnsafeMember(f"{archive} is not safe to unpack: {error}. Get it from its distributor again") from error
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataNotFoundError(
            f"{archive} is damaged or incomplete ({error}): remove it and fetch it again"
        ) from error


def _extract(tar: tarfile.TarFile, tree: Path, files: Sequence[str]) -> None:
    """Extract the wanted members below `tree`, refusing any archive in which something leads out of it.

    Checked by hand: Python 3.11.0 to 3.11.3, which Debian 12 ships, do not know tarfile's filters yet.
    """
    tar.extraction_filter = lambda member, place: member  # later versions would warn that none is chosen
    top = os.path.realpath(tree)
    for member in tar:
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise UnsafeMember(f"{member.name} is a device")
        place = os.path.join(top, member.name)
        # A symbolic link starts at the member's folder, a hard link at the top of the archive.
        start = os.path.dirname(place) if member.issym() else top
        target = os.path.join(start, member.linkname) if member.issym() or member.islnk() else place
        for path in (place, target):  # real paths, so that a link made before cannot be climbed through
            if os.path.commonpath([top, os.path.realpath(path)]) != top:
                raise UnsafeMember(f"{member.name} leads out of the archive")
        name = os.path.normpath(member.name)
        if not any(fnmatchcase(name, pattern) for pattern in files):
            continue
        member.mode = 0o755 if member.isdir() else 0o644
        tar.extract(member, top)


@contextmanager
def _tar_of(archive: Path) -> Iterator[tarfile.TarFile]:
    """The files in an archive: a tarball itself, or the member data.tar.* of a .deb."""
    if archive.suffix != ".deb":
        with tarfile.open(archive) as tar:
            yield tar
    elif shutil.which("dpkg-deb"):
        command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dpkg:
            assert dpkg.stdout is not None  # pipes, as was asked
            assert dpkg.stderr is not None
            try:
                with tarfile.open(fileobj=dpkg.stdout, mode="r|") as tar:
                    yield tar
                shutil.copyfileobj(dpkg.stdout, io.BytesIO())  # the padding at the end: or dpkg-deb would complain
            finally:
                dpkg.stdout.close()
                complaint = dpkg.stderr.read().decode(errors="replace").strip()
        if dpkg.returncode:
            raise tarfile.ReadError(complaint or f"dpkg-deb failed ({dpkg.returncode})")
    else:
        with archive.open("rb") as file:
            _seek_data(file)
            with tarfile.open(fileobj=file, mode="r|*") as tar:
                yield tar


def _seek_data(file: BinaryIO) -> None:
    """Advance to the contents of data.tar.* in an `ar` archive, which is what a .deb is."""
    if file.read(8) != b"!<arch>\n":
        raise tarfile.ReadError("not a .deb file")
    while len(header := file.read(60)) == 60:
        if header.startswith(b"data.tar"):
            return
        try:
            size = int(header[48:58])
        except ValueError as error:
            raise tarfile.ReadError("a broken .deb file") from error
        file.seek(size + size % 2, os.SEEK_CUR)  # members begin at even places
    raise tarfile.ReadError("a .deb file without data")
