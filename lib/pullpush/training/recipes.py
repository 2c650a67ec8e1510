"""Recipes by name.

Every loss is a recipe by its own name; `RECIPES` adds the systems of the papers that are variants of one, and
`recipe("a+b")` sums the terms of two.

    >>> recipe("infonce+bi-dynamic-svr", epochs=2, tau=0.1).terms[0]
    Term(name='infonce', weight=1.0, options={'tau': 0.1})
    >>> title("infonce+bi-dynamic-svr"), colour("infonce+bi-dynamic-svr")
    ('InfoNCE + bi-DynamicSVR', 'orange')
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.errors import SettingError, unknown
from pullpush.losses import TERMS
from pullpush.settings import check_fields, check_setting
from pullpush.training.system import Recipe
from pullpush.training.terms import Term

__all__ = ["RECIPES", "TERMS", "Recipe", "Term", "colour", "from_json", "recipe", "title"]


def _svr_variants() -> Iterator[tuple[Recipe, str]]:
    """SVR in one direction or two, static or dynamic, to be added to a loss ("infonce+bi-dynamic-svr").

    As in the paper the static radius is free and the dynamic one constrained, unless the name says otherwise.
    """
    for prefix, direction in (("uni", "t2a"), ("bi", "both")):
        for modelling, paper, other in (("static", 0.0, "constrained"), ("dynamic", 0.01, "unconstrained")):
            name, shown = f"{prefix}-{modelling}-svr", f"{prefix}-{modelling.title()}SVR"
            options = {"modelling": modelling, "direction": direction}
            opposite = Term("svr", options={**options, "beta": 0.01 - paper})
            yield Recipe(name, (Term("svr", options={**options, "beta": paper}),)), shown
            yield Recipe(f"{name}-{other}", (opposite,)), f"{shown}, {other}"


# Variants of one loss with the titles that figures write.
VARIANTS: Mapping[str, tuple[Recipe, str]] = {
    variant.name: (variant, shown)
    for variant, shown in (
        (Recipe("infonce-learnable", (Term("infonce", options={"learnable": True}),)), "InfoNCE, learnable τ"),
        # GLAP's code and SigLIP itself add the bias after the division by τ.
        (Recipe("siglip", (Term("siglip", options={"form": "siglip"}),)), "SigLIP"),
        *_svr_variants(),
        # Summands with their weights in On the Language Encoder, beside an InfoNCE of weight 1.
        (
            Recipe(
                "cyclic",
                (
                    Term("cross-cyclic", 0.25, {"per_clip": True}),
                    Term("in-modal-cyclic", 0.25, {"per_clip": True}),
                ),
            ),
            "cyclic terms",
        ),
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
    return " + ".join(_title(part.strip()) for part in name.split("+"))


def colour(name: str) -> str:
    """The role that `show.palette` gives a recipe or a sum, such as "blue"; empty where it has none of its own."""
    name = "+".join(part.strip() for part in name.split("+"))
    return COLOURS.get(name) or (TERMS[name].colour if name in TERMS else "")


def _title(name: str) -> str:
    if name in VARIANTS:
        return VARIANTS[name][1]
    return TERMS[name].title if name in TERMS else name


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
    for option in overrides.keys() - changes.keys():
        result = replace(result, terms=_with_option(result, option, overrides[option]))
    return result


def from_json(text: str) -> Recipe:
    """Read what `Recipe.to_json` wrote.

    Raises:
        SettingError, UnknownNameError: it is another text.
    """
    check_json(text)
    return Recipe(**json.loads(text))


def check_json(text: str) -> None:
    """Require the JSON of a recipe."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise SettingError(f"a recipe is written as JSON, but this is none ({error}): {text[:40]!r}") from error
    check_fields(told, of="recipe", kind=Recipe, but=("terms",))
    if lacks := [name for name in ("name", "terms") if name not in told]:
        raise SettingError(f"a recipe lacks {' and '.join(lacks)}: {text[:40]!r}")


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


def _with_option(base: Recipe, option: str, value: Any) -> tuple[Term, ...]:
    """The terms of `base`, with the option set wherever a term has it, or on the term that it names ("svr.tau")."""
    owner, _, name = option.rpartition(".")
    takers = [term for term in base.terms if name in term.settings and owner in ("", term.name)]
    if not takers:
        options = {key for term in base.terms for key in term.settings}
        addressed = {f"{term.name}.{key}" for term in base.terms for key in term.settings}
        names = addressed if owner else {item.name for item in fields(Recipe)} | options
        raise unknown("field or option of a recipe", option, names)
    if name == "tau" and not owner:  # the others share it
        takers = sorted(takers, key=lambda term: not TERMS[term.name].make.shares_temperature)[:1]
    return tuple(
        replace(term, options={**term.options, name: value}) if any(term is taker for taker in takers) else term
        for term in base.terms
    )
