"""Debian's packages without root: fetched by apt, which verifies them, unpacked and kept.

A distribution moves on: a package is asked for in the version that the book was measured on, and taken in another,
with a warning, where that is gone. `$PULLPUSH_DEBIAN` names a folder with packages (`<name>_*.deb`) that are there
already. Archives are unpacked without trust in what they hold.
"""

import errno
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

from pullpush.cache import cached_dir, content_key, digest
from pullpush.data.languages import read_table
from pullpush.errors import DataNotFoundError, PullPushError
from pullpush.progress import tell

KIND = "debian"
SOURCE = "PULLPUSH_DEBIAN"
LARGEST = 8 << 30  # bytes that an archive may hold; the largest here, a soundfont, has a twentieth
PATIENCE = 1800  # seconds until apt is given up
SETTINGS = {
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",  # no translations of package descriptions, which nobody reads here
    "Acquire::Retries": 2,
    "Acquire::http::Timeout": 30,
    "Acquire::https::Timeout": 30,
}


class UnsafeMember(PullPushError):
    """A member of an archive that would be written outside its place, or that is no file at all."""


def unpack(archive: Path, tree: Path, files: Sequence[str] = ("*",)) -> None:
    """Unpack a .deb or a tarball below the empty folder `tree`. Nothing is written outside: paths and links that lead
    out of the archive, and devices, are refused. files: patterns of what is wanted; a * stands for slashes, too.
    """
    try:
        with _tar_of(archive) as tar:
            _extract(tar, tree, files)
    except UnsafeMember as error:
        raise UnsafeMember(f"{archive} is not safe to unpack: {error}. Get it from its distributor again") from error
    except (tarfile.TarError, EOFError, KeyError, OSError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise DataNotFoundError(
            f"{archive} is damaged or incomplete ({error}): remove it and fetch it again"
        ) from error


def _extract(tar: tarfile.TarFile, tree: Path, files: Sequence[str]) -> None:
    """Extract the wanted members below `tree`, refusing any archive in which something leads out of it."""
    # Checked by hand: Python 3.11.0 to 3.11.3, which Debian 12 ships, do not know tarfile's filters yet.
    tar.extraction_filter = lambda member, place: member  # later versions would warn that none is chosen
    top = os.path.realpath(tree)
    left = LARGEST
    for member in tar:
        left -= member.size
        if left < 0:
            raise UnsafeMember(f"it holds more than {LARGEST >> 30} GiB")
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
    elif shutil.which("dpkg-deb"):  # which knows compressions that Python does not
        with tempfile.TemporaryFile() as file:
            command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
            done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, errors="replace")
            if done.returncode:
                raise tarfile.ReadError(done.stderr.strip() or f"dpkg-deb failed ({done.returncode})")
            file.seek(0)
            with tarfile.open(fileobj=file) as tar:
                yield tar
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
        if not (size := header[48:58].strip()).isdigit():
            raise tarfile.ReadError("a broken .deb file")
        file.seek(int(size) + int(size) % 2, os.SEEK_CUR)  # members begin at even places
    raise tarfile.ReadError("a .deb file without data")


@dataclass(frozen=True)
class Package:
    """A package of Debian.

    name, version, sha256: what the book was measured on; megabytes: of the download; files: patterns of the paths
    that are kept of it (see `unpack`); place: of what is read of it, a folder or a file.
    """

    name: str
    version: str
    sha256: str
    megabytes: float
    files: tuple[str, ...] = ("*",)
    place: str = ""


Download = Callable[[Package, Path], Path]


@cache
def packages() -> dict[str, Package]:
    """The packages that the book reads, by name: what `packages.yaml` lists."""
    rows = read_table(Path(__file__).with_name("packages.yaml"))
    return {name: Package(name, **row | {"files": tuple(row.get("files", ("*",)))}) for name, row in rows.items()}


def tree(package: Package) -> Path:
    """The folder of one package; see `trees`."""
    return trees([package])[0]


def trees(packages: Sequence[Package]) -> list[Path]:
    """The folder of each package, with the package's paths below it: fetched and unpacked when first asked for.

    Raises:
        DataNotFoundError: one cannot be had; the message says what to do.
        UnsafeMember: one holds paths or links that lead out of it.
    """
    with apt() as download:
        keys = [f"{each.name}-{content_key([each.sha256, each.files], length=8)}" for each in packages]
        return [
            cached_dir(KIND, key, partial(_build, package, download))
            for key, package in zip(keys, packages, strict=True)
        ]


