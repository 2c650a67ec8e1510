"""A digest of code changes when a number could, and only then: on small packages, on notebooks and on the library."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial, wraps
from pathlib import Path

import numpy as np
import pytest
import torch

import pullpush
from pullpush import source
from pullpush.encoders.dual import AUDIO
from pullpush.errors import UnknownNameError
from pullpush.losses import SVR, info_nce, svr
from pullpush.silence import is_guard
from pullpush.source import Registry, digest, digest_files, reached, symbols, why_differs
from pullpush.syntax import Module, parsed
from pullpush.training import recipes
from pullpush.training.loop import train

LIB = Path(pullpush.__file__).parent
MAIN = '''
"""A module."""
import numpy as np
from typing import TYPE_CHECKING, NamedTuple
from sample import other
from sample.other import helper, traced as decorated
from sample.shapes import Base

if TYPE_CHECKING:
    from sample.other import Unseen

    Alias = list[Unseen]

SCALE: float = 2.0
FIRST, SECOND = 1, 2
TABLE = {"sine": np.sin}
TABLE["third"] = other.third
UNUSED = 1


def f(x: int, power=2, *, keep: bool = True) -> float:
    """Say something."""
    # a remark
    y: float = helper(x) ** power
    return y * SCALE + other.LIMIT


@decorated
def g(x):
    def inner():
        from sample import late
        return late.value(x)
    return [FIRST + inner() for helper in x]


class Shape(Base):
    """A shape."""
    size: int = 1
    other: str = ""

    def area(self):
        return TABLE["sine"](self.size)


def ping(n):
    return pong(n - 1) if n else 0


def pong(n):
    return ping(n - 1) if n else 1


def unrelated(x):
    return x


if __name__ == "__main__":
    unrelated(1)
'''
OTHER = """
__all__ = ["helper"]
LIMIT = 3


def helper(x):
    return x + offset()


def offset():
    return 1


def third(x):
    return x


def traced(function):
    return function


def unused():
    return None
"""
FILES = {
    "main": MAIN,
    "other": OTHER,
    "shapes": "class Base:\n    sides = 4\n",
    "late": "def value(x):\n    return x\n",
}


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Writes modules of a package called `sample`; they are not imported unless a test does so."""
    monkeypatch.syspath_prepend(tmp_path)
    ticks = iter(range(10**6))

    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / "sample" / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            tick = 10**18 + next(ticks)  # two edits may fall within one tick of the file system's clock
            os.utime(path, ns=(tick, tick))

    write(__init__="", **FILES)
    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "sample"]:
        del sys.modules[name]


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


GUARDED = """
from sample.other import LIMIT, helper, offset


def check_size(x):
    if x > LIMIT:
        raise ValueError("too much")


class Box:
    def check_lid(self):
        pass


def f(x, box=None):
    if x < 0:
        raise ValueError(f"{x} is below {offset()}")
    for y in [x]:
        check_size(y)
        if y != y:
            raise TypeError
    box.check_lid()
    if not x:
        return 0
    else:
        raise helper("unused") from None
"""
RULE = """
from sample.other import helper


def f(x, box=None):
    if not x:
        return 0
    else:
        raise helper
"""


# What counts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a remark", "# another"),
        ('"""Say something."""', '"""Say something else."""'),
        ('"""Say something."""', ""),
        ('"""Say something."""', "pass"),
        ('"""A module."""', ""),
        ("x: int, power=2", "x, power: int = 2"),
        (" -> float", ""),
        ("y: float = helper", "y = helper"),
        ("return y * SCALE + other.LIMIT", "return (\n        y * SCALE  # twice\n        + other.LIMIT\n    )"),
        ("SCALE: float = 2.0", "SCALE = 2.00"),
        ("UNUSED = 1", "UNUSED = 2"),
        ("    return x\n\n\nif", "    return -x\n\n\nif"),
        ("    unrelated(1)", "    unrelated(2)"),
        ('TABLE["third"] = other.third', 'TABLE["third"] = other.unused'),
        ("def unrelated(x)", "def yet_another():\n    return helper(1)\n\n\ndef unrelated(x)"),
        ("import helper, traced as decorated", "import (helper, unused, traced as decorated)"),
    ],
)
def test_a_digest_stays_when_no_number_can_change(sample, old, new):
    before = digest("sample.main:f")
    sample(main=changed(MAIN, old, new))
    assert digest("sample.main:f") == before


