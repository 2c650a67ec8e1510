"""Probes of what is read from files: recordings, containers, spoken captions and pictures; and small files to read."""

import struct
import tempfile
import warnings
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
from pullpush.data.banks import prepare
from pullpush.data.clips import StoredClips
from pullpush.data.recordings.pictures import (
    ask,
    category_of,
    dealt,
    first_word,
    folder_of,
    grade as grade_pictures,
    groups,
    likeness as likeness_of,
    read_pixels,
    write_pixels,
)
from pullpush.data.speech import normalised, spoken as speakers, stamps as speaking, translations, wave_of
from pullpush.data.speech.spoken import by_length, spotting
from pullpush.data.store import _decoded
from pullpush.golden.compare import Values
from pullpush.golden.probes import Probes, looks, numbers, seen

FILES = {  # rate, channels, how samples are written
    "plain.wav": (16_000, 1, "PCM_16"),
    "stereo.wav": (44_100, 2, "PCM_24"),
    "low.flac": (8000, 1, "PCM_16"),
    "float.wav": (22_050, 2, "FLOAT"),
}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="4"><rect width="4" height="4" fill="#c03"/></svg>'
PNG = ("plain.png", "clear.png")
RATE, KEY = 22_050, 69  # of the soundfont; a' at 440 Hz
# Resampling in single precision, after which another processor rounds a sample to its neighbour: of a sum of many
# samples that cancel it moves more than 1e-4, so that the largest sum beside it is the measure.
DATA = Probes("data", 1e-4, small=1.0)


# ---------------------------------------------------------------- small files


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


def write_soundfont(path: Path, *, partials: tuple[float, ...] = (1.0,), programs: int = 128) -> Path:
    """A soundfont, byte by byte after the specification. Every program of General MIDI and the drum kit play a
    recording of 441 Hz with these partials, looped; it is 3.93 cents sharp of the key 69, which its header corrects.
    """

    def chunk(name: bytes, data: bytes) -> bytes:
        return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)

    def named(layout: str, *rows: tuple[Any, ...]) -> bytes:
        return b"".join(struct.pack(f"<20s{layout}", *row) for row in rows)

    time = np.arange(2000) / RATE
    wave = sum(level * np.sin(2 * np.pi * 441 * (k + 1) * time) for k, level in enumerate(partials))
    samples = np.round(20_000 * wave / np.abs(wave).max()).astype("<i2").tobytes() + bytes(92)
    presets = [(0, program) for program in range(programs)] + [(128, 0)]
    count = len(presets)
    rows = [(b"p", program, bank, row, 0, 0, 0) for row, (bank, program) in enumerate(presets)]
    chunks = {
        b"phdr": named("3H3I", *rows, (b"EOP", 0, 0, count, 0, 0, 0)),
        b"pbag": b"".join(struct.pack("<HH", row, 0) for row in range(count + 1)),
        b"pmod": bytes(10),
        b"pgen": struct.pack("<HH", 41, 0) * count + bytes(4),
        b"inst": named("H", (b"sine", 0), (b"EOI", 1)),
        b"ibag": struct.pack("<4H", 0, 0, 3, 0),
        b"imod": bytes(10),
        # release of 2 ** (-4800 / 1200) s = 62 ms, looped, the sample
        b"igen": struct.pack("<HhHHHH", 38, -4800, 54, 1, 53, 0) + bytes(4),
        # 50 samples are a period of 441 Hz
        b"shdr": named("5IBbHH", (b"sine", 0, 2000, 1000, 1500, RATE, KEY, -4, 0, 1), (b"EOS", *[0] * 9)),
    }
    presets_and_instruments = b"".join(chunk(name, data) for name, data in chunks.items())
    lists = chunk(b"LIST", b"sdta" + chunk(b"smpl", samples)) + chunk(b"LIST", b"pdta" + presets_and_instruments)
    path.write_bytes(chunk(b"RIFF", b"sfbk" + lists))
    return path


# ---------------------------------------------------------------- what is read


@DATA("decoding")
def decoding() -> Values:
    """Files of several rates, channels and formats as they are decoded, trimmed, of equal loudness, and stored."""
    values: dict[str, Any] = {}
    with _recordings() as paths:
        for path in paths:
            values[path.name] = looks(load_audio(path))
            values[f"{path.name} at 8 kHz"] = looks(load_audio(path, sample_rate=8000))
        whole, cut = ([_decoded(path, seconds, 16_000) for path in paths] for seconds in (None, 0.05))
        store.write(paths[0].parent, cut)
        stored = store.read(paths[0].parent, sample_rate=16_000)
        values |= {
            "cut": [seen(wave.astype(np.float64)) for wave in cut],
            "cut lengths": [len(wave) for wave in (*whole, *cut)],
            "stored": looks(stored.audio([1, 0])[0].flatten()),
            "resampled": looks(stored.audio([2, 3], sample_rate=11_025)[0].flatten()),
            "samples": stored[0][:12],
        }
    soft = torch.cat([torch.zeros(500), 0.01 * _noise(2000), torch.full((700,), 1e-4), torch.zeros(333)])
    peaks = torch.cat([_noise(3000) * 0.001, torch.tensor([0.5])])
    long = torch.cat([0.1 * _noise(30_000), 0.3 * _noise(40_000)])
    return values | {
        "trimmed": looks(trim_silence(soft)),
        "silence": len(trim_silence(torch.zeros(400))),
        "normalised": looks(normalise_rms(soft)),
        "limited": looks(normalise_rms(peaks)),
        "prepared": looks(prepare(long, "long")),
        "short": looks(prepare(soft, "short")),
    }


