"""What chapter 7 trains and tests on: scenes told in eight languages, with teachers' soft labels and captions' topics.

    context = Context(book)
    context.view("plain")   # no further columns: what teachers and the search of rates learn from
    context.view("frozen")  # features of a frozen published encoder; soft labels and topics come with the clips
    context.view("valid")   # to test on: the validation clips, in all languages, which a recipe may be chosen by
    context.view("upper")   # the same clips as activations of its lower part: its upper layers are trained, too

The teachers are converged runs of the baseline with seeds of their own. Topics are those of `pullpush.topics` on the
frozen text features of the captions. In a profile without recordings (smoke) a scene's first event is its topic. Both
are computed once, before any student is trained, and stored by content; a world's configuration names them so, and its
words with it, so that runs know what they learnt from, and other processes find it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pullpush.data.clips import World, load_data
from pullpush.data.scenes.world import WorldConfig
from pullpush.lab import common
from pullpush.lab.compute import Ground, View
from pullpush.lab.material import PARTS
from pullpush.lab.session import Session
from pullpush.studies.own_data import is_small, languages_of, tell_scenes
from pullpush.studies.taught import OF_ENSEMBLE, Classes, FirstCaptions, TaughtConfig, by_ensemble
from pullpush.studies.together.experiments import FROZEN, UPPER, VALID, system
from pullpush.training.frozen import encoded

PLAIN = "plain"
PART = 1 / 4  # of the profile's training scenes: a chapter of very many runs
EPOCHS = 3  # passes, as a multiple of the profile's
FEWER = 2  # of them where the audio encoder is in training
BATCH, LEAST = 48, 4  # clips in a step, and however few there are
CAPTIONS = 2  # of a clip in each language; the first is learnt from
TOPICS = ("studies/regions", "studies/topics")


class Context(Ground):
    """The chapter's views by their names; see the top of this module."""

    name = "scenes in eight languages, with teachers and topics"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        settings = book.settings.listening
        scenes: dict[str, Any] = {**settings.world, "n_train": max(16, round(PART * settings.world["n_train"]))}
        super().__init__(replace(book, settings=replace(settings, world=scenes, dim=settings.dim // 2)), compute_long)
        self.dim = self.book.settings.dim
        self.is_small = is_small(settings)  # encoders have not learnt from recordings; scenes are too few for topics
        self.languages = languages_of(scenes["bank"])  # eight, or those of a bank of one's own
        self.batch_size = max(LEAST, min(BATCH, scenes["n_train"] // 4))
        tell_scenes(book.settings)

    @property
    def parts(self) -> Sequence[str]:
        settings = self.book.settings
        return *PARTS, *OF_ENSEMBLE, *TOPICS, f"audio/{settings.audio}", "audio/upper", f"text/{settings.text}"

    @cached_property
    def scenes(self) -> World:
        """The scenes as audio."""
        return load_data(WorldConfig(**self.book.settings.world, captions_per_scene=CAPTIONS))

    def _view(self, name: str) -> View:
        if name == VALID:
            data = self.view(FROZEN).data
            return View(self.book, replace(data, splits={**data.splits, "test": data.valid}))
        world = self.scenes if name == PLAIN else load_data(self.taught)
        level = "lower" if name == UPPER else "features"
        clips = encoded(world, common.published_trunk(self.book), level=level)
        return View(self.book, clips, self._overrides(fine_tuned=name == UPPER))

    def _overrides(self, *, fine_tuned: bool) -> dict[str, Any]:
        settings = self.book.settings
        epochs = 1 if self.is_small else EPOCHS * settings.epochs
        options: dict[str, Any] = {
            "text": "dropout",
            "encoder_options": {"text_of": settings.text},
            "languages": self.languages,
            "batch_size": self.batch_size,
            "epochs": epochs,
        }
        tuned = {**settings.fine_tuning, "epochs": max(1, round(epochs / FEWER))}
        return options | tuned if fine_tuned else options

    @cached_property
    def taught(self) -> TaughtConfig:
        """The scenes with both columns."""
        plain = self.view(PLAIN)
        topics = Classes("event") if self.is_small else FirstCaptions(self.book.settings.text)
        trunk = common.published_trunk(self.book)
        base = plain.recipe(*system((), dim=self.dim))
        return by_ensemble(self.scenes.config, plain.data, base, trunk, topics)
