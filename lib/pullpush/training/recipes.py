"""Recipes: all that makes one training run differ from another, as data.

A named system of a paper is one row of `RECIPES`; `recipe("a+b")` sums the terms of two rows. A new loss is one row
of `TERMS`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from torch import nn

from pullpush.data.batches import CAPTIONS, SAMPLING
from pullpush.data.vocabulary import LANGUAGES
from pullpush.errors import unknown
from pullpush.losses import CACL, KCL, MLCLAP, SVR, InfoNCE, SigLIP, SimpleReweight
from pullpush.source import Registry
from pullpush.training.adapters import OnEachLanguage, OnLanguages, OnPair, OnTriplet, Pair

__all__ = ["RECIPES", "TERMS", "Pair", "Recipe", "Row", "Term", "from_json", "recipe"]

OPTIMISERS = ("adam", "adamw")
SCHEDULES = ("cosine", "constant")


class Row(NamedTuple):
    """How to make a term: `adapt(loss(**options))` is a module whose forward takes a Pair and gives a 0-d loss."""

    loss: Callable[..., nn.Module]
    adapt: Callable[[nn.Module], nn.Module] = OnPair

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options."""
        return tuple(self.defaults)

    @property
    def defaults(self) -> dict[str, Any]:
        """Option → default; `inspect.Parameter.empty` where it must be given."""
        return {name: option.default for name, option in inspect.signature(self.loss).parameters.items()}


TERMS: Registry[str, Row] = Registry(
    {
        "infonce": Row(InfoNCE),
        "siglip": Row(SigLIP),
        "svr": Row(SVR, OnEachLanguage),
        "simple-reweight": Row(SimpleReweight),
        "ml-clap": Row(MLCLAP),
        "kcl": Row(KCL, OnLanguages),
        "cacl": Row(CACL, OnTriplet),
    }
)


@dataclass(frozen=True)
class Term:
    """One summand of the objective.

    name: a row of TERMS; weight: its factor; options: keyword arguments of the row's loss; those equal to its defaults
    are dropped, so that terms that do the same are equal (all but `tau`, which a recipe looks after).

    Raises:
        UnknownNameError: no such term, or it has no such option.
    """

    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in TERMS:
            raise unknown("loss term", self.name, TERMS)
        for option in self.options:
            if option not in TERMS[self.name].options:
                raise unknown(f"option of {self.name}", option, TERMS[self.name].options)
        defaults = TERMS[self.name].defaults
        kept = {name: value for name, value in self.options.items() if name == "tau" or value != defaults[name]}
        object.__setattr__(self, "options", kept)

    def create(self, batch_size: int | None = None) -> nn.Module:
        """The term as a module: Pair → 0-d loss, not yet weighted.

        batch_size: largest batch that will come, for losses whose parameters depend on it, unless an option says so.
        """
        row = TERMS[self.name]
        sized = {"batch_size": batch_size} if batch_size and "batch_size" in row.options else {}
        return row.adapt(row.loss(**sized | self.options))


