"""What the symbols of one file say, and which names they use: for `source`, which follows the names.

A *symbol* is a name that a module defines at its top level, with every statement that makes or changes it.

    said, names = find("pullpush.forces").read("decompose")  # "51c0…", {Name("pullpush.forces", ("tangent",)), …}
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pullpush.places import place_of
from pullpush.silence import is_guard, is_silent

REGISTRIES = ("Registry", "Catalogue")  # what is made by calling these is not read: `source.Registry`, catalogue.py
EFFECTS = "<module>"  # statements that do more than define: every other symbol of their module depends on them
UNSAID = {"annotation", "returns", "type_comment", "kind", "ctx"}  # fields of syntax trees that change no number
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Import, ast.ImportFrom)


PARSING = threading.Lock()  # Python 3.11 and 3.12 count the depth of trees for all threads together, and stumble


class Name(NamedTuple):
    """What `parts`, joined by dots, means at the top level of a module; no parts: the module itself."""

    module: str
    parts: tuple[str, ...] = ()


def parsed(text: str | bytes) -> list[ast.stmt]:
    """The statements of a source, one thread at a time: `parsed("x = 1")[0]` is an assignment.

    Raises:
        SyntaxError: it is none.
    """
    with PARSING:
        return ast.parse(text).body


def hashed(content: Any) -> str:
    """A name for lists and texts, the same in every process."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


class Module:
    """What a file defines and imports at its top level, and what each symbol of it says."""

    def __init__(self, name: str, place: Path) -> None:
        self.is_package = place.is_dir() or place.name == "__init__.py"
        self.imports: dict[str, list[Name]] = {}
        self.symbols: dict[str, list[ast.stmt]] = {}
        self._name, self._package = name, name if self.is_package else name.rpartition(".")[0]
        self._read: dict[str, tuple[str, set[Name]]] = {}
        for statement in _executed([] if place.is_dir() else parsed(place.read_bytes())):
            bound = _bound([statement], self._package)
            for target in (*getattr(statement, "targets", ()), getattr(statement, "target", None)):
                if isinstance(target, ast.Subscript | ast.Attribute):  # `TABLE["x"] = …` belongs to TABLE
                    bound |= {node.id: [None] for node in ast.walk(target.value) if isinstance(node, ast.Name)}
            makes = [symbol for symbol, origins in bound.items() if None in origins]
            if not isinstance(statement, DEFINITIONS) and (makes or not bound):
                makes.append(EFFECTS)
            for symbol in makes:
                self.symbols.setdefault(symbol, []).append(statement)
            for symbol, origins in bound.items():
                self.imports.setdefault(symbol, []).extend(filter(None, origins))
        self.symbols.pop("__all__", None)  # says nothing of its own

    def symbol_at(self, line: int) -> str:
        """The symbol whose text holds a line; empty if none does."""
        spans = ((symbol, text) for symbol, texts in self.symbols.items() for text in texts)
        return next((symbol for symbol, text in spans if text.lineno <= line <= (text.end_lineno or 0)), "")

    def read(self, symbol: str) -> tuple[str, set[Name]]:
        """A digest of what a symbol says, and the names that mean something outside of it."""
        if symbol not in self._read:
            reader, statements = Reader(self._name, self._package), self.symbols[symbol]
            is_cut = any(_is_registry(getattr(statement, "value", None)) for statement in statements)
            self._read[symbol] = (hashed("registry" if is_cut else reader.read(statements)), reader.names)
        return self._read[symbol]


