"""Which components are known to do what their golden files say, from process to process.

Some probes take seconds: optimisers import torch's compiler, encoders of texts the networks of `transformers`. None is
run again while no byte of the library and no version of an installed package is another, on the same kind of processor.
All are run where `$PULLPUSH_EXTRA` adds files to the library, where one was written since the process began, or where a
function of the library is not that of its file, as when a cell has put another in its place; other values that a
process sets in modules are not looked at.
"""

import json
import os
import platform
import sys
import time
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from types import FunctionType

import torch

from pullpush.cache import atomic_path, content_key, home
from pullpush.catalogue import EXTRA
from pullpush.errors import PullPushError

LIBRARY = Path(__file__).parents[1]
STARTED = time.time()
MADE = ("<string>", "<frozen")  # where functions come from that Python writes itself, as those of dataclasses


def version(name: str) -> str:
    """The version of a component that was found to agree; "" if that is not known."""
    return _read().get(name, "") if _known() else ""


def note(name: str, version: str) -> None:
    """Remember that a component agrees with its golden file, where the cache can be written."""
    if _known():
        with suppress(OSError, PullPushError), atomic_path(_place()) as partial:
            partial.write_text(json.dumps({"of": _state(), "versions": _read() | {name: version}}), encoding="utf-8")


def _place() -> Path:
    """A file for each copy of the library, which another state of it takes over."""
    return home() / "golden" / f"{content_key(str(LIBRARY))}.json"


def _read() -> dict[str, str]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(_place().read_text(encoding="utf-8"))
        return known["versions"] if known["of"] == _state() else {}
    return {}


def _known() -> bool:
    """Whether what runs here is what lies in files."""
    return bool(_state()) and _as_in_files(int(time.monotonic()))


@cache
def _state() -> str:
    """Of all that decides what probes give; "" where a file is younger than the process, which may run the old one."""
    digest = sha256(repr((sys.version, platform.platform(), torch.backends.cpu.get_cpu_capability())).encode())
    folders = (Path(place) for place in sys.path if os.path.isdir(place))
    for name in sorted({path.name for folder in folders for path in folder.glob("*.dist-info")}):
        digest.update(name.encode())
    files = sorted(path for path in LIBRARY.rglob("*") if path.suffix != ".pyc" and path.is_file())
    for path in files:
        digest.update(f"{path.relative_to(LIBRARY)}:{path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest() if max(path.stat().st_mtime for path in files) < STARTED else ""


@lru_cache(maxsize=1)
def _as_in_files(second: int) -> bool:
    """Whether the library is as it is installed, nothing added; looked at once a second, since there are thousands."""
    installed = (str(LIBRARY), sys.prefix, sys.base_prefix, *MADE)
    return not os.environ.get(EXTRA) and all(
        each.__code__.co_filename.startswith(installed)
        for name, module in list(sys.modules.items())
        if name.startswith("pullpush.")
        for value in list(vars(module).values())
        for each in (vars(value).values() if isinstance(value, type) else (value,))
        if isinstance(each, FunctionType)
    )
