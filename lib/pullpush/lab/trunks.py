"""Trunks that travel with the book: audio encoders trained once, so that every machine compares losses on the same.

A trunk is trained on one processor, and on another kind it ends elsewhere, by a point of R@1, with everything that
stands on it. So `book/trunks/<name>` holds the weights of a finished run (`best.safetensors`, `recipe.json`) and, in
`made.json`, what they were made of and by. A run of that declaration is read from there and trained nowhere;
`pullpush trunk NAME` makes it again.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pullpush.cache import content_key, digest
from pullpush.errors import PullPushError, check_known
from pullpush.golden import versions
from pullpush.lab import provenance
from pullpush.lab.root import find_root
from pullpush.lab.session import Session
from pullpush.training.checkpoints import BEST
from pullpush.training.components import of_recipe
from pullpush.training.frozen import Base
from pullpush.training.loop import RECIPE
from pullpush.training.runs import Plan

MADE = "made.json"
PARTS = {BEST: "sha256", RECIPE: "recipe"}  # files, and the fields of the note with their checksums


class TrunkError(PullPushError, RuntimeError):
    """A trunk that travels with the book and is damaged."""


def folder_of(name: str, *, root: Path | None = None) -> Path:
    """Where a trunk of the book lies."""
    return (root or find_root()) / "book" / "trunks" / name


def made(*, root: Path | None = None) -> dict[str, dict[str, Any]]:
    """What is noted of each trunk of the book, by name."""
    found = {}
    for path in sorted(folder_of("", root=root).glob(f"*/{MADE}")):
        try:
            found[path.parent.name] = provenance.unsealed(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise _damaged(path.parent, f"{MADE}: {error}") from error
    return found


def trained(plan: Plan, *, root: Path | None = None) -> Base:
    """The trunk of a run: that of the book where one was declared so, else the run, trained if it is not there."""
    wanted = declared(plan)
    for name, note in made(root=root).items():
        if note["declared"] == wanted:
            return whole(name, root=root)
    return plan.train()


def declared(plan: Plan) -> str:
    """What a trunk is found by: its data as they are configured, its recipe, its seed."""
    return content_key([plan.world.config, plan.recipe, plan.seed])


def make(name: str, plan: Plan, about: str, *, root: Path | None = None) -> dict[str, Any]:
    """Train a trunk, or read the run, and put its weights with the book in place of what was there; what is noted."""
    result = plan.train()
    target = folder_of(name, root=root)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as folder:
        partial = Path(folder) / name
        partial.mkdir()
        for file in PARTS:
            shutil.copyfile(plan.path / file, partial / file)
        stamp = provenance.stamp(versions(*of_recipe(plan.recipe)), seeds=[plan.seed], seconds=plan.seconds)
        note = {
            "about": about,
            "declared": declared(plan),
            **{key: digest(partial / file) for file, key in PARTS.items()},
            "validation R@1": round(result.best["R@1"], 4),
            "command": f"pullpush trunk {name}",
            **{key: value for key, value in stamp.to_dict().items() if key != "command"},
        }
        (partial / MADE).write_text(provenance.sealed(note), encoding="utf-8")
        if target.exists():
            target.rename(Path(folder) / "before")
        partial.rename(target)
    return note


def again(
    name: str, plans: Mapping[str, Callable[[Session], Plan]], book: Session
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train a trunk of the session's profile, in place of the book's; what was noted of the old and of the new."""
    check_known("trunk", name, plans)
    about = (plans[name].__doc__ or "").partition("\n")[0]
    return made().get(name, {}), make(name, plans[name](book), about)


def whole(name: str, *, root: Path | None = None) -> Path:
    """The folder of a trunk of the book; TrunkError if it is damaged."""
    folder, note = folder_of(name, root=root), made(root=root)[name]
    try:
        right = all(digest(folder / name) == note[key] for name, key in PARTS.items())
    except OSError as error:
        raise _damaged(folder, str(error)) from error
    if not right:
        raise _damaged(folder, f"{BEST} or {RECIPE} is not what was made")
    return folder


def _damaged(folder: Path, how: str) -> TrunkError:
    return TrunkError(
        f"{folder} is damaged ({how}): take it from the repository again, or make it anew by "
        f"`pullpush trunk {folder.name}`, after which results that stand on it are trained again"
    )
