"""The stages of Soft-Label Distillation (Figure 1) as data, the systems of its Table 1, and what each is trained with.

SYSTEMS["3"]                                   # finetuned with soft labels and augmentation
Stage("finetune", "ensemble", world="single")  # with soft labels, in another world
SYSTEMS["4"].needs                             # all stages that have to be trained before it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pullpush.errors import unknown
from pullpush.training.trunk import Published

KINDS = ("untrained", "pretrain", "finetune", "refinetune")  # the first for a teacher that knows nothing yet
# In the place of PaSST, EAT and BEATs.
ENCODERS: Mapping[str, Published] = {
    "yamnet": Published("yamnet"),
    "reconstruction": Published("audio_transformer", {"weights": "masked-reconstruction"}),
    "prediction": Published("audio_transformer", {"weights": "masked-prediction"}),
}
MAIN = "yamnet"
STANDS_FOR: Mapping[str, str] = {"yamnet": "PaSST", "reconstruction": "EAT", "prediction": "BEATs"}
ENSEMBLE = "ensemble"
TEACHERS = (ENSEMBLE, *ENCODERS, "untrained", "truth", "blind")
AUGMENTS: Mapping[str, tuple[str, ...]] = {
    "all": ("back-translation", "words", "mix"),
    "back-translation": ("back-translation",),
    "deletion": ("deletion",),
    "synonyms": ("synonyms",),
    "mix": ("mix",),
}


@dataclass(frozen=True)
class Ambiguity:
    """How ambiguous a world is. scene: fields of SceneConfig; vocabulary: see `language.wording`; about: in words."""

    scene: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: str = "rich"
    about: str = ""


WORLD = "scenes"  # the chapter's
WORLDS: Mapping[str, Ambiguity] = {
    WORLD: Ambiguity(),
    "pairs": Ambiguity(about="mostly two sounds"),
    "narrow": Ambiguity(vocabulary="narrow", about="mostly two sounds, few words"),
    "single": Ambiguity({"p_single": 1.0}, about="one sound"),
}
# Learning rates, as the searches of the lab chose them on validation: constants, for a run's name holds what it was
# trained by, so that the rates of an early stage decide the names of all later ones.
GRID: Mapping[str, tuple[float, ...]] = {"pretrain": (3e-4, 1e-3, 3e-3), "finetune": (1e-4, 3e-4, 1e-3)}
DEFAULT = 1e-3
# (label, encoder) → rate; later stages are searched with the first encoder alone.
CHOSEN: Mapping[tuple[str, str], float] = {
    ("pretrain", "yamnet"): 1e-3,
    ("pretrain", "reconstruction"): 3e-3,
    ("pretrain", "prediction"): 3e-3,
    ("finetune", "yamnet"): 3e-4,
    ("finetune, soft labels", "yamnet"): 3e-4,
    ("finetune, soft labels, augmented", "yamnet"): 1e-4,
    ("finetune, augmented", "yamnet"): 1e-4,  # as with soft labels: no system of Table 1, and not searched
}


@dataclass(frozen=True)
class Stage:
    """A stage of training.

    kind: of KINDS; teacher: of TEACHERS, "" for none; augment: of AUGMENTS, "" for none; topics: their source, see
    `Grounds.topics`, "" for none; encoder: of ENCODERS, of the clips; world: of WORLDS.

    Raises:
        UnknownNameError: another name of one of these but topics.

    >>> Stage("finetune", "ensemble").name, Stage("refinetune", "ensemble", "all", "generic:8").start.augment
    ('finetune teacher=ensemble/yamnet', 'all')
    """

    kind: str
    teacher: str = ""
    augment: str = ""
    topics: str = ""
    encoder: str = MAIN
    world: str = WORLD

    def __post_init__(self) -> None:
        known = {"kind": KINDS, "teacher": ("", *TEACHERS), "augment": ("", *AUGMENTS)}
        for name, values in {**known, "encoder": ENCODERS, "world": WORLDS}.items():
            if getattr(self, name) not in values:
                raise unknown(name, getattr(self, name), values)

    @property
    def name(self) -> str:
        """What experiments call its data by."""
        parts = [f"{name}={getattr(self, name)}" for name in ("teacher", "augment", "topics") if getattr(self, name)]
        return "/".join([" ".join([self.kind, *parts]), self.encoder, *([self.world] if self.world != WORLD else [])])

    @property
    def start(self) -> Stage | None:
        """The stage whose weights it starts from; None of the first."""
        if self.kind == "refinetune":
            return replace(self, kind="finetune", topics="")
        return Stage("pretrain", encoder=self.encoder, world=self.world) if self.kind == "finetune" else None

    @property
    def teachers(self) -> tuple[Stage, ...]:
        """The stages whose models give its soft labels; none where no model does."""
        kind = "untrained" if self.teacher == "untrained" else "pretrain"
        chosen = [each for each in ENCODERS if self.teacher in (ENSEMBLE, "untrained", each)]
        return tuple(Stage(kind, encoder=each, world=self.world) for each in chosen)

    @property
    def topic_model(self) -> Stage:
        """The stage whose model gives topics that are "finetuned"."""
        return replace(LAST, world=self.world)

    @property
    def needs(self) -> tuple[Stage, ...]:
        """All stages that are trained before it, each after what it needs itself."""
        models = (self.topic_model,) if self.topics.startswith("finetuned") else ()
        direct = [*((self.start,) if self.start else ()), *self.teachers, *models]
        return tuple(dict.fromkeys(stage for one in direct for stage in (*one.needs, one)))

    @property
    def recipe(self) -> str:
        """The terms: InfoNCE, soft labels where there are teachers, heads where there are topics (Eq. 4, 9, 10)."""
        return "infonce" + "+distillation" * bool(self.teacher) + "+clusters" * bool(self.topics)

    @property
    def label(self) -> str:
        """What the searches call it: its kind, and whether it has soft labels and augmentation. Other teachers and
        parts of the augmentation share a rate, and so does what is finetuned once more, with topics or without.
        """
        kind = "finetune" if self.start else "pretrain"
        parts = ("soft labels" * bool(self.teacher), "augmented" * bool(self.augment))
        return ", ".join([kind, *filter(None, parts)])

    @property
    def rate(self) -> float:
        """Its learning rate.

        >>> Stage("finetune", encoder="prediction").rate == Stage("finetune").rate
        True
        """
        return CHOSEN.get((self.label, self.encoder), CHOSEN.get((self.label, MAIN), DEFAULT))


LAST = Stage("finetune", ENSEMBLE, "all")  # system 3, on which clusters build
# Those of Table 1 by their numbers, and for each a control with as many passes that lacks what it adds.
SYSTEMS: Mapping[str, Stage] = {
    "1": Stage("pretrain"),
    "1, finetuned": Stage("finetune"),
    "1, again": Stage("refinetune"),
    "2": Stage("finetune", ENSEMBLE),
    "2, again": Stage("refinetune", ENSEMBLE),
    "3": LAST,
    "3, again": replace(LAST, kind="refinetune"),
    "4": replace(LAST, kind="refinetune", topics="finetuned"),
    "5": replace(LAST, kind="refinetune", topics="generic"),
}
