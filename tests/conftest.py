"""What all tests share: a book of two pages whose one chapter runs in a second, a world of a few synthetic scenes."""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

# A shell lets what it runs in the background ignore Ctrl-C, and processes that tests start and stop would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A worker of pytest has one core, and to start processes takes longer than what they are started for in tests.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
sys.path.insert(0, str(Path(__file__).parent))  # tests of data, the lab and the book share miniature.py

import miniature
import pytest

from pullpush.data.scenes.world import World, WorldConfig, load_world
from pullpush.lab import common, session
from pullpush.lab.root import find_root
from pullpush.training import Diagnostics
from pullpush.training.frozen import encoded, on_features
from pullpush.training.recipes import recipe
from pullpush.training.runs import Plan, train_all

CHAPTER = (
    miniature.CHAPTER_HEAD
    + """tau = 0.07  # of the softmax
name = "a"
loud = False
rates = [1, 2]
```

```{code-cell} ipython3
import sys
import pandas as pd
from pullpush.lab import session

book = session.start("10-tiny", profile=profile, seed=seed)
print("noise", file=sys.stderr)
assert name != "broken", "asked to break"
table = pd.DataFrame({"double": [2 * tau], "epochs": [book.settings.epochs]})
book.save(table)
table
```
"""
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: no worker is to begin one when the others end."""
    items.sort(key=lambda item: item.path.parent.name not in ("site", "training", "topics"))


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of the tiny book, which the commands take for theirs."""
    real = find_root()
    book = tmp_path / "tiny" / "book"
    book.mkdir(parents=True)
    (book / "_toc.yml").write_text("format: jb-book\nroot: intro\nchapters:\n  - file: 10-tiny\n")
    (book / "_config.yml").write_text((real / "book" / "_config.yml").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("_static", "_extra"):  # what the configuration names
        shutil.copytree(real / "book" / name, book / name)
    (book / "references.bib").write_text("")
    (book / "intro.md").write_text("# A tiny book\n\nTwo pages.\n")
    (book / "10-tiny.md").write_text(CHAPTER)
    monkeypatch.setenv("PULLPUSH_BOOK", str(book.parent))
    return book.parent


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache of one test will be."""
    monkeypatch.setenv("PULLPUSH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PULLPUSH_PROGRESS", "0")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache that the tests of one file share."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("home")
        patch.setenv("PULLPUSH_HOME", str(path))
        patch.setenv("PULLPUSH_PROGRESS", "0")
        yield path


@pytest.fixture(scope="module")
def home(module_home: Path) -> Path:
    """The same, where no folder of tests has one for each test."""
    return module_home


@pytest.fixture(scope="module")
def world(home: Path) -> World:
    """A small world of synthetic sounds."""
    return load_world(WorldConfig(bank="synthetic", n_train=16, n_valid=8, n_test=8))


@pytest.fixture(scope="module")
def book(home, tmp_path_factory):
    return session.start("02-svr", profile="smoke", out=tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def heard(home, world):
    base = Plan(
        world, recipe("infonce", text="hashed", dim=8, epochs=1, encoder_options={"audio_channels": (4, 4, 8)})
    ).train()
    return encoded(world, base)


@pytest.fixture(scope="module")
def runs(book, heard):
    keys = [(name, seed) for name in miniature.BOTH for seed in (0, 1)]
    recipes = {
        name: common.sized(book, recipe, **common.merged(on_features(heard), own))
        for name, (recipe, own) in miniature.BOTH.items()
    }
    plans = [Plan(heard, recipes[name], seed, Diagnostics(every=1, tau=0.07)) for name, seed in keys]
    return dict(zip(keys, train_all(plans), strict=True))
