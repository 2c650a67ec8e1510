"""Probes of what studies cache: soft labels, topics, windows, rewritten captions; and of what they count."""

from __future__ import annotations

import importlib
from collections.abc import Collection

from pullpush.golden.compare import Values

TOLERANCE = 1e-3  # soft labels are kept in half precision
MODULES = {  # where each is: imported when it is asked for
    "taught": ("counting", "soft_labels", "teachers", "windows"),
    "topics": ("regions", "topics", "topic_labels"),
    "captions": ("rewriting",),
}
HOMES = {name: module for module, names in MODULES.items() for name in names}


def names() -> Collection[str]:
    """ "soft_labels", "topics", …."""
    return HOMES.keys()


def probe(name: str) -> Values:
    """What the component gives on small inputs."""
    return getattr(importlib.import_module(f"pullpush.golden.studies_{HOMES[name]}"), name)()
