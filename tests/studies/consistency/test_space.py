"""Ranks, tightness, maps and direction errors in spaces whose answer is known, and while a run trains."""

import pytest
import torch

from pullpush.golden.tiny import LANGUAGES, alone, tiny_recipe, trained
from pullpush.studies.consistency import space
from pullpush.studies.consistency.space import DirectionProbe, Space
from pullpush.training.terms import Term


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


def test_more_languages_taken_err_less_and_all_do_not_err(toy):
    table = space.direction_by_count({("kcl", 0): toy(clips=200, languages=4, noise=0.8)})
    some = table[table["what"] == "m of all"].set_index("count")["error"]
    assert some[4] == pytest.approx(0, abs=1e-4)
    assert some.is_monotonic_decreasing
    first = table[table["what"] == "one of K"].set_index("count")["error"]
    assert first[1] == pytest.approx(0, abs=1e-4)
    assert first.is_monotonic_increasing
    assert first[4] == pytest.approx(some[1])


def test_the_probe_gives_angles_of_every_step_that_it_watches():
    with alone():
        plan = tiny_recipe((Term("infonce"),), batch_size=5)
        found = trained(plan, diagnostics=DirectionProbe(every=2, languages=LANGUAGES)).steps
    angles = found[[*space.PROBED]]
    assert angles.notna().all(axis=1).tolist() == [True, False] * 3
    assert angles.min(axis=None) >= 0
    assert angles.max(axis=None) <= 180


def test_the_error_per_unit_of_spread_knows_no_parallax():
    texts = torch.tensor([[[0.1, 1.0, 0.0], [-0.1, 1.0, 0.0]], [[0.1, -1.0, 0.0], [-0.1, -1.0, 0.0]]])
    taken = torch.tensor([[True, False], [True, False]])
    away = torch.tensor([0.0, 0.0, 1.0])
    far, near = (texts.mean(dim=1) + distance * away for distance in (10, 0.5))
    angles = [float(space.direction_error(audio, texts, taken).mean()) for audio in (far, near)]
    aims = [float(space.aim_error(audio, texts, taken).mean()) for audio in (far, near)]
    assert angles[1] > 10 * angles[0]
    assert aims[1] == pytest.approx(aims[0], rel=0.05)
    everything = torch.ones_like(taken)
    assert space.aim_error(far, texts, everything).tolist() == pytest.approx([0, 0], abs=1e-5)
