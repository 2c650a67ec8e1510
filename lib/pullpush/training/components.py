"""The components that a run goes through, by the names of their golden files.

of_recipe(recipe("infonce+kcl"))  # ("audio/cnn", "data/batches", …, "losses/infonce", "losses/kcl", …)
"""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from pullpush.encoders import AUDIO, TEXT
from pullpush.training.recipes import Recipe

# What every run goes through, whatever it learns.
LOOP = (
    "audio/dual-encoder",
    "data/batches",
    "data/pairing",
    "training/chunked",
    "training/evaluate",
    "training/loop",
    "training/objective",
    "training/optimiser",
    "training/parts",
)
CATALOGUES = {"audio": AUDIO, "text": TEXT}


def of_recipe(recipe: Recipe) -> tuple[str, ...]:
    """Losses, encoders, loop and batches: what `golden.versions` takes.

    >>> from pullpush.training import recipe
    >>> [name for name in of_recipe(recipe("infonce")) if not name.startswith(("data/", "training/"))]
    ['audio/cnn', 'audio/dual-encoder', 'losses/infonce', 'text/use']
    """
    encoders = set()
    for kind, name in (("audio", recipe.audio), ("text", recipe.text)):
        options = {key.removeprefix(f"{kind}_"): value for key, value in recipe.encoder_options.items()}
        encoders |= {f"{kind}/{inner}" for inner in _with_inner(kind, name, options)}
    further = {"data/every-caption"} if recipe.captions == "all" else set()
    return tuple(sorted({*LOOP, *further, *(f"losses/{term.name}" for term in recipe.terms), *encoders}))


def of_audio(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """An audio encoder with those that its options name, as components.

    >>> of_audio("several", {"members": ("yamnet", "voice")})
    ('audio/several', 'audio/voice', 'audio/yamnet')
    """
    return tuple(sorted({f"audio/{inner}" for inner in _with_inner("audio", name, options)}))


def _with_inner(kind: str, name: str, options: Mapping[str, Any]) -> set[str]:
    """An encoder and those that it is made of: `of` one, or several `members`."""
    takes = signature(CATALOGUES[kind][name].make).parameters
    of = options.get("of", takes["of"].default) if "of" in takes else None
    return {name, *(each for each in (of, *options.get("members", ())) if each in CATALOGUES[kind])}