def _one_temperature(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms without temperatures that they have anyway: the first its default, the others that of the first.

    So recipes that do the same are equal. A term beside a learnable temperature keeps a fixed one that it names.
    """
    first: Term | None = None
    result = []
    for term in terms:
        defaults = TERMS[term.name].defaults
        if "tau" in defaults and "tau" in term.options:
            if first is None:
                same = term.options["tau"] == defaults["tau"]
            else:
                own = TERMS[first.name].defaults | first.options
                same = not own.get("learnable", False) and term.options["tau"] == own["tau"]
            if same:
                term = replace(term, options={key: value for key, value in term.options.items() if key != "tau"})
        if first is None and "tau" in defaults:
            first = term
        result.append(term)
    return tuple(result)


@dataclass(frozen=True)
class Recipe:
    """One system, complete.

    Attributes:
        name: what tables call it.
        terms: the summands of the objective. One temperature serves them all: that of the first term that has one. A
            later term keeps its own only where its options name a `tau` that differs.
        audio, text: names of the encoders; dim: dimensions of the joint space.
        encoder_options: further keyword arguments of `encoders.create`.
        languages, sampling, captions: which captions a clip brings, see `PairDataset`.
        optimiser: "adam" or "adamw"; lr: peak learning rate; weight_decay: on matrices and kernels only.
        scalar_lr: factor on `lr` for numbers that a loss learns: temperature, bias, radius, weight. Under Adam a number
            moves by at most about the sum of the learning rates, 0.2 in a short run, while weights of an encoder need
            far less; 30 lets a bias or a radius arrive where it would rest. network_lr: the same for networks that a
            loss learns (SVR's predictor), whose outputs move with all their weights at once.
        epochs: passes over the training clips; batch_size: clips in a step, over all processes together.
        schedule: "cosine" (to zero) or "constant", after `warmup`, the fraction of all steps in which the rate grows.
        clip: largest norm of the gradient; 0 leaves it alone.
        text_chunk: texts that a process encodes at once, with cached gradients (see chunked.py): the same training up
            to rounding, at the memory of a chunk. 0: the whole batch. None: as many as clips where sampling is "all"
            and the text encoder is trained, else the whole batch.

    Raises:
        UnknownNameError: an unknown optimiser, schedule, sampling or caption choice.
        ValueError: a number out of range.
    """

    name: str
    terms: tuple[Term, ...]
    audio: str = "cnn"
    text: str = "use"
    dim: int = 256
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    languages: tuple[str, ...] = ("eng",)
    sampling: str = "fixed"
    captions: str = "first"
    optimiser: str = "adam"
    lr: float = 1e-3
    weight_decay: float = 1e-4
    epochs: int = 5
    batch_size: int = 24
    warmup: float = 0.1
    schedule: str = "cosine"
    clip: float = 1.0
    scalar_lr: float = 30.0
    network_lr: float = 1.0
    text_chunk: int | None = None

    def __post_init__(self) -> None:
        terms = tuple(Term(**term) if isinstance(term, Mapping) else term for term in self.terms)
        languages = (self.languages,) if isinstance(self.languages, str) else tuple(self.languages)
        object.__setattr__(self, "terms", _one_temperature(terms))
        object.__setattr__(self, "languages", languages)
        choices = {"optimiser": OPTIMISERS, "schedule": SCHEDULES, "sampling": SAMPLING, "captions": CAPTIONS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        valid = {
            "terms": len(terms) > 0,
            "dim": self.dim >= 1,
            "lr": self.lr > 0,
            "weight_decay": self.weight_decay >= 0,
            "epochs": self.epochs >= 1,
            "batch_size": self.batch_size >= 1,
            "warmup": 0 <= self.warmup <= 1,
            "clip": self.clip >= 0,
            "scalar_lr": self.scalar_lr >= 0,
            "network_lr": self.network_lr >= 0,
            "text_chunk": self.text_chunk is None or self.text_chunk >= 0,
        }
        for name, good in valid.items():
            if not good:
                raise ValueError(f"{name} = {getattr(self, name)!r} of recipe {self.name!r} is out of range")

    def to_json(self) -> str:
        """The recipe as JSON; `from_json` reads it back."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)


def _svr_recipes() -> Iterator[Recipe]:
    """SVR in one direction or two, static or dynamic, to be added to a loss ("infonce+bi-dynamic-svr").

    As in the paper the static radius is free and the dynamic one constrained, unless the name says otherwise.
    """
    for prefix, direction in (("uni", "t2a"), ("bi", "both")):
        for modelling, own, suffix in (("static", 0.0, "-constrained"), ("dynamic", 0.01, "-unconstrained")):
            options = {"modelling": modelling, "direction": direction}
            for name, beta in ((f"{prefix}-{modelling}-svr", own), (f"{prefix}-{modelling}-svr{suffix}", 0.01 - own)):
                yield Recipe(name, (Term("svr", options={**options, "beta": beta}),))


RECIPES: Mapping[str, Recipe] = Registry(
    {
        row.name: row
        for row in (
            Recipe("infonce", (Term("infonce"),)),
            Recipe("infonce-learnable", (Term("infonce", options={"learnable": True}),)),
            Recipe("siglip", (Term("siglip"),)),
            Recipe("simple-reweight", (Term("simple-reweight"),)),
            Recipe("ml-clap", (Term("ml-clap"),), languages=LANGUAGES, sampling="random"),
            Recipe("cacl", (Term("cacl"),), languages=LANGUAGES, sampling="pair"),
            Recipe("kcl", (Term("kcl"),), languages=LANGUAGES, sampling="all"),
            *_svr_recipes(),
        )
    }
)


def recipe(name: str, **overrides: Any) -> Recipe:
    """A registered recipe, or a sum of several ("a+b"), changed by `overrides`.

    A sum has the terms of all its parts, in their order, and every other field that a part sets.

    Args:
        name: names of RECIPES joined by "+".
        overrides: fields of Recipe, or options of its terms: `recipe("infonce", epochs=2, tau=0.05)`. An option is
            given to every term that has it, a temperature to the first, whose temperature all share. With a term's
            name in front it is given to that term alone: `recipe("infonce+bi-dynamic-svr", **{"svr.tau": 0.2})`.

    Raises:
        UnknownNameError: an unknown recipe, field or option; the nearest names are given.
        ValueError: the parts of a sum contradict each other.
    """
    parts = []
    for part in name.split("+"):
        if part.strip() not in RECIPES:
            raise unknown("recipe", part.strip(), RECIPES)
        parts.append(RECIPES[part.strip()])
    result = parts[0] if len(parts) == 1 else _sum(parts)
    known = {item.name for item in fields(Recipe)}
    changes = {key: value for key, value in overrides.items() if key in known}
    result = replace(result, **changes)
    for option in overrides.keys() - changes.keys():
        result = replace(result, terms=_with_option(result, option, overrides[option]))
    return result


def from_json(text: str) -> Recipe:
    """Read what `Recipe.to_json` wrote."""
    return Recipe(**json.loads(text))


def _sum(parts: list[Recipe]) -> Recipe:
    """One recipe with the terms of all parts."""
    settings: dict[str, Any] = {}
    for item in fields(Recipe)[2:]:  # all but name and terms
        default = item.default if item.default is not MISSING else item.default_factory()
        values = [getattr(part, item.name) for part in parts]
        chosen = [value for value in values if value != default]
        if any(value != chosen[0] for value in chosen):
            raise ValueError(f"{' and '.join(part.name for part in parts)} disagree on {item.name}: {chosen}")
        settings[item.name] = chosen[0] if chosen else default
    return Recipe("+".join(part.name for part in parts), sum((part.terms for part in parts), ()), **settings)


def _with_option(base: Recipe, option: str, value: Any) -> tuple[Term, ...]:
    """The terms of `base`, with the option set wherever a term has it, or on the term that it names ("svr.tau")."""
    owner, _, name = option.rpartition(".")
    takers = [term for term in base.terms if name in TERMS[term.name].options and owner in ("", term.name)]
    if not takers:
        options = {key for term in base.terms for key in TERMS[term.name].options}
        addressed = {f"{term.name}.{key}" for term in base.terms for key in TERMS[term.name].options}
        known = addressed if owner else {item.name for item in fields(Recipe)} | options
        raise unknown("field or option of a recipe", option, known)
    takers = takers[:1] if name == "tau" and not owner else takers
    return tuple(
        replace(term, options={**term.options, name: value}) if any(term is taker for taker in takers) else term
        for term in base.terms
    )