@pytest.mark.parametrize(
    ("root", "old", "new"),
    [
        ("f", "y * SCALE", "y / SCALE"),
        ("f", "power=2", "power=3"),
        ("f", "keep: bool = True", "keep: bool = False"),
        ("f", "SCALE: float = 2.0", "SCALE: float = 2.5"),
        ("f", "import helper,", "import third as helper,"),
        ("f", "from sample import other", "from sample import shapes as other"),
        ("g", "@decorated\n", ""),
        ("g", "traced as decorated", "unused as decorated"),
        ("g", "FIRST, SECOND = 1, 2", "FIRST, SECOND = 3, 2"),
        ("g", "late.value", "late.other"),
        ("Shape", "class Shape(Base)", "class Shape"),
        ("Shape", "import Base", "import Other as Base"),
        ("Shape", "size: int = 1", "size: float = 1"),
        ("Shape.area", 'TABLE["sine"](', "np.abs("),
        ("Shape", "np.sin", "np.cos"),
        ("Shape", "import numpy as np", "import torch as np"),
        ("Shape", 'TABLE["third"] = other.third', 'TABLE["third"] = other.unused'),
        ("Shape", "UNUSED = 1", "for name in range(3):\n    TABLE[name] = other.third"),
        ("ping", "else 1", "else 2"),
    ],
)
def test_a_digest_changes_with_what_its_code_says(sample, root, old, new):
    before = digest(f"sample.main:{root}")
    sample(main=changed(MAIN, old, new))
    assert digest(f"sample.main:{root}") != before


@pytest.mark.parametrize(
    ("root", "file", "old", "new"),
    [
        ("f", "other", "x + offset()", "x - offset()"),
        ("f", "other", "return 1", "return 2"),
        ("f", "other", "LIMIT = 3", "LIMIT = 4"),
        ("g", "other", "return function", "return None or function"),
        ("g", "late", "return x", "return 2 * x"),
        ("Shape", "shapes", "sides = 4", "sides = 3"),
        ("Shape", "other", "def third(x):\n    return x", "def third(x):\n    return -x"),
    ],
)
def test_a_digest_changes_with_code_of_other_modules_that_it_reaches(sample, root, file, old, new):
    before = {name: digest(f"sample.main:{name}") for name in ("f", "g", "Shape", "unrelated")}
    sample(**{file: changed(FILES[file], old, new)})
    assert digest(f"sample.main:{root}") != before[root]
    assert digest("sample.main:unrelated") == before["unrelated"]


def test_statements_that_can_only_refuse_and_messages_do_not_count(sample):
    sample(guarded=RULE)
    before, found = digest("sample.guarded:f"), reached("sample.guarded:f")
    sample(guarded=GUARDED)
    assert (digest("sample.guarded:f"), reached("sample.guarded:f")) == (before, found)
    assert found == ("sample.guarded:f", "sample.other:helper", "sample.other:offset")
    for old, new in [("TypeError", "KeyError"), ("too much", "too little"), ("x < 0", "x < 1"), ("[x]", "[x, x]")]:
        sample(guarded=changed(GUARDED, old, new))
        assert digest("sample.guarded:f") == before


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n        raise ValueError\n    else:\n        x = 2",
        "if (x := x + 1) < 0:\n        raise ValueError",
        "if x:\n        x = 2\n        raise ValueError",
        "x = check_size(x)",
        "checked(x)",
        "x.check_in.now()",
        "raise ValueError",
        "for y in x:\n        y.pop()\n        check_size(y)",
        "for y in x:\n        check_size(y)\n    else:\n        x = 2",
        "try:\n        if x:\n            raise ValueError\n    except ValueError:\n        x = 2",
        "try:\n        check_size(x)\n    except ValueError:\n        x = 2",
    ],
)
def test_what_can_do_more_than_refuse_counts(sample, text):
    sample(guarded="def f(x):\n    return x\n")
    before = digest("sample.guarded:f")
    sample(guarded=f"def f(x):\n    {text}\n    return x\n")
    assert digest("sample.guarded:f") != before