class Reader:
    """Reads syntax, but for what it leaves unsaid, and gathers the names that mean something outside of it."""

    def __init__(self, module: str, package: str) -> None:
        self.names: set[Name] = set()
        self._module, self._package = module, package
        self._scopes: list[dict[str, list[Name | None]]] = []
        self._is_tried = False

    def read(self, node: Any, *, in_class: bool = False) -> Any:
        """`node` as nested lists; unlike `ast.dump`'s text they are the same in every version of Python."""
        if isinstance(node, list):
            said = [item for item in node if not is_silent(item, in_class)]
            said = [item for item in said if self._is_tried or not is_guard(item)]
            return [self.read(item, in_class=in_class) for item in said]
        if not isinstance(node, ast.AST):
            return repr(node)
        if chain := _chain(node):
            is_given = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            if not is_given or (self._scopes and not in_class):  # else the name of a field, or of the symbol itself
                self._use(chain)
            return ".".join(chain)
        kind, fields = type(node).__name__, dict(ast.iter_fields(node))
        if isinstance(node, ast.AnnAssign):
            kind, fields = "Assign", {"targets": [node.target], "value": node.value}
            if in_class:  # a dataclass's field; its type is said, but nothing of it is run
                fields["type"] = Reader("", "").read(node.annotation)
        if isinstance(node, ast.Raise):  # messages are free
            fields = {"exc": node.exc.func if isinstance(node.exc, ast.Call) else node.exc}
        in_class = isinstance(node, ast.ClassDef) or (in_class and not isinstance(node, FUNCTIONS))
        inside, scope = self._scope(node)
        said: list[Any] = [kind]
        for field, value in fields.items():
            if value is None or value == [] or field in UNSAID:
                continue
            if field in inside:
                self._scopes.append(scope)
            was_tried = self._is_tried
            self._is_tried = was_tried or (isinstance(node, ast.Try | ast.TryStar) and field == "body")
            said += [field, self.read(value, in_class=in_class)]
            self._is_tried = was_tried
            if field in inside:
                self._scopes.pop()
        return said

    def _use(self, chain: tuple[str, ...]) -> None:
        """Note a name with its attributes, unless it is a variable of a function."""
        here = [Name(self._module, chain[:1])]
        origins = next((scope[chain[0]] for scope in reversed(self._scopes) if chain[0] in scope), here)
        self.names |= {Name(origin.module, (*origin.parts, *chain[1:])) for origin in origins if origin}

    def _scope(self, node: ast.AST) -> tuple[set[str], dict[str, list[Name | None]]]:
        """The fields of a node that see names of their own, and these names."""
        if isinstance(node, FUNCTIONS):
            of = node.args
            every = (*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg)
            parameters: dict[str, list[Name | None]] = {parameter.arg: [None] for parameter in every if parameter}
            body = node.body if isinstance(node.body, list) else [node.body]
            return {"body"}, parameters | _bound(body, self._package)
        if isinstance(node, ast.ClassDef):  # its methods do not see its variables
            bound = _bound(node.body, self._package)
            return {"body"}, {name: origins for name, origins in bound.items() if None not in origins}
        if isinstance(node, COMPREHENSIONS):
            self.read(node.generators[0].iter)  # the part that does not see the variables
            return {"elt", "key", "value", "generators"}, _bound([part.target for part in node.generators], "")
        return set(), {}


def _chain(node: ast.AST | None) -> tuple[str, ...]:
    """`checkpoints.load_model` → ("checkpoints", "load_model"); nothing for what does not begin with a name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (before := _chain(node.value)):
        return (*before, node.attr)
    return ()


def _is_registry(value: ast.AST | None) -> bool:
    maker = value.func if isinstance(value, ast.Call) else None
    maker = maker.value if isinstance(maker, ast.Subscript) else maker  # Registry[str, Row](…)
    return bool(maker) and _chain(maker)[-1:] in {(name,) for name in REGISTRIES}


def _executed(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that matter to who imports them: neither `if TYPE_CHECKING` nor `if __name__ == "__main__"`."""
    for statement in statements:
        if isinstance(statement, ast.If) and re.search("TYPE_CHECKING|__name__", ast.unparse(statement.test)):
            yield from _executed(statement.orelse)
        elif not is_silent(statement, False) and not is_guard(statement):
            yield statement


def _bound(nodes: Iterable[ast.AST], package: str) -> dict[str, list[Name | None]]:
    """Names to which the code of one scope gives a meaning: what it imports under them, None where it makes them."""
    bound: dict[str, list[Name | None]] = {}
    elsewhere: set[str] = set()
    queue = list(nodes)
    while queue:
        node = queue.pop()
        match node:
            case ast.Import():
                for item in node.names:
                    top = item.name.partition(".")[0]
                    bound.setdefault(item.asname or top, []).append(Name(item.name if item.asname else top))
            case ast.ImportFrom():
                above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
                module = ".".join([*above, node.module] if node.module else above)
                for item in node.names:
                    bound.setdefault(item.asname or item.name, []).append(Name(module, (item.name,)))
            case ast.Global() | ast.Nonlocal():
                elsewhere.update(node.names)
            case (
                ast.Name(id=str(name), ctx=ast.Store() | ast.Del())
                | ast.MatchMapping(rest=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                bound.setdefault(name, []).append(None)
        if isinstance(node, COMPREHENSIONS):  # of what it binds, only `:=` is seen outside
            queue += [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            queue += ast.iter_child_nodes(node)
    return {name: origins for name, origins in bound.items() if name not in elsewhere}


# ---------------------------------------------------------------- files


def find(name: str) -> Module | None:
    """A module, read once and again when its file has changed; None if it has no file of Python."""
    with suppress(OSError):
        if place := place_of(name):
            return _parsed(name, place, place.stat().st_mtime_ns, place.stat().st_size)


@cache
def _parsed(name: str, place: Path, _changed: int, _size: int) -> Module | None:
    with suppress(SyntaxError, ValueError):  # another language, or a notebook
        return Module(name, place)
