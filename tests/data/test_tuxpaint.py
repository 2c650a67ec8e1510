"""The stamps are fetched whole or not at all, and nothing of an archive is written outside its place."""

import tarfile
from pathlib import Path

import debs
import pytest
import yaml

from pullpush.data.language.vocabulary import load_events
from pullpush.data.recordings import tuxpaint
from pullpush.errors import DataNotFoundError, PullPushError

FILES = {
    "animals/amphibians/frog.txt": "A frog.\nfr.utf8=Une grenouille.\nzh_TW.utf8=青蛙\n".encode(),
    "animals/amphibians/frog.ogg": b"croak",
    "animals/amphibians/frog_desc.ogg": b"a frog",
    "animals/amphibians/frog_desc_fr.ogg": b"une grenouille",
    "animals/amphibians/frog.svg": b"<svg/>",
    "animals/amphibians/frog.png": b"png",
    "animals/amphibians/frog_mirror.png": b"gnp",
    "symbols/letters/a.ogg": b"ay",
}
UNSAFE = {
    "path that climbs out": {"name": "../../outside.txt"},
    "link to an absolute path": {"name": "stamps/link", "type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
    "link that climbs out": {"name": "stamps/link", "type": tarfile.SYMTYPE, "linkname": "../../../outside"},
    "hard link that climbs out": {"name": "stamps/link", "type": tarfile.LNKTYPE, "linkname": "../../outside"},
    "absolute path": {"name": "/pullpush-outside.txt"},
    "device": {"name": "stamps/device", "type": tarfile.CHRTYPE},
}


def below(prefix: str) -> dict[str, bytes]:
    return {f"{prefix}/{name}": content for name, content in FILES.items()}


def write_deb(folder: Path, unusual: dict | None = None) -> Path:
    files = below("usr/share/tuxpaint/stamps")
    return debs.write_deb(folder, tuxpaint.PACKAGE.name, files, unusual=unusual)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No distribution: apt has no sources."""
    debs.use(monkeypatch, tmp_path, None)


@pytest.fixture
def repository(monkeypatch, tmp_path, offline):
    """A distribution in a folder, which apt fetches from; returns the folder."""
    return debs.served(monkeypatch, tmp_path, write_deb)


def unfinished(home: Path) -> list[Path]:
    return [path for path in (home / "tuxpaint").iterdir() if not path.name.endswith(".lock")]


# ---------------------------------------------------------------- fetching


def test_apt_fetches_without_root_and_another_version_is_told(home, repository):
    with pytest.warns(UserWarning, match="not version 2022.06.04 of the stamps"):
        stamps = tuxpaint.fetch()
    assert debs.below(stamps) == FILES
    assert [path.name for path in stamps.parent.iterdir() if path.name != ".sums"] == ["stamps"], (
        "the package itself is not kept"
    )
    (repository / "Packages").unlink()
    assert tuxpaint.fetch() == stamps, "fetched once"


def test_apt_refuses_a_package_that_is_not_the_signed_one(home, repository):
    package = next(repository.glob("*.deb"))
    content = bytearray(package.read_bytes())
    content[-1] ^= 1
    package.write_bytes(content)
    with pytest.raises(DataNotFoundError, match="Hash Sum mismatch"):
        tuxpaint.fetch()
    assert unfinished(home) == []


def test_offline_says_what_to_do(home, offline):
    with pytest.raises(DataNotFoundError, match="connect to the network") as caught:
        tuxpaint.fetch()
    for hint in ("apt:", tuxpaint.RELEASE, tuxpaint.SOURCE, ".deb", "tar.gz", "synthetic"):
        assert hint in str(caught.value)
    assert unfinished(home) == []


# ---------------------------------------------------------------- a copy that is there


@pytest.mark.filterwarnings("ignore:.*is not version")
@pytest.mark.parametrize("tools", ["dpkg-deb", "python"])
def test_a_package_on_disk_is_unpacked(home, tmp_path, monkeypatch, tools):
    monkeypatch.setenv(tuxpaint.SOURCE, str(write_deb(tmp_path)))
    if tools == "python":
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert debs.below(tuxpaint.fetch()) == FILES


@pytest.mark.parametrize("below", ["", "stamps", "usr/share/tuxpaint/stamps", "tuxpaint-stamps-1/stamps"])
def test_a_folder_on_disk_is_used_where_it_is(home, tmp_path, monkeypatch, below):
    (tmp_path / "copy" / below / "animals").mkdir(parents=True)
    monkeypatch.setenv(tuxpaint.SOURCE, str(tmp_path / "copy"))
    assert tuxpaint.fetch() == tmp_path / "copy" / below
    assert not home.exists()


@pytest.mark.parametrize("what", ["nothing", "another folder"])
def test_a_wrong_name_is_told(home, tmp_path, monkeypatch, what):
    if what == "another folder":
        (tmp_path / what).mkdir()
    monkeypatch.setenv(tuxpaint.SOURCE, str(tmp_path / what))
    with pytest.raises(DataNotFoundError, match=what):
        tuxpaint.fetch()


@pytest.mark.filterwarnings("ignore:.*is not version")
@pytest.mark.parametrize("tools", ["dpkg-deb", "python"])
@pytest.mark.parametrize("kept", [0.0, 0.2, 0.9])
def test_half_a_package_is_refused(home, tmp_path, monkeypatch, tools, kept):
    package = write_deb(tmp_path)
    package.write_bytes(package.read_bytes()[: int(kept * package.stat().st_size)])
    monkeypatch.setenv(tuxpaint.SOURCE, str(package))
    if tools == "python":
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(DataNotFoundError, match="damaged or incomplete"):
        tuxpaint.fetch()
    assert unfinished(home) == []


@pytest.mark.filterwarnings("ignore:.*is not version")
@pytest.mark.parametrize("kind", ["deb", "tarball"])
@pytest.mark.parametrize("reason", UNSAFE)
def test_an_unsafe_archive_writes_nothing_outside(home, tmp_path, monkeypatch, kind, reason):
    archive = tmp_path / "stamps.tar.xz"
    if kind == "deb":
        archive = write_deb(tmp_path, UNSAFE[reason])
    else:
        archive.write_bytes(debs.tarball(below("stamps"), unusual=UNSAFE[reason]))
    monkeypatch.setenv(tuxpaint.SOURCE, str(archive))
    with pytest.raises(PullPushError, match="not safe to unpack"):
        tuxpaint.fetch()
    assert unfinished(home) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([archive.name, "home"])


# ---------------------------------------------------------------- tables


def test_a_recording_that_is_missing_is_named(tmp_path):
    (tmp_path / "frog.wav").touch()
    assert tuxpaint.recording(tmp_path, "frog") == tmp_path / "frog.wav"
    (tmp_path / "frog.ogg").touch()
    assert tuxpaint.recording(tmp_path, "frog") == tmp_path / "frog.ogg"
    with pytest.raises(DataNotFoundError, match="animals/toad"):
        tuxpaint.recording(tmp_path, "animals/toad")


def test_index_sorts_files_into_tables(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    stamps = tuxpaint.index(tmp_path)
    frog = "animals/amphibians/frog"
    assert stamps.captions.to_dict("split")["data"] == [
        [frog, "eng", "A frog.", "en"],
        [frog, "fra", "Une grenouille.", "fr"],
        [frog, "zh_TW", "青蛙", "zh_TW"],
        [frog, "zho", "青蛙", "zh_TW"],
    ]
    assert stamps.speech[["stamp", "language"]].values.tolist() == [[frog, "eng"], [frog, "fra"]]
    assert stamps.effects.values.tolist() == [[frog, str(tmp_path / f"{frog}.ogg")]]
    assert stamps.pictures.values.tolist() == [[frog, str(tmp_path / f"{frog}.png")]]


def test_captions_tolerate_what_translators_left():
    content = (
        b"\xef\xbb\xbf  A  frog. \r\nde.utf8= Ein Frosch.\r\nes.utf8=\r\n\r\nnot a caption\r\nnl.utf8=Een kikker\xff.\n"
    )
    content += "ca@valencia.utf8=Una granota.\nzh_CN.utf8=青蛙。\nzh_TW.utf8=蛙".encode()
    assert tuxpaint.parse_captions(content) == [
        ("eng", "A frog.", "en"),
        ("deu", "Ein Frosch.", "de"),
        ("nld", "Een kikker.", "nl"),
        ("ca@valencia", "Una granota.", "ca@valencia"),
        ("zho", "青蛙。", "zh_CN"),
        ("zh_TW", "蛙", "zh_TW"),
    ]
    assert tuxpaint.parse_captions(b"") == []
    assert tuxpaint.parse_captions(b"fr.utf8=Une grenouille.") == [("fra", "Une grenouille.", "fr")]


def test_the_real_stamps_are_what_the_book_says(stamps):
    tables = tuxpaint.index(stamps)
    captions = tables.captions.groupby("language").stamp.nunique()
    assert all(captions[code] >= 945 for code in ("eng", "fra", "deu", "spa", "nld", "cat", "jpn"))
    assert captions["zho"] > captions["zh_TW"]
    assert not tables.captions.duplicated(["stamp", "language"]).any()
    assert not tables.captions.text.str.contains("\ufffd").any()
    spoken = tables.speech.groupby("language").stamp.nunique()
    assert spoken["fra"] > 900
    assert spoken["spa"] > 850
    assert len(tables.pictures) > 900
    assert tables.captions.stamp.is_monotonic_increasing


def test_every_real_sound_is_curated_or_left_out_for_a_reason(stamps):
    named = {stamp for event in load_events() for stamp in event.recordings}
    found = set(tuxpaint.index(stamps).effects.stamp)
    excluded = yaml.safe_load((Path(__file__).parent / "excluded.yaml").read_text(encoding="utf-8"))
    assert named | set(excluded) == found
