"""Ranks and tightness in spaces whose answer is known."""

from __future__ import annotations

from pullpush.studies.consistency import space


def test_ranks_count_the_clips_that_lie_nearer(toy):
    uneven = toy(noise=1.5)
    ranks = space.ranks(uneven)
    for number, rank in enumerate(ranks.tolist()):
        clip, caption = divmod(number, uneven.texts.shape[1])
        for k, found in enumerate(rank):
            near = uneven.audio @ uneven.texts[clip, caption, k]
            assert found == 1 + int((near > near[clip]).sum())


def test_captions_that_agree_are_tight(toy):
    spaces = {(name, s): toy(noise=noise) for name, noise in (("kcl", 0.05), ("ml-clap", 2.0)) for s in (0, 1)}
    tight, loose = (space.tightness(spaces, name) for name in ("kcl", "ml-clap"))
    assert tight.shape == (2, 12)
    assert tight.mean() < 0.1 < loose.mean()
