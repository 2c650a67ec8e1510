"""Recipes: everything that makes one training run differ from another, as data, and by name.

Every loss is a recipe by its own name; `RECIPES` adds the systems of the papers that are variants of one, and
`recipe("a+b")` sums the terms of two.

    >>> recipe("infonce+bi-dynamic-svr", epochs=2, tau=0.1).terms[0]
    Term(name='infonce', weight=1.0, options={'tau': 0.1})
    >>> title("infonce+bi-dynamic-svr"), colour("infonce+bi-dynamic-svr")
    ('InfoNCE + bi-DynamicSVR', 'orange')
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Annotated, Any

from pydantic import Field

from pullpush.cache import LATER
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.pairing import CAPTIONS, SAMPLING
from pullpush.errors import SettingError, check_known, unknown
from pullpush.losses import TERMS
from pullpush.settings import Amount, Count, Positive, Share, Whole, check_fields, check_setting
from pullpush.training.terms import Term, check_one_learner, one_temperature

__all__ = ["RECIPES", "TERMS", "Recipe", "Term", "colour", "from_json", "recipe", "title", "weighted"]


OPTIMISERS = ("adam", "adamw", "adam8bit")
SCHEDULES = ("cosine", "constant")
CHECKPOINTS = ("best", "last")


@dataclass(frozen=True)
class Recipe:
    """One system, complete.

    Attributes:
        name: what tables call it.
        terms: the summands of the objective. One temperature serves all that compare clips with texts: that of the
            first of them that has one. A later term keeps its own only where its options name a `tau` that differs.
        audio, text: names of the encoders; dim: dimensions of the joint space.
        encoder_options: further keyword arguments of `encoders.create`.
        languages, sampling, captions: which captions a clip brings, see `PairDataset`.
        balance: weight of each group of clips (their column "group") in every batch, whatever the groups' sizes; empty:
            clips as they come. See `PairDataset`.
        optimiser: "adam", "adamw", or "adam8bit", Adam with moments of eight bits (needs bitsandbytes and a GPU);
            lr: peak learning rate; weight_decay: on matrices and kernels only.
        scalar_lr: factor on `lr` for numbers that a loss learns: temperature, bias, radius, weight. Under Adam a number
            moves by at most about the sum of the learning rates, 0.2 in a short run, while weights of an encoder need
            far less; 30 lets a bias or a radius arrive where it would rest. network_lr: the same for networks that a
            loss learns (SVR's predictor), whose outputs move with all their weights at once.
        epochs: passes over the training clips; batch_size: clips in a step, over all processes together.
        schedule: "cosine" (to `floor`, a share of the peak) or "constant", after the warm-up, in which the rate grows
            linearly: `warmup` is the fraction of all steps that it takes, `warmup_steps`, unless 0, their number.
        clip: largest norm of the gradient; 0 leaves it alone.
        text_chunk: texts that a process encodes at once, with cached gradients (see chunked.py): the same training up
            to rounding, at the memory of a chunk; as many of the longest, of shorter ones as take no more room. 0: the
            whole batch, language by language. -1: the whole batch, all languages' texts of like length together. None:
            as many as clips where sampling is "all" and the text encoder is trained, else the whole batch.
        audio_chunk: the same for clips; 0: the whole batch.
        checkpoint: "best", the weights of the epoch with the highest validation R@1, or "last", of the last epoch.
        tau_end: where the shared temperature, a fixed one, arrives at the end, by one factor a step; None: it stays.
        loss_parts: 1 compares every clip with all texts of the batch. W gives the loss of W processes that each see
            their own part of the batch only, as published code does by default: the mean over the parts, which are
            consecutive. The numbers are the same in any number of processes, so that one machine can measure it.

    Raises:
        UnknownNameError: an unknown optimiser, schedule, checkpoint, sampling or caption choice.
        SettingError: a field of another type, or out of range.
        ValueError: a term that is to learn a temperature which it does not have to itself.
    """

    name: str
    terms: tuple[Term, ...]
    audio: str = "cnn"
    text: str = "use"
    dim: Count = 256
    encoder_options: Mapping[str, Any] = field(default_factory=dict)
    languages: tuple[str, ...] = ("eng",)
    sampling: str = "fixed"
    captions: str = "first"
    optimiser: str = "adam"
    lr: Positive = 1e-3
    weight_decay: Amount = 1e-4
    epochs: Count = 5
    batch_size: Count = 24
    warmup: Share = 0.1
    schedule: str = "cosine"
    clip: Amount = 1.0
    scalar_lr: Amount = 30.0
    network_lr: Amount = 1.0
    text_chunk: Annotated[int, Field(ge=-1)] | None = None
    audio_chunk: Whole = 0
    balance: Mapping[str, Amount] = field(default_factory=dict)
    loss_parts: Count = 1
    floor: Share = 0.0
    warmup_steps: Whole = 0
    checkpoint: str = field(default="best", metadata=LATER)
    tau_end: Positive | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        check_terms(self.terms)
        check_setting("languages", self.languages, str | tuple[str, ...], of=f"recipe {self.name!r}")
        terms = tuple(Term(**term) if isinstance(term, Mapping) else term for term in self.terms)
        languages = (self.languages,) if isinstance(self.languages, str) else tuple(self.languages)
        object.__setattr__(self, "terms", one_temperature(terms))
        object.__setattr__(self, "languages", languages)
        check_fields(self, of=f"recipe {self.name!r}")
        check_one_learner(self.terms)
        choices = {"optimiser": OPTIMISERS, "schedule": SCHEDULES, "checkpoint": CHECKPOINTS}
        choices |= {"sampling": SAMPLING, "captions": CAPTIONS}
        for name, values in choices.items():
            check_known(name, getattr(self, name), values)
        together = {
            "terms": (len(terms) > 0, "one term or more"),
            "balance": (not self.balance or max(self.balance.values()) > 0, "weights that are not all 0"),
            "loss_parts": (self.loss_parts <= self.batch_size, "at most batch_size"),
        }
        for name, (good, wanted) in together.items():
            if not good:
                raise SettingError(f"recipe {self.name!r}: {name} must be {wanted}, got {getattr(self, name)!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the clips that its terms need or use."""
        return tuple(dict.fromkeys(column for term in self.terms for column in term.columns))

    def to_json(self) -> str:
        """The recipe as JSON; `from_json` reads it back."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)


def check_terms(terms: Any) -> None:
    """Require summands, or mappings that make some."""
    if isinstance(terms, str) or not isinstance(terms, Sequence):
        raise SettingError(f"terms of a recipe must be a sequence of terms, got {terms!r}")
    for term in terms:
        if not isinstance(term, Term | Mapping):
            raise SettingError(f"terms of a recipe must be terms, got {term!r}")
        if isinstance(term, Mapping):
            check_fields(term, of="term", kind=Term)
            if "name" not in term:
                raise SettingError(f"a term lacks its name: {dict(term)!r}")


def _svr_variants() -> Iterator[tuple[Recipe, str]]:
    """SVR in one direction or two, static or dynamic, to be added to a loss ("infonce+bi-dynamic-svr")."""
    for prefix, direction in (("uni", "t2a"), ("bi", "both")):
        for modelling, paper, other in (("static", 0.0, "constrained"), ("dynamic", 0.01, "unconstrained")):
            name, shown = f"{prefix}-{modelling}-svr", f"{prefix}-{modelling.title()}SVR"
            options = {"modelling": modelling, "direction": direction}
            opposite = Term("svr", options={**options, "beta": 0.01 - paper})
            yield Recipe(name, (Term("svr", options={**options, "beta": paper}),)), shown
            yield Recipe(f"{name}-{other}", (opposite,)), f"{shown}, {other}"


def _siglip_variants() -> Iterator[tuple[Recipe, str]]:
    """GLAP's code and SigLIP itself add the bias after the division by τ."""
    each: dict[str, Any] = {"languages": LANGUAGES, "sampling": "all"}
    for name, texts in (("siglip", {}), ("siglip-languages", each)):
        yield Recipe(name, (Term(name, options={"form": "siglip"}),), **texts), TERMS[name].title


# Summands with their weights in On the Language Encoder, beside an InfoNCE of weight 1.
CYCLIC = tuple(Term(name, 0.25, {"per_clip": True}) for name in ("cross-cyclic", "in-modal-cyclic"))
# Variants of one loss with the titles that figures write.
VARIANTS: Mapping[str, tuple[Recipe, str]] = {
    variant.name: (variant, shown)
    for variant, shown in (
        (Recipe("infonce-learnable", (Term("infonce", options={"learnable": True}),)), "InfoNCE, learnable τ"),
        *_siglip_variants(),
        *_svr_variants(),
        (Recipe("cyclic", CYCLIC), "cyclic terms"),
        (Recipe("simcse-0.1", (Term("simcse", 0.1),)), "SimCSE"),
        (Recipe("nli-0.1", (Term("nli", 0.1),)), "NLI"),
        (Recipe("sentence-simcse-0.1", (Term("sentence-simcse", 0.1),)), "SimCSE on NLI sentences"),
    )
}
# Of sums and variants that figures compare; a single loss has its card's. As in SupCLAP's own Figure 4.
COLOURS = {
    "infonce+bi-static-svr": "green",
    "infonce+bi-dynamic-svr": "orange",
    "siglip+bi-static-svr": "sky",
    "siglip+bi-dynamic-svr": "purple",
}


class _Recipes(Mapping[str, Recipe]):
    """Every loss as a recipe of its own, and the variants."""

    def __getitem__(self, name: str) -> Recipe:
        if name in VARIANTS:
            return VARIANTS[name][0]
        if name not in TERMS:
            raise unknown("recipe", name, self)
        sampling = TERMS[name].sampling
        if sampling == "fixed":
            return Recipe(name, (Term(name),))
        return Recipe(name, (Term(name),), languages=LANGUAGES, sampling=sampling)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*TERMS, *VARIANTS]))

    def __contains__(self, name: object) -> bool:
        return name in VARIANTS or name in TERMS

    def __len__(self) -> int:
        return len({*TERMS, *VARIANTS})


