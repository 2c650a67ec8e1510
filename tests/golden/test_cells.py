"""What a reader's measurement gives decides what its runs are called: edits of any value that it reads, in a kernel."""

from __future__ import annotations

import ast

import pytest
from jupyter_client.manager import start_new_kernel

CLASS = """
import enum, functools, numpy as np, torch
from pullpush import golden
from pullpush.training import Diagnostics

class Watch(Diagnostics):
    def before(self, objective, batch):
        return torch.empty(0)

    def after(self, objective, batch, offer, start):
        return {name: float(number) for name, number in report().items()}

def report():
    return {"number": value()}
"""
K = "class K:\n    def __init__(self, x):\n        self.x = x\n"
EDITS = {  # of one cell: the code with $, which is 1 before and 2 after
    "tensor": "C = torch.tensor(3.0 + $)\nvalue = lambda: C",
    "array": "C = np.array([0.5, $])\nvalue = lambda: C.sum()",
    "NumPy scalar": "C = np.float32($)\nvalue = lambda: C",
    "weights": "C = torch.nn.Linear(1, 1)\nC.bias.data.fill_($)\nvalue = lambda: C.bias",
    "set": "C = {7, $}\nvalue = lambda: sum(C)",
    "frozen set": "C = frozenset({7, $})\nvalue = lambda: sum(C)",
    "bytes": "C = b'$'\nvalue = lambda: C[0]",
    "complex number": "C = 1 + $j\nvalue = lambda: C.imag",
    "range": "C = range($)\nvalue = lambda: len(C)",
    "whole number": "C = $\nvalue = lambda: C",
    "text": "C = 'a' * $\nvalue = lambda: len(C)",
    "nested list": "C = [[0, [$]]]\nvalue = lambda: C[0][1][0]",
    "enum": "class E(enum.Enum):\n    A = $\nvalue = lambda: E.A.value",
    "object": K + "C = K($)\nvalue = lambda: C.x",
    "object in a tuple": K + "C = (0, K($))\nvalue = lambda: C[1].x",
    "key": "C = dict(zip((1, 2), (1, 2)[:: 3 - 2 * $]))\nvalue = lambda: C[1]",
    "attribute of a class": "class A:\n    x = torch.tensor($)\nvalue = lambda: A.x",
    "call": "class A:\n    def __call__(self):\n        return $\nvalue = A()",
    "getattr": "class A:\n    def __getattr__(self, name):\n        return $\nvalue = lambda: A().x",
    "getitem": "class A:\n    def __getitem__(self, at):\n        return $\nvalue = lambda: A()[0]",
    "len": "class A:\n    def __len__(self):\n        return $\nvalue = lambda: len(A())",
    "add": "class A:\n    def __add__(self, other):\n        return $\nvalue = lambda: A() + 1",
    "cached property": "class A:\n    @functools.cached_property\n    def x(self): return $\nvalue = lambda: A().x",
    "property": "class A:\n    @property\n    def x(self):\n        return $\nvalue = lambda: A().x",
    "static method": "class A:\n    @staticmethod\n    def x():\n        return $\nvalue = A.x",
    "class method": "class A:\n    y = $\n    @classmethod\n    def x(cls):\n        return cls.y\nvalue = A.x",
    "base": "class A:\n    def x(self):\n        return $\nclass B(A):\n    pass\nvalue = lambda: B().x()",
    "closure": "def made(x):\n    return lambda: x\nvalue = made($)",
    "default": "def value(x=$):\n    return x",
    "keyword": "def value(*, x=$):\n    return x",
    "partial": "value = functools.partial(float, $)",
    "decorator": "def twice(f):\n    return lambda: $ * f()\n@twice\ndef value():\n    return 3",
    "helper": "def helper():\n    return $\nvalue = lambda: helper()",
    "generator": "def numbers():\n    yield $\nvalue = lambda: sum(numbers())",
    "usual column": "value = lambda: 0\ndef report():\n    return {'loss': $}",
}
SAME = {
    "docstring": "def value():\n    '''$'''\n    return 3",
    "comment": "value = lambda: 3  # $",
    "unused": "C = $\nvalue = lambda: 3",
    "name": "def value():\n    x$ = 3\n    return x$",
}


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """Code of a cell → what `told` is after it, in a kernel whose first cell has the class."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLPUSH_HOME", str(tmp_path_factory.mktemp("kernel")))
        manager, client = start_new_kernel(kernel_name="python3")
    try:

        def run(code: str):
            asked = {"told": "golden.version_of_diagnostics(Watch())"}
            reply = client.execute_interactive(code, timeout=120, user_expressions=asked, output_hook=lambda _: None)
            return ast.literal_eval(reply["content"]["user_expressions"]["told"]["data"]["text/plain"])

        client.execute_interactive(CLASS, timeout=120)
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("name", [*EDITS, *SAME])
def test_a_run_is_another_where_what_is_measured_is(cell, name):
    code = "def report():\n    return {'number': value()}\n" + (EDITS | SAME)[name]
    before, after, again = (cell(code.replace("$", number)) for number in "121")
    assert (before != after) == (name in EDITS)
    assert again == before


def test_what_cannot_be_tried_is_another_at_each_look(cell):
    assert len({cell("value = lambda: 1 / 0") for _ in range(2)}) == 2