@pytest.mark.parametrize("refusal", ["if x:\n            raise ValueError", "check_size(x)"])
def test_a_refusal_that_may_be_caught_counts(sample, refusal):
    text = "def f(x):\n    try:\n        REFUSAL\n        x = 1\n    except ValueError:\n        x = 2\n    return x\n"
    found = []
    for body in ("pass", refusal):
        sample(guarded=text.replace("REFUSAL", body))
        found.append(digest("sample.guarded:f"))
    assert found[0] != found[1]


def test_names_are_followed_as_python_would(sample):
    assert reached("sample.main:f") == (
        *("sample.main:SCALE", "sample.main:f"),
        *("sample.other:LIMIT", "sample.other:helper", "sample.other:offset"),
    )
    # `helper` is a variable of the comprehension, `late` an import of a function in the function
    assert reached("sample.main:g") == (
        *("sample.late:value", "sample.main:FIRST", "sample.main:g", "sample.other:traced"),
    )
    # `other` is the name of a field, and `np` is not ours
    assert reached("sample.main:Shape") == (
        *("sample.main:Shape", "sample.main:TABLE", "sample.other:third", "sample.shapes:Base"),
    )
    assert reached("sample.main:ping") == reached("sample.main:pong") == ("sample.main:ping", "sample.main:pong")


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return lambda y, *a, key=None, **k: (value, x, y, a, key, k)",
        "def f(x):\n    return [value for row in x if (last := row)] + [last]",
        "def f(x):\n    value\n    return [0 for value in x]",
        "def f():\n    return [value for value in value]",
        "def f(x=lambda value: 1):\n    return value",
        "def f(x):\n    match x:\n        case {'a': y, **rest}:\n            return value(y, rest)",
        "def f(x):\n    global value\n    value = x",
        "class f:\n    value = 1\n    def g(self):\n        return value",
        "class f:\n    def g(self, x=value):\n        return x",
        "async def f(x):\n    async with value() as y:\n        return y",
        "def f(x):\n    try:\n        return x\n    except value as error:\n        raise error",
        "@value\ndef f():\n    pass",
        "def f():\n    return f'{value:>3}'",
    ],
)
def test_a_global_name_is_found_wherever_it_stands(sample, text):
    sample(scopes=f"value = 1\n\n\n{text}\n")
    assert reached("sample.scopes:f") == ("sample.scopes:f", "sample.scopes:value")


@pytest.mark.parametrize(
    "text",
    [
        "def f(value):\n    return value",
        "def f(*value):\n    return value",
        "def f(x):\n    value = x\n    return lambda: value",
        "def f(x):\n    for value in x:\n        yield value",
        "def f(x):\n    return {value: value for value in x}",
        "def f(x):\n    none = [0 for row in x if (value := row)]\n    return value, none",
        "def f(x):\n    with x as value:\n        return value",
        "def f(x):\n    import numpy as value\n    return value.pi",
        "def f(x):\n    def value():\n        return 1\n    return value()",
        "def f(x):\n    value = x\n    def g():\n        nonlocal value\n        value = 2\n    return g",
        "def f(x):\n    match x:\n        case [value, 1]:\n            return value",
        "def f(x: value) -> value:\n    y: value = x\n    return x.value",
        "class f:\n    value: int = 1",
    ],
)
def test_a_variable_is_no_global_name(sample, text):
    sample(scopes=f"value = 1\n\n\n{text}\n")
    assert reached("sample.scopes:f") == ("sample.scopes:f",)


def test_reexports_lead_to_where_a_symbol_is_written(sample):
    sample(__init__="from sample.other import helper as aid\nfrom .late import value\nfrom sample import shapes\n")
    sample(
        user="import sample\nimport sample.late as l\n\n\ndef f():\n    return sample.aid, sample.shapes.Base, l.value"
    )
    found = ("sample.late:value", "sample.other:helper", "sample.other:offset", "sample.shapes:Base", "sample.user:f")
    assert reached("sample.user:f") == found
    assert reached("sample:aid") == reached("sample.other:helper")


def test_the_package_may_bind_a_function_over_the_module_of_its_name(sample):
    sample(__init__="from sample.late import late\n", late="def late():\n    return 1\n\n\ndef rest():\n    return 2\n")
    sample(user="from sample import late\n\n\ndef f():\n    return late()\n")
    assert reached("sample.user:f") == ("sample.late:late", "sample.user:f")


