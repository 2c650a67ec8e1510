"""When progress bars are shown."""

from __future__ import annotations

import os


def hidden(progress: bool | None = None) -> bool | None:
    """What tqdm's `disable` wants.

    progress: show a bar or not; None: in a terminal, unless $PULLPUSH_PROGRESS is 0.
    """
    if progress is not None:
        return not progress
    return True if os.environ.get("PULLPUSH_PROGRESS") == "0" else None  # None: tqdm looks for a terminal
