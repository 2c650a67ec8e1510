"""Probes of what is read from files: recordings, containers, spoken captions and pictures."""

from __future__ import annotations

import struct
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import soundfile
import torch
from PIL import Image

from pullpush.data import store
from pullpush.data.audio import load_audio, normalise_rms, trim_silence
from pullpush.data.clips import StoredClips
from pullpush.data.recordings import picture_files
from pullpush.data.recordings.pictures import (
    ask,
    category_of,
    dealt,
    first_word,
    folder_of,
    grade as grade_pictures,
    groups,
)
from pullpush.data.recordings.takes import member
from pullpush.data.scenes.bank import prepare
from pullpush.data.speech import spoken as speakers, stamps as speaking
from pullpush.data.speech.spoken import by_length, spotting
from pullpush.data.speech.utterances import normalised, translations, wave_of
from pullpush.data.store import _decode_block
from pullpush.golden.compare import Values
from pullpush.golden.data_scenes import looks
from pullpush.golden.inputs import numbers, seen
from pullpush.golden.versions import expected

FILES = {  # rate, channels, how samples are written
    "plain.wav": (16_000, 1, "PCM_16"),
    "stereo.wav": (44_100, 2, "PCM_24"),
    "low.flac": (8000, 1, "PCM_16"),
    "float.wav": (22_050, 2, "FLOAT"),
}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"><rect width="4" height="4" fill="#c03"/></svg>'


def decoding() -> Values:
    """Files of several rates, channels and formats as they are heard, trimmed, of equal loudness, and stored."""
    found: dict[str, Any] = {}
    with _recordings() as paths:
        for path in paths:
            found[path.name] = looks(load_audio(path))
            found[f"{path.name} at 8 kHz"] = looks(load_audio(path, sample_rate=8000))
        cut = _decode_block(paths, 0.05, 16_000)
        found["cut"] = [seen(wave.astype(np.float64)) for wave in cut]
        found["cut lengths"] = [len(wave) for wave in _decode_block(paths, None, 16_000)] + [len(wave) for wave in cut]
        store.write(paths[0].parent, cut)
        kept = store.read(paths[0].parent, sample_rate=16_000)
        found["stored"] = looks(kept.audio([1, 0])[0].flatten())
        found["resampled"] = looks(kept.audio([2, 3], sample_rate=11_025)[0].flatten())
        found["samples"] = kept[0][:12]
    soft = torch.cat([torch.zeros(500), 0.01 * _noise(2000), torch.full((700,), 1e-4), torch.zeros(333)])
    found["trimmed"] = looks(trim_silence(soft))
    found["silence"] = len(trim_silence(torch.zeros(400)))
    found["normalised"] = looks(normalise_rms(soft))
    peaks = torch.cat([_noise(3000) * 0.001, torch.tensor([0.5])])
    found["limited"] = looks(normalise_rms(peaks))
    found["prepared"] = looks(prepare(torch.cat([0.1 * _noise(30_000), 0.3 * _noise(40_000)]), "long"))
    found["short"] = looks(prepare(soft, "short"))
    return found


def containers() -> Values:
    """Members of a resource of Qt, plain and compressed, and of a catalogue of OpenTTD."""
    packed = struct.pack(">I", 100) + zlib.compress(b"moo" * 50)
    title = bytes([3]) + b"Cow" + b"RIFFmoo"
    catalogue = struct.pack("<4I", 16 | 0x80000000, 7, 16 + len(title), 4) + title + bytes([5]) + b"Horse" + b"RIFF"
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for version in (1, 2):
            path = Path(folder) / f"{version}.rcc"
            path.write_bytes(_resource({"cow.ogg": (0, b"OggS cow"), "kühe.ogg": (1, packed)}, version))
            found[f"qt {version}"] = [member(path, name).decode() for name in ("cow.ogg", "kühe.ogg")]
        path = Path(folder) / "sounds.cat"
        path.write_bytes(catalogue)
        found["openttd"] = [member(path, number).decode() for number in ("0", "1")]
    return found


