"""Statements that decide no number: those that do nothing, and those that can only refuse. For `syntax`.

is_guard(ast.parse("if tau <= 0:\n    raise ValueError(tau)").body[0])  # True
"""

from __future__ import annotations

import ast
from typing import Any

GUARD = "check_"  # a call of what is called so, for no result, can only refuse


def is_silent(node: Any, in_class: bool) -> bool:
    """Whether a statement does nothing: a docstring, `pass`, a variable declared without a value."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Pass) or (isinstance(node, ast.AnnAssign) and not (node.value or in_class))


def is_guard(node: Any) -> bool:
    """Whether a statement can only refuse: a call of `check_…`, an `if` that only raises, a `for` over such."""
    match node:
        case ast.Expr(value=ast.Call(func=called)):
            return _last(called).startswith(GUARD)
        case ast.If(body=[ast.Raise()], orelse=[]):
            return not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test))
        case ast.For(body=body, orelse=[]):
            return all(map(is_guard, body))
    return False


def _last(called: ast.expr) -> str:
    """The name of a function, without what it is looked up in."""
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
