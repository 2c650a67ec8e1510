"""When progress is shown, one line of a terminal that shows it, and signals that wait for it."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tqdm import tqdm

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def hidden(progress: bool | None = None) -> bool | None:
    """What tqdm's `disable` wants.

    progress: show a bar or not; None: in a terminal, unless $PULLPUSH_PROGRESS is 0.
    """
    if progress is not None:
        return not progress
    return True if os.environ.get("PULLPUSH_PROGRESS") == "0" else None  # None: tqdm looks for a terminal


def shown() -> bool:
    """Whether standard error is a terminal in which progress is wanted."""
    return not hidden() and sys.stderr.isatty()


def tell(message: str, progress: bool = True) -> None:
    """Say on standard error what takes a while, in a terminal or not, unless $PULLPUSH_PROGRESS is 0."""
    if progress and os.environ.get("PULLPUSH_PROGRESS") != "0":
        print(f"pullpush: {message}", file=sys.stderr, flush=True)


class Line:
    """One line of the terminal, rewritten in place: what is being done, how far it is, and for how many seconds.

    Nothing is written where progress is not shown.

        with Line("02-svr  quick", past="last time 350 s") as line:
            line.say("cell 17/46")  # 02-svr  quick  cell 17/46  83 s (last time 350 s)
    """

    def __init__(self, about: str, *, past: str = "") -> None:
        seconds = "{elapsed_s:.0f} s" + (f" ({past})" if past else "")
        form, width = f"{about}  {{desc}}{seconds}", shutil.get_terminal_size().columns
        # A terminal that does not tell its size has room, too.
        self._bar = tqdm(bar_format=form, disable=not shown(), leave=False, ncols=width, nrows=9)
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def say(self, state: str) -> None:
        """How far it is, until something else is said."""
        self._bar.set_description_str(f"{state}  ")

    def above(self, text: str) -> None:
        """Print `text` on standard output, on a line of its own that stays."""
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()

    def __enter__(self) -> "Line":
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._ticker.join()
        self._bar.close()

    def _tick(self) -> None:
        """Count seconds also while nothing is said."""
        while not self._over.wait(1):
            self._bar.refresh()


@contextmanager
def held_back(end: Callable[[], object] = lambda: None) -> Iterator[list[int]]:
    """Hold a first Ctrl-C or SIGTERM back for the block: `end` is called at once, and who owns the block looks at the
    list of signals that came. Threads other than the main one get no signals.
    """
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: FrameType | None) -> None:
        restore()
        came.append(number)
        end()

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, ask)
    try:
        yield came
    finally:
        restore()