RECIPES: Mapping[str, Recipe] = _Recipes()


def title(name: str) -> str:
    """What figures and tables write for a recipe or a sum, and for any other name the name: `title("kcl") == "KCL"`."""
    parts = [part.strip() for part in name.split("+")]
    return " + ".join(VARIANTS[p][1] if p in VARIANTS else TERMS[p].title if p in TERMS else p for p in parts)


def colour(name: str) -> str:
    """The role that `show.palette` gives a recipe or a sum, such as "blue"; empty where it has none of its own."""
    name = "+".join(part.strip() for part in name.split("+"))
    return COLOURS.get(name) or (TERMS[name].colour if name in TERMS else "")


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
        SettingError: a value of another type, such as lr="fast".
        ValueError: the parts of a sum contradict each other.
    """
    check_setting("recipe", name, str)
    parts = [RECIPES[part.strip()] for part in name.split("+")]
    result = parts[0] if len(parts) == 1 else _sum(parts)
    names = {item.name for item in fields(Recipe)}
    changes = {key: value for key, value in overrides.items() if key in names}
    result = replace(result, **changes)
    terms = result.terms
    for option in sorted(overrides.keys() - changes.keys(), key=lambda option: ("." in option, option)):
        terms = _with_option(terms, option, overrides[option])  # what names its term comes last
    return replace(result, terms=terms)


def weighted(name: str, **weights: float) -> dict[str, Any]:
    """Overrides that give terms of a recipe other weights λ: `recipe(name, **weighted(name, simcse=0.3))`.

    Args:
        name: of a recipe, or of a sum.
        weights: name of a term → its λ; the others keep theirs. Zero leaves a term out, so that it draws no dropout.

    Raises:
        UnknownNameError: the recipe has no such term.

    Example:
        >>> changed = weighted("infonce+cyclic", **{"in-modal-cyclic": 1.0, "cross-cyclic": 0.0})
        >>> [(term.name, term.weight) for term in recipe("infonce+cyclic", **changed).terms]
        [('infonce', 1.0), ('in-modal-cyclic', 1.0)]
    """
    terms = recipe(name).terms
    if wrong := weights.keys() - {term.name for term in terms}:
        raise unknown(f"term of {name}", min(wrong), [term.name for term in terms])
    changed = (replace(term, weight=weights.get(term.name, term.weight)) for term in terms)
    return {"terms": tuple(term for term in changed if term.weight)}


def from_json(text: str) -> Recipe:
    """Read what `Recipe.to_json` wrote.

    Raises:
        SettingError, UnknownNameError: it is another text.
    """
    try:
        given = json.loads(text)
    except ValueError as error:
        raise SettingError(f"a recipe is written as JSON, but this is none ({error}): {text[:40]!r}") from error
    check_fields(given, of="recipe", kind=Recipe, but=("terms",))
    if lacks := [name for name in ("name", "terms") if name not in given]:
        raise SettingError(f"a recipe lacks {' and '.join(lacks)}: {text[:40]!r}")
    return Recipe(**given)


def _sum(parts: list[Recipe]) -> Recipe:
    """One recipe with the terms of all parts."""
    settings: dict[str, Any] = {}
    for item in fields(Recipe)[2:]:  # all but name and terms
        # pyrefly: ignore[not-callable]
        default = item.default if item.default is not MISSING else item.default_factory()
        values = [getattr(part, item.name) for part in parts]
        chosen = [value for value in values if value != default]
        if any(value != chosen[0] for value in chosen):
            raise ValueError(f"{' and '.join(part.name for part in parts)} disagree on {item.name}: {chosen}")
        settings[item.name] = chosen[0] if chosen else default
    return Recipe("+".join(part.name for part in parts), sum((part.terms for part in parts), ()), **settings)


def _with_option(terms: tuple[Term, ...], option: str, value: Any) -> tuple[Term, ...]:
    """The terms with the option set wherever one has it, or on the term that it names ("svr.tau")."""
    owner, _, name = option.rpartition(".")
    takers = [term for term in terms if name in term.settings and owner in ("", term.name)]
    if not takers:
        options = {key for term in terms for key in term.settings}
        addressed = {f"{term.name}.{key}" for term in terms for key in term.settings}
        names = addressed if owner else {item.name for item in fields(Recipe)} | options
        raise unknown("field or option of a recipe", option, names)
    if name == "tau" and not owner:  # the others share it
        takers = sorted(takers, key=lambda term: not TERMS[term.name].make.shares_temperature)[:1]
    return tuple(
        replace(term, options={**term.options, name: value}) if any(term is taker for taker in takers) else term
        for term in terms
    )
