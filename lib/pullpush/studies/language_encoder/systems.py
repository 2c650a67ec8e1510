"""The systems of On the Language Encoder (Table 1) as recipes, named as the paper names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pullpush.lab.experiments import System, Trial
from pullpush.training.recipes import weighted

CONTRASTIVE = "infonce-learnable"  # τ = 0.07 at first, and learnt
ENDINGS: Mapping[str, str] = {
    "": "",
    "s": "+simcse-0.1",  # SimCSE on the captions
    "n": "+nli-0.1",  # NLI triples
    "e": "+sentence-simcse-0.1",  # SimCSE on the premises of NLI triples: the control of Appendix A.6
}
CYCLIC = "+cyclic"


def systems(
    name: str = "CLAP", endings: Sequence[str] = ("", "s"), *, overrides: Mapping[str, Any] | None = None
) -> dict[str, System]:
    """Label → recipe and overrides, without and with the cyclic terms.

    Args:
        name: "CLAP" for sounds, "CLIP" for pictures.
        endings: of `ENDINGS`.
        overrides: of all recipes.

    >>> systems("CLIP", ("", "n"))["CyCLIPn"]
    ('infonce-learnable+cyclic+nli-0.1', {})
    """
    return {
        f"{prefix}{name}{ending}": (f"{CONTRASTIVE}{cyclic}{ENDINGS[ending]}", dict(overrides or {}))
        for prefix, cyclic in (("", ""), ("Cy", CYCLIC))
        for ending in endings
    }


def base_of(system: str) -> str:
    """The system without its last term, "" if it has none to lose.

    >>> [base_of(system) for system in ("CyCLAPs", "CyCLAP", "CLIPn", "CLAP")]
    ['CyCLAP', 'CLAP', 'CLIP', '']
    """
    plain = system.rstrip("sne")
    return plain if plain != system else system.removeprefix("Cy") if system.startswith("Cy") else ""


def in_worlds(worlds: Iterable[str], of: Mapping[str, System], *, kind: str = "", test: str = "") -> tuple[Trial, ...]:
    """A trial a world and system; kind: of the views (see grounds.py); test: the view that is tested on, "" for the
    world itself.
    """
    return tuple(
        Trial(label, recipe, overrides, {"world": world}, f"{world}/{kind}".rstrip("/"), test)
        for world in worlds
        for label, (recipe, overrides) in of.items()
    )


def with_weights(of: Mapping[str, System], weights: Iterable[float], *terms: str, data: str = "") -> tuple[Trial, ...]:
    """A trial a weight and system: all of these terms have the weight."""
    return tuple(
        Trial(
            label, recipe, {**overrides, **weighted(recipe, **dict.fromkeys(terms, weight))}, {"weight": weight}, data
        )
        for weight in weights
        for label, (recipe, overrides) in of.items()
    )
