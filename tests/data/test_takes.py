"""Further recordings of known events: read out of the files they travel in, and of nothing that was heard before."""

import struct
import zlib

import numpy as np
import pytest
from published import fetched
from scipy.signal import fftconvolve

from pullpush.data.banks import create_bank
from pullpush.data.language.vocabulary import load_events
from pullpush.data.recordings import tuxpaint as takes
from pullpush.data.recordings.tuxpaint import member, openttd_sounds, qt_resources
from pullpush.errors import DataNotFoundError


def qt_file(files: dict[str, tuple[int, bytes]], version: int) -> bytes:
    """A resource file of Qt with one folder of files, each with its flags and stored bytes."""
    size = 22 if version >= 2 else 14
    names, contents, places = b"", b"", []
    for name in ("folder", *files):
        places.append(len(names))
        names += struct.pack(">HI", len(name), 0) + name.encode("utf-16-be")
    entries = [struct.pack(">IHII", 0, 2, 1, 1), struct.pack(">IHII", places[0], 2, len(files), 2)]
    for (flags, data), place in zip(files.values(), places[1:], strict=True):
        entries.append(struct.pack(">IHHHI", place, flags, 0, 0, len(contents)))
        contents += struct.pack(">I", len(data)) + data
    tree = b"".join(entry + bytes(size - len(entry)) for entry in entries)
    head = struct.pack(">4s4I", b"qres", version, 20, 20 + len(tree), 20 + len(tree) + len(contents))
    return head + tree + contents + names


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_are_found_in_qt_resources_plain_and_compressed(version):
    packed = struct.pack(">I", 5) + zlib.compress(b"moo" * 50)
    data = qt_file({"cow.ogg": (0, b"OggS cow"), "kühe.ogg": (1, packed)}, version=version)
    assert qt_resources(data) == {"cow.ogg": b"OggS cow", "kühe.ogg": b"moo" * 50}


def test_damaged_resources_are_named(tmp_path):
    whole = qt_file({"cow.ogg": (0, b"OggS cow")}, 2)
    loop = whole[:20] + struct.pack(">IHII", 0, 2, 1, 0) + whole[30:]  # the root is its own child
    zstandard = qt_file({"cow.ogg": (4, b"packed")}, 2)
    for name, data in {"cut": whole[:60], "none": b"RIFF" + whole[4:], "loop": loop, "zstd": zstandard}.items():
        path = tmp_path / f"{name}.rcc"
        path.write_bytes(data)
        with pytest.raises(DataNotFoundError, match=rf"{name}.rcc is damaged"):
            member(path, "cow.ogg")
    (tmp_path / "whole.rcc").write_bytes(whole)
    assert member(tmp_path / "whole.rcc", "cow.ogg") == b"OggS cow"
    with pytest.raises(DataNotFoundError, match=r"no member 'calf.ogg'.*cow.ogg"):
        member(tmp_path / "whole.rcc", "calf.ogg")
    with pytest.raises(DataNotFoundError, match="no container"):
        member(tmp_path / "gone.rcc", "cow.ogg")


def test_sounds_of_openttd_are_found_behind_their_titles(tmp_path):
    first = bytes([3]) + b"Cow" + b"RIFFmoo"
    table = struct.pack("<4I", 16 | 0x80000000, 7, 16 + len(first), 4)
    data = table + first + bytes([5]) + b"Horse" + b"RIFF"
    assert openttd_sounds(data) == {"0": b"RIFFmoo", "1": b"RIFF"}
    (tmp_path / "cut.cat").write_bytes(data[:-2])
    with pytest.raises(DataNotFoundError, match="sound 1 is incomplete"):
        member(tmp_path / "cut.cat", "1")


def test_every_take_is_of_an_event_of_tux_paint_and_of_a_known_package():
    found = takes.load_takes()
    assert set(found) <= {event.name for event in load_events()}
    every = [take for group in found.values() for take in group]
    assert (len(found), len(every), len(set(every))) == (20, 31, 31)
    assert {take.partition("/")[0] for take in every} == set(takes.SOURCES)
    assert sum(source.megabytes for source in takes.SOURCES.values()) < 90


def test_the_real_takes_are_31_recordings_of_20_events():
    bank = fetched(lambda: create_bank("takes"))
    assert {event.name: len(clips) for event, clips in zip(bank.events, bank.clips, strict=True)} == {
        event: len(group) for event, group in takes.load_takes().items()
    }
    lengths = [len(clip) / 16_000 for clips in bank.clips for clip in clips]
    assert min(lengths) > 0.15
    assert max(lengths) <= 3.0
    assert len({clip.numpy().tobytes() for clips in bank.clips for clip in clips}) == 31


def test_no_take_is_a_recording_that_training_hears(stamps):
    """The normalised correlation of a take with each recording of the bank, at the best lag, stays far below 1."""
    further, bank = (fetched(lambda name=name: create_bank(name)) for name in ("takes", "tuxpaint"))
    heard = {event.name: clips for event, clips in zip(bank.events, bank.clips, strict=True)}
    for event, clips in zip(further.events, further.clips, strict=True):
        for take in clips:
            for clip in heard[event.name]:
                a, b = take.numpy().astype(np.float64), clip.numpy().astype(np.float64)
                best = np.abs(fftconvolve(a, b[::-1])).max() / np.sqrt((a**2).sum() * (b**2).sum())
                assert best < 0.5, event.name
