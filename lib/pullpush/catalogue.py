"""Cards, and how they are found: one file adds one method.

A file of a package (a loss, an encoder, a metric …) describes what it adds on a card, at its top level:

    CARD = LossCard("svr", SVR, title="SVR", about="…", source="SupCLAP Eq. 6–9", citation="supclap")

(or CARDS, several in a tuple), and the package's catalogue finds it by reading the names of the files, so that no
list has to be edited. A reader's own files lie outside the library, in folders named as the packages are, below one
that `$PULLPUSH_EXTRA` names: `$PULLPUSH_EXTRA/losses/mine.py`.
"""

import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pullpush.errors import PullPushError, looked_up, unknown

EXTRA = "PULLPUSH_EXTRA"
_ADDED: dict[str, list[str]] = {}  # package → the reader's folders that lie on its path


class CardError(PullPushError, TypeError):
    """A file whose cards cannot be used; the message names the file and says what to write."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What every kind of card says.

    name: as recipes and tables write it; make: the class or function; title: as figures write it; about: one sentence;
    source: paper and equations, or where it comes from; citation: its key in references.bib; colour: its role in
    `show.palette`, for what figures compare. Of what others made (recordings, weights), for the page *Sources*:
    authors, whom to credit; licence, under which they give it; version, such as that of a package.
    """

    name: str
    make: Callable[..., Any]
    title: str
    about: str
    source: str = ""
    citation: str = ""
    colour: str = ""
    authors: str = ""
    licence: str = ""
    version: str = ""


C = TypeVar("C", bound=Card)


class Catalogue(Mapping[str, C], Generic[C]):
    """The cards of a package, by name: `TERMS: Catalogue[LossCard] = Catalogue("pullpush.losses", LossCard, "loss")`.

    Files are looked for again whenever their names have changed.

    Args:
        package: where the files are; names that begin with "__" are left out.
        kind: of card; cards of other kinds in the same files are another catalogue's.
        noun: what errors call an entry.

    Raises:
        CardError: at the first use: two files have one name, or CARD is not a card.
        UnknownNameError: a name that no card has; the nearest are given.
    """

    def __init__(self, package: str, kind: type[C], noun: str) -> None:
        self.package, self.kind, self.noun = package, kind, noun
        self._files: dict[str, str] = {}
        self._added: dict[str, C] = {}
        self._instead: ContextVar[Mapping[str, C]] = ContextVar(f"instead of {noun}s", default=MappingProxyType({}))
        self._cards: dict[str, C] = {}
        self._origins: dict[str, str] = {}

    def __getitem__(self, name: str) -> C:
        return looked_up(self.noun, name, self._found())

    def get(self, name: str, default: Any = None) -> Any:
        """The card of a name, or the default."""
        return self._found().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._found()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())

    def add(self, card: C) -> C:
        """Add what has no file, such as a loss of a notebook's cell, for this process and those that it starts; in
        place of one of that name that was added before.

        Raises:
            CardError: it is no card of this kind, or a file has one of its name.
        """
        if not isinstance(card, self.kind):
            raise CardError(f"add takes a card such as {self.kind.__name__}(name=…), got {type(card).__name__}")
        if card.name in self._found() and card.name not in self._added:
            raise CardError(f"{self.package} has a card called {card.name} already: give this one another name")
        self._added[card.name] = card
        return card

    @contextmanager
    def standing_in(self, cards: Mapping[str, C]) -> Iterator[None]:
        """Let cards stand in for those of their names, in this thread alone: so the use of an entry is tried apart from
        what the entry does.
        """
        token = self._instead.set(cards)
        try:
            yield
        finally:
            self._instead.reset(token)

    @property
    def added(self) -> tuple[C, ...]:
        """What `add` added, for other processes to add, too."""
        return tuple(self._added.values())

    def file_of(self, name: str) -> Path:
        """The file that holds a card; UnknownNameError as for the card itself, and for one that has no file."""
        card = self[name]  # first: looking for it may find other files than last time
        if card.name in self._added:
            raise unknown(f"{self.noun} with a file", name, self._origins)
        return Path(str(import_module(self._origins[card.name]).__file__))

    def _found(self) -> dict[str, C]:
        """Name → card, in the order of the files' names."""
        files = modules(self.package)
        if files != self._files:
            invalidate_caches()  # of Python's lists of folders: a file may be younger than they are
            found = [(card, file) for file in files for card in _cards_of(file, self.kind)]
            names = [card.name for card, _ in found]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise CardError(f"two cards of {self.package} are called {', '.join(twice)}: give one another name")
            self._files, self._cards = files, {card.name: card for card, _ in found}
            self._origins = {card.name: file for card, file in found}
        instead = self._instead.get()
        return {**self._cards, **self._added, **instead} if self._added or instead else self._cards


def modules(package: str) -> dict[str, str]:
    """The modules of a package, the reader's own included, by name, and the folder that each lies in.

    Raises:
        CardError: two files of one name, of which Python would import one, or one with the name of a function that
            the package offers, whose place it would take.
    """
    places, offered = import_module(package).__path__, getattr(import_module(package), "__all__", ())
    folders = [str(folder) for folder in extra_folders(package.rpartition(".")[2])]
    for gone in [place for place in _ADDED.get(package, ()) if place not in folders]:
        _forget(package, gone)
    added = [folder for folder in folders if folder not in places]
    places.extend(added)
    _ADDED[package] = [*_ADDED.get(package, ()), *added]
    found: dict[str, str] = {}
    for place in places:
        for name in _names(place, tuple(os.listdir(place))):
            if first := found.get(f"{package}.{name}"):
                raise CardError(f"{name}.py lies in {place} and in {first}: give one another name")
            if place in folders and name in offered:
                raise CardError(f"{place} has {name}.py, and {package} offers {name}: give the file another name")
            found[f"{package}.{name}"] = place
    return dict(sorted(found.items()))


@lru_cache
def _names(folder: str, files: tuple[str, ...]) -> tuple[str, ...]:
    """The modules in a folder of these files; remembered, for a step of training asks for every card anew."""
    return tuple(entry.name for entry in pkgutil.iter_modules([folder]) if entry.name[:2] != "__")


def _forget(package: str, folder: str) -> None:
    """Take a folder that `$PULLPUSH_EXTRA` names no longer out of its package, and what was imported from it."""
    parent = import_module(package)
    parent.__path__[:] = [place for place in parent.__path__ if place != folder]
    _ADDED[package].remove(folder)
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{package}.") and Path(getattr(module, "__file__", None) or "/").parent == Path(folder):
            del sys.modules[name]
            vars(parent).pop(name.rpartition(".")[2], None)


def extra_folders(name: str) -> tuple[Path, ...]:
    """The reader's own folders of a package, in `$PULLPUSH_EXTRA` (several are separated as in PATH)."""
    named = [Path(part).expanduser() / name for part in os.environ.get(EXTRA, "").split(os.pathsep) if part]
    return tuple(folder for folder in named if folder.is_dir())


def _cards_of(file: str, kind: type[C]) -> tuple[C, ...]:
    module = import_module(file)
    cards = getattr(module, "CARDS", (module.CARD,) if hasattr(module, "CARD") else ())
    if not isinstance(cards, tuple) or not all(isinstance(card, Card) for card in cards):
        raise CardError(f"{file}: CARD must be a card such as {kind.__name__}(name=…), CARDS a tuple of them")
    return tuple(card for card in cards if isinstance(card, kind))
