"""Single clips whose rank varies most."""

from __future__ import annotations

from pullpush.studies.consistency.cases import case_ranks, clip_ranks, ranks_of, typical_case, worst_cases
from pullpush.studies.consistency.space import Space, ranks


def test_worst_cases_are_uneven_and_different(toy):
    uneven = toy(noise=1.5)
    variance = ranks(Space(uneven.audio, uneven.texts[:, :1])).double().var(1, unbiased=False)
    cases = worst_cases({"ml-clap": uneven, "kcl": uneven})
    assert cases["ml-clap"] == int(variance.argmax())
    assert cases["kcl"] != cases["ml-clap"]
    table = case_ranks({("ml-clap", 0): uneven, ("kcl", 0): uneven, ("kcl", 1): uneven}, 0)
    assert len(table) == 2 * 2 * 3
    first = table.query("`worst of` == 'ml-clap' and system == 'kcl'")["rank"].tolist()
    assert first == ranks(uneven)[cases["ml-clap"] * 2].tolist()


def test_a_typical_case_has_as_many_more_even_clips_as_less_even_ones(toy):
    uneven = toy(clips=13, captions=1, noise=1.5)
    variance = ranks(uneven).double().var(1, unbiased=False)
    typical = variance[typical_case(uneven)]
    assert int((variance < typical).sum()) <= 6 <= int((variance <= typical).sum()) - 1


def test_ranks_of_a_clip_stand_by_the_names_that_a_page_prints(toy):
    uneven = toy(captions=1, noise=1.5)
    assert clip_ranks({"kcl": uneven}, 3) == {"KCL": ranks(uneven)[3].tolist()}
    table = case_ranks({("ml-clap", 0): uneven, ("kcl", 0): uneven}, 0)
    clip, by_system = ranks_of(table, "kcl")
    assert by_system == {name: ranks(uneven)[clip].tolist() for name in ("ML-CLAP", "KCL")}