def speech() -> Values:
    """Spoken captions: how they are heard, which stamps are one, and the splits."""
    config = speaking.SpeechConfig(longest=0.1, crossed=0.6)
    texts = {
        "eng": {"a": "A cat.", "b": "a cat", "c": "A dog.", "d": "A cow!"},
        "fra": {"a": "Un chat.", "c": "Un chien", "d": "un chien…"},
    }
    stamps = [f"{place % 60:02d}" for place in range(180)]
    table = pd.DataFrame({"stamp": stamps, "spoken": [config.spoken[row // 60] for row in range(180)]})
    table["group"] = table["stamp"].str[0] + (table["stamp"].str[1].astype(int) // 2 * 2).astype(str)
    rows = [("b", "eng", "A b."), ("a", "eng", "An a."), ("a", "fra", "Un a."), ("a", "eng", "Another a.")]
    captions = pd.DataFrame(rows, columns=["stamp", "language", "text"])
    found: dict[str, Any] = {
        "groups": list(speaking.caption_groups(texts).items()),
        "translations": translations(texts, {"stamp": ["b", "c"]}, "fra", column="stamp"),
        "texts": [[code, list(held.items())] for code, held in speaking._texts(captions, ("fra", "eng")).items()],
    }
    for name, is_in in speaking._membership(table, config).items():
        found[f"split {name}"] = np.flatnonzero(is_in)
    with _recordings() as paths:
        found["waves"] = [looks(wave_of(path, config.longest).astype(np.float64)) for path in paths[:2]]
    return found


def spoken() -> Values:
    """People who speak: how they are heard, the splits, what clips are called, and the labels of single words."""
    config = speakers.SpokenConfig(new_voices=("v",), new_languages=("glg",), seed=1)
    words = [f"{'ab'[row % 2]}{row // 4}" for row in range(48)]
    table = pd.DataFrame({"key": words, "text": [f"{word.upper()}!" for word in words]})
    table["language"] = [("eng", "deu", "fra", "glg")[row % 4] for row in range(48)]
    table["voice"] = ["vw"[row % 5 > 0] for row in range(48)]
    table["kind"] = [("word", "letter")[row % 7 == 0] for row in range(48)]
    table["group"] = table["key"].str[1:]
    columns = {name: table[name].tolist() for name in ("key", "text", "language", "voice", "kind", "group")}
    texts = speakers._texts(table, {"a1": {"ita": "uno"}})
    found: dict[str, Any] = {
        "texts": [[code, list(held.items())[:3]] for code, held in texts.items()],
        "transcripts": speakers.transcripts(["deu", "eng"], columns, "eng")[:6],
        "translations": translations(texts, columns, "fra")[:6],
        "normalised": [normalised(text) for text in ("Aujourd’hui !", "C# & D", "…", " Ä  b ")],
    }
    for name, is_in in speakers.membership(table, config).items():
        found[f"split {name}"] = np.flatnonzero(is_in)
    for longest in (None, 0.1):
        with _recordings() as paths:
            waves = [wave_of(path, longest, 11_025).astype(np.float64) for path in paths[:2]]
            found[f"waves {longest}"] = [looks(wave) for wave in waves]
    lengths = np.cumsum([100 + 37 * row % 90 for row in range(48)])
    waves = store.Waveforms(np.zeros(lengths[-1], np.int16), lengths)
    clips = StoredClips("test", "probe", waves, np.arange(48), columns, lambda columns, language: [])
    told = spotting(clips, "deu", kind="word")
    found["labels"], found["words"] = told.labels, told.prompts("deu", "{label}.")
    found["by length"] = by_length(told)
    return found


def pictures() -> Values:
    """Pictures as squares of pixels, as they are likened, grouped and dealt out, and asked for."""
    rows = torch.linspace(0, 255, 3 * 9 * 14).reshape(9, 14, 3)
    plain = Image.fromarray((rows + 40 * torch.sin(rows)).clamp(0, 255).numpy().astype(np.uint8))
    alpha = Image.fromarray(np.pad(np.full((7, 10), 200, np.uint8), ((1, 1), (2, 2))))
    clear = plain.copy()
    clear.putalpha(alpha)
    stamps = ["animals/cats/lion", "animals/cats/lion-2", "animals/birds/cartoon/owl", "people/toys/lion", "space/3_a"]
    captions = ["A lion.", "Lion!", "An owl.", "A lion.", "A cow."]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "red.svg").write_text(SVG, encoding="utf-8")
        for name, image in {"plain.png": plain, "clear.png": clear, "turned.png": plain.rotate(180)}.items():
            image.save(place / name)
        paths = [f"{place}/{name}" for name in ("plain.png", "clear.png", "turned.png", "red.svg")]
        picture_files.write(place, paths, 8)
        drawn = picture_files.read(place)
        found: dict[str, Any] = {
            "drawn": [looks(row) for row in drawn.audio(range(4))[0]],
            "likeness": picture_files.likeness(drawn),
        }
    likeness = np.eye(5)
    likeness[0, 2] = likeness[2, 0] = 0.91
    together = groups(stamps, captions, likeness)
    sizes = {"test": 2, "valid": 1}
    many = [f"n{row}" for row in range(20)]
    columns = {"caption": captions, "category": [folder_of(stamp) for stamp in stamps]}
    # The file's hash names stored results: what it holds of image corpora, which are gone, stays in it as it was.
    before = expected("data/pictures") or {}
    found |= {name: before[name] for name in ("square", "none", "enlarged") if name in before}
    return found | {
        "groups": together,
        "words": [first_word(stamp) for stamp in stamps],
        "categories": [category_of(stamp) for stamp in ("animals/birds/cartoon/tux", "vehicles/x", "food/fruit/apple")],
        "dealt": [
            list(dealt(together.tolist(), stamps, sizes, seed=0).items()),
            list(dealt(range(20), many, sizes, 3).items()),
        ],
        "grade": grade_pictures(columns, columns),
        "asked": [*ask("eng")[:3], *ask("jpn")[:2], *ask("fra", "Une image : {label}.")[:2]],
    }


@contextmanager
def _recordings() -> Iterator[list[Path]]:
    """The files of `FILES` in a folder that is removed, each a noise between two silences."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = []
        for number, (name, (rate, channels, kind)) in enumerate(FILES.items()):
            wave = 0.05 * (number + 1) * numbers(rate // 4, channels, seed=number).float()
            wave[: rate // 16] = wave[-rate // 20 :] = 0
            paths.append(Path(folder) / name)
            soundfile.write(paths[-1], wave.clamp(-0.99, 0.99).numpy(), rate, subtype=kind)
        yield paths


def _noise(count: int) -> torch.Tensor:
    return numbers(count, seed=count).float()


def _resource(files: dict[str, tuple[int, bytes]], version: int) -> bytes:
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
