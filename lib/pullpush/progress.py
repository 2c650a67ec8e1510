"""When progress is shown, and one line of a terminal that shows it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from types import TracebackType

BACK = "\r\x1b[K"  # to the first column of the line, and what stands there away


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
        self._about, self._past, self._state = about, past, ""
        self._shown = shown()
        self._stream = sys.stderr
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def say(self, state: str) -> None:
        """How far it is, until something else is said."""
        self._state = state
        self._draw()

    def above(self, text: str) -> None:
        """Print `text` on standard output, on a line of its own that stays."""
        with self._lock:
            if self._shown:
                self._put(BACK)
            print(text, flush=True)
        self._draw()

    def __enter__(self) -> Line:
        if self._shown:
            self._ticker.start()
        self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._shown:
            self._ticker.join()
            self._put(BACK)

    def _tick(self) -> None:
        while not self._over.wait(1):
            self._draw()

    def _draw(self) -> None:
        if not self._shown:
            return
        seconds = f"{time.monotonic() - self._began:.0f} s"
        if self._past:
            seconds += f" ({self._past})"
        room = shutil.get_terminal_size().columns - len(self._about) - len(seconds) - 5  # two gaps and the cursor
        text = "  ".join(part for part in (self._about, self._state[: max(room, 0)], seconds) if part)
        with self._lock:
            self._put(BACK + text)

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
