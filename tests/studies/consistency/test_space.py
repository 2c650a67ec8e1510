"""Ranks, single clips, tightness and maps in spaces whose answer is known."""

from __future__ import annotations

import pytest

from pullpush.studies.consistency import space
from pullpush.studies.consistency.space import Space


def test_ranks_count_the_clips_that_lie_nearer(toy):
    uneven = toy(noise=1.5)
    for clip, ranks in enumerate(uneven.ranks.tolist()):
        for k, found in enumerate(ranks):
            near = uneven.audio @ uneven.texts[clip, 0, k]
            assert found == 1 + int((near > near[clip]).sum())


def test_worst_cases_are_uneven_and_different(toy):
    uneven = toy(noise=1.5)
    variance = uneven.ranks.double().var(1, unbiased=False)
    cases = space.uneven({"ml-clap": uneven, "kcl": uneven})
    assert cases["ml-clap"] == int(variance.argmax())
    assert cases["kcl"] != cases["ml-clap"]
    table = space.case_table({"ml-clap": uneven, "kcl": toy(noise=0.1)}, cases, ("eng", "fra", "deu"))
    assert len(table) == 2 * 2 * 3
    first = table.query("`worst of` == 'kcl' and system == 'ml-clap'")["rank"].tolist()
    assert first == uneven.ranks[cases["kcl"]].tolist()


def test_a_typical_case_has_as_many_more_even_clips_as_less_even_ones(toy):
    uneven = toy(clips=13, captions=1, noise=1.5)
    variance = uneven.ranks.double().var(1, unbiased=False)
    typical = variance[space.typical(uneven)]
    assert int((variance < typical).sum()) <= 6 <= int((variance <= typical).sum()) - 1


def test_ranks_of_a_clip_stand_by_the_names_that_a_page_prints(toy):
    uneven = toy(captions=1, noise=1.5)
    assert space.clip_ranks({"kcl": uneven}, 3) == {"KCL": uneven.ranks[3].tolist()}


def test_captions_that_agree_are_tight(toy):
    tight, loose = (space.tightness([toy(noise=noise)] * 2) for noise in (0.05, 2.0))
    assert tight.shape == (2, 12)
    assert tight.mean() < 0.1 < loose.mean()


def test_maps_hold_every_text_and_tight_clusters_are_tight(toy):
    several = {"kcl": toy(captions=1, noise=0.05), "cacl": toy(captions=1, noise=0.05)}
    table = space.maps(several, range(10), ("t-SNE",), ("eng", "fra", "deu"))
    assert len(table) == 2 * 10 * 4
    assert set(table["language"]) == {"audio", "eng", "fra", "deu"}
    one, other = (space.map_tightness(rows) for _, rows in table.groupby("system"))
    assert one == pytest.approx(other)
    assert one < 0.5


def test_a_map_on_which_captions_lie_on_their_centre_has_no_spread(toy):
    even = toy(captions=1)
    still = Space(even.audio, even.audio[:, None, None].expand(-1, 1, 3, -1).clone())
    table = space.maps({"kcl": still}, range(10), ("t-SNE",), ("eng", "fra", "deu"))
    onto = table.assign(x=table["item"], y=0.0)
    assert space.map_tightness(onto) == 0