def test_modules_may_import_from_each_other(sample):
    sample(a="from sample.b import g\n\n\ndef f():\n    return g()\n", b="from sample.a import f\ng = f\n")
    assert reached("sample.a:f") == ("sample.a:f", "sample.b:g")
    sample(a="from sample.b import x\n", b="from sample.a import x\n")
    assert reached("sample.a") == ()


def test_either_branch_of_an_import_counts(sample):
    sample(
        user="try:\n    from sample.late import value\nexcept ImportError:\n    def value():\n        return LAST\n"
        "LAST = 0\n\n\ndef f():\n    return value()\n"
    )
    assert {"sample.late:value", "sample.user:value", "sample.user:LAST"} <= {*reached("sample.user:f")}


def test_a_module_stands_for_all_that_it_defines(sample):
    names = ("LIMIT", "helper", "offset", "third", "traced", "unused")
    assert reached("sample.other") == tuple(f"sample.other:{name}" for name in names)
    sample(__init__="from sample.other import offset\n")
    assert reached("sample") == ("sample.other:offset",)
    importlib.import_module("sample.late")
    assert reached(sys.modules["sample.late"]) == ("sample.late:value",)
    sample(user="from sample import late\n\n\ndef f():\n    return vars(late)\n")
    assert "sample.late:value" in reached("sample.user:f")


@pytest.mark.parametrize("name", ["sample.main:nothing", "sample.nothing", "nothing:f", "torch:relu", "sample.main:np"])
def test_a_text_that_names_nothing_is_an_error(sample, name):
    with pytest.raises(UnknownNameError, match=name):
        digest(name)


def test_a_missing_symbol_brings_the_nearest_name(sample):
    with pytest.raises(UnknownNameError, match=r"did you mean 'sample.other:helper'"):
        digest("sample.other:helpr")


def test_installed_code_does_not_count(tmp_path, monkeypatch):
    place = tmp_path / "site-packages"
    place.mkdir()
    monkeypatch.syspath_prepend(place)
    (place / "brought.py").write_text("def f():\n    return 1\n")
    importlib.import_module("brought")
    assert reached(sys.modules.pop("brought").f) == ()


# Registries


REGISTRY = """
from pullpush.source import Registry
from sample import late, other

TERMS: Registry = Registry({"late": late.value, "third": other.third})
TERMS["more"] = other.unused
TYPED = Registry[str, object](a=late.value)


def create(name):
    return TERMS[name](), TYPED
"""


def test_a_registry_cuts_the_graph(sample):
    sample(registry=REGISTRY)
    before = digest("sample.registry:create")
    assert reached("sample.registry:create") == tuple(f"sample.registry:{n}" for n in ("TERMS", "TYPED", "create"))
    sample(registry=changed(REGISTRY, '"third": other.third', '"new": 3'), late="def value(x):\n    return 3\n")
    assert digest("sample.registry:create") == before
    sample(registry=changed(REGISTRY, "= Registry({", "= dict({"))
    assert "sample.late:value" in reached("sample.registry:create")


def test_the_entries_that_a_result_used_are_roots(sample):
    sample(registry=REGISTRY)
    registry = importlib.import_module("sample.registry")
    used = digest(registry.create, registry.TERMS["late"]), digest(registry.create, registry.TERMS["third"])
    sample(late="def value(x):\n    return 3\n")
    assert digest(registry.create, registry.TERMS["late"]) != used[0]
    assert digest(registry.create, registry.TERMS["third"]) == used[1]
    assert "sample.other:third" in reached(registry.TERMS)


def test_a_registry_is_a_dictionary():
    table: Registry[str, int] = Registry({"a": 1}, b=2)
    assert table == {"a": 1, "b": 2}
    assert type(table) is Registry


# Roots


def test_roots_are_found_through_what_wraps_them(sample):
    main = importlib.import_module("sample.main")
    whole = reached("sample.main:f")
    assert reached(partial(main.f, power=2))[1:] == whole
    assert reached([main.f, {"a": (main.f, 3)}])[1:] == whole
    assert reached(lru_cache(main.f)) == whole
    assert reached(wraps(main.f)(lambda x: x)) == whole
    shape = reached("sample.main:Shape")
    assert (
        reached(main.Shape) == reached(main.Shape()) == reached(main.Shape().area) == reached(main.Shape.area) == shape
    )


