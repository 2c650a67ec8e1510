"""One small split of every kind of clips, for the tests that all must pass."""

from collections.abc import Callable
from pathlib import Path

import miniature
import numpy as np
import soundfile

from pullpush.data.clips import Clips
from pullpush.data.recordings import registry
from pullpush.data.recordings.corpora import CorpusConfig, load_corpus, load_labelled, load_split
from pullpush.data.scenes.world import World, WorldConfig, load_world
from pullpush.data.speech.stamps import load_speech
from pullpush.training.frozen import Encoded


def scenes() -> World:
    return load_world(WorldConfig("synthetic", n_train=12, n_valid=4, n_test=4, n_single_per_event=1))


def recordings(root: Path) -> Clips:
    miniature.clotho(root)
    return load_corpus(CorpusConfig("clotho")).test


def labelled(root: Path) -> Clips:
    miniature.esc50(root)
    return load_labelled("esc50")


def folder(root: Path) -> Clips:
    rows = [("test", f"{number}.wav", miniature.sentence(number)) for number in range(5)]
    for number, (_, name, _) in enumerate(rows):
        miniature.tone(root / "mine" / name, number, rate=22_050)
    miniature.table(root / "mine" / "captions.csv", rows, ["split", "file_name", "caption"])
    return load_split(CorpusConfig(f"folder:{root / 'mine'}"), "test")


def speech(root: Path) -> Clips:
    stamps, rng = root / "stamps" / "animals", np.random.default_rng(0)
    stamps.mkdir(parents=True)
    for number in range(40):
        (stamps / f"{number}.txt").write_text(
            f"thing {number}\nfr.utf8=chose {number}\nru.utf8=вещь {number}\n", "utf-8"
        )
        for code in ("fr", "ru", "bg"):
            wave = 0.2 * rng.standard_normal(3000 + 50 * number)
            soundfile.write(stamps / f"{number}_desc_{code}.ogg", wave.astype(np.float32), 8000)
    return load_speech(root=root / "stamps").train


def toy(root: Path) -> Clips:
    """A source that a reader adds in one file."""
    miniature.toy_source(root / "extra", "toy")
    registry.fetch("toy")
    return load_corpus(CorpusConfig("toy")).train


def features(root: Path) -> Clips:
    clips = scenes().test
    return Encoded(clips, np.random.default_rng(0).random((len(clips), 6), np.float32), "encoded")


SOURCES: dict[str, Callable[[Path], Clips]] = {
    "scenes": lambda root: scenes().test,
    "single events": lambda root: scenes().singles,
    "recordings": recordings,
    "labelled": labelled,
    "folder": folder,
    "speech": speech,
    "toy": toy,
    "features": features,
}
LANGUAGES = {
    "scenes": ("eng", "jpn"),
    "single events": ("eng", "zho"),
    "recordings": ("eng",),
    "labelled": (),
    "folder": ("eng",),
    "speech": ("eng", "fra", "ru"),
    "toy": ("eng",),
    "features": ("eng", "deu"),
}
LABELLED = ("single events", "labelled")
