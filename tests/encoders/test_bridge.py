"""The bridge by class names: its formula by loops, and real sounds found by sentences without any training."""

from __future__ import annotations

import math

import pytest
import torch
from published import fetched, stamp
from torch.nn.functional import normalize

from pullpush.encoders import TEXT
from pullpush.encoders.bridge import bridge, class_scores
from pullpush.encoders.yamnet import YAMNet, class_names

QUERIES = {
    "A cow is mooing in the meadow.": "animals/mammals/bovines/cow_white",
    "You can hear the cawing of a crow.": "animals/birds/crow",
    "A bumblebee buzzes past.": "animals/insects/bee",
    "Someone plays a fanfare on a brass instrument.": "military/final-roll-call",
    "A lamb is bleating.": "animals/mammals/bovines/sheep",
    "A fire engine drives by with its siren on.": "vehicles/emergency/firetruck",
}


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_similarity_is_the_formula_by_loops():
    queries, classes = normalize(drawn(3, 5), dim=1), normalize(drawn(4, 5, seed=1), dim=1)
    scores = drawn(2, 4, seed=2).sigmoid()
    found = bridge(queries, classes, scores, tau=0.1, floor=0.01)
    for query, row in zip(queries, found, strict=True):
        meant = [math.exp(sum(q * c for q, c in zip(query, name, strict=True)) / 0.1) for name in classes]
        for heard, value in zip(scores, row, strict=True):
            terms = [m * math.log(p + 0.01) for m, p in zip(meant, heard.tolist(), strict=True)]
            assert float(value) == pytest.approx(sum(terms) / sum(meant))


def test_shapes_that_do_not_match_are_named():
    with pytest.raises(ValueError, match=r"scores \(N, C\), got \(1, 2\), \(3, 2\) and \(5, 4\)"):
        bridge(torch.ones(1, 2), torch.ones(3, 2), torch.ones(5, 4))


def found(tagger):
    """How many of the sentences find their recording first, among all of them."""
    reader = TEXT["use"].make()
    queries, classes = (normalize(reader(list(texts)), dim=1) for texts in (QUERIES, fetched(class_names)))
    clips = [stamp(name, sample_rate=16_000)[None] for name in QUERIES.values()]
    similarity = bridge(queries, classes, torch.cat([tagger.tag(clip) for clip in clips]))
    return int((similarity.argmax(dim=1) == torch.arange(len(QUERIES))).sum())


def test_sentences_find_sounds_without_training(home):
    assert found(fetched(lambda: YAMNet(frozen=True))) >= 5


def test_random_weights_find_none(home):
    torch.manual_seed(0)
    assert found(YAMNet(pretrained=False, frozen=True)) <= 2


def test_scores_are_those_of_each_clip_alone(world):
    tagger = YAMNet(pretrained=False)
    scores = class_scores(world.train, tagger)
    audio, lengths = world.train.audio(11)
    torch.testing.assert_close(scores[11], tagger.tag(audio, lengths)[0], atol=1e-5, rtol=1e-4)
