"""Versions of components by what their probes give; the golden files that they are held against."""

import importlib
import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from pullpush.cache import atomic_path, content_key
from pullpush.errors import check_known
from pullpush.golden import agreed
from pullpush.golden.compare import Values, rounded, text_of
from pullpush.golden.probes import KINDS, GoldenError, Probes

FILES = Path(__file__).with_name("files")
HOMES = {  # of the probes of each kind: imported when they are asked for
    "losses": "losses",
    "audio": "encoders",
    "text": "encoders",
    "languages": "scenes",
    "data": "clips",  # which imports `scenes` and `recordings`
    "metrics": "metrics",
    "training": "training",
    "studies": "studies",
}
DIAGNOSTICS = "pullpush.training.diagnostics.Diagnostics"
LENGTH = 12  # hexadecimal digits of a version
_alone = threading.RLock()  # probes share the process's random numbers
_known: dict[str, str] = {}


class Disagreement(NamedTuple):
    """A component that does something else than its golden file says, and how."""

    name: str
    how: str


def version(name: str) -> str:
    """What a component is called in keys: its golden file's hash where it does what the file says, else its own.

    Kept for the process; of what has no golden file, such as a loss of the reader's own, asked anew each time.

    name: "kind/name", such as "losses/svr", "audio/yamnet", "languages/deu", "training/loop".

    Raises:
        UnknownNameError: there is no such component.
        GoldenError: its golden file cannot be read.

    >>> version("losses/infonce") == version("losses/infonce") != version("losses/kcl")
    True
    """
    with _alone:
        if name in _known:
            return _known[name]
        wanted = expected(name)
        if wanted is None:
            kind, rest = _of(name)
            return _without_file(name, lambda: kind.run(rest))
        _known[name] = _with_file(name, wanted)
        return _known[name]


def _with_file(name: str, wanted: Values) -> str:
    right = content_key(wanted, length=LENGTH)
    if agreed.version(name) == right:
        return right
    values = probe(name)
    if _of(name)[0].differences(values, wanted):
        return content_key(rounded(values), length=LENGTH)
    agreed.note(name, right)
    return right


def version_of_diagnostics(diagnostics: Any) -> str:
    """The version of what watches a run: of the library's "training/diagnostics", of another class, such as one from a
    notebook's cell, what it reports of a few steps.
    """
    kind = type(diagnostics)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name == DIAGNOSTICS:
        return version("training/diagnostics")
    home = importlib.import_module("pullpush.golden.training")
    with _alone:
        return _without_file(name, lambda: home.diagnostics_numbers(diagnostics))


def versions(*names: str) -> dict[str, str]:
    """The versions of several components, by name, each once."""
    return {name: version(name) for name in sorted(set(names))}


def _without_file(name: str, run: Callable[[], Values]) -> str:
    """Of a reader's component: what it gives; what cannot be probed is new at each look, and rather trained twice."""
    try:
        with _undisturbed():
            return content_key(rounded(run()), length=LENGTH)
    except Exception as error:
        warnings.warn(
            f"{name} cannot be tried on small inputs ({type(error).__name__}: {error}): what it trains is not found "
            "again",
            stacklevel=4,
        )
        return uuid4().hex[:LENGTH]


def names() -> tuple[str, ...]:
    """All components that have a probe, the reader's own included: "losses/infonce", …"""
    return tuple(f"{kind}/{name}" for kind in HOMES for name in sorted(_probes(kind).names()))


def probe(name: str) -> Values:
    """What a component gives on its probe's inputs, in one thread, whatever the random numbers of the process are."""
    kind, rest = _of(name)
    with _alone, _undisturbed():
        return kind.run(rest)


def expected(name: str) -> dict[str, Any] | None:
    """What a component's golden file holds; None if it has none.

    Raises:
        GoldenError: it cannot be read.
    """
    path = FILES / f"{name}.json"
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GoldenError(
            f"{path} is damaged ({error}): take it from the repository again, or, where the component is right as it "
            f"is, write it anew by `pullpush golden {name} --accept`"
        ) from error


def check(chosen: Iterable[str] = ()) -> Iterator[Disagreement]:
    """The components, all or those that are named, that do not do what their golden files say; files of none."""
    every = names()
    for name in chosen or every:
        kind, _ = _of(name)
        wanted = expected(name)
        if wanted is None:
            yield Disagreement(name, "has no golden file")
        elif wrong := kind.differences(probe(name), wanted):
            yield Disagreement(name, "; ".join(f"{key} {how}" for key, how in wrong.items()))
    if not chosen:
        left = {path.relative_to(FILES).with_suffix("").as_posix() for path in FILES.glob("*/*.json")} - {*every}
        yield from (Disagreement(name, "has a golden file and no probe") for name in sorted(left))


def accept(name: str) -> bool:
    """Let a golden file say what the component does today; whether that is something else than it said."""
    values = probe(name)
    with suppress(GoldenError):  # a damaged file is written anew
        if (wanted := expected(name)) is not None and not _of(name)[0].differences(values, wanted):
            return False
    path = FILES / f"{name}.json"
    with atomic_path(path) as partial:
        partial.write_text(text_of(values), encoding="utf-8")
    _known.pop(name, None)
    return True


def _of(name: str) -> tuple[Probes, str]:
    """The probes of a component's kind, and what it is called among them."""
    kind, _, rest = name.partition("/")
    check_known("kind of component", kind, HOMES)
    probes = _probes(kind)
    check_known(f"component of {kind}", rest, probes.names())
    return probes, rest


def _probes(kind: str) -> Probes:
    importlib.import_module(f"pullpush.golden.{HOMES[kind]}")
    return KINDS[kind]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """As a process that has just begun, in one thread; random numbers, threads and types come back as they were."""
    threads, state, dtype = torch.get_num_threads(), np.random.get_state(), torch.get_default_dtype()  # noqa: NPY002
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with (
        torch.random.fork_rng(devices),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
        threadpool_limits(1),
    ):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
            np.random.set_state(state)  # noqa: NPY002
