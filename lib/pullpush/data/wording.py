"""The same clips told otherwise: aligned captions, sentences or titles alone; and pairs of worlds for transfer.

A configuration of scenes is wrapped, so that its clips keep their names and their audio, and only the words are others:

    load_data(WordingConfig(WorldConfig(), form="aligned"))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from pullpush.cache import content_key
from pullpush.data.aligned import aligned_captions, load_ways
from pullpush.data.clips import Columns, StoredClips, World
from pullpush.data.grammar import KINDS, captions
from pullpush.data.held_out import HeldOutConfig
from pullpush.data.vocabulary import Event
from pullpush.data.world import WorldConfig
from pullpush.errors import unknown
from pullpush.golden import versions

FORMS = ("retold", "aligned")
DIFFERENCES = ("mixing", "noise", "wording")
MIXING = {"p_overlap": 0.8, "p_far": 0.4}  # of the second of two worlds; the first has the defaults
NOISE = {"p_noise": 1.0, "snr_db": (0.0, 10.0)}


@dataclass(frozen=True)
class WordingConfig:
    """How the scenes of a world are told.

    scenes: the world; form: "retold" (each language on its own, see grammar.py) or "aligned" (translations of each
    other, see aligned.py); kinds: of retold captions, "sentences" and "titles".
    """

    scenes: WorldConfig | HeldOutConfig
    form: str = "aligned"
    kinds: tuple[str, ...] = KINDS

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", tuple(self.kinds))
        if self.form not in FORMS:
            raise unknown("form of captions", self.form, FORMS)
        if not self.kinds or not set(self.kinds) <= set(KINDS):
            raise ValueError(f"kinds must be some of {KINDS}, got {self.kinds}")
        if self.form == "aligned" and self.kinds != KINDS:
            raise ValueError(f"aligned captions have both kinds, got {self.kinds}")

    def load(self) -> World:
        """The world with its captions written in this way.

        >>> small = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1)
        >>> world = WordingConfig(small).load()
        >>> [world.singles.captions(code)[0][0] for code in ("eng", "deu")]
        ['In this recording, an alarm clock beeps.', 'In dieser Aufnahme piept ein Wecker.']
        """
        world, scenes = self.scenes.load(), self.scenes
        tell = tell_aligned if self.form == "aligned" else partial(tell_retold, self.kinds)
        write = partial(tell, world.bank.events, scenes.captions_per_scene, scenes.seed)
        splits = {
            name: replace(cast(StoredClips, clips), write=write, _captions={})  # as scenes are stored
            for name, clips in world.splits.items()
        }
        ways = load_ways() if self.form == "aligned" else None
        words = content_key([versions("data/wording"), world.words, self.form, self.kinds, ways])
        return World(self, splits, words, world.bank, parts=(*world.parts, "data/wording"))


def tell_aligned(events: Sequence[Event], each: int, seed: int, columns: Columns, language: str) -> list[list[str]]:
    """`each` captions of every scene in one language; see `aligned.aligned_captions`."""
    return [aligned_captions(scene, events, language=language, n=each, seed=seed) for scene in columns["scene"]]


def tell_retold(
    kinds: Sequence[str], events: Sequence[Event], each: int, seed: int, columns: Columns, language: str
) -> list[list[str]]:
    """`each` captions of every scene in one language, of some kinds of forms; see `grammar.captions`."""
    return [captions(scene, events, language=language, n=each, seed=seed, kinds=kinds) for scene in columns["scene"]]


def transfer_pair(scenes: WorldConfig, *, differ: Sequence[str] = DIFFERENCES) -> dict[str, WordingConfig]:
    """Two worlds of the same events to train on one and test on the other.

    A is mixed as `scenes` and told in sentences; B overlaps more and is farther away (differ: "mixing"), is always
    noisy ("noise"), and is told in noun phrases ("wording"), of these as many as `differ` names. Both deal combinations
    of events to their splits alike, so that what A tests was not learnt from B, and hold the same sets of events,
    clip by clip, as far as mixing leaves them.

    Raises:
        UnknownNameError: there is no such difference.

    >>> pair = transfer_pair(WorldConfig("synthetic"), differ=["noise"])
    >>> pair["B"].scenes.scene.p_noise, pair["B"].kinds
    (1.0, ('sentences',))
    """
    for name in differ:
        if name not in DIFFERENCES:
            raise unknown("difference of worlds", name, DIFFERENCES)
    other: dict[str, Any] = (MIXING if "mixing" in differ else {}) | (NOISE if "noise" in differ else {})
    second = replace(scenes, scene=replace(scenes.scene, **other))
    kinds = KINDS[1:] if "wording" in differ else KINDS[:1]
    return {
        "A": WordingConfig(scenes, "retold", KINDS[:1]),
        "B": WordingConfig(second, "retold", kinds),
    }
