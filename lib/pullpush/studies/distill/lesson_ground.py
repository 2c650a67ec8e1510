"""What lesson 6 trains and tests on: a small world of scenes told in few words, of which half hold a single sound.

    ground = LessonGround(book)
    ground.view("pretrained/yamnet")  # to learn from, as each of the three teachers hears it
    ground.view("again")              # YAMNet's model goes on
    ground.view("taught")             # … with its training clips' soft labels and topics

Stages are the paper's: three models are pretrained by the contrast alone, they are the teachers, and one of them goes
on with what they say. Everything is as small as a page can train; the lab has larger grounds (see grounds.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from torch import Tensor

from pullpush.data.clips import World
from pullpush.data.language.lexicon import LexiconConfig
from pullpush.data.scenes.composer import SceneConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View, plan_of
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.scenes import PARTS
from pullpush.lab.session import Session
from pullpush.studies.distill.grounds import TAU
from pullpush.studies.distill.stages import EARS, MAIN
from pullpush.studies.distill.taught import TaughtConfig
from pullpush.studies.distill.teachers import PARTS as SOFT_LABELS, Run, similarities, soft_labels
from pullpush.studies.distill.topic_labels import ByText
from pullpush.studies.own_data import is_own, tell_scenes
from pullpush.topics import TopicsError
from pullpush.training.frozen import encoded
from pullpush.training.runs import Plan
from pullpush.training.terms import Term
from pullpush.training.trunk import Published, parts_of

STUDENT = MAIN
AGAIN, TAUGHT = "again", "taught"
PART = 0.4  # of the profile's training clips
SINGLES = 0.5  # how often a scene holds one sound
PASSES = 3  # epochs of each stage, as a multiple of the profile's
BATCH = 64
TOPICS = 24  # at most
HEADS = 0.05  # λ₂, Soft-Label Distillation §2.3
RATES = (1e-3, 5e-4)  # of pretraining, and of going on
FIRST, CONTROL = "pretrained", "the contrast again"
SOFT, SMOOTHED, BOTH = "soft labels", "label smoothing", "soft labels and topics"


class LessonGround:
    """The lesson's world by the names above; see `compute.Ground`.

    book: the session; compute_long: whether long experiments are computed, of which this page has none.
    """

    name = "scenes told in few words"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book = replace(book, settings=book.settings.listening)
        self.compute_long = compute_long
        self._views: dict[str, View] = {}
        tell_scenes(book.settings)

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        return *PARTS, "data/lexicon", *SOFT_LABELS, *self.topics.parts, *parts_of(map(self._ears, EARS))

    @cached_property
    def config(self) -> LexiconConfig:
        """Of the world: AudioCaps' mirror, in which half of the scenes hold one sound."""
        size = {**self.book.settings.world}
        size |= {"n_train": max(48, round(PART * size["n_train"])), "n_valid": min(200, size["n_valid"])}
        scenes = SceneConfig(max_events=2, p_single=SINGLES)
        return LexiconConfig(WorldConfig(**size, scene=scenes), "narrow", 2.0)

    @cached_property
    def world(self) -> World:
        """The clips as they sound."""
        return self.config.load()

    @property
    def batch(self) -> int:
        """Pairs in a batch."""
        return min(BATCH, len(self.world.train) // 4)

    @property
    def topics(self) -> ByText:
        """Topics of generic sentence embeddings, the paper's system 5, by the profile's text encoder."""
        return ByText(count=TOPICS, size=2, text=self.book.settings.text)

    @cached_property
    def has_topics(self) -> bool:
        """Whether captions differ enough to have topics; those of a small bank of one's own may not."""
        if not is_own(self.book.settings.world["bank"]):
            return True
        try:
            self.topics.of(self.world.train, "eng")
        except TopicsError:
            return False
        return True

    def pairs(self, *asked: tuple[str, str]) -> list[tuple[str, str]]:
        """Those of some pairs of systems that are both trained here."""
        trained = (FIRST, *self.systems())
        return [pair for pair in asked if set(pair) <= set(trained)]

    def systems(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """System → recipe and overrides, of the second stage."""
        base, soft = Term("infonce", options={"tau": TAU}), Term("distillation")
        smooth = Term("label-smoothing", options={"like_teacher": True})
        heads = Term("clusters", HEADS, {"topics": TOPICS, "dim": self.book.settings.dim // 2})
        terms: dict[str, tuple[Term, ...]] = {CONTROL: (base,), SOFT: (base, soft), SMOOTHED: (base, smooth)}
        if self.has_topics:
            terms[BOTH] = (base, soft, heads)
        return {name: ("infonce", {"terms": several, "lr": RATES[1]}) for name, several in terms.items()}

    def trials(self) -> tuple[Trial, ...]:
        """What the page compares: the pretrained model, and what becomes of it in as many further passes."""
        again = [
            Trial(name, recipe, overrides, {}, AGAIN if name == CONTROL else TAUGHT)
            for name, (recipe, overrides) in self.systems().items()
        ]
        return self._first(STUDENT), *again

    def teachers(self, seed: int) -> tuple[Run, ...]:
        """The pretrained models of one seed."""
        return tuple(Run(self.pretrained(ears, seed).key, self._ears(ears)) for ears in EARS)

    def teacher_similarity(self, seed: int) -> Tensor:
        """Ĉ of Eq. 5 for all training clips, `(N, N)` float32: entry i, j is of clip i and the captions of clip j."""
        return similarities(soft_labels(self.teachers(seed), self.world.train))

    def pretrained(self, ears: str, seed: int) -> Plan:
        """The first stage of one teacher."""
        trial = self._first(ears)
        # pyrefly: ignore[bad-argument-type]
        return plan_of(self, Experiment("pretraining", (trial,), (seed,), watch=None), trial, seed)

    def _first(self, ears: str) -> Trial:
        return Trial(FIRST, "infonce", {"tau": TAU, "lr": RATES[0]}, {}, f"pretrained/{ears}")

    def view(self, name: str) -> View:
        """See above.

        Raises:
            UnknownNameError: there is none of that name.
        """
        if name not in self._views:
            self._views[name] = self._view(name)
        return self._views[name]

    def _view(self, name: str) -> View:
        known = [*(f"pretrained/{ears}" for ears in EARS), AGAIN, TAUGHT]
        if name not in known:
            raise unknown("view", name, known)
        settings = self.book.settings
        overrides = {"dim": settings.dim // 2, "batch_size": self.batch, "epochs": max(1, PASSES * settings.epochs)}
        if name not in (AGAIN, TAUGHT):
            return View(self.book, encoded(self.world, self._ears(name.partition("/")[2])), overrides)
        first = self.view(f"pretrained/{STUDENT}").data
        heard = EARS if name == TAUGHT else (STUDENT,)
        return View(
            self.book,
            first,
            overrides,
            base=lambda seed: self.pretrained(STUDENT, seed),
            taught=self.taught if name == TAUGHT else None,
            before=lambda seed: [[self.pretrained(ears, seed) for ears in heard]],
        )

    def taught(self, seed: int) -> World:
        """The world of one seed's teachers, as the student hears it."""
        # Found here, once, and read by the processes that train: UMAP compiles itself anew in each that searches.
        if self.has_topics:
            self.topics.of(self.world.train, "eng")
        config = TaughtConfig(self.config, self.teachers(seed), self.topics if self.has_topics else None)
        return encoded(config.load(), self._ears(STUDENT))

    def _ears(self, name: str) -> Published:
        if name == STUDENT:
            return common.published_trunk(self.book)
        return EARS[name]
