"""What chapter 8 learns from and is tested on: scenes in eight languages, and recordings that others made.

    ground = Recordings(book)
    ground.view("YAMNet")       # scenes through a frozen encoder, one of ENCODERS, with soft labels and topics
    ground.view("test/YAMNet")  # the scenes' test to retrieve, and fold 4 of ESC-50 to name
    ground.view("words/YAMNet")  # spoken words to name, of Speech Commands

The fold is looked for when it is tested on, and not where what was found is stored. In the profile smoke single events
of the synthetic bank stand in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from IPython.display import Markdown

from pullpush.data.clips import Clips, World, load_data
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.recordings.corpora import load_labelled
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import DataNotFoundError, check_known
from pullpush.lab.compute import Ground, View
from pullpush.lab.material import PARTS
from pullpush.lab.session import Session, published
from pullpush.show import galleries
from pullpush.show.markup import Markup
from pullpush.studies import taught
from pullpush.studies.own_data import is_small, tell_scenes
from pullpush.training.frozen import encoded, splits_encoder
from pullpush.training.terms import Term
from pullpush.training.trunk import Published, parts_of

SET, OF = "esc50:fold=4", 2000  # what is tested on, and how many clips the whole set has
WORDS = "speech_commands:v1-sample"
YAMNET, RANDOM = "YAMNet", "YAMNet, random"
ENCODERS: Mapping[str, Published] = {
    YAMNET: Published("yamnet"),
    "sfx": Published("sfx"),
    "speech embedding": Published("speech_embedding"),
    "voice": Published("voice"),
    RANDOM: Published("yamnet", {"pretrained": False}, seed=1),
    "CNN, random": Published("cnn"),
}
# Classes of ESC-50 that training captions name, by the event; and those of which they name a member or a relative.
NAMED: Mapping[str, str] = {
    **{name: name for name in ("cat", "cow", "crow", "dog", "fireworks", "frog", "hen", "pig", "rooster", "sheep")},
    **{name: name for name in ("vacuum_cleaner", "washing_machine")},
    **{"hand_saw": "saw", "thunderstorm": "thunder", "toilet_flush": "toilet"},
}
RELATED: Mapping[str, str] = {
    **{"chirping_birds": "lark", "crickets": "grasshopper", "engine": "race_car", "insects": "bee"},
    **{"pouring_water": "glass_of_water", "siren": "fire_truck"},
}
GROUPS = ("named in training", "a relative named", "new")
NAMES = yaml.safe_load(Path(__file__).with_name("labels.yaml").read_text(encoding="utf-8"))
CLASSES = sorted(NAMES["labels"])
LOSS = Term("kcl", 2.0, {"learnable": True})  # InfoNCE where a clip has one language, which is drawn for each
BASE: Mapping[str, Any] = {"terms": (LOSS,), "languages": LANGUAGES, "sampling": "random"}


class Recordings(Ground):
    """The chapter's views by their names; see the top of this module."""

    name = f"scenes in eight languages, tested on {SET}"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        settings = book.settings.listening
        scenes = {**settings.world, "n_train": max(16, settings.world["n_train"] // 4)}
        super().__init__(replace(book, settings=replace(settings, world=scenes, dim=settings.dim // 2)), compute_long)
        tell_scenes(book.settings)

    @property
    def parts(self) -> Sequence[str]:
        trunks = parts_of([Published("yamnet"), *map(self.trunk, self.encoders)])
        return *PARTS, *taught.OF_ENSEMBLE, "studies/regions", "studies/topics", "data/labels", *trunks

    @property
    def tests(self) -> bool:
        """Whether clips are tested here, and not what was stored of fold 4."""
        return self.compute_long or not self.has_recordings

    @property
    def has_recordings(self) -> bool:
        """Whether encoders have learnt from recordings, and others' recordings are tested on."""
        return not is_small(self.book.settings)

    @property
    def encoders(self) -> tuple[str, ...]:
        """Names of the frozen encoders; two where nothing is fetched."""
        return tuple(ENCODERS) if self.has_recordings else (YAMNET, RANDOM)

    def trunk(self, name: str) -> Published:
        """A frozen encoder by its name; where nothing is fetched a network of random weights."""
        check_known("encoder", name, self.encoders)
        return ENCODERS[name] if self.has_recordings else Published("cnn", seed=self.encoders.index(name))

    @cached_property
    def scenes(self) -> World:
        """The scenes as audio."""
        return load_data(WorldConfig(**self.book.settings.world, captions_per_scene=2))

    @property
    def classes(self) -> Sequence[str]:
        """What the clips to be named are called, in the order of their numbers; where they are tested, as they say."""
        if not self.has_recordings:
            return [event.name for event in self.scenes.bank.events]
        return [name.replace(" ", "_") for name in self.others.prompts("eng", "{label}")] if self.tests else CLASSES

    def group(self, name: str) -> str:
        """Which of GROUPS a class is of; of the synthetic events, all of which training names, every other is new."""
        if not self.has_recordings:
            return GROUPS[2 * (self.classes.index(name) % 2)]
        return GROUPS[0] if name in NAMED else GROUPS[1] if name in RELATED else GROUPS[2]

    @cached_property
    def others(self) -> Clips:
        """The clips to be named; DataNotFoundError where they are not there."""
        if not self.has_recordings:
            return self.scenes.singles
        clips: Any = load_labelled(SET)
        return replace(clips, ask=partial(_asked, clips.ask))

    @cached_property
    def words(self) -> Clips:
        """The spoken words to be named; where nothing is fetched, the clips that are named elsewhere."""
        return load_labelled(WORDS) if self.has_recordings else self.others

    def named(self) -> pd.DataFrame:
        """The classes by what training names of them: what training names, classes, which."""
        held = {each: [name for name in self.classes if self.group(name) == each] for each in GROUPS}
        rows = [(each, len(names), ", ".join(names).replace("_", " ")) for each, names in held.items()]
        return pd.DataFrame(rows, columns=["what training names", "classes", "which"])

    def players(self, rows: Sequence[int]) -> Markup | Markdown:
        """Some of the clips to be heard; of recordings a note on a published page, which must not pass them on, and
        where they are not there.
        """
        if self.has_recordings and published():
            return Markdown(f"> Not played here: {SET} may not be passed on. Run this page where you have it.")
        try:
            clips, labels = self.others, self.others.labels.tolist()
        except DataNotFoundError as error:
            return Markdown(f"> Not played: {error}")
        if max(rows) >= len(labels):
            return Markdown("> Not played: the clips here are others than those of the stored results.")
        words = {row: self.classes[labels[row]].replace("_", " ") for row in rows}
        return galleries.in_grid([galleries.card(galleries.waveform(clips, row), words[row], "eng") for row in rows])

    def _view(self, name: str) -> View:
        kind, _, encoder = name.rpartition("/")
        trunk = self.trunk(encoder)
        if kind in ("test", "words"):  # never learnt from: the test clips of the scenes, and the clips to be named
            heard = encoded(self.scenes, trunk)
            clips = self.others if kind == "test" else self.words
            splits = {**heard.splits, "singles": splits_encoder(trunk)(clips)}
            return View(self.book, replace(heard, splits=splits))
        world = load_data(self._taught) if name == YAMNET else self.scenes
        return View(self.book, encoded(world, trunk), self._overrides)

    @property
    def _overrides(self) -> dict[str, Any]:
        settings = self.book.settings
        return {
            "text": "dropout",
            "encoder_options": {"text_of": settings.text},
            "batch_size": max(4, min(48, settings.world["n_train"] // 4)),
            "epochs": 3 * settings.epochs if self.has_recordings else 1,
        }

    @cached_property
    def _taught(self) -> taught.TaughtConfig:
        """The scenes with what an ensemble of the baseline makes of them, and with the topics of their captions."""
        plain = self.view(f"plain/{YAMNET}")
        topics = taught.FirstCaptions(self.book.settings.text) if self.has_recordings else taught.Classes("event")
        return taught.by_ensemble(self.scenes.config, plain.data, plain.recipe("kcl", BASE), self.trunk(YAMNET), topics)


def _asked(ask: Callable[..., list[str]], language: str, template: str | None = None) -> list[str]:
    """One prompt a class, in the languages of NAMES, too."""
    names = [label.replace(" ", "_") for label in ask("eng", "{label}")]
    if language not in NAMES["languages"] or not {*names} <= NAMES["labels"].keys():
        return ask(language, template)
    place = NAMES["languages"].index(language)
    return [(template or "{label}").format(label=NAMES["labels"][name][place]) for name in names]
