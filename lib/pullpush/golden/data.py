"""Probes of clips, captions and batches: how they are drawn, rendered, decoded, told, graded and put side by side."""

from __future__ import annotations

import importlib
from collections.abc import Collection

from pullpush.golden.compare import Values

TOLERANCE = 1e-4  # resampling and transforms in single precision
MODULES = {  # where each is: imported when it is asked for
    "scenes": ("scenes", "renderer", "pitch", "synthetic", "mixing", "held_out", "relevance"),
    "clips": ("pairing", "batches", "shards", "mixture", "augmented", "altered"),
    "recordings": ("decoding", "containers", "speech", "spoken", "pictures"),
    "instruments": ("music", "soundfont"),
    "captions": ("labels", "texts", "wording", "lexicon", "nli"),
}
HOMES = {name: module for module, names in MODULES.items() for name in names}


def names() -> Collection[str]:
    """ "scenes", "renderer", …"""
    return HOMES.keys()


def probe(name: str) -> Values:
    """What the component gives on small inputs."""
    return getattr(importlib.import_module(f"pullpush.golden.data_{HOMES[name]}"), name)()
