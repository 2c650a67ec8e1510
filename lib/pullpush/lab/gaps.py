"""What cannot be measured is said in its place, and the chapter goes on.

    gaps.expect()                   # as a lab's page does: an experiment may not have been kept for these parameters
    gaps.allow("the dataset mine")  # as `session.start` and `material.of` do, where data are not the book's own

From the next cell on a cell that raises NotKeptError, or on data of one's own any error, shows why in place of a
traceback, and so does a cell that needs a name which such a cell would have set; all others run. Every other error ends
a chapter, as in any notebook.
"""

import ast
import linecache
from collections.abc import Iterator
from html import escape
from types import TracebackType
from typing import Any, NamedTuple

from IPython.core.getipython import get_ipython
from IPython.display import Markdown, display

from pullpush.errors import AudioError, CacheError, DataNotFoundError, PullPushError, SettingError

MARK = "gap"  # in the metadata of a note's output, by which `pullpush run` counts them
# Of these, the user has to do something first.
STOPPING = (DataNotFoundError, AudioError, CacheError, SettingError, MemoryError)
ABOUT = (
    "**This page runs on {what}.** Its tables and figures are of that; its text was written for the book's own data "
    "and sizes. What cannot be measured so is said in its place, and the page goes on."
)


class NotKeptError(PullPushError, RuntimeError):
    """An experiment that takes long and was not kept for these parameters and data."""


_told_of: set[str] = set()  # what this kernel runs on that is the reader's own
_expecting: "list[Gaps]" = []  # those of this kernel


class Reason(NamedTuple):
    """Why something was not measured; whether the library said so itself rather than failed; whether it is only that a
    long experiment was not kept.
    """

    text: str
    foreseen: bool
    not_kept: bool = False


class Gaps:
    """The gaps of one kernel: names that are missing, each with the reason."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.missing: dict[str, Reason] = {}
        self._forgiven = False

    def begin(self, result: Any) -> None:
        """Look at errors from now on: a hook after the cell that asked for it, which must not fail itself."""
        self._shell.events.unregister("post_run_cell", self.begin)
        if result.success:
            self._shell.set_custom_exc((Exception,), self.handle)
            self._shell.events.register("post_run_cell", self.forgive)

    def handle(
        self, shell: Any, kind: type, error: Exception, trace: TracebackType | None, tb_offset: int | None = None
    ) -> None:
        """Show why there is no result, or a traceback where the user has to do something or a page misnames one."""
        needs = error.name if isinstance(error, NameError) else None
        is_forgiven = allowed() and not isinstance(error, (*STOPPING, NameError))
        if not (needs in self.missing or isinstance(error, NotKeptError) or is_forgiven):
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
            return
        why = self.missing[needs] if needs else reason(error)
        told = f"This needs `{needs}`, which could not be made above." if needs else why.text
        on = "for these parameters" if why.not_kept else "on these data"
        about = {"foreseen": why.foreseen, "not kept": why.not_kept}
        display(Markdown(f"**Not measured {on}.** {escape(told, quote=False)}"), metadata={MARK: about})
        for name in unset(*cell_of(shell, trace)):
            self.missing[name] = why
            shell.user_ns.pop(name, None)  # an older value would pass for the one that is missing
        self._forgiven = True

    def forgive(self, result: Any) -> None:
        """Let the chapter go on after a cell whose error was told."""
        if self._forgiven:
            result.error_in_exec, self._forgiven = None, False


def allow(what: str) -> None:
    """Let the chapter that runs in this kernel go on where something cannot be measured; outside of one do nothing."""
    if get_ipython() is None or allowed():
        return
    expect()
    _told_of.add(what)
    display(Markdown(ABOUT.format(what=escape(what, quote=False))))


def expect() -> None:
    """Let the chapter that runs in this kernel go on where an experiment was not kept; outside of one do nothing."""
    shell = get_ipython()
    if shell is None or _expecting:
        return
    _expecting.append(Gaps(shell))
    shell.events.register("post_run_cell", _expecting[0].begin)


def allowed() -> bool:
    """Whether the chapter that runs in this kernel goes on after any error."""
    return bool(_told_of)


def found() -> bool:
    """Whether something could not be measured, or may not be: the chapter then leaves claims that need it."""
    return allowed() or any(gaps.missing for gaps in _expecting)


def reason(error: BaseException) -> Reason:
    """Why something could not be measured, as sentences."""
    if isinstance(error, PullPushError):
        text = str(error).strip().rstrip(".")
        return Reason(f"{text[:1].upper()}{text[1:]}.", True, isinstance(error, NotKeptError))
    return Reason(f"The page did not foresee it: {type(error).__name__}: {error}", foreseen=False)


def cell_of(shell: Any, trace: TracebackType | None) -> tuple[str, int]:
    """The code of the cell in which an error came about, and the line in it."""
    while trace and trace.tb_frame.f_globals is not shell.user_global_ns:
        trace = trace.tb_next
    if trace is None:
        return "", 1
    return "".join(linecache.getlines(trace.tb_frame.f_code.co_filename)), trace.tb_lineno


def unset(source: str, line: int) -> set[str]:
    """The names that a cell would have set from a line on.

    >>> sorted(unset("a = 1\\nb, c['x'] = f(a)\\ndef g(): pass", 2))
    ['b', 'c', 'g']
    """
    statements = [part for part in ast.parse(source).body if (part.end_lineno or part.lineno) >= line]
    return {name for part in statements for name in _set_by(part)}


def _set_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name | ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            base: Any = node
            while isinstance(base, ast.Subscript | ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name):
                yield base.id
