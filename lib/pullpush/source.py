"""What code a result went through: a digest of functions and of all code that they reach, read as syntax.

    digest(train, PairDataset, TERMS["svr"])  # "1f0c…" until some of this code says something else

A *symbol* is what a module defines at its top level: a function, a class as a whole, a constant. From the roots on,
names are followed from symbol to symbol, through imports, re-exports and attributes of modules, in files on disk and
without importing them. Installed files (torch …) do not count; pullpush and the reader's own do. Nor do comments,
docstrings, layout, and annotations of variables, arguments and results. Nor do statements that can only refuse:
`check_…(…)` for no result, an `if` that only raises, a `for` over such, but for those in a `try`; nor what an error is
told, its message. A result is there because nothing was refused.

Four things cannot be seen, so that callers name them: the class behind `model.encode_audio(…)`, the entry that code
finds in a `Registry`, a function that comes as an argument, and a file of data (`digest_files`). What is on disk
counts, even where an older text of it was imported. Code of a notebook's cell is on no disk and read as bytecode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from types import CodeType, MethodType, ModuleType
from typing import Any, TypeVar

from pullpush.cache import content_key
from pullpush.errors import unknown
from pullpush.places import is_installed
from pullpush.syntax import EFFECTS, Module, Name, find, hashed

VALUES = "<values>"  # the plain data that roots hold
# Their code, with that of the modules inside, decides no number of a result, and counts as little as what is installed.
PLUMBING = {
    "pullpush.cache",
    "pullpush.catalogue",
    "pullpush.encoders.wheels",  # an encoder's file names the wheel and its checksum, and how it is read
    "pullpush.errors",
    "pullpush.places",
    "pullpush.progress",
    "pullpush.silence",
    "pullpush.source",
    "pullpush.syntax",
}
PLAIN = str | int | float | None
K = TypeVar("K")
V = TypeVar("V")


class Registry(dict[K, V]):
    """Things found by name at run time: a digest holds the entries that are among its roots, never the table.

    After `TERMS: Registry[str, Row] = Registry({"svr": Row(SVR)})` at the top level of a module, code that reads
    `TERMS` keeps its digest whatever the table holds.
    """


def digest(*roots: Any, length: int = 16) -> str:
    """A name for the code of `roots` with all that it reaches: `digest(svr) != digest(info_nce)`.

    Args:
        roots: functions, methods, classes, modules, or texts such as "pullpush.losses._info_nce:info_nce". Of partials,
            lists, tuples and mappings all that they hold counts; of another object, its class.
        length: hexadecimal digits.

    Raises:
        UnknownNameError: a text names nothing that counts.
    """
    return content_key(symbols(*roots), length=length)


def symbols(*roots: Any) -> dict[str, str]:
    """Every symbol that `digest` reaches, with a digest of its own: `{"pullpush.losses._svr:svr": "9b1e…", …}`."""
    walk = _Walk()
    for root in roots:
        walk.enter_text(root) if isinstance(root, str) else walk.enter(root)
    return dict(sorted(walk.found.items()))


def reached(*roots: Any) -> tuple[str, ...]:
    """The names of `symbols`: `"pullpush.encoders:create" in reached(info_nce)`."""
    return tuple(symbols(*roots))


def why_differs(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    """What became of `symbols`: `why_differs({"m:f": "1"}, {"m:f": "2"}) == ("m:f changed",)`; empty: nothing."""
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return tuple(f"{name} {'is new' if name not in old else 'changed' if name in new else 'is gone'}" for name in names)


def digest_files(*paths: str | Path, length: int = 16) -> str:
    """A name for what files hold and what they are called, wherever they lie: `digest_files("events.yaml")`."""
    return content_key(sorted([Path(path).name, content_key(Path(path).read_bytes())] for path in paths), length=length)


# ---------------------------------------------------------------- from symbol to symbol


class _Walk:
    """One walk from roots along names; `found` maps the symbols met to their digests."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._modules: dict[str, Module | None] = {}
        self._entered: dict[int, Any] = {}  # objects, kept so that no other takes over an id

    def enter_text(self, text: str) -> None:
        """Begin at "module:symbol", "module:Class.method" or "module"."""
        name, _, path = text.partition(":")
        module, targets = self._module(name), self._targets(Name(name, tuple(path.split(".")[:1]) if path else ()))
        if module is None or (path and not any(":" in target for target in targets)):
            raise unknown("code", text, [f"{name}:{symbol}" for symbol in module.symbols] if module else [])
        self._follow(targets)

    def enter(self, root: Any) -> None:
        """Begin at an object."""
        if id(root) in self._entered:
            return
        self._entered[id(root)] = root
        if isinstance(root, ModuleType):
            self._follow(self._targets(Name(root.__name__)))
        elif isinstance(root, MethodType):
            self._enter_all([root.__self__, root.__func__])
        elif isinstance(getattr(root, "__qualname__", None), str):  # a function, a class, or what wraps one
            self._enter_named(root)
        else:
            self._enter_named(type(root))
            if isinstance(root, partial):
                self._enter_all([root.func, *root.args, *chain(*sorted(root.keywords.items()))])
            elif isinstance(root, Mapping | list | tuple):
                self._enter_all(root.values() if isinstance(root, Mapping) else root)

    def _enter_all(self, held: Collection[Any], under: str = VALUES) -> None:
        """Go on with what a root holds; a text in it is data, not a name."""
        if plain := [repr(thing) for thing in held if isinstance(thing, PLAIN)]:
            self.found[under] = hashed([self.found.get(under), plain])
        for thing in held:
            if not isinstance(thing, PLAIN):
                self.enter(thing)

    def _enter_named(self, root: Any) -> None:
        """Find a function or class in its file; if it has none, read what Python remembers of it."""
        name, code = getattr(root, "__module__", None) or "builtins", getattr(root, "__code__", None)
        symbol, module = root.__qualname__.partition(".")[0], self._module(name)
        if module and code and symbol not in module.symbols:  # a lambda, or a function that was renamed
            symbol = module.symbol_at(code.co_firstlineno)
        if module and symbol in module.symbols:
            self._follow({f"{name}:{symbol}"})
        elif _counts(name):
            self._enter_remembered(f"{name}:{root.__qualname__}", root)

    def _enter_remembered(self, symbol: str, root: Any) -> None:
        """Code from a notebook's cell: its bytecode, and the objects that its names mean now."""
        if isinstance(root, type):
            held = {name: thing for name, thing in vars(root).items() if name == "__init__" or name[:2] != "__"}
            said = sorted(held)
            held = [getattr(thing, "fget", getattr(thing, "__func__", thing)) for thing in held.values()]
            held += root.__bases__
        elif code := getattr(root, "__code__", None):
            said, names = _bytecode(code, root.__doc__)
            held = [*_meant(names, root.__globals__), *(root.__defaults__ or ()), *(root.__kwdefaults__ or {}).values()]
            for cell in root.__closure__ or ():
                with suppress(ValueError):  # a variable that has no value yet
                    held.append(cell.cell_contents)
        else:
            return
        self.found[symbol] = hashed([self.found.get(symbol), said])  # lambdas share one name
        self._enter_all(held, under=symbol)

    def _follow(self, targets: Iterable[str]) -> None:
        """Add symbols, and all that they lead to."""
        queue = list(targets)
        while queue:
            name, _, symbol = (target := queue.pop()).partition(":")
            if not symbol or target in self.found:
                continue
            module = self._module(name)
            said, names = module.read(symbol)  # pyrefly: ignore[missing-attribute]
            # What a name means is part of what is said: `from a import f` may become `from b import f`.
            meanings = {f"{used.module}:{'.'.join(used.parts)}": sorted(self._targets(used)) for used in names}
            self.found[target] = hashed([said, {name: found for name, found in meanings.items() if found}])
            queue += [found for targets in meanings.values() for found in targets]
            queue += [f"{name}:{EFFECTS}"] * (EFFECTS in module.symbols)  # pyrefly: ignore[missing-attribute]

    def _targets(self, name: Name, passed: frozenset[Name] = frozenset()) -> set[str]:
        """What a name leads to: symbols "module:name", or "module.name" where code is installed."""
        module = self._module(name.module)
        if module is None:
            return {".".join([name.module, *name.parts])}
        if name in passed:  # modules import from each other, or a package a module from itself
            return set()
        passed |= {name}
        if not name.parts:
            inside = {*module.symbols, *(module.imports if module.is_package else ())}
            return {found for part in inside for found in self._targets(Name(name.module, (part,)), passed)}
        first, *rest = name.parts
        targets = {f"{name.module}:{first}"} if first in module.symbols else set()
        for origin in module.imports.get(first, ()):
            targets |= self._targets(Name(origin.module, (*origin.parts, *rest)), passed)
        if not targets and module.is_package and self._module(f"{name.module}.{first}"):
            return self._targets(Name(f"{name.module}.{first}", tuple(rest)), passed)
        return targets

    def _module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = find(name) if _counts(name) else None
        return self._modules[name]


def _counts(name: str) -> bool:
    """Whether a module's code counts."""
    plumbing = any(name == part or name.startswith(f"{part}.") for part in PLUMBING)
    return not plumbing and not is_installed(name)


def _bytecode(code: CodeType, docstring: str | None) -> tuple[list[Any], set[str]]:
    """What a function does, and the names in it."""
    said = [code.co_code.hex(), code.co_argcount, code.co_kwonlyargcount, list(code.co_names)]
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner, further = _bytecode(constant, None)
            said, names = [*said, inner], names | further
        elif constant != docstring:
            said.append(sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant))
    return said, names


def _meant(names: set[str], space: Mapping[str, Any]) -> Iterator[Any]:
    """The objects that names mean, looked for in the modules among them too."""
    for name in sorted(names & space.keys()):
        if isinstance(space[name], ModuleType):
            yield from _meant(names - {name}, vars(space[name]))
        else:
            yield space[name]
