"""The seven factors of chapter 7, each from one of the five papers, and the recipe of any combination of them.

systems = {label(run): system(run) for run in half().runs}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pullpush.lab.experiments import System
from pullpush.studies.together.design import Design, fraction
from pullpush.training.terms import Term

SIGMOID, SVR, CYCLES, SIMCSE, ALL, SOFT, TOPICS = (
    "sigmoid", "SVR", "cycles", "SimCSE", "all languages", "soft labels", "topics",
)  # fmt: skip
ROOM = 128  # topics that the heads have room for; the captions have fewer
NAMES = (SIGMOID, SVR, CYCLES, SIMCSE, ALL, SOFT, TOPICS)
LETTERS = dict(zip(NAMES, "ABCDEFG", strict=True))  # that factors have in a design
NONE = "InfoNCE"  # the run in which all are low
# The losses with what they learn beside the encoders, and the summands with the weights that their papers give. KCL is
# half of InfoNCE where there is one language.
SOFTMAX_LOSS = Term("kcl", 2.0, {"learnable": True})
SIGMOID_LOSS = Term("siglip-languages", 1.0, {"form": "siglip"})
SUMMANDS: Mapping[str, tuple[Term, ...]] = {
    SVR: (Term("svr", options={"modelling": "dynamic", "direction": "both", "beta": 0.01}),),
    CYCLES: (Term("cross-cyclic", 0.25, {"per_clip": True}), Term("in-modal-cyclic", 0.25, {"per_clip": True})),
    SIMCSE: (Term("simcse", 0.1),),
    SOFT: (Term("distillation"),),
}
HEADS = 0.05  # λ₂


def half() -> Design:
    """2^(7−1) = 64 runs of resolution VII: main effects and two-way interactions are aliased with nothing that has
    fewer than five factors.
    """
    return fraction(NAMES, {TOPICS: NAMES[:-1]})


def small() -> Design:
    """2^(5−1) = 16 runs of resolution V, of five of the factors: for a profile that only tries whether all runs."""
    names = (SIGMOID, SVR, ALL, SOFT, TOPICS)
    return fraction(names, {TOPICS: names[:-1]})


def eighth() -> Design:
    """2^(7−3) = 16 runs of resolution IV: main effects are clear of each other and of two-way interactions, and these
    are aliased in groups of three.
    """
    return fraction(NAMES, {ALL: NAMES[:3], SOFT: NAMES[1:4], TOPICS: (NAMES[0], NAMES[2], NAMES[3])})


def label(high: Collection[str]) -> str:
    """What tables call a run.

    >>> label({"SimCSE", "SVR"}), label(set())
    ('SVR + SimCSE', 'InfoNCE')
    """
    return " + ".join(name for name in NAMES if name in high) or NONE


def high_of(system: str) -> frozenset[str]:
    """The factors that a label names.

    >>> sorted(high_of("SVR + SimCSE")), high_of("InfoNCE")
    (['SVR', 'SimCSE'], frozenset())
    """
    return frozenset(system.split(" + ")) & set(NAMES)


def terms_of(high: Collection[str], *, dim: int) -> tuple[Term, ...]:
    """The summands of a combination's objective; dim: of the joint space, for the heads of topics."""
    loss = SIGMOID_LOSS if SIGMOID in high else SOFTMAX_LOSS
    summands = [term for name, terms in SUMMANDS.items() if name in high for term in terms]
    heads = [Term("clusters", HEADS, {"topics": ROOM, "dim": dim})] if TOPICS in high else []
    return (loss, *summands, *heads)


def system(high: Collection[str], *, dim: int, tuned: Mapping[str, Mapping[str, Any]] | None = None) -> System:
    """The recipe of a combination; dim: of the joint space; tuned: label of the loss, "softmax" or "sigmoid" → options
    that its search chose.

    One language means one that is drawn anew for every clip and epoch, as in ML-CLAP; all of them are there at every
    step, as in KCL. SVR and the loss see all that there are, and the other summands the main text of a clip.
    """
    name = SIGMOID if SIGMOID in high else "softmax"
    sampling = "all" if ALL in high else "random"
    own = (tuned or {}).get(name, {})
    return "kcl", {"terms": terms_of(high, dim=dim), "sampling": sampling, **own}