def test_the_plain_data_of_roots_counts(sample):
    main = importlib.import_module("sample.main")
    some = [partial(main.f, power=2), partial(main.f, power=3), partial(main.f, keep=2), partial(main.f, 2), main.f]
    assert len({digest(root) for root in some}) == len(some)
    assert digest(partial(main.f, power=2)) == digest(partial(main.f, power=2))


def test_the_order_of_roots_does_not_count():
    assert digest(SVR, info_nce, svr) == digest(svr, [info_nce], SVR, svr)
    assert len(digest(svr, length=32)) == 32


def test_a_function_made_within_another_counts_with_it(sample):
    sample(user="def make(k):\n    return lambda x: x * k\n\n\nDOUBLE = lambda x: 2 * x\n\n\nTRIPLE = make(3)\n")
    user = importlib.import_module("sample.user")
    assert reached(user.TRIPLE) == reached(user.make) == ("sample.user:make",)
    assert reached(user.DOUBLE) == ("sample.user:DOUBLE",)


@pytest.mark.parametrize(
    "root", [None, 3, "".join, len, print, object(), [].append, np.sin, np.float64, torch.relu, torch.nn.Linear, torch]
)
def test_what_is_not_ours_is_passed_over(root):
    assert reached(root) == ()


def local_loss(audio, text):
    return info_nce(audio, text, tau=0.1)


def test_functions_of_the_readers_own_files_count():
    found = reached(local_loss)
    assert f"{__name__}:local_loss" in found
    assert "pullpush.losses._info_nce:info_nce" in found
    this = f"{__name__}:test_functions_of_the_readers_own_files_count"
    assert this in reached(lambda: local_loss)


# Code without a file


def cell(text: str, **names) -> dict:
    """What a notebook's cell defines."""
    space = {"__name__": "__main__", **names}
    exec(text, space)
    return space


CELL = """
def f(x):
    'Say.'
    return helper(x) + K

def helper(x):
    return x
"""


def test_code_of_a_cell_is_read_as_bytecode():
    first = cell(CELL, K=1)["f"]
    assert reached(first) == ("__main__:f", "__main__:helper")
    for old, new in [("Say.", "Tell."), ("def f(x):", "def f(x: int) -> float:\n    # a remark")]:
        assert digest(cell(changed(CELL, old, new), K=1)["f"]) == digest(first)
    others = [cell(CELL, K=2)["f"]]
    for old, new in [(") + K", ") - K"), ("return x", "return -x"), ("f(x):", "f(x=3):"), ("f(x):", "f(x, *, k=3):")]:
        others.append(cell(changed(CELL, old, new), K=1)["f"])
    assert len({digest(first), *map(digest, others)}) == 1 + len(others)


def test_code_of_a_cell_leads_to_the_library():
    text = "class Loss(Base):\n    weight = 2\n    def forward(self, *pair):\n        return losses.svr(*pair) + 1"
    loss = cell(text, losses=pullpush.losses, Base=torch.nn.Module)["Loss"]
    assert {"__main__:Loss", "__main__:Loss.forward", "pullpush.losses._svr:svr"} <= {*reached(loss)}
    other = cell(text.replace("weight = 2", "weight = 3"), losses=pullpush.losses, Base=torch.nn.Module)["Loss"]
    assert digest(other) != digest(loss)
    heir = cell("class Heir(SVR):\n    pass", SVR=SVR)["Heir"]
    assert "pullpush.losses._svr:SVR" in reached(heir)
    assert "pullpush.losses._info_nce:info_nce" in reached(cell("f = lambda a: [g(x) for x in a]", g=info_nce)["f"])
    assert "pullpush.losses._info_nce:info_nce" in reached(cell("def m(g):\n    return lambda: g")["m"](info_nce))


# Across processes and versions


def test_a_digest_is_the_same_in_every_process_and_imports_nothing():
    code = "import sys; from pullpush.source import digest as d; "
    code += "print(d('pullpush.training.loop:train'), 'torch' in sys.modules)"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [digest(train), "False"]


@pytest.mark.parametrize("path", sorted(LIB.glob("**/*.py")), ids=lambda path: path.relative_to(LIB).as_posix())
def test_a_file_says_the_same_when_it_is_written_anew_without_comments(path, tmp_path):
    anew = tmp_path / path.name
    anew.write_text(ast.unparse(ast.parse(path.read_text(encoding="utf-8"))), encoding="utf-8")
    old, new = Module("m", path), Module("m", anew)
    assert {symbol: old.read(symbol) for symbol in old.symbols} == {symbol: new.read(symbol) for symbol in new.symbols}


