"""The stages of Soft-Label Distillation (Figure 1) as names of views, and the systems of its Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pullpush.errors import unknown
from pullpush.training.trunk import Published

KINDS = ("pretrain", "finetune", "refinetune")
# In the place of PaSST, EAT and BEATs.
EARS: Mapping[str, Published] = {
    "yamnet": Published("yamnet"),
    "reconstruction": Published("audio_transformer", {"weights": "masked-reconstruction"}),
    "prediction": Published("audio_transformer", {"weights": "masked-prediction"}),
}
MAIN = "yamnet"
STANDS_FOR: Mapping[str, str] = {"yamnet": "PaSST", "reconstruction": "EAT", "prediction": "BEATs"}
ENSEMBLE = "ensemble"
TEACHERS = (ENSEMBLE, *EARS, "untrained", "truth", "blind")
AUGMENTS: Mapping[str, tuple[str, ...]] = {
    "all": ("back-translation", "words", "mix"),
    "back-translation": ("back-translation",),
    "deletion": ("deletion",),
    "synonyms": ("synonyms",),
    "mix": ("mix",),
}
WORLD = "scenes"  # the chapter's own


@dataclass(frozen=True)
class Told:
    """A world of some ambiguity. scene: fields of SceneConfig; vocabulary: see `language.lexicon`; about: in words."""

    scene: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: str = "rich"
    about: str = ""


AMBIGUITY: Mapping[str, Told] = {
    WORLD: Told(),
    "pairs": Told(about="mostly two sounds"),
    "narrow": Told(vocabulary="narrow", about="mostly two sounds, few words"),
    "half": Told({"p_single": 0.5}, about="one sound or two"),
    "single": Told({"p_single": 1.0}, about="one sound"),
}


@dataclass(frozen=True)
class Stage:
    """A stage of training: what is learnt from, beside the clips and their captions.

    kind: of KINDS; teacher: of TEACHERS, "" for none; augment: of AUGMENTS, "" for none; topics: their source, see
    `Grounds.topics`, "" for none.

    Raises:
        UnknownNameError: another kind, teacher or augmentation.

    >>> Stage("finetune", "ensemble").named(), Stage("refinetune", "ensemble", "all", "generic:8").before.augment
    ('finetune teacher=ensemble/yamnet', 'all')
    """

    kind: str
    teacher: str = ""
    augment: str = ""
    topics: str = ""

    def __post_init__(self) -> None:
        known = {"kind": KINDS, "teacher": ("", *TEACHERS), "augment": ("", *AUGMENTS)}
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise unknown(name, getattr(self, name), values)

    def named(self, ears: str = MAIN, ambiguity: str = WORLD) -> str:
        """The view's name; see grounds.py."""
        parts = [f"{name}={getattr(self, name)}" for name in ("teacher", "augment", "topics") if getattr(self, name)]
        return "/".join([" ".join([self.kind, *parts]), ears, *([ambiguity] if ambiguity != WORLD else [])])

    @property
    def before(self) -> Stage:
        """The stage that this one starts from, without topics."""
        return Stage("pretrain") if self.kind == "finetune" else replace(self, kind="finetune", topics="")

    @property
    def recipe(self) -> str:
        """The terms: InfoNCE, soft labels where there are teachers, heads where there are topics (Eq. 4, 9, 10)."""
        return "infonce" + "+distillation" * bool(self.teacher) + "+clusters" * bool(self.topics)


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


def parsed(name: str) -> tuple[Stage, str, str]:
    """The stage, the ears and the ambiguity of a view's name.

    >>> parsed("refinetune teacher=ensemble topics=generic:8/prediction/single")[0].topics
    'generic:8'

    Raises:
        UnknownNameError: see Stage; a part that no stage has.
    """
    stage, _, rest = name.partition("/")
    ears, _, ambiguity = rest.partition("/")
    kind, *parts = stage.split(" ")
    told = dict(part.split("=", 1) for part in parts if "=" in part)
    for part in (*told, *(part for part in parts if "=" not in part)):
        if part not in ("teacher", "augment", "topics"):
            raise unknown("part of a stage", part, ("teacher", "augment", "topics"))
    return Stage(kind, **told), ears or MAIN, ambiguity or WORLD
