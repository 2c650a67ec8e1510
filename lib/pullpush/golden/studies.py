"""Probes of what studies put into the cache: soft labels, topics, windows, rewritten captions, pretrained encoders; and
of what they count.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection

from pullpush.golden.compare import Values
from pullpush.pretraining import OBJECTIVES

TOLERANCE = 1e-3  # soft labels are kept in half precision, encoders are trained in single
LEARNING = "pretraining-"  # in front of an objective's name
MODULES = {  # where each is: imported when it is asked for
    "taught": ("counting", "soft_labels", "teachers", "windows"),
    "topics": ("regions", "topics", "topic_labels"),
    "captions": ("rewriting",),
    "pretraining": ("patches",),
}
HOMES = {name: module for module, names in MODULES.items() for name in names}


def names() -> Collection[str]:
    """ "soft_labels", "topics", …, and "pretraining-tagging" for every objective."""
    return (*HOMES, *(LEARNING + name for name in OBJECTIVES))


def probe(name: str) -> Values:
    """What the component gives on small inputs."""
    home = importlib.import_module(f"pullpush.golden.studies_{HOMES.get(name, 'pretraining')}")
    return getattr(home, name)() if name in HOMES else home.learning(name.removeprefix(LEARNING))