# The library


def names_that_count(function) -> set[str]:
    """The names in a function's text, but for those in what can only refuse and in what errors are told."""
    queue, found = ast.parse(textwrap.dedent(inspect.getsource(function))).body, set()
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        if isinstance(node, ast.Raise):
            queue += [node.exc.func if isinstance(node.exc, ast.Call) else node.exc] if node.exc else []
        elif not is_guard(node):
            queue += ast.iter_child_nodes(node)
    return found


@pytest.mark.parametrize(
    "name", ["losses._svr", "losses._kcl", "training.loop", "data.grammar", "data.world", "forces"]
)
def test_what_python_finds_in_the_globals_of_a_function_is_reached(name):
    module = importlib.import_module(f"pullpush.{name}")
    functions = [
        thing for thing in vars(module).values() if inspect.isfunction(thing) and thing.__module__ == module.__name__
    ]
    for function in map(inspect.unwrap, functions):
        used = inspect.getclosurevars(function).globals
        used = [thing for name, thing in used.items() if name in names_that_count(function)]
        names = {f"{thing.__module__}:{thing.__qualname__}" for thing in used if hasattr(thing, "__qualname__")}
        ours = {n for n in names if n.startswith("pullpush.") and source._counts(n.partition(":")[0])}
        assert ours <= {*reached(function)}, function


def test_a_loss_does_not_depend_on_another():
    assert "pullpush.losses._svr:SVR" in reached(SVR)
    assert "pullpush.losses._info_nce:info_nce" not in reached(SVR)
    assert "pullpush.losses._info_nce:info_nce" in reached(pullpush.losses.ml_clap)


def test_training_depends_on_its_metrics_and_not_on_the_losses_that_it_finds_by_name():
    found = reached(train, recipes.Recipe)
    assert {"pullpush.training.evaluate:recall_at_1", "pullpush.training.objective:Objective"} <= {*found}
    assert {"pullpush.training.terms:Term", "pullpush.losses:TERMS", "pullpush.losses.offer:apply"} <= {*found}
    assert not [
        name for name in found if name.startswith(("pullpush.losses._svr", "pullpush.losses._info_nce:info_nce"))
    ]
    assert "pullpush.losses._svr:SVR" in reached(train, recipes.TERMS["svr"].make)
    assert "pullpush.encoders.cnn:CNN" in reached(AUDIO["cnn"].make)


def test_plumbing_does_not_count():
    assert not [name for name in reached(train) if name.partition(":")[0] in source.PLUMBING]
    assert all(importlib.util.find_spec(name) for name in source.PLUMBING)


# What a digest says


def test_the_symbol_that_changed_is_named(sample):
    before = symbols("sample.main:f")
    sample(other=changed(OTHER, "return 1", "return LIMIT + more()") + "\n\ndef more():\n    return 1\n")
    after = symbols("sample.main:f")
    assert why_differs(before, after) == ("sample.other:more is new", "sample.other:offset changed")
    assert why_differs(after, before) == ("sample.other:more is gone", "sample.other:offset changed")
    assert why_differs(before, before) == ()


def test_files_of_data_have_a_digest_of_their_own(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "events.yaml").write_text("x: 1")
        (tmp_path / folder / "more.yaml").write_text(folder)
    a, b = tmp_path / "a", tmp_path / "b"
    assert digest_files(a / "events.yaml") == digest_files(b / "events.yaml")
    assert digest_files(a / "more.yaml") != digest_files(b / "more.yaml")
    assert digest_files(a / "events.yaml", a / "more.yaml") == digest_files(a / "more.yaml", a / "events.yaml")
    assert digest_files(a / "more.yaml") != digest_files(a / "events.yaml", a / "more.yaml")


def test_many_threads_may_ask_at_once(tmp_path, monkeypatch):
    """Python 3.11 fails with a SystemError where two threads build syntax trees at the same time."""
    body = "x = [" + ", ".join("(" * 20 + str(k) + ")" * 20 for k in range(400)) + "]\n"
    with ThreadPoolExecutor(8) as pool:
        lengths = list(pool.map(lambda _: len(parsed(body * 5)), range(64)))
    assert lengths == [5] * 64
