"""What chapter 6 trains and tests on: the runs of its stages on worlds of scenes.

    context = Context(book)                                         # of the lab; LessonContext(book): of the lesson
    two = context.trial("2", SYSTEMS["2"])                          # of an experiment
    context.plan(Stage("pretrain", encoder="prediction"), seed=0)   # the run of a stage

In the lab many clips with one caption each are pretrained on, and a part of them with five captions finetuned on. What
is finetuned starts from what was pretrained with the same seed and encoder, what is refinetuned from what was finetuned
with the same soft labels and augmentation; teachers and topics are of the seed, too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any

from pullpush.data.banks import create_bank
from pullpush.data.clips import Config, World
from pullpush.data.language.wording import LexiconConfig
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.lab import common
from pullpush.lab.compute import Ground, View
from pullpush.lab.experiments import System, Trial
from pullpush.lab.material import NOTHING, PARTS
from pullpush.lab.session import Session
from pullpush.rewriting import create as rewriter
from pullpush.studies.distill.labels import Blind, ByModel, ByText, Dealt, Shuffled
from pullpush.studies.distill.stages import AUGMENTS, ENCODERS, ENSEMBLE, LAST, MAIN, SMOOTHING, WORLD, WORLDS, Stage
from pullpush.studies.own_data import is_own, is_small, languages_of, tell_scenes
from pullpush.studies.taught import PARTS as SOFT_LABELS, Classes, Labels, Run, TaughtConfig, Teacher, Truth, loaded
from pullpush.topics import TopicsError
from pullpush.training.frozen import encoded
from pullpush.training.recipes import weighted
from pullpush.training.runs import Plan
from pullpush.training.trunk import Published

PART = {"pretrain": 2 / 3, "finetune": 0.2}  # of the profile's training scenes; the smaller part is in the larger
SMALLER = {"pretrain": 0.3, "finetune": 0.15}  # of all worlds but the first
TESTED = 300  # clips of such a world, at most
PASSES = 3  # in each stage, as a multiple of the profile's epochs
BATCH, LEAST = 64, 8  # PaSST's, §3.4; and however few clips there are
TAU = 0.05
MIXES = 1.0  # mixed clips, as a multiple of the clips
EVENTS = 100  # of a bank, at most
TOPICS = 24  # to which topics are merged, where their number is not what is varied
WEIGHT = 0.05  # λ₂, §2.3


class Context(Ground):
    """The lab's data and runs by their stages; see `compute.Ground` and the top of this module."""

    name, galleries = "three stages", 4
    rates: Mapping[str, float] = {}  # in place of a stage's own

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        super().__init__(book, compute_long)
        self.is_small = is_small(book.settings)  # encoders have random weights, as in the profile smoke
        self.dim = max(8, book.settings.dim // 2)
        self._stages: dict[str, Stage] = {}
        self._worlds: dict[tuple[str, str], World] = {}
        self._plans: dict[tuple[Stage, int], Plan] = {}
        tell_scenes(book.settings)

    @property
    def parts(self) -> Sequence[str]:
        trunks = sorted({part for name in ENCODERS for part in self.trunk(name).parts})
        words = ("data/lexicon", "data/augmented", "data/mixing", "studies/rewriting")
        return *PARTS, *words, *SOFT_LABELS, *self.topics("generic", 0).parts, *trunks

    def trial(
        self, name: str, stage: Stage, where: Mapping[str, Any] | None = None, recipe: str = "", **overrides: Any
    ) -> Trial:
        """A system of an experiment: a stage, tested on the clips of the finetuning world."""
        own, options = self.system(stage, **overrides)
        tested = Stage("finetune", encoder=stage.encoder, world=stage.world)
        return Trial(name, recipe or own, options, dict(where or {}), self.named(stage), self.named(tested))

    def named(self, stage: Stage) -> str:
        """The name of a stage, by which `view` knows it from now on."""
        self._stages[stage.name] = stage
        return stage.name

    def view_of(self, stage: Stage) -> View:
        """The data of a stage, and the runs that come before it."""
        return self.view(self.named(stage))

    def _view(self, name: str) -> View:
        stage = self._stages[name]
        plain = self._encoded(self.config(stage), stage.encoder)
        options: dict[str, Any] = {"taught": partial(self._taught, stage)} if stage.teacher or stage.topics else {}
        if stage.start:
            options |= {"base": partial(self.plan, stage.start), "before": partial(self._before, stage)}
        return View(self.book, plain, self._overrides(stage), **options)

    def plan(self, stage: Stage, seed: int) -> Plan:
        """The run of a stage that others start from, or learn from."""
        if (stage, seed) not in self._plans:
            view = self.view_of(stage)
            self._plans[stage, seed] = view.plan(view.recipe(*self.system(stage)), seed)
        return self._plans[stage, seed]

    def system(self, stage: Stage, **overrides: Any) -> System:
        """The recipe of a stage and its overrides: its rate, the heads' sizes and the weight of clusters."""
        rate = {"lr": self.rates.get(stage.kind, stage.rate)}
        options: dict[str, Any] = dict(NOTHING) if stage.kind == "untrained" else rate
        if stage.topics:
            kind, _, count = stage.topics.partition(":")
            most = EVENTS if kind == "truth" else int(count or TOPICS)
            options |= {"topics": most, "clusters.dim": self.dim, **weighted(stage.recipe, clusters=WEIGHT)}
        return stage.recipe, {**options, **overrides}

    def teachers(self, name: str, seed: int, world: str = WORLD) -> tuple[Teacher, ...]:
        """The teachers of a name, as `soft_labels` takes them."""
        known: dict[str, Teacher] = {"truth": Truth(), "blind": Blind(self.dim, seed)}
        if name in known:
            return (known[name],)
        if name == "dealt":
            return (Dealt(self.teachers(ENSEMBLE, seed, world), seed),)
        return tuple(self._run(each, seed) for each in Stage("finetune", name, world=world).teachers)

    def topics(self, source: str, seed: int, world: str = WORLD) -> Labels:
        """Where topics come from: "finetuned", "generic", "random", "truth", each with ":K" for so many."""
        kind, _, count = source.partition(":")
        size: dict[str, Any] = {"size": 1, "dimensions": 0} if self.is_small else {"size": 4}
        size["count"] = int(count or TOPICS)
        if kind == "finetuned":
            return ByModel(model=self._run(replace(LAST, world=world), seed), **size, seed=seed)
        generic = ByText(text="hashed" if self.is_small else "minilm", **size)
        return {"generic": generic, "random": Shuffled(generic, seed), "truth": Classes("event")}[kind]

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
        if world.moves:
            size["bank"] = halves(size["bank"])[kind == "finetune"]
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

    def _overrides(self, stage: Stage) -> dict[str, Any]:
        settings = self.book.settings
        epochs = PASSES * settings.epochs / (1 + MIXES * ("mix" in AUGMENTS.get(stage.augment, ())))  # as many steps
        return {
            "captions": "random",
            "checkpoint": WORLDS[stage.world].checkpoint,
            "epochs": 1 if self.is_small else max(1, round(epochs)),
            "batch_size": max(LEAST, min(BATCH, settings.world["n_train"] // 4)),
            "dim": self.dim,
            "tau": TAU,
        }

    def _run(self, stage: Stage, seed: int) -> Run:
        return Run(self.plan(stage, seed).key, self.trunk(stage.encoder))

    def _before(self, stage: Stage, seed: int) -> list[list[Plan]]:
        """All runs that a stage needs, in rounds of those that can be trained side by side."""
        first = [self.plan(each, seed) for each in stage.needs if not each.start]
        second = [self.plan(each, seed) for each in stage.needs if each.start]
        return [first, *([second] if second else [])]

    def _taught(self, stage: Stage, seed: int) -> World:
        topics = self.topics(stage.topics, seed, stage.world) if stage.topics else None
        teachers = self.teachers(stage.teacher, seed, stage.world) if stage.teacher else ()
        return self._encoded(TaughtConfig(self.config(stage), teachers, topics), stage.encoder)

    def _encoded(self, config: Config, encoder: str) -> World:
        key = (repr(config), encoder)
        if key not in self._worlds:
            self._worlds[key] = encoded(loaded(config), self.trunk(encoder))
        return self._worlds[key]


@lru_cache(maxsize=8)  # every run of a moved world asks, and a bank is read and hashed whole
def halves(bank: str) -> tuple[str, str]:
    """The largest category of a bank's events, and all others: two banks that share none; one that has no categories
    is both.

    >>> halves("synthetic")
    ('synthetic:signal', 'synthetic:machine,noise,percussion,sweep')
    """
    first, *others = [name for name, _ in Counter(event.category for event in create_bank(bank).events).most_common()]
    return (bank, bank) if ":" in bank or not others else (f"{bank}:{first}", f"{bank}:{','.join(sorted(others))}")


FIRST, CONTROL = "pretrained", "the contrast again"  # systems of the lesson
SMOOTHED, SOFT, BOTH = "label smoothing", "soft labels", "soft labels and topics"


class LessonContext(Context):
    """The lesson's world: as small as a page can train, in few words, half of the scenes of one sound."""

    name = "scenes told in few words"
    part, singles = 0.4, 0.5  # of the profile's training clips; how often a scene holds one sound
    rates: Mapping[str, float] = {"pretrain": 1e-3, "finetune": 5e-4}

    def __init__(self, book: Session, compute_long: bool = False) -> None:
        is_readers = book.settings.file is not None  # whose data nothing was stored of: small enough to train at once
        super().__init__(replace(book, settings=book.settings.listening), compute_long or is_readers)

    @cached_property
    def world(self) -> World:
        """The clips as audio."""
        return self.source(Stage("pretrain"))

    @property
    def batch(self) -> int:
        """Pairs in one."""
        return min(BATCH, len(self.world.train) // 4)

    @cached_property
    def has_topics(self) -> bool:
        """Whether captions differ enough to have topics; those of a small bank of one's own may not."""
        with suppress(TopicsError):
            if is_own(self.book.settings.world["bank"]):
                self.topics("generic", 0).of(self.world.train)
            return True
        return False

    def trials(self) -> tuple[Trial, ...]:
        """The pretrained model, and what becomes of it in as many further passes."""
        soft = Stage("finetune", ENSEMBLE)
        first = [self.trial(FIRST, Stage("pretrain")), self.trial(CONTROL, Stage("finetune"))]
        topics = [self.trial(BOTH, replace(soft, topics="generic"))] if self.has_topics else []
        return *first, self.trial(SMOOTHED, soft, **SMOOTHING), self.trial(SOFT, soft), *topics

    def config(self, stage: Stage) -> Config:
        size = {**self.book.settings.world}
        size |= {"n_train": max(48, round(self.part * size["n_train"])), "n_valid": min(200, size["n_valid"])}
        size["scene"] = common.scene(self.book, max_events=2, p_single=self.singles)
        return LexiconConfig(WorldConfig(**size), "narrow", 2.0)

    def topics(self, source: str, seed: int, world: str = WORLD) -> ByText:
        """Topics of generic sentence embeddings, the paper's system 5, by the profile's text encoder."""
        return ByText(count=TOPICS, size=2, text=self.book.settings.text)

    def trunk(self, encoder: str) -> Published:
        """See `Context`; the student's is the profile's own."""
        return common.published_trunk(self.book) if encoder == MAIN else ENCODERS[encoder]

    def _overrides(self, stage: Stage) -> dict[str, Any]:
        epochs = max(1, PASSES * self.book.settings.epochs)
        return {"dim": self.dim, "batch_size": self.batch, "epochs": epochs, "tau": TAU}

    def _taught(self, stage: Stage, seed: int) -> World:
        if stage.topics:  # found here, and read by the processes that train: UMAP compiles itself in each that searches
            self.topics(stage.topics, seed).of(self.world.train)
        return super()._taught(stage, seed)
