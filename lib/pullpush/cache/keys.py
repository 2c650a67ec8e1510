"""Names for content, the same in every process and on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def content_key(content: Any, *, length: int = 16) -> str:
    """A name for `content`, the same in every process and on every machine: the start of a SHA-256 in hexadecimal.

    content: None, booleans, numbers, texts, bytes, paths, dataclasses by the fields that they are compared by, so that
        equal ones have one name, and lists, tuples and mappings of these.

    Raises:
        TypeError: for anything else, since its text may change from run to run.

    >>> content_key({"epochs": 2, "tau": 0.07}) == content_key({"tau": 0.07, "epochs": 2})
    True
    """
    text = json.dumps(_plain(content), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _plain(content: Any) -> Any:
    if content is None or isinstance(content, bool | int | str):
        return content
    if isinstance(content, float):
        return {"float": content.hex()}  # exact, and nan or inf are not JSON
    if isinstance(content, bytes):
        return {"bytes": hashlib.sha256(content).hexdigest()}
    if isinstance(content, Path):
        return str(content)
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        values = {item.name: getattr(content, item.name) for item in dataclasses.fields(content) if item.compare}
        return {type(content).__name__: _plain(values)}
    if isinstance(content, Mapping):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    raise TypeError(f"content_key takes plain data, got {type(content).__name__}")
