"""What chapter 7 trains and tests on: scenes told in eight languages, with teachers' soft labels and captions' topics.

    ground = Grounds(book)
    ground.view("plain")   # no further columns: what teachers and the search of rates learn from
    ground.view("frozen")  # features of a frozen published encoder; soft labels and topics come with the clips
    ground.view("valid")   # to test on: the validation clips, in all languages, which a recipe may be chosen by
    ground.view("upper")   # the same clips as activations of its lower part: its upper layers are trained, too

The teachers are converged runs of the baseline with seeds of their own. Topics are those of `pullpush.topics` on the
frozen text features of the captions. In a profile without recordings (smoke) a scene's first event is its topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from pullpush.data.clips import World, load_data
from pullpush.data.scenes.world import WorldConfig
from pullpush.encoders import TEXT
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.material import PARTS
from pullpush.lab.session import Session
from pullpush.studies import taught
from pullpush.studies.own_data import is_small, languages_of, tell_scenes
from pullpush.studies.together import terms
from pullpush.topics import Topics, cluster
from pullpush.training.frozen import encoded, on_features
from pullpush.training.runs import Plan

PLAIN, FROZEN, VALID, UPPER = "plain", "frozen", "valid", "upper"
PART = 1 / 4  # of the profile's training scenes: a chapter of very many runs
EPOCHS = 3  # passes, as a multiple of the profile's
FEWER = 2  # of them where the audio encoder is in training
TOPICS = ("studies/regions", "studies/topics")  # what finds them
BATCH = 48
LEAST = 4  # clips in a step, however few there are
TEACHERS = 3
APART = 900  # seeds of teachers begin here: no comparison uses them
CAPTIONS = 2  # of a clip in each language; the first is learnt from


class Grounds:
    """The chapter's views by their names; see `compute.Ground`.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "scenes in eight languages, with teachers and topics"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        settings = book.settings.listening
        scenes = {**settings.world, "n_train": max(16, round(PART * settings.world["n_train"]))}
        self.book = replace(book, settings=replace(settings, world=scenes, dim=settings.dim // 2))
        self.compute_long = compute_long
        self._views: dict[str, View] = {}
        tell_scenes(book.settings)

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        settings = self.book.settings
        return *PARTS, *taught.PARTS, *TOPICS, f"audio/{settings.audio}", "audio/upper", f"text/{settings.text}"

    @property
    def has_recordings(self) -> bool:
        """Whether encoders have learnt from recordings; the scenes of smoke are too few to have topics."""
        return not is_small(self.book.settings)

    @property
    def languages(self) -> tuple[str, ...]:
        """In which scenes are told: eight, or those of a bank of one's own."""
        return languages_of(self.book.settings.world["bank"])

    @property
    def dim(self) -> int:
        """Of the joint space."""
        return self.book.settings.dim

    @property
    def batch_size(self) -> int:
        """Clips in a step."""
        return self._overrides["batch_size"]

    @cached_property
    def scenes(self) -> World:
        """The scenes as audio."""
        return load_data(self._config)

    def view(self, name: str) -> View:
        """Data by its name; see the top of this module.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self._views:
            if name not in (PLAIN, FROZEN, VALID, UPPER):
                raise unknown("view", name, (PLAIN, FROZEN, VALID, UPPER))
            if name == VALID:
                data = self.view(FROZEN).data
                self._views[name] = View(self.book, replace(data, splits={**data.splits, "test": data.valid}))
                return self._views[name]
            world = self.scenes if name == PLAIN else load_data(self.taught)
            level = "lower" if name == UPPER else "features"
            heard = encoded(world, common.published_trunk(self.book), level=level)
            self._views[name] = View(self.book, heard, self._fine_tuned if name == UPPER else self._overrides)
        return self._views[name]

    @property
    def _config(self) -> WorldConfig:
        return WorldConfig(**self.book.settings.world, captions_per_scene=CAPTIONS)

    @property
    def _overrides(self) -> dict[str, Any]:
        settings = self.book.settings
        return {
            "text": "dropout",
            "encoder_options": {"text_of": settings.text},
            "languages": self.languages,
            "batch_size": max(LEAST, min(BATCH, settings.world["n_train"] // 4)),
            "epochs": EPOCHS * settings.epochs if self.has_recordings else 1,
        }

    @property
    def _fine_tuned(self) -> dict[str, Any]:
        epochs = max(1, round(self._overrides["epochs"] / FEWER))
        return {**self._overrides, **self.book.settings.fine_tuning, "epochs": epochs}

    # ---------------------------------------------------------------- what comes with the clips

    @cached_property
    def taught(self) -> taught.TaughtConfig:
        """The scenes with both columns."""
        columns = {"teachers": self.teachers, "clusters": taught.labels_column(self.labels)}
        return taught.TaughtConfig(self._config, tuple(columns.items()))

    @cached_property
    def teachers(self) -> str:
        """The key of the soft labels' column."""
        heard = self.view(PLAIN)
        plans = [self.teacher(APART + number) for number in range(TEACHERS)]
        return taught.teachers_column(plans, heard.data.train)

    def teacher(self, seed: int) -> Plan:
        """A run of the baseline."""
        heard = self.view(PLAIN)
        recipe, overrides = terms.system((), dim=self.dim)
        overrides = common.merged(on_features(heard.data), heard.overrides, overrides)
        return Plan(heard.data, common.sized(self.book, recipe, **overrides), seed)

    @cached_property
    def topics(self) -> Topics | None:
        """The topics of the training captions, by the frozen text encoder; None where there are no recordings."""
        if not self.has_recordings:
            return None
        captions = [text for texts in self.scenes.train.captions("eng") for text in texts[:1]]
        return cluster(TEXT[self.book.settings.text].make()(captions).numpy(), captions)

    @property
    def labels(self) -> list[int]:
        """The topic of each training clip's first caption."""
        if self.topics is None:
            return [scene.events[0] for scene in self.scenes.train.columns["scene"]]
        return np.asarray(self.topics.labels).tolist()
