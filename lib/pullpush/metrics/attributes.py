"""What is known of clips and told by their captions, as classes that a probe can be asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

FEWEST, MOST = 2, 20  # classes of a task
MEMBERS = 10  # of a class, at least; fewer where there are few clips
SHARE = 20  # 1/20 of the clips then, and never fewer than two


def attributes(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Hashable]]:
    """By name the attributes of N clips, "" where one is unknown or does not apply.

    Of a "scene" its relation and its number of events; of a "phrase" of music the family of its instrument, and shape,
    tempo, mode, register and articulation; of a "category" such as "animals/birds" itself, and the kind "animals".
    Other columns (files, fonts, speakers) are nothing that captions tell.

    >>> attributes({"category": ["animals/birds", "food"], "file": ["a.png", "b.png"]})
    {'category': ['animals/birds', 'food'], 'kind': ['animals', 'food']}
    """
    found: dict[str, list[Hashable]] = {}
    if scenes := columns.get("scene"):
        found |= {"relation": [scene.relation for scene in scenes], "events": [len(scene.sounds) for scene in scenes]}
    if phrases := columns.get("phrase"):
        found["family"] = _families([phrase.instrument for phrase in phrases])
        names = ("shape", "tempo", "mode", "register", "articulation")
        found |= {name: [getattr(phrase, name) for phrase in phrases] for name in names}
    if categories := columns.get("category"):
        found["category"] = list(categories)
        if any("/" in category for category in categories):
            found["kind"] = [category.partition("/")[0] for category in categories]
    return found


def tasks(columns: Mapping[str, Sequence[Any]]) -> dict[str, np.ndarray]:
    """By attribute the class of each clip, `(N,)` int64, −1 where it has none; attributes that make a task alone.

    A task has 2 to 20 classes of at least ten clips (of fewer than 200 clips 1/20, at least two); clips of smaller
    classes are left out of it.

    >>> {name: classes.tolist() for name, classes in tasks({"category": ["bird", "bird", "cow", "dog", "dog"]}).items()}
    {'category': [0, 0, -1, 1, 1]}
    """
    found = {}
    for name, values in attributes(columns).items():
        least = max(2, min(MEMBERS, len(values) // SHARE))
        large = [value for value, count in Counter(values).items() if count >= least and value != ""]
        if FEWEST <= len(large) <= MOST:
            number = {value: place for place, value in enumerate(sorted(large, key=str))}
            found[name] = np.array([number.get(value, -1) for value in values], np.int64)
    return found


def _families(instruments: Sequence[str]) -> list[Hashable]:
    from pullpush.data.music.instruments import load_instruments

    family = {item.name: item.family for item in load_instruments()}
    return [family.get(name, "") for name in instruments]
