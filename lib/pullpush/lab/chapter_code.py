"""What code and data a chapter's numbers go through, by name, read from its cells without executing them.

Roots are what the cells import from pullpush and use, and what they find by name: recipes, evaluations, encoders and
sounds, by the texts in the cells and in those modules of `pullpush.studies` that they import. To the symbols of
source.py come the cells themselves, the profile, the recipes, the library's files of data, the chapter's claims, and
what was kept of its long experiments; `source.why_differs` says which of all these have changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import jupytext

from pullpush.cache import content_key
from pullpush.data.banks import BANKS
from pullpush.encoders import AUDIO, TEXT
from pullpush.errors import UnknownNameError
from pullpush.lab import claims
from pullpush.lab.profiles import Profile
from pullpush.metrics.cards import METRICS
from pullpush.source import digest_files, symbols
from pullpush.syntax import find, hashed
from pullpush.training.recipes import RECIPES, TERMS

LIBRARY = Path(__file__).resolve().parents[1]
STUDIES = tuple(folder.name for folder in sorted((LIBRARY / "studies").iterdir()) if folder.is_dir())
SHOWING = tuple(  # what shapes no number
    f"pullpush.{name}"
    for name in (
        "show", "lab.evidence", "lab.provenance", "lab.chapter_code",
        *(f"studies.{name}.figures" for name in STUDIES),
    )
)  # fmt: skip
Use = tuple[str, str]  # a name in a cell, and the attribute of it that is used; "" for the thing itself


def code_of_chapter(path: Path, settings: Profile) -> Mapping[str, str]:
    """Name → digest of all that a chapter's numbers go through at a profile.

    path: its Markdown source, `book/NAME.md` in the book's root.
    """
    data = _files_of(path)
    every = [path, *LIBRARY.rglob("*.py"), *(file for files in data.values() for file in files)]
    return _read(path, _Held(settings), tuple(sorted((str(file), file.stat().st_mtime_ns) for file in every)))


class _Held:
    """A profile as part of a cache's key; profiles hold mappings, which have no hash."""

    def __init__(self, settings: Profile) -> None:
        self.settings = settings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.settings == other.settings

    def __hash__(self) -> int:
        return hash(self.settings.name)


@lru_cache(maxsize=16)
def _read(path: Path, held: _Held, _files: tuple[tuple[str, int], ...]) -> Mapping[str, str]:
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    found = code_of_cells(cells, held.settings)
    found |= {name: digest_files(*files) for name, files in _files_of(path).items() if files}
    with suppress(UnknownNameError):  # a chapter without claims
        chapter_claims = claims.of_chapter(path.stem, folder=path.parent / "claims")
        found["its claims"] = content_key([vars(claim) for claim in chapter_claims])
    return MappingProxyType(dict(sorted(found.items())))


def _files_of(path: Path) -> dict[str, list[Path]]:
    """The files of data that a chapter reads, by what they are called where they differ."""
    kept = (path.parent / "measured" / path.stem).glob("*/stamp.json")
    return {
        "data of the library": sorted(LIBRARY.rglob("*.yaml")),
        "tables of the papers": sorted((path.parent / "paper-tables").glob("*.csv")),
        **{f"measured {stamp.parent.name}": [stamp] for stamp in sorted(kept)},
    }


def code_of_cells(cells: Sequence[str], settings: Profile) -> dict[str, str]:
    """The part of `code_of_chapter` that the text of the cells decides."""
    trees = list(_parsed(cells))
    roots = [root for root in _roots(trees) if not root.startswith(SHOWING)]
    studies = sorted({root.partition(":")[0] for root in roots if root.startswith("pullpush.studies.")})
    files = [LIBRARY.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in studies]
    words = _words([*trees, *_parsed(file.read_text("utf-8") for file in files if file.is_file())])
    recipes = {name: RECIPES[name] for name in words & RECIPES.keys()}
    terms = words | {term.name for recipe in recipes.values() for term in recipe.terms}
    size = settings.listening if _asks(trees, "published") else settings
    sizes = {size.audio, size.text, size.world.get("bank"), "retrieval"}
    named = [
        *(card.make for name, card in TERMS.items() if name in terms),
    ]
    named += [
        card.make for cards in (METRICS, AUDIO, TEXT, BANKS) for name, card in cards.items() if name in words | sizes
    ]
    found = symbols(*roots, named) | {f"recipe {name}": content_key(recipe) for name, recipe in recipes.items()}
    found["its cells"] = hashed([ast.unparse(tree) for tree in trees])
    found["the profile"] = content_key(replace(size, name="", about="", file=None))
    return {name: mark for name, mark in found.items() if not name.startswith(SHOWING)}


def _parsed(texts: Iterable[str]) -> Iterator[ast.Module]:
    for text in texts:
        with suppress(SyntaxError):  # a cell with a command of IPython
            yield ast.parse(text)


def _words(trees: Iterable[ast.Module]) -> set[str]:
    """All texts, and what stands between the + of sums of recipes."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {part.strip() for text in texts for piece in text.split(",") for part in (piece, *piece.split("+"))}


def _asks(trees: Iterable[ast.Module], option: str) -> bool:
    """Whether some call gives an option."""
    return any(isinstance(node, ast.keyword) and node.arg == option for tree in trees for node in ast.walk(tree))


def _roots(trees: Sequence[ast.Module]) -> Iterator[str]:
    """What the cells use of pullpush, as "module:symbol"; a module that is handed on counts as a whole."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pullpush":
            imported |= {item.asname or item.name: (node.module, item.name) for item in node.names}
        elif isinstance(node, ast.Import):
            imported |= {item.asname: (item.name, "") for item in node.names if item.asname and find(item.name)}
    for name, attribute in sorted(_uses(nodes)):
        if name not in imported:
            continue
        module, symbol = imported[name]
        inner = ".".join(filter(None, (module, symbol)))
        root = f"{inner}:{attribute}".rstrip(":") if find(inner) else f"{module}:{symbol}"
        with suppress(UnknownNameError):  # a cell that is wrong says so when it is executed
            symbols(root)
            yield root


def _uses(nodes: Sequence[ast.AST]) -> set[Use]:
    pairs = [(node.value, node) for node in nodes if isinstance(node, ast.Attribute)]
    attributes = [(value, node.attr) for value, node in pairs if isinstance(value, ast.Name)]
    of_attributes = {id(value) for value, _ in attributes}
    alone = [node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in of_attributes]
    return {(value.id, attribute) for value, attribute in attributes} | {(name, "") for name in alone}
