"""Debian packages and a distribution of them, put together by hand."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest


def write_deb(
    folder: Path,
    name: str,
    files: Mapping[str, bytes],
    *,
    version: str = "1",
    unusual: Mapping[str, object] | None = None,
) -> Path:
    """A package: an `ar` archive of a version, control files and data; unusual: attributes of a further entry in it."""
    control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: T\nDescription: t\n".encode()
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tarball({"./control": control}),
        "data.tar.xz": tarball({f"./{path}": content for path, content in files.items()}, unusual=unusual),
    }
    place = folder / f"{name}_{version.replace(':', '%3a')}_all.deb"
    with place.open("wb") as file:
        file.write(b"!<arch>\n")
        for member, content in members.items():
            file.write(f"{member:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))
    return place


def tarball(files: Mapping[str, bytes], *, mode: str = "xz", unusual: Mapping[str, object] | None = None) -> bytes:
    """A compressed tar archive; unusual: attributes of a further entry."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode=f"w:{mode}") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        if unusual:
            entry = tarfile.TarInfo()
            for name, value in unusual.items():
                setattr(entry, name, value)
            tar.addfile(entry)
    return memory.getvalue()


def publish(folder: Path) -> None:
    """Make a folder of packages a distribution."""
    entries = []
    for path in sorted(folder.glob("*.deb")):
        content, (name, version, _) = path.read_bytes(), path.name.split("_")
        entries.append(
            f"Package: {name}\nVersion: {version.replace('%3a', ':')}\nArchitecture: all\nFilename: ./{path.name}\n"
            f"Size: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\nDescription: t\n"
        )
    (folder / "Packages").write_text("\n".join(entries))


def use(monkeypatch: pytest.MonkeyPatch, folder: Path, repository: Path | None) -> None:
    """Let apt fetch from a distribution in a folder alone, or from nowhere; `folder` holds its settings."""
    (folder / "sources.list").write_text(f"deb [trusted=yes] file:{repository} ./\n" if repository else "")
    (folder / "apt.conf").write_text(
        f'Dir::Etc::SourceList "{folder}/sources.list";\nDir::Etc::SourceParts "-";\nAcquire::Retries "0";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(folder / "apt.conf"))


def served(monkeypatch: pytest.MonkeyPatch, folder: Path, write: Callable[[Path], object]) -> Path:
    """A distribution below `folder` of the packages that `write` makes in it, from which alone apt fetches."""
    if not Path("/usr/bin/apt-get").exists():
        pytest.skip("this system has no apt")
    (repository := folder / "repository").mkdir()
    write(repository)
    publish(repository)
    use(monkeypatch, folder, repository)
    return repository


def below(folder: Path) -> dict[str, bytes]:
    """The files that were fetched into a folder."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".sums"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
