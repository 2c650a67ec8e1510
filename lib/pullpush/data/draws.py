"""Numbers that depend on nothing but what they are asked for: the same in every process and on every machine."""

import hashlib
from typing import Any


def number(asked: Any, *, size: int = 8) -> int:
    """A number below 256^size drawn by a hash of what `repr` says of `asked`: plain data.

    >>> number(("split", 0, "frog"), size=2)
    43089
    """
    return int.from_bytes(hashlib.sha256(repr(asked).encode()).digest()[:size], "big")


def share(asked: Any) -> float:
    """A number in [0, 1), likewise.

    >>> round(share(("split", 0, "frog")), 3)
    0.657
    """
    return number(asked, size=6) / 2**48
