"""What chapter 6 trains and tests on: worlds of scenes, learnt from in three stages through three frozen encoders.

    ground = Grounds(book)                                       # of the lab
    two = ground.trial("2", Stage("finetune", "ensemble"))       # of an experiment
    ground.plan(Stage("pretrain", encoder="prediction"), seed=0) # the run of a stage
    ground = LessonGround(book)                                  # the same of a small world, told in few words

In the lab many clips with one caption each are pretrained on, and a part of them with five captions finetuned on. What
is finetuned starts from what was pretrained with the same seed and encoder, what is refinetuned from what was finetuned
with the same soft labels and augmentation; teachers and topics are of the seed, too.

Where the paper has PaSST, a tagger trained on AudioSet, there is YAMNet; for EAT and BEATs, trained on audio alone by
reconstruction and by prediction of masked parts, a small transformer pretrained in either way. All stay as they are
published; a projection of theirs and of a sentence encoder's output are trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from torch import Tensor

from pullpush.data.clips import Config, World
from pullpush.data.language.wording import LexiconConfig
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.experiments import System, Trial
from pullpush.lab.material import PARTS
from pullpush.lab.session import Session
from pullpush.rewriting import create as rewriter
from pullpush.studies.distill.columns import TaughtConfig, loaded
from pullpush.studies.distill.stages import AUGMENTS, ENCODERS, ENSEMBLE, MAIN, WORLD, WORLDS, Stage
from pullpush.studies.distill.teachers import (
    PARTS as SOFT_LABELS,
    Blind,
    Run,
    Teacher,
    Truth,
    similarities,
    soft_labels,
)
from pullpush.studies.distill.topics import ByModel, ByText, Classes, Labels, Shuffled
from pullpush.studies.own_data import is_own, is_small, languages_of, tell_scenes
from pullpush.topics import TopicsError
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import weighted
from pullpush.training.runs import Plan, train_missing
from pullpush.training.trunk import Published

PART = {"pretrain": 2 / 3, "finetune": 0.2}  # of the profile's training scenes; the smaller part is in the larger
SMALLER = {"pretrain": 0.3, "finetune": 0.15}  # of worlds of other ambiguity
TESTED = 300  # clips of such a world, at most
PASSES = 3  # in each stage, as a multiple of the profile's epochs
BATCH, LEAST = 64, 8  # PaSST's, §3.4; and however few clips there are
TAU = 0.05
MIXES = 1.0  # mixed clips, as a multiple of the clips
EVENTS = 100  # of a bank, at most
TOPICS = 24  # to which topics are merged, where their number is not what is varied
WEIGHT = 0.05  # λ₂, §2.3
FIRST, CONTROL = "pretrained", "the contrast again"  # systems of the lesson
SMOOTHED, SOFT, BOTH = "label smoothing", "soft labels", "soft labels and topics"
UNTRAINED: Mapping[str, Any] = {"lr": 1e-12, "weight_decay": 0.0, "epochs": 1}  # learns next to nothing


class Grounds:
    """The lab's data and runs by their stages; see `compute.Ground` and the top of this module.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "three stages"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book, self.compute_long = book, compute_long
        self._stages: dict[str, Stage] = {}
        self._views: dict[Stage, View] = {}
        self._worlds: dict[tuple[str, str], World] = {}
        self._plans: dict[tuple[Stage, int], Plan] = {}
        tell_scenes(book.settings)

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        trunks = sorted({part for name in ENCODERS for part in self.trunk(name).parts})
        words = ("data/lexicon", "data/augmented", "data/mixing", "studies/rewriting")
        return *PARTS, *words, *SOFT_LABELS, *self.topics("generic", 0).parts, *trunks

    @property
    def is_small(self) -> bool:
        """Whether encoders have random weights, as in the profile smoke."""
        return is_small(self.book.settings)

    # ---------------------------------------------------------------- what experiments ask for

    def trial(
        self,
        name: str,
        stage: Stage,
        test: Stage | None = None,
        where: Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> Trial:
        """A system of an experiment: a stage, and what is tested on if not its own clips; see `Trial`."""
        recipe, options = self.system(stage, **overrides)
        return Trial(name, recipe, options, dict(where or {}), self.named(stage), self.named(test) if test else "")

    def named(self, stage: Stage) -> str:
        """The name of a stage, by which `view` knows it from now on."""
        self._stages[stage.name] = stage
        return stage.name

    def view(self, name: str) -> View:
        """The data of a stage by its name.

        Raises:
            UnknownNameError: `named` was given no such stage.
        """
        if name not in self._stages:
            raise unknown("stage", name, self._stages)
        return self.view_of(self._stages[name])

    def view_of(self, stage: Stage) -> View:
        """The data of a stage, and the runs that come before it."""
        if stage not in self._views:
            plain = self._encoded(self.config(stage), stage.encoder)
            options: dict[str, Any] = {"taught": partial(self._taught, stage)} if stage.teacher or stage.topics else {}
            if stage.start:
                options |= {"base": partial(self.plan, stage.start), "before": partial(self._before, stage)}
            self._views[stage] = View(self.book, plain, self._overrides(stage), **options)
        return self._views[stage]

    def plan(self, stage: Stage, seed: int) -> Plan:
        """The run of a stage that others start from, or learn from."""
        if (stage, seed) not in self._plans:
            view = self.view_of(stage)
            name, overrides = self.system(stage)
            sized = common.sized(view.session, name, **common.merged(on_features(view.data), view.overrides, overrides))
            world = view.taught(seed) if view.taught else view.data
            base = view.base(seed).path if view.base else None
            self._plans[stage, seed] = Plan(world, sized, seed, base=base)
        return self._plans[stage, seed]

    def system(self, stage: Stage, **overrides: Any) -> System:
        """The recipe of a stage and its overrides: its rate, the heads' sizes and the weight of clusters."""
        options: dict[str, Any] = dict(UNTRAINED) if stage.kind == "untrained" else {"lr": self._rate(stage)}
        if stage.topics:
            kind, _, count = stage.topics.partition(":")
            most = EVENTS if kind == "truth" else int(count or TOPICS)
            options |= {"topics": most, "clusters.dim": self._dim, **weighted(stage.recipe, clusters=WEIGHT)}
        return stage.recipe, {**options, **overrides}

    # ---------------------------------------------------------------- teachers, topics, clips

    def labels(self, stage: Stage, seed: int) -> tuple[Teacher, ...]:
        """The teachers of a stage, as `soft_labels` takes them."""
        known: dict[str, Teacher] = {"truth": Truth(), "blind": Blind(self._dim, seed)}
        if stage.teacher in known:
            return (known[stage.teacher],)
        return tuple(self._run(each, seed) for each in stage.teachers)

    def teach(self, name: str, seeds: Iterable[int]) -> list[tuple[Teacher, ...]]:
        """The teachers of a name by seed, trained if they are not there."""
        stage = Stage("finetune", name)
        for seed in seeds:
            train_missing([self.plan(each, seed) for each in stage.teachers])
        return [self.labels(stage, seed) for seed in seeds]

    def topics(self, source: str, seed: int, world: str = WORLD) -> Labels:
        """Where topics come from: "finetuned", "generic", "random", "truth", each with ":K" for so many.

        Raises:
            UnknownNameError: another source.
        """
        kind, _, count = source.partition(":")
        size: dict[str, Any] = {"count": int(count or TOPICS), "size": 4}
        size |= {"size": 1, "dimensions": 0} if self.is_small else {}
        if kind == "finetuned":
            return ByModel(model=self._run(Stage("refinetune", world=world).topic_model, seed), **size, seed=seed)
        generic = ByText(text="hashed" if self.is_small else "minilm", **size)
        sources: dict[str, Labels] = {"generic": generic, "random": Shuffled(generic, seed), "truth": Classes("event")}
        if kind not in sources:
            raise unknown("source of topics", kind, ("finetuned", *sources))
        return sources[kind]

    def trunk(self, encoder: str) -> Published:
        """What clips go through before anything is trained."""
        return Published("yamnet", {"pretrained": False}, seed=1) if self.is_small else ENCODERS[encoder]

    def source(self, stage: Stage) -> World:
        """The clips of a stage as audio."""
        return loaded(self.config(stage))

    def config(self, stage: Stage) -> Config:
        """What describes the clips of a stage, without what is found out about them."""
        world, size = WORLDS[stage.world], {**self.book.settings.world}
        kind, captions = ("finetune", 5) if stage.start else ("pretrain", 1)
        part = (PART if stage.world == WORLD else SMALLER)[kind]
        if stage.world != WORLD:
            size |= {name: min(TESTED, size[name]) for name in ("n_valid", "n_test")}
        size["n_train"] = max(48 if self.is_small else 8, round(size["n_train"] * part))
        size |= {"scene": common.scene(self.book, max_events=2, **world.scene), "captions_per_scene": captions}
        scenes = WorldConfig(**size)
        config: Config = scenes if world.vocabulary == "rich" else LexiconConfig(scenes, world.vocabulary)
        return self._augmented(config, AUGMENTS[stage.augment], size["n_train"]) if stage.augment else config

    def _augmented(self, config: Config, parts: Sequence[str], clips: int) -> AugmentedConfig:
        if len(parts) > 1 and len(languages_of(self.book.settings.world["bank"])) == 1:
            parts = [part for part in parts if part != "back-translation"]  # through no other language
        deletion = rewriter("deletion")
        synonyms = rewriter("deletion", seed=1) if self.is_small else rewriter("synonyms")
        makers = {"back-translation": rewriter("grammar"), "deletion": deletion, "synonyms": synonyms}
        makers["words"] = rewriter("one-of", rewriters=(deletion, synonyms))
        mixes = round(MIXES * clips) if "mix" in parts else 0
        merger = rewriter("grammar") if mixes else None
        return AugmentedConfig(config, tuple(makers[part] for part in parts if part != "mix"), 1, merger, mixes)

    @property
    def _dim(self) -> int:
        return max(8, self.book.settings.dim // 2)

    def _rate(self, stage: Stage) -> float:
        return stage.rate

    def _overrides(self, stage: Stage) -> dict[str, Any]:
        settings = self.book.settings
        epochs = PASSES * settings.epochs / (1 + MIXES * ("mix" in AUGMENTS.get(stage.augment, ())))  # as many steps
        return {
            "captions": "random",
            "epochs": 1 if self.is_small else max(1, round(epochs)),
            "batch_size": max(LEAST, min(BATCH, settings.world["n_train"] // 4)),
            "dim": self._dim,
            "tau": TAU,
        }

    def _run(self, stage: Stage, seed: int) -> Run:
        return Run(self.plan(stage, seed).key, self.trunk(stage.encoder))

    def _before(self, stage: Stage, seed: int) -> list[list[Plan]]:
        """All runs that a stage needs, in rounds of those that can be trained side by side."""
        first = [self.plan(each, seed) for each in stage.needs if not each.start]
        second = [self.plan(each, seed) for each in stage.needs if each.start]
        return [first, second] if second else [first]

    def _taught(self, stage: Stage, seed: int) -> World:
        topics = self.topics(stage.topics, seed, stage.world) if stage.topics else None
        return self._encoded(TaughtConfig(self.config(stage), self.labels(stage, seed), topics), stage.encoder)

    def _encoded(self, config: Config, encoder: str) -> World:
        key = (repr(config), encoder)
        if key not in self._worlds:
            self._worlds[key] = encoded(loaded(config), self.trunk(encoder))
        return self._worlds[key]


def smoothed(trial: Trial) -> Trial:
    """The same with label smoothing of the teachers' entropy in place of their labels."""
    return replace(trial, recipe="infonce+label-smoothing", overrides={**trial.overrides, "like_teacher": True})


class LessonGround(Grounds):
    """The lesson's world: AudioCaps' mirror, told in few words, in which half of the scenes hold one sound. It is as
    small as a page can train, and all stages learn from the same clips.
    """

    name = "scenes told in few words"
    part, singles = 0.4, 0.5  # of the profile's training clips; how often a scene holds one sound
    rates: Mapping[str, float] = {"pretrain": 1e-3, "finetune": 5e-4}

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(replace(book, settings=book.settings.listening), compute_long)

    @cached_property
    def world(self) -> World:
        """The clips as audio."""
        return self.source(Stage("pretrain"))

    @property
    def batch(self) -> int:
        """Pairs in a batch."""
        return min(BATCH, len(self.world.train) // 4)

    @cached_property
    def has_topics(self) -> bool:
        """Whether captions differ enough to have topics; those of a small bank of one's own may not."""
        if not is_own(self.book.settings.world["bank"]):
            return True
        try:
            self.topics("generic", 0).of(self.world.train)
        except TopicsError:
            return False
        return True

    def trials(self) -> tuple[Trial, ...]:
        """What the page compares: the pretrained model, and what becomes of it in as many further passes."""
        soft = Stage("finetune", ENSEMBLE)
        first = [self.trial(FIRST, Stage("pretrain")), self.trial(CONTROL, Stage("finetune"))]
        topics = [self.trial(BOTH, replace(soft, topics="generic"))] if self.has_topics else []
        return *first, smoothed(self.trial(SMOOTHED, soft)), self.trial(SOFT, soft), *topics

    def teacher_similarity(self, seed: int) -> Tensor:
        """Ĉ of Eq. 5 for all training clips, `(N, N)` float32: entry i, j is of clip i and the captions of clip j."""
        return similarities(soft_labels(self.labels(Stage("finetune", ENSEMBLE), seed), self.world.train))

    def config(self, stage: Stage) -> Config:
        """See `Grounds`."""
        size = {**self.book.settings.world}
        size |= {"n_train": max(48, round(self.part * size["n_train"])), "n_valid": min(200, size["n_valid"])}
        size["scene"] = common.scene(self.book, max_events=2, p_single=self.singles)
        return LexiconConfig(WorldConfig(**size), "narrow", 2.0)

    def topics(self, source: str, seed: int, world: str = WORLD) -> ByText:
        """Topics of generic sentence embeddings, the paper's system 5, by the profile's text encoder."""
        return ByText(count=TOPICS, size=2, text=self.book.settings.text)

    def trunk(self, encoder: str) -> Published:
        """See `Grounds`; the student's is the profile's own."""
        return common.published_trunk(self.book) if encoder == MAIN else ENCODERS[encoder]

    def _rate(self, stage: Stage) -> float:
        return self.rates[stage.kind]

    def _overrides(self, stage: Stage) -> dict[str, Any]:
        epochs = max(1, PASSES * self.book.settings.epochs)
        return {"dim": self._dim, "batch_size": self.batch, "epochs": epochs, "tau": TAU}

    def _taught(self, stage: Stage, seed: int) -> World:
        if stage.topics:  # found here, and read by the processes that train: UMAP compiles itself in each that searches
            self.topics(stage.topics, seed).of(self.world.train)
        return super()._taught(stage, seed)
