"""Miniature datasets in exactly the layouts in which they are published: a few short synthetic clips each."""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

ROOT = Path(__file__).resolve().parents[1]  # of the repository
COUNTS = {"train": 20, "valid": 9, "test": 9}
SOUNDS = ("dog barks", "car passes", "bell rings", "rain falls", "man speaks")
ESC50 = ("chirping_birds", "dog", "rain")
US8K = ("air_conditioner", "dog_bark", "siren")
COMMANDS = ("yes", "no", "left")
VGGSOUND = ("dog barking", "female speech, woman speaking", "people marching")
# Two systems that train within a second: label → recipe and overrides.
SMALL = {"epochs": 2, "batch_size": 4, "dim": 8}
BOTH = {"infonce": ("infonce", SMALL), "infonce+bi-dynamic-svr": ("infonce+bi-dynamic-svr", SMALL)}
PROFILE = """like: smoke
world: {bank: synthetic, n_train: 16, n_valid: 8, n_test: 8}
dim: 8
batch_size: 8
encoder_options: {audio_channels: [4, 4, 8]}
"""


# How a chapter of a few cells begins.
CHAPTER_HEAD = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Tiny

```{code-cell} ipython3
:tags: [parameters]

profile = "quick"
seed = 0
"""


def tone(path: Path, number: int, *, rate: int = 16_000, seconds: float = 0.6, channels: int = 1) -> None:
    """A tone whose pitch depends on the number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(round(rate * seconds)) / rate
    wave = 0.3 * np.sin(2 * np.pi * (200 + 90 * number) * time)
    soundfile.write(path, np.repeat(wave[:, None], channels, axis=1), rate)


def table(path: Path, rows: Sequence[Sequence], head: Sequence[str] | None = None) -> None:
    """A CSV as Python's own csv module writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows] if head else rows)


def sentence(number: int, caption: int = 0) -> str:
    """A caption, no two of which are the same."""
    place = ("near by", "far away, outside", "in a hall", "at night", "again and again")[caption]
    return f"A {SOUNDS[number % len(SOUNDS)]} {number} times {place}"


def audiocaps(root: Path, counts: dict[str, int] = COUNTS) -> None:
    """AUDIOCAPS/csv_files_v1/train.csv …; one caption a clip in train, five in val and test; FLAC at 32 kHz."""
    number = 0
    for split, folder, captions in (("train", "train", 1), ("valid", "val", 5), ("test", "test", 5)):
        rows = []
        for _ in range(counts[split]):
            number += 1
            clip = f"-id_{number:06d}x"
            tone(root / f"AUDIOCAPS/audio_32000Hz/{folder}/{clip}_30.flac", number, rate=32_000)
            rows += [(10 * number + k, clip, 30, sentence(number, k)) for k in range(captions)]
        head = ["audiocap_id", "youtube_id", "start_time", "caption"]
        table(root / f"AUDIOCAPS/csv_files_v1/{folder}.csv", rows, head)


def clotho(root: Path, counts: dict[str, int] = COUNTS) -> None:
    """CLOTHO_v2.1/clotho_csv_files/clotho_captions_development.csv …; WAV at 44.1 kHz, spaces in names."""
    home, number = root / "CLOTHO_v2.1", 100
    for split, folder in (("train", "development"), ("valid", "validation"), ("test", "evaluation")):
        names = [f"Sound {number + row}, take 1.wav" for row in range(counts[split])]
        for row, name in enumerate(names):
            tone(home / "clotho_audio_files" / folder / name, row, rate=44_100, seconds=0.5 + 0.02 * row)
        rows = [[name, *(sentence(number + row, k) for k in range(5))] for row, name in enumerate(names)]
        head = ["file_name", *(f"caption_{k}" for k in range(1, 6))]
        table(home / f"clotho_csv_files/clotho_captions_{folder}.csv", rows, head)
        about = [[name, "tone;test", "1", "link", "[0, 1]", "somebody", "CC0"] for name in names]
        head = ["file_name", "keywords", "sound_id", "sound_link", "start_end_samples", "manufacturer", "license"]
        table(home / f"clotho_csv_files/clotho_metadata_{folder}.csv", about, head)
        number += 100


def macs(root: Path, count: int = 20) -> None:
    """MACS/MACS.yaml, MACS_competence.csv, tau_meta/meta.csv, audio/*.wav; two to five captions a clip."""
    home = root / "MACS"
    names = [f"airport-barcelona-{number}-{number}-a.wav" for number in range(count)]
    lines = ["files:"]
    for number, name in enumerate(names):
        tone(home / "audio" / name, number, rate=48_000)
        lines += [f"- filename: {name}", "  annotations:"]
        for k in range(2):
            lines += [f"  - annotator_id: {k}", f"    sentence: {sentence(number, k)}", "    tags:", "    - tone"]
    (home / "MACS.yaml").write_text("\n".join(lines) + "\n")
    (home / "MACS_competence.csv").write_text("annotator_id\tcompetence\n0\t0.9\n1\t0.8\n")
    meta = [f"audio/{name}\tairport\tbarcelona-{number}\ta" for number, name in enumerate(names)]
    (home / "tau_meta").mkdir()
    head = "filename\tscene_label\tidentifier\tsource_label"
    (home / "tau_meta/meta.csv").write_text("\n".join([head, *meta]) + "\n")


def wavcaps(root: Path) -> None:
    """WavCaps/json_files/SoundBible/sb_final.json, Audio/SoundBible/<id>.flac, the same of FreeSound, and the list of
    what Clotho holds, too: two of FreeSound's ten."""
    home = root / "WavCaps"
    for source, short, first in (("SoundBible", "sb", 0), ("FreeSound", "fsd", 50)):
        rows = [{"id": str(n), "caption": sentence(n), "duration": 0.6} for n in range(first, first + 10)]
        for row in rows:
            tone(home / "Audio" / source / f"{row['id']}.flac", int(row["id"]), rate=32_000)
        file = home / "json_files" / source / f"{short}_final.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"num_captions_per_audio": 1, "data": rows}))
    table(home / "blacklist_clotho.full.v2.csv", [("51",), ("57",)], ["id"])


def esc50(root: Path, each: int = 2) -> None:
    """ESC-50-master/meta/esc50.csv and audio/1-100032-A-0.wav …"""
    home, rows = root / "ESC-50-master", []
    for target, label in enumerate(ESC50):
        for number in range(each):
            name = f"{number % 5 + 1}-{1000 + target}-A-{target}.wav"
            tone(home / "audio" / name, target, rate=44_100)
            rows.append((name, number % 5 + 1, target, label, "False", 1000 + target, "A"))
    table(home / "meta/esc50.csv", rows, ["filename", "fold", "target", "category", "esc10", "src_file", "take"])


def speech_commands(root: Path) -> None:
    """SpeechCommands/speech_commands_v0.02/<word>/<hash>_nohash_0.wav, lists of validation and test; the first version
    has a word less."""
    for version, words in (("v0.01", COMMANDS[:2]), ("v0.02", COMMANDS)):
        home = root / "SpeechCommands" / f"speech_commands_{version}"
        tone(home / "_background_noise_" / "pink_noise.wav", 9)
        lists: dict[str, list[str]] = {"testing_list.txt": [], "validation_list.txt": [], "": []}
        for number, word in enumerate(words):
            for speaker, name in enumerate(lists):
                path = f"{word}/{speaker}abc{number}_nohash_0.wav"
                tone(home / path, number)
                lists[name].append(path)
        for name in ("testing_list.txt", "validation_list.txt"):
            (home / name).write_text("\n".join(lists[name]) + "\n")


def urbansound8k(root: Path, each: int = 2) -> None:
    """UrbanSound8K/metadata/UrbanSound8K.csv and audio/fold1/100032-3-0-0.wav …; stereo, rates that differ."""
    home, rows = root / "UrbanSound8K", []
    for label, name in enumerate(US8K):
        for number in range(each):
            fold = number % 10 + 1
            file = f"{1000 + label}-{label}-0-{number}.wav"
            rate = (44_100, 48_000)[number % 2]
            tone(home / f"audio/fold{fold}" / file, label, rate=rate, channels=2, seconds=0.4 + 0.1 * number)
            rows.append((file, 1000 + label, 0.0, 0.4, 1, fold, label, name))
    head = ["slice_file_name", "fsID", "start", "end", "salience", "fold", "classID", "class"]
    table(home / "metadata/UrbanSound8K.csv", rows, head)


def vggsound(root: Path, each: int = 2) -> None:
    """vggsound/vggsound.csv, which has no head, and audio/<youtube id>_<start, six digits>.wav."""
    rows = []
    for target, label in enumerate(VGGSOUND):
        for number in range(each):
            clip, start = f"--{target}_{number}abc", 30 * number
            tone(root / f"vggsound/audio/{clip}_{start:06d}.wav", target)
            rows.append((clip, start, label, "test"))
        rows.append((f"train{target}", 5, label, "train"))
    table(root / "vggsound/vggsound.csv", rows)


def toy_source(extra: Path, name: str) -> Path:
    """A source of a reader's own, one file in `$PULLPUSH_EXTRA`: tones, their captions made by a formula.

    name: another in each file of tests, as a process imports a module once.
    """
    file = extra / "sets" / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(TOY_SOURCE.replace("NAME", name), encoding="utf-8")
    return file


TOY_SOURCE = '''
"""Tones of twelve pitches."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from pullpush.data.recordings.registry import DatasetCard, Listing

COUNTS = {"train": 12, "valid": 6, "test": 6}


def read(place: Path, split: str) -> Listing:
    """Recordings whose captions say their pitch."""
    paths = sorted((place / split).glob("*.wav"))
    return Listing(paths, [[f"A tone of {path.stem} hertz."] for path in paths])


def fetch(root: Path) -> None:
    """Nothing to download: they are made."""
    time = np.arange(4000) / 8000
    for split, count in COUNTS.items():
        (root / "NAME" / split).mkdir(parents=True)
        for number in range(count):
            pitch = 200 + 50 * number
            soundfile.write(root / "NAME" / split / f"{pitch}.wav", 0.3 * np.sin(2 * np.pi * pitch * time), 8000)


CARD = DatasetCard(
    name="NAME", make=read, title="Toy", about="Tones.", source="nobody", folder="NAME", fetch=fetch
)
'''


def toy_language(extra: Path) -> Path:
    """A language of a reader's own, one file in `$PULLPUSH_EXTRA`: English spelt backwards."""
    from pullpush.data import languages

    text = (languages.FOLDER / "eng.yaml").read_text(encoding="utf-8")
    table = yaml.safe_load(text)
    for words in (table["events"], table["synthetic"]):
        for phrases in words.values():
            phrases["label"] = phrases["label"][::-1]
            phrases["nouns"] = [noun[::-1] for noun in phrases["nouns"]]
            pairs = [[part.strip()[::-1] for part in clause.split("|")] for clause in phrases["clauses"]]
            phrases["clauses"] = [" | ".join(pair) for pair in pairs]
    table |= {"name": "Toyish", "native": "hsiyot", "html": "x-toy"}
    del table["book"], table["flores"], table["tuxpaint"]
    file = extra / "languages" / "qty.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(table, allow_unicode=True), encoding="utf-8")
    return file


def everything(root: Path) -> None:
    """All that the full profile asks for."""
    for write in (audiocaps, clotho, esc50, urbansound8k, vggsound):
        write(root)


def published_models(folder: Path) -> dict[str, str]:
    """A Whisper and a RoBERTa of one layer each, with random weights, as `save_pretrained` writes published ones.

    Returns:
        The options of `encoders.create` that name them.
    """
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    small = {f"{side}_{part}": value for side in ("encoder", "decoder") for part, value in LAYER.items()}
    config = transformers.WhisperConfig(d_model=16, vocab_size=20, max_source_positions=50, **small, **ENDS)
    transformers.WhisperModel(config).save_pretrained(folder / "whisper")
    transformers.WhisperFeatureExtractor(chunk_length=1).save_pretrained(folder / "whisper")
    words = ["<s>", "<pad>", "</s>", "<unk>", *sorted({word for name in SOUNDS for word in name.split()})]
    known = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    known.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    marks = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=known, **marks).save_pretrained(folder / "roberta")
    own = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    text = transformers.RobertaConfig(vocab_size=len(words), hidden_size=16, **own)
    transformers.RobertaModel(text, add_pooling_layer=False).save_pretrained(folder / "roberta")
    return {"audio_model": str(folder / "whisper"), "text_model": str(folder / "roberta")}


LAYER = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


@contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """Datasets of `folder/data` and a cache of their own, for chapters that are run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_DATA", str(folder / "data"))
        patch.setenv("PULLPUSH_HOME", str(folder / "home"))
        patch.setenv("PULLPUSH_PROGRESS", "0")
        yield
