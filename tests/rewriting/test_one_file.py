"""A rewriter is one file: a toy is found by its name, and augments clips."""

import pytest
from toys import add  # noqa: F401 - a fixture

from pullpush.data.clips import load_data
from pullpush.data.scenes.augmented import AugmentedConfig
from pullpush.data.scenes.world import WorldConfig
from pullpush.rewriting import REWRITERS, create

TOY = '''
"""Captions in capitals."""

from dataclasses import dataclass

from pullpush.rewriting import Rewriter, RewriterCard


@dataclass(frozen=True)
class Capitals(Rewriter):
    mark: str = "!"

    def rewrite(self, captions, *, number=0):
        return [caption.upper() + self.mark for caption in captions]


CARD = RewriterCard(name="capitals", make=Capitals, title="Capitals", about="Captions in capitals.", source="a test")
'''


def test_a_toy_is_found_by_its_name_and_augments_clips(add):  # noqa: F811
    add("rewriting/capitals.py", TOY)
    assert "capitals" in REWRITERS
    data = WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1, captions_per_scene=1)
    world = load_data(AugmentedConfig(data, (create("capitals", mark="?"),)))
    for caption, loud in world.train.captions("eng"):
        assert loud == caption.upper() + "?"


@pytest.mark.parametrize("name", list(REWRITERS))
def test_every_card_says_what_its_rewriter_does(name):
    card = REWRITERS[name]
    assert card.about.endswith(".")
    assert hasattr(card.make, "rewrite")
    assert card.merges == hasattr(card.make, "merge")
