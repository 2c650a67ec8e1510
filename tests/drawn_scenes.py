"""Scenes drawn at random: one to three sounds, near and far, once and often, with noise and without."""

import numpy as np

from pullpush.data.scenes.scene import Scene, Sound


def scenes(count: int, events: int, *, seed: int = 0) -> list[Scene]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        size = int(rng.integers(1, 4))
        chosen = rng.choice(events, size, replace=False).tolist()
        relation = "single" if size == 1 else ("sequence", "overlap")[rng.integers(2)]
        sounds = tuple(
            Sound(event, 0, float(place), far=bool(rng.integers(2)), repeats=int(rng.integers(1, 3)))
            for place, event in enumerate(chosen)
        )
        found.append(Scene(sounds, relation, 10.0 if rng.integers(2) else None, 4.0))
    return found
