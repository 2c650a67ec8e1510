"""What chapter 6 trains, as data: the three stages, the systems that are made of them, and the worlds they learn from.

Where the paper has PaSST, a tagger trained on AudioSet, there is YAMNet; for EAT and BEATs, trained on audio alone by
reconstruction and by prediction of masked parts, a small transformer pretrained in either way. All stay as they are
published; a projection of theirs and of a sentence encoder's output are trained.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pullpush.training.trunk import Published

# In the place of PaSST, EAT and BEATs.
ENCODERS: Mapping[str, Published] = {
    "yamnet": Published("yamnet"),
    "reconstruction": Published("audio_transformer", {"weights": "masked-reconstruction"}),
    "prediction": Published("audio_transformer", {"weights": "masked-prediction"}),
}
MAIN, ENSEMBLE, WORLD, MOVED = "yamnet", "ensemble", "scenes", "other events"
AUGMENTS: Mapping[str, tuple[str, ...]] = {
    "all": ("back-translation", "words", "mix"),
    **{part: (part,) for part in ("back-translation", "deletion", "synonyms", "mix")},
}
# Rates that the lab's searches chose on validation: constants, for those of an early stage name all later runs.
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


class Kind(NamedTuple):
    """A world of scenes. scene: of SceneConfig; vocabulary: see `language.wording`; checkpoint: of its runs, see
    Recipe; moves: whether the events of pretraining are others than those of the later stages.
    """

    about: str = ""
    scene: Mapping[str, Any] = {}
    vocabulary: str = "rich"
    checkpoint: str = "best"
    moves: bool = False


DOSED: Mapping[str, float] = {f"{p:.0%} single": p for p in (0.0, 0.25, 0.5, 0.75, 1.0)}  # world → share of scenes
WORLDS: Mapping[str, Kind] = {
    WORLD: Kind(),
    "pairs": Kind("mostly two sounds"),
    "narrow": Kind("mostly two sounds, few words", vocabulary="narrow"),
    "single": Kind("one sound", {"p_single": 1.0}),
    # How many scenes hold one sound, as a dose; no epoch is chosen by validation.
    **{world: Kind("", {"p_single": p}, checkpoint="last") for world, p in DOSED.items()},
    MOVED: Kind("other sounds than those of pretraining", checkpoint="last", moves=True),
}


@dataclass(frozen=True)
class Stage:
    """A stage of training.

    kind: "untrained" (a teacher that knows nothing yet), "pretrain", "finetune", "refinetune"; teacher: "ensemble", an
    encoder, "untrained", "dealt" (the ensemble's at random), "truth" or "blind", "" for none; augment: of AUGMENTS, ""
    for none; topics: their source, see `Context.topics`, "" for none; encoder: of ENCODERS; world: of WORLDS.

    >>> Stage("finetune", "ensemble").name, Stage("refinetune", "ensemble", "all", "generic:8").start.augment
    ('finetune teacher=ensemble/yamnet', 'all')
    """

    kind: str
    teacher: str = ""
    augment: str = ""
    topics: str = ""
    encoder: str = MAIN
    world: str = WORLD

    @property
    def name(self) -> str:
        """What experiments call its data by; stored results hold it."""
        parts = [f"{name}={getattr(self, name)}" for name in ("teacher", "augment", "topics") if getattr(self, name)]
        return "/".join([" ".join([self.kind, *parts]), self.encoder, *([self.world] if self.world != WORLD else [])])

    @property
    def start(self) -> "Stage | None":
        """The stage whose weights it starts from; None of the first."""
        if self.kind == "refinetune":
            return replace(self, kind="finetune", topics="")
        return Stage("pretrain", encoder=self.encoder, world=self.world) if self.kind == "finetune" else None

    @property
    def teachers(self) -> "tuple[Stage, ...]":
        """The stages whose models give its soft labels; none where no model does."""
        kind = "untrained" if self.teacher == "untrained" else "pretrain"
        chosen = [each for each in ENCODERS if self.teacher in (ENSEMBLE, "untrained", "dealt", each)]
        return tuple(Stage(kind, encoder=each, world=self.world) for each in chosen)

    @property
    def needs(self) -> "tuple[Stage, ...]":
        """All stages that are trained before it, each after what it needs itself."""
        models = (replace(LAST, world=self.world),) if self.topics.startswith("finetuned") else ()
        direct = [*((self.start,) if self.start else ()), *self.teachers, *models]
        return tuple(dict.fromkeys(stage for each in direct for stage in (*each.needs, each)))

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
        return ", ".join([kind, *["soft labels"] * bool(self.teacher), *["augmented"] * bool(self.augment)])

    @property
    def rate(self) -> float:
        """Its learning rate."""
        return CHOSEN.get((self.label, self.encoder), CHOSEN.get((self.label, MAIN), DEFAULT))


LAST = Stage("finetune", ENSEMBLE, "all")  # system 3, on which clusters build
# Table 1's by their numbers, and for each a control with as many passes that lacks what it adds.
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
SMOOTHING: Mapping[str, Any] = {"recipe": "infonce+label-smoothing", "like_teacher": True}  # of the teachers' entropy
