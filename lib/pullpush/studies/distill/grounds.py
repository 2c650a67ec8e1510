"""What chapter 6 trains and tests on: one world of scenes, learnt from in three stages, heard through three encoders.

    ground = Grounds(book)
    ground.view("pretrain/yamnet")                        # many clips, one caption each
    ground.view("finetune/yamnet")                        # a part of them, five captions each
    ground.view("finetune teacher=ensemble augment=all/yamnet")    # with soft labels, and more captions and clips
    ground.view("refinetune teacher=ensemble augment=all topics=generic/yamnet")  # from there on, with topics
    ground.view("finetune teacher=ensemble/yamnet/p_single=1")     # in a world of another ambiguity

The names are made by `Stage`. What is finetuned starts from what was pretrained with the same seed and ears, what is
refinetuned from what was finetuned with soft labels and augmentation; teachers and topics are of the seed, too.

Where the paper has PaSST, a tagger trained on AudioSet, there is YAMNet; for EAT and BEATs, trained on audio alone by
reconstruction and by prediction of masked parts, a small transformer pretrained in either way. All stay as they are
published; a projection of theirs and of a sentence encoder's output are trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pullpush.data.clips import Config, World
from pullpush.data.language.lexicon import LexiconConfig
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.data.scenes.composer import SceneConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.errors import unknown
from pullpush.lab import common
from pullpush.lab.compute import View
from pullpush.lab.experiments import System
from pullpush.lab.scenes import PARTS
from pullpush.lab.session import Session
from pullpush.rewriting import create as rewriter
from pullpush.studies.distill import rates
from pullpush.studies.distill.stages import AMBIGUITY, AUGMENTS, EARS, ENSEMBLE, LAST, MAIN, WORLD, Stage, parsed
from pullpush.studies.distill.taught import TaughtConfig, loaded
from pullpush.studies.distill.teachers import PARTS as SOFT_LABELS, Blind, Run, Teacher, Truth
from pullpush.studies.distill.topic_labels import ByModel, ByText, Classes, Labels, Shuffled
from pullpush.studies.own_data import is_small, languages_of, tell_scenes
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import weighted
from pullpush.training.runs import Plan, train_missing
from pullpush.training.trunk import Published, parts_of

PART = {"pretrain": 2 / 3, "finetune": 0.2}  # of the profile's training scenes; the smaller part is in the larger
SMALLER = {"pretrain": 0.3, "finetune": 0.15}  # of worlds of other ambiguity
TESTED = 300  # clips of such a world, at most
PASSES = 3  # in each stage, as a multiple of the profile's epochs
BATCH, LEAST = 64, 8  # PaSST's, §3.4; and however few clips there are
TAU = 0.05
MIXES = 1.0  # mixed clips, as a multiple of the clips
EVENTS = 100  # of a bank, at most
UNTRAINED: Mapping[str, Any] = {"lr": 1e-12, "weight_decay": 0.0, "epochs": 1}


class Grounds:
    """The chapter's views by their names; see `compute.Ground` and the top of this module.

    book: the session; compute_long: whether long experiments are computed where nothing was kept of them.
    """

    name = "three stages"

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        self.book, self.compute_long = book, compute_long
        self._views: dict[str, View] = {}
        tell_scenes(book.settings)
        self._worlds: dict[Any, World] = {}
        self._plans: dict[tuple[str, int], Plan] = {}

    @property
    def parts(self) -> Sequence[str]:
        """See `compute.Ground`."""
        told = ("data/lexicon", "data/augmented", "data/mixing", "studies/rewriting", *SOFT_LABELS)
        return *PARTS, *told, *self.topics("generic", 0).parts, *parts_of(map(self.trunk, EARS))

    @property
    def is_small(self) -> bool:
        """Whether encoders have random weights, as in the profile smoke."""
        return is_small(self.book.settings)

    def view(self, name: str) -> View:
        """Data by its name; see the top of this module.

        Raises:
            UnknownNameError: no such stage, ears or ambiguity.
        """
        if name not in self._views:
            self._views[name] = self._view(*parsed(name))
        return self._views[name]

    def plan(self, stage: Stage, ears: str, seed: int, ambiguity: str = WORLD) -> Plan:
        """The run of a stage that others start from, or learn from."""
        key = (stage.named(ears, ambiguity), seed)
        if key not in self._plans:
            view = self.view(stage.named(ears, ambiguity))
            world = view.taught(seed) if view.taught else view.data
            base = view.base(seed).path if view.base else None
            name, overrides = self.system(stage, ears)
            sized = common.sized(view.session, name, **common.merged(on_features(view.data), view.overrides, overrides))
            self._plans[key] = Plan(world, sized, seed, base=base)
        return self._plans[key]

    def system(self, stage: Stage, ears: str = MAIN, **overrides: Any) -> System:
        """The recipe of a stage and its overrides: its rate, the heads' sizes and the weight of clusters."""
        options: dict[str, Any] = rates.of_stage(stage, ears)
        if stage.topics:
            kind, _, count = stage.topics.partition(":")
            most = EVENTS if kind == "truth" else int(count) if count else rates.TOPICS
            options |= {"topics": most, "clusters.dim": self._dim, **weighted(stage.recipe, clusters=rates.WEIGHT)}
        return stage.recipe, {**options, **overrides}

    def teachers(self, name: str, seed: int, ambiguity: str = WORLD) -> dict[str, Plan]:
        """The runs that teach: ears → run; of "truth" and "blind" there are none."""
        if name == "untrained":
            return {ears: self._untrained(ears, seed, ambiguity) for ears in EARS}
        chosen = EARS if name == ENSEMBLE else [each for each in EARS if each == name]  # none of "truth" and "blind"
        return {ears: self.plan(Stage("pretrain"), ears, seed, ambiguity) for ears in chosen}

    def labels(self, name: str, seed: int, ambiguity: str = WORLD) -> tuple[Teacher, ...]:
        """The teachers of a name, as `soft_labels` takes them."""
        known: dict[str, Teacher] = {"truth": Truth(), "blind": Blind(self._dim, seed)}
        if name in known:
            return (known[name],)
        return tuple(Run(plan.key, self.trunk(ears)) for ears, plan in self.teachers(name, seed, ambiguity).items())

    def topics(self, source: str, seed: int, ambiguity: str = WORLD) -> Labels:
        """Where topics come from: "finetuned", "generic", "random", "truth", each with ":K" for so many."""
        kind, _, count = source.partition(":")
        size: dict[str, Any] = {"count": int(count) if count else rates.TOPICS}
        size |= {"size": 1, "dimensions": 0} if self.is_small else {"size": 4}
        text: dict[str, Any] = {"text": "hashed" if self.is_small else "minilm"}
        if kind == "finetuned":
            ears = next(iter(EARS))
            return ByModel(model=Run(self.plan(LAST, ears, seed, ambiguity).key, self.trunk(ears)), **size, seed=seed)
        if kind == "generic":
            return ByText(**text, **size)
        if kind == "random":
            return Shuffled(ByText(**text, **size), seed)
        if kind == "truth":
            return Classes("event")
        raise unknown("source of topics", kind, ("finetuned", "generic", "random", "truth"))

    def trunk(self, ears: str) -> Published:
        """What clips are heard through."""
        return Published("yamnet", {"pretrained": False}, seed=1) if self.is_small else EARS[ears]

    def source(self, stage: Stage, ambiguity: str = WORLD) -> World:
        """The clips of a stage as audio."""
        return loaded(self.config(stage, ambiguity))

    def teach(self, name: str, seeds: Iterable[int]) -> list[tuple[Teacher, ...]]:
        """The teachers of a name by seed, trained if they are not there."""
        for seed in seeds:
            train_missing(list(self.teachers(name, seed).values()))
        return [self.labels(name, seed) for seed in seeds]

    def config(self, stage: Stage, ambiguity: str = WORLD) -> Config:
        """What describes the clips of a stage, without what is found out about them."""
        if ambiguity not in AMBIGUITY:
            raise unknown("ambiguity", ambiguity, AMBIGUITY)
        told = AMBIGUITY[ambiguity]
        size: dict[str, Any] = {**self.book.settings.world}
        part = PART if ambiguity == WORLD else SMALLER
        kind, captions = ("pretrain", 1) if stage.kind == "pretrain" else ("finetune", 5)
        if ambiguity != WORLD:
            size |= {name: min(TESTED, size[name]) for name in ("n_valid", "n_test")}
        size["n_train"] = max(48 if self.is_small else 8, round(size["n_train"] * part[kind]))
        scenes = WorldConfig(**size, scene=SceneConfig(max_events=2, **told.scene), captions_per_scene=captions)
        config: Config = scenes if told.vocabulary == "rich" else LexiconConfig(scenes, told.vocabulary)
        return self._augmented(config, stage, size["n_train"]) if stage.augment else config

    @property
    def _dim(self) -> int:
        return max(8, self.book.settings.dim // 2)

    def _view(self, stage: Stage, ears: str, ambiguity: str) -> View:
        if ears not in EARS:
            raise unknown("ears", ears, EARS)
        plain = self._encoded(self.config(stage, ambiguity), ears)
        options: dict[str, Any] = {}
        if stage.kind != "pretrain":
            options["base"] = partial(self.plan, stage.before, ears, ambiguity=ambiguity)
            options["before"] = partial(self._before, stage, ears, ambiguity)
        if stage.teacher or stage.topics:
            options["taught"] = partial(self._taught, stage, ears, ambiguity)
        return View(self.book, plain, self._overrides(stage, ambiguity), **options)

    def _overrides(self, stage: Stage, ambiguity: str) -> dict[str, Any]:
        settings = self.book.settings
        epochs = PASSES * settings.epochs / (1 + MIXES * ("mix" in AUGMENTS.get(stage.augment, ())))  # as many steps
        return {
            "captions": "random",
            "epochs": 1 if self.is_small else max(1, round(epochs)),
            "batch_size": max(LEAST, min(BATCH, settings.world["n_train"] // 4)),
            "dim": self._dim,
            "tau": TAU,
        }

    def _taught(self, stage: Stage, ears: str, ambiguity: str, seed: int) -> World:
        teachers = self.labels(stage.teacher, seed, ambiguity) if stage.teacher else ()
        topics = self.topics(stage.topics, seed, ambiguity) if stage.topics else None
        return self._encoded(TaughtConfig(self.config(stage, ambiguity), teachers, topics), ears)

    def _before(self, stage: Stage, ears: str, ambiguity: str, seed: int) -> list[list[Plan]]:
        """All runs that one of a stage needs, round by round."""
        first = [self.plan(Stage("pretrain"), ears, seed, ambiguity)]
        if stage.teacher:
            first += self.teachers(stage.teacher, seed, ambiguity).values()
        if stage.kind == "finetune":
            return [first]
        if stage.before.teacher:
            first += self.teachers(stage.before.teacher, seed, ambiguity).values()
        second = [self.plan(stage.before, ears, seed, ambiguity)]
        if stage.topics.startswith("finetuned"):
            second.append(self.plan(LAST, next(iter(EARS)), seed, ambiguity))
            first.append(self.plan(Stage("pretrain"), next(iter(EARS)), seed, ambiguity))
        return [first, second]

    def _untrained(self, ears: str, seed: int, ambiguity: str) -> Plan:
        """A run that learns next to nothing."""
        view = self.view(Stage("pretrain").named(ears, ambiguity))
        options = common.merged(on_features(view.data), view.overrides, UNTRAINED)
        return Plan(view.data, common.sized(view.session, "infonce", **options), seed)

    def _augmented(self, config: Config, stage: Stage, clips: int) -> AugmentedConfig:
        parts = AUGMENTS[stage.augment]
        if len(parts) > 1 and len(languages_of(self.book.settings.world["bank"])) == 1:
            parts = tuple(part for part in parts if part != "back-translation")  # through no other language
        makers: dict[str, Callable[[], Any]] = {
            "back-translation": lambda: rewriter("grammar"),
            "words": lambda: rewriter("one-of", rewriters=(rewriter("deletion"), self._synonyms())),
            "deletion": lambda: rewriter("deletion"),
            "synonyms": self._synonyms,
        }
        mixes = round(MIXES * clips) if "mix" in parts else 0
        merger = rewriter("grammar") if mixes else None
        return AugmentedConfig(config, tuple(makers[part]() for part in parts if part != "mix"), 1, merger, mixes)

    def _synonyms(self) -> Any:
        return rewriter("deletion", seed=1) if self.is_small else rewriter("synonyms")

    def _encoded(self, config: Config, ears: str) -> World:
        key = (repr(config), ears)
        if key not in self._worlds:
            self._worlds[key] = encoded(loaded(config), self.trunk(ears))
        return self._worlds[key]