@DATA("speech")
def speech() -> Values:
    """Spoken captions: how they are decoded, which stamps are one, and the splits."""
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
    splits = speaking._membership(table, config)
    with _recordings() as paths:
        waves = [looks(wave_of(path, config.longest).astype(np.float64)) for path in paths[:2]]
    return {
        "groups": list(speaking.caption_groups(texts).items()),
        "translations": translations(texts, {"stamp": ["b", "c"]}, "fra", column="stamp"),
        "texts": [[code, list(each.items())] for code, each in speaking._texts(captions, ("fra", "eng")).items()],
        **{f"split {name}": np.flatnonzero(is_in) for name, is_in in splits.items()},
        "waves": waves,
    }


@DATA("spoken")
def spoken() -> Values:
    """People who speak: how they are decoded, the splits, what clips are called, and the labels of single words."""
    config = speakers.SpokenConfig(new_voices=("v",), new_languages=("glg",), seed=1)
    words = [f"{'ab'[row % 2]}{row // 4}" for row in range(48)]
    columns = {
        "key": words,
        "text": [f"{word.upper()}!" for word in words],
        "language": [("eng", "deu", "fra", "glg")[row % 4] for row in range(48)],
        "voice": ["vw"[row % 5 > 0] for row in range(48)],
        "kind": [("word", "letter")[row % 7 == 0] for row in range(48)],
        "group": [word[1:] for word in words],
    }
    table = pd.DataFrame(columns)
    texts = speakers._texts(table, {"a1": {"ita": "uno"}})
    with _recordings() as paths:
        waves = {
            f"waves {longest}": [looks(wave_of(path, longest, 11_025).astype(float)) for path in paths[:2]]
            for longest in (None, 0.1)
        }
    lengths = np.cumsum([100 + 37 * row % 90 for row in range(48)])
    silence = store.Waveforms(np.zeros(lengths[-1], np.int16), lengths)
    clips = StoredClips("test", "probe", silence, np.arange(48), columns, lambda columns, language: [])
    single = spotting(clips, "deu", kind="word")
    return {
        "texts": [[code, list(each.items())[:3]] for code, each in texts.items()],
        "transcripts": speakers.transcripts(["deu", "eng"], columns, "eng")[:6],
        "translations": translations(texts, columns, "fra")[:6],
        "normalised": [normalised(text) for text in ("Aujourd’hui !", "C# & D", "…", " Ä  b ")],
        **{f"split {name}": np.flatnonzero(is_in) for name, is_in in speakers.membership(table, config).items()},
        **waves,
        "labels": single.labels,
        "words": single.prompts("deu", "{label}."),
        "by length": by_length(single),
    }


@DATA("pictures")
def pictures() -> Values:
    """Pictures as squares of pixels, as they are likened, grouped and dealt out, and asked for."""
    rows = torch.linspace(0, 255, 3 * 9 * 14).reshape(9, 14, 3)
    plain = Image.fromarray((rows + 40 * torch.sin(rows)).clamp(0, 255).numpy().astype(np.uint8))
    clear = plain.copy()
    clear.putalpha(Image.fromarray(np.pad(np.full((7, 10), 200, np.uint8), ((1, 1), (2, 2)))))
    stamps = ["animals/cats/lion", "animals/cats/lion-2", "animals/birds/cartoon/owl", "people/toys/lion", "space/3_a"]
    captions = ["A lion.", "Lion!", "An owl.", "A lion.", "A cow."]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "red.svg").write_text(SVG, encoding="utf-8")
        for name, image in {"plain.png": plain, "clear.png": clear, "turned.png": plain.rotate(180)}.items():
            image.save(place / name)
        write_pixels(place, [f"{place}/{name}" for name in (*PNG, "turned.png", "red.svg")], 8)
        drawn = read_pixels(place)
        of_files = {"drawn": [looks(row) for row in drawn.audio(range(4))[0]], "likeness": likeness_of(drawn)}
    likeness = np.eye(5)
    likeness[0, 2] = likeness[2, 0] = 0.91
    together, sizes = groups(stamps, captions, likeness), {"test": 2, "valid": 1}
    columns = {"caption": captions, "category": [folder_of(stamp) for stamp in stamps]}
    return of_files | {
        "groups": together,
        "words": [first_word(stamp) for stamp in stamps],
        "categories": [category_of(stamp) for stamp in ("animals/birds/cartoon/tux", "vehicles/x", "food/fruit/apple")],
        "dealt": [
            list(dealt(together.tolist(), stamps, sizes, seed=0).items()),
            list(dealt(range(20), [f"n{row}" for row in range(20)], sizes, 3).items()),
        ],
        "grade": grade_pictures(columns, columns),
        "asked": [*ask("eng")[:3], *ask("jpn")[:2], *ask("fra", "Une image : {label}.")[:2]],
    }
