"""Tux Paint's stamps: pictures, captions in 78 languages, people who speak them, and recorded sounds.

Debian's package `tuxpaint-stamps-default` holds them all (161 MB). It is fetched once, without root, by apt, which
verifies what it fetches against the distribution's signed lists; where there is no apt, or it has no such package, the
project's own release is fetched instead, against a checksum. `$PULLPUSH_TUXPAINT` names a copy that is on disk already.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pooch

from pullpush.cache import cached_dir, content_key
from pullpush.data.languages import load_languages
from pullpush.data.recordings import debian
from pullpush.errors import DataNotFoundError
from pullpush.progress import tell

SOURCE = "PULLPUSH_TUXPAINT"
PACKAGE = debian.packages()["tuxpaint-stamps-default"]
RELEASE = (
    "https://downloads.sourceforge.net/project/tuxpaint/tuxpaint-stamps/2022-06-04/tuxpaint-stamps-2022.06.04.tar.gz"
)
RELEASE_SHA256 = "842065576fae554358e00e51d71a492616a6490b12b592228067477c287a0bf8"
ADVICE = (
    f"connect to the network and try again, or set {SOURCE} to a copy that you have: the package {PACKAGE.name}_*.deb, "
    "the project's release tuxpaint-stamps-*.tar.gz, or an unpacked folder 'stamps'. Without it there is the bank "
    "'synthetic' (profile smoke)"
)

SPOKEN = re.compile(r"(?P<name>.+)_desc(?:_(?P<language>[A-Za-z]{2,3}(?:_[A-Z]{2})?(?:@[a-z]+)?))?(?:\.ogg)?")
TRANSLATED = re.compile(
    r"(?P<language>[A-Za-z]{2,3}(?:_[A-Z]{2})?(?:@[a-z]+)?)(?:\.utf-?8)?=(?P<text>.*)", re.IGNORECASE
)
SOUNDS = (".ogg", ".wav")  # the alphabetically first is preferred where a stamp has both; so with pictures
PICTURES = (".png", ".svg")
MIRRORED = "_mirror"  # the same thing seen the other way round
PLACES = ("stamps", "usr/share/tuxpaint/stamps", "share/tuxpaint/stamps", "*/stamps")  # in folders and archives


@dataclass(frozen=True, eq=False)
class Stamps:
    """What the stamps offer, as tables; `stamp` is the path without its suffix ("animals/amphibians/frog").

    captions: stamp, language, text, code; speech: stamp, language, path (people who speak the captions); effects:
    stamp, path (recorded sounds); pictures: stamp, path. Languages are ISO 639-3 codes for those of `data/languages`,
    and the files' own codes for all others; `code` is always the files' own. Chinese ("zho") is simplified (code
    "zh_CN") where it exists and traditional (code "zh_TW") otherwise.
    """

    captions: pd.DataFrame
    speech: pd.DataFrame
    effects: pd.DataFrame
    pictures: pd.DataFrame


def fetch() -> Path:
    """The folder of stamps: fetched and unpacked when first asked for, by one process where several ask."""
    named = os.environ.get(SOURCE)
    if not named:
        return cached_dir("tuxpaint", "stamps", _download) / "stamps"
    given = Path(named).expanduser().absolute()
    if given.is_dir():
        return _stamps_in(given)
    if not given.is_file():
        raise DataNotFoundError(f"{SOURCE} is {named}, but there is nothing: correct it, or {ADVICE}")
    facts = given.stat()
    key = content_key([str(given), facts.st_size, facts.st_mtime_ns])
    return cached_dir("tuxpaint", key, lambda folder: _unpack(given, folder)) / "stamps"


def recording(stamps: Path, stamp: str) -> Path:
    """The sound of one stamp below the folder `stamps`."""
    for suffix in SOUNDS:
        if (path := stamps / f"{stamp}{suffix}").is_file():
            return path
    raise DataNotFoundError(
        f"no recording of {stamp!r} in {stamps}: the copy is incomplete, or of another version than 2022-06-04. Remove "
        f"it to fetch it again, or name the recording that it has in data/language/events.yaml"
    )


def index(root: Path | None = None) -> Stamps:
    """The tables of the stamps in `root` (default: those of `fetch()`), sorted by stamp; read once a process."""
    return _index(fetch() if root is None else Path(root))


# ---------------------------------------------------------------- fetching


def _download(folder: Path) -> None:
    """Fetch the package by apt, or else the project's release, and unpack it to `folder`/stamps."""
    work = folder / "download"
    work.mkdir()
    failures = []
    for source, get in (("apt", _from_apt), ("upstream", _from_upstream)):
        try:
            archive = get(work)
        except DataNotFoundError as error:
            failures.append(f"{source}: {error}")
            continue
        _unpack(archive, folder)
        return shutil.rmtree(work)
    raise DataNotFoundError(f"cannot fetch the Tux Paint stamps ({'; '.join(failures)}): {ADVICE}")


