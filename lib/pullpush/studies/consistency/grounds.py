"""What chapter 3 trains and tests on: a material's views, and stages of training on retold or on translated captions.

    ground = Grounds(material.of(book, "scenes"))
    ground.view("frozen")                 # the material's own: projections from random weights
    ground.view("retold/ml-clap")         # the same clips and captions, on from a long run of ML-CLAP
    ground.view("aligned/nothing")        # captions that are translations of each other, from random weights
    ground.view("aligned/ml-clap/words")  # a transformer over words that is trained, too, and was in the long run
    ground.view("aligned/valid")          # to test on: the validation clips, which a rate may be chosen by

ATRI starts all schemes from the weights of ML-CLAP and trains them on translated captions, with the text encoder. As
there, all runs of a stage go on from one long run, so that an interval over seeds is one over second stages. Captions
of real recordings in several languages are taken for translations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from pullpush.data.clips import World, load_data
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.language.wording import WordingConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.scenes import SCENES, Material
from pullpush.studies.consistency.languages import check_told, languages_of
from pullpush.training.frozen import Base, encoded, on_features
from pullpush.training.runs import Plan

RETOLD, ALIGNED = "retold", "aligned"
NOTHING, ML_CLAP = "nothing", "ml-clap"
LOOKED_UP, WORDS = "looked up", "words"
VALID = "valid"
PARTS: Mapping[str, tuple[str, ...]] = {
    "telling": (RETOLD, ALIGNED),
    "start": (NOTHING, ML_CLAP),
    "text side": (LOOKED_UP, WORDS),
}
LONG: Mapping[str, int] = {LOOKED_UP: 16, WORDS: 8}  # passes of the run that others go on from, times the profile's
# Small, for KCL reads eight texts a clip; its texts in one piece, for they fit into memory.
TRAINED: Mapping[str, Any] = {"text": WORDS, "text_chunk": 0, "encoder_options": {"text_width": 64, "text_layers": 1}}
FIRST_SEED = 1000  # of the long run: no comparison uses it
PASSES = 1  # of those that go on, and of those that start from nothing, likewise


class Stage(NamedTuple):
    """A stage of training: how captions are told, where it starts, and how texts are encoded; see PARTS.

    >>> Stage(ALIGNED, ML_CLAP).named, parsed("retold/nothing/words")
    ('aligned/ml-clap', Stage(telling='retold', start='nothing', text='words'))
    """

    telling: str = RETOLD
    start: str = NOTHING
    text: str = LOOKED_UP

    @property
    def named(self) -> str:
        """The view's name."""
        return "/".join([self.telling, self.start, *([self.text] if self.text != LOOKED_UP else [])])


def parsed(name: str) -> Stage:
    """The stage of a view's name.

    Raises:
        UnknownNameError: a part that no stage has.
    """
    stage = Stage(*name.split("/")) if name.count("/") in (1, 2) else Stage(name)
    for (part, known), given in zip(PARTS.items(), stage, strict=True):
        if given not in known:
            raise unknown(part, given, known)
    return stage


class Grounds:
    """The chapter's views by their names; see `compute.Ground` and the top of this module."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.book, self.name, self.compute_long = material.book, material.name, material.compute_long
        self._worlds: dict[str, World] = {}
        self._views: dict[str, View] = {}

    @property
    def is_scenes(self) -> bool:
        """Whether clips are the book's own scenes, which can be told in two ways."""
        return self.name == SCENES

    @property
    def has_stamps(self) -> bool:
        """Whether scenes are mixed of Tux Paint's stamps, which have captions in many more languages, and voices."""
        return self.is_scenes and self.book.settings.world["bank"] == "tuxpaint"

    @property
    def tellings(self) -> tuple[str, ...]:
        """The tellings that the material has."""
        return (RETOLD, ALIGNED) if self.is_scenes else (ALIGNED,)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Those that clips are told in, English first: the book's eight, or those of them that real recordings have.

        Raises:
            LanguagesError: there is English alone, or no English.
        """
        return languages_of(self.material)

    @property
    def _in_languages(self) -> dict[str, Any]:
        """What recipes of all eight languages need where there are fewer."""
        return {} if self.languages == LANGUAGES else {"languages": self.languages}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        return *self.material.parts, *(["data/wording"] if self.is_scenes else [])

    def data(self) -> World:
        """The clips as audio."""
        return self.material.data()

    def told(self, telling: str) -> World:
        """The clips as audio, with captions of a telling.

        Raises:
            UnknownNameError: the material is not told so.
        """
        if telling not in self.tellings:
            raise unknown(f"telling of {self.name}", telling, self.tellings)
        config = self.data().config
        other = telling != self.tellings[0] and isinstance(config, WorldConfig)
        return load_data(WordingConfig(config, telling)) if other else self.data()

    def trunk(self) -> Base:
        """The audio encoder that all systems share."""
        return self.material.trunk()

    def view(self, name: str) -> View:
        """Data by its name; see the top of this module.

        Raises:
            UnknownNameError: there is none of that name, or the material is not told so.
            LanguagesError: its captions are in one language alone, or not as many in each.
        """
        if name not in self._views:
            telling, _, rest = name.partition("/")
            if rest == VALID:
                data = self._world(telling)
                self._views[name] = View(self.book, replace(data, splits={**data.splits, "test": data.valid}))
            else:
                self._views[name] = self._view(parsed(name)) if rest else self._of_material(name)
        return self._views[name]

    def first_run(self, stage: Stage) -> Plan:
        """The long run of ML-CLAP that all runs of a stage go on from."""
        view = self.view(stage._replace(start=NOTHING).named)
        long = {"epochs": LONG[stage.text] * self.book.settings.epochs}
        options = common.merged(on_features(view.data), view.overrides, long)
        return Plan(view.data, common.sized(view.session, "ml-clap", **options), FIRST_SEED)

    def _of_material(self, name: str) -> View:
        view = self.material.view(name)
        if self._in_languages:
            check_told(view.data.test, self.languages)
        return view._replace(overrides=common.merged(view.overrides, self._in_languages))

    def _view(self, stage: Stage) -> View:
        overrides: dict[str, Any] = {"epochs": PASSES * self.book.settings.epochs, **self._in_languages}
        overrides |= TRAINED if stage.text == WORDS else {}
        if stage.start == NOTHING:
            return View(self.book, self._world(stage.telling), overrides)
        return View(
            self.book,
            self._world(stage.telling),
            overrides,
            base=lambda seed: self.first_run(stage),
            before=lambda seed: [[self.first_run(stage)]],
        )

    def _world(self, telling: str) -> World:
        if telling == self.tellings[0]:
            return self.view("frozen").data
        if telling not in self._worlds:
            self._worlds[telling] = encoded(self.told(telling), self.trunk())
        return self._worlds[telling]