@contextmanager
def apt() -> Iterator[Download]:
    """A function (package, folder) → the distribution's package, left in that folder and verified by apt.

    Apt gets lists and caches of its own, so that no root is needed; they are fetched once, with the first package.
    """
    with tempfile.TemporaryDirectory(prefix="pullpush-apt-") as folder:
        state = Path(folder)
        complaints: list[str] = []

        def download(package: Package, work: Path) -> Path:
            if shutil.which("apt-get") is None:
                raise DataNotFoundError("this system has no apt-get")
            places = {"Dir::State": state, "Dir::State::Lists": state / "lists", "Dir::Cache": state / "cache"}
            settings = places | {"Dir::State::status": "/var/lib/dpkg/status"} | SETTINGS
            command = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
            if not any(state.iterdir()):
                for part in ("lists/partial", "cache/archives/partial"):
                    (state / part).mkdir(parents=True)
                # Apt goes on where one of several sources fails; the download then tells.
                complaints.extend(_complaints(_run([*command, "update"], work)))
            try:
                _run([*command, "download", f"{package.name}={package.version}"], work)
            except DataNotFoundError:
                try:
                    _run([*command, "download", package.name], work)
                except DataNotFoundError as error:
                    raise DataNotFoundError(" ".join(dict.fromkeys([*complaints, str(error)]))) from error
            return _package_in(work, package)

        yield download


def compare(archive: Path, title: str, *digests: str) -> None:
    """Warn where an archive's sha256 is none of the digests that the book was measured on.

    title: names what those are. Apt has checked a package's signature: another version is no fault.
    """
    found = digest(archive)
    if found not in digests:
        warnings.warn(
            f"{archive.name} is not {title}, which the book's numbers were measured on (its sha256 is {found[:12]}…): "
            "results may differ",
            stacklevel=2,
        )


def _build(package: Package, download: Download, folder: Path) -> None:
    """Unpack a package to the folder: the reader's copy of it, or else the distribution's."""
    work = folder / ".download"
    work.mkdir()
    archive = _archive(package, download, work)
    compare(archive, f"{package.name} {package.version}", package.sha256)
    unpack(archive, folder, package.files)
    shutil.rmtree(work)


def _archive(package: Package, download: Download, work: Path) -> Path:
    """The package as a file."""
    advice = (
        f"connect to the network and try again, or set {SOURCE} to a folder that holds {package.name}_*.deb "
        f"(version {package.version} of Debian)"
    )
    named = os.environ.get(SOURCE)
    if named:
        place = Path(named).expanduser().absolute()
        if not place.is_dir():
            raise DataNotFoundError(f"{SOURCE} is {named}, but there is no such folder: correct it, or unset it")
        if any(place.glob(f"{package.name}_*.deb")):
            return _package_in(place, package)
    tell(f"fetching {package.name} ({package.megabytes:g} MB) by apt")
    try:
        return download(package, work)
    except DataNotFoundError as error:
        raise DataNotFoundError(f"cannot fetch Debian's package {package.name} ({error}): {advice}") from error


def _package_in(folder: Path, package: Package) -> Path:
    """The package in a folder, in its pinned version where there are several."""
    found = sorted(folder.glob(f"{package.name}_*.deb"))
    if not found:
        raise DataNotFoundError(f"apt-get download left no {package.name}_*.deb")
    version = package.version.replace(":", "%3a")  # as apt writes it in a file's name
    return next((path for path in found if path.name.split("_")[1] == version), found[-1])


def _run(command: list[str], work: Path) -> str:
    """Run a command and return all it says; `DataNotFoundError` with its complaints where it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired as error:
        raise DataNotFoundError(f"{command[0]} {command[-1]} did not end within {PATIENCE} s") from error
    if done.returncode:
        raise DataNotFoundError(" ".join(_complaints(done.stdout)) or f"{command[0]} failed ({done.returncode})")
    return done.stdout


def _complaints(output: str) -> list[str]:
    """The first lines in which apt says what went wrong."""
    return [line[2:].strip() for line in output.splitlines() if line.startswith(("E:", "W:"))][:3]
