"""Where the code of a module lies, found without importing it: for `syntax`, which reads it, and `source`.

place_of("pullpush.forces")  # …/pullpush/forces.py
is_installed("torch")        # True
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

LIBRARY = __name__.partition(".")[0]
INSTALLED = {"site-packages", "dist-packages"}


def place_of(name: str) -> Path | None:
    """File of a module, folder of a package without one; found without importing it."""
    loaded, (parent, _, last) = sys.modules.get(name), name.rpartition(".")
    places = [loaded.__file__] if getattr(loaded, "__file__", None) else list(getattr(loaded, "__path__", ()))
    if not places and not parent:
        with suppress(ImportError, ValueError):  # no such module, or one that was made by hand
            spec = importlib.util.find_spec(name)
            places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    elif not places and (above := place_of(parent)):
        folder = above.parent if above.name == "__init__.py" else above
        places = [folder / last / "__init__.py", folder / f"{last}.py"]
    places = [Path(place) for place in places if place and Path(place).exists()]
    if name == "__main__":  # where it is a worker's or a kernel's, it does not hold the reader's functions
        places = [place for place in places if INSTALLED.isdisjoint(place.parts)]
    return places[0] if places else None


@cache
def is_installed(name: str) -> bool:
    """Whether a module comes with Python or a package; the reader's own files do not, and pullpush never does."""
    top = name.partition(".")[0]
    place = None if top == LIBRARY else place_of(top)
    return top in sys.stdlib_module_names or (place is not None and not INSTALLED.isdisjoint(place.parts))
