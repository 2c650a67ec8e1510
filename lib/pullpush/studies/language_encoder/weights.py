"""Other weights λ for the summands of a recipe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pullpush.errors import unknown
from pullpush.training.recipes import recipe


def weighted(name: str, **weights: float) -> dict[str, Any]:
    """Overrides that give terms of a recipe other weights: `recipe(name, **weighted(name, simcse=0.3))`.

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