def _from_apt(work: Path) -> Path:
    """The distribution's package."""
    tell(f"fetching {PACKAGE.name} ({PACKAGE.megabytes} MB) by apt")
    with debian.apt() as download:
        return download(PACKAGE, work)


def _from_upstream(work: Path) -> Path:
    """The project's release, against its checksum."""
    tell(f"fetching {RELEASE}")
    pooch.get_logger().setLevel("WARNING")
    name = RELEASE.rsplit("/", 1)[-1]
    try:
        return Path(pooch.retrieve(RELEASE, f"sha256:{RELEASE_SHA256}", fname=name, path=work, progressbar=False))
    except (OSError, ValueError) as error:  # no network, or (ValueError) not what the checksum promises
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise
        raise DataNotFoundError(f"{name}: {str(error).splitlines()[0]}") from error


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a .deb or a tarball, and leave its stamps as `folder`/stamps; warn where it is another version's, whose
    signature is apt's to check."""
    debian.compare(archive, "version 2022.06.04 of the stamps", PACKAGE.sha256, RELEASE_SHA256)
    tell(f"unpacking {archive.name}")
    tree = folder / "unpacked"
    tree.mkdir()
    try:
        debian.unpack(archive, tree)
    except DataNotFoundError as error:
        raise DataNotFoundError(f"{error}, or {ADVICE}") from error
    os.replace(_stamps_in(tree), folder / "stamps")
    shutil.rmtree(tree)


def _stamps_in(folder: Path) -> Path:
    """The folder of stamps at or below `folder`, wherever package, release or user put it."""
    for path in (folder, *(path for place in PLACES for path in sorted(folder.glob(place)))):
        if (path / "animals").is_dir():
            return path
    raise DataNotFoundError(f"{folder} holds no stamps (a folder with 'animals' in it): {ADVICE}")


# ---------------------------------------------------------------- tables


@lru_cache(maxsize=4)
def _index(root: Path) -> Stamps:
    """Sort every file below `root` into the four tables."""
    captions, speech, effects, pictures = [], [], {}, {}
    codes = _codes()
    for path in sorted(root.rglob("*"), key=lambda path: (path.with_suffix("").as_posix(), path.suffix)):
        name = path.relative_to(root).with_suffix("").as_posix()
        if path.suffix == ".txt":
            captions += [(name, *row) for row in parse_captions(path.read_bytes())]
        elif path.suffix in SOUNDS:
            if spoken := SPOKEN.fullmatch(name):
                speech.append((spoken["name"], codes.get(code := spoken["language"] or "en", code), str(path)))
            elif not name.startswith("symbols/"):  # there, sounds are spoken numbers and letters
                effects.setdefault(name, str(path))
        elif path.suffix in PICTURES and not name.endswith(MIRRORED):
            pictures.setdefault(name, str(path))
    if not captions:
        raise DataNotFoundError(f"{root} holds no stamps: {ADVICE}")
    return Stamps(
        pd.DataFrame(captions, columns=["stamp", "language", "text", "code"]),
        pd.DataFrame(speech, columns=["stamp", "language", "path"]),
        pd.DataFrame(list(effects.items()), columns=["stamp", "path"]),
        pd.DataFrame(list(pictures.items()), columns=["stamp", "path"]),
    )


def parse_captions(content: bytes) -> list[tuple[str, str, str]]:
    """Language, text and the file's own code of each caption in a stamp's .txt file, in the order of the file.

    The first line is English, the others read `fr.utf8=Une grenouille.`; a byte-order mark, bytes that are not UTF-8,
    superfluous spaces, empty translations and lines of another form are tolerated.

    >>> parse_captions(b"A frog.\\nfr.utf8=Une grenouille.")
    [('eng', 'A frog.', 'en'), ('fra', 'Une grenouille.', 'fr')]
    """
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    texts = {"en": " ".join(lines[0].split())} if lines and not TRANSLATED.fullmatch(lines[0]) else {}
    for line in lines:
        if translated := TRANSLATED.fullmatch(line.strip()):
            texts.setdefault(translated["language"], " ".join(translated["text"].replace("\ufffd", "").split()))
    codes = _codes()
    rows = [(codes.get(code, code), text, code) for code, text in texts.items() if text]
    if not texts.get("zh_CN") and texts.get("zh_TW"):
        rows.append(("zho", texts["zh_TW"], "zh_TW"))
    return rows


def _codes() -> dict[str, str]:
    """The stamps' code of a language → its ISO 639-3 code, of the languages that the book knows."""
    return {language.tuxpaint: code for code, language in load_languages().items() if language.tuxpaint}
