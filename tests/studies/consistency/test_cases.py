"""Single clips whose rank varies most."""

from __future__ import annotations

from pullpush.studies.consistency.cases import case_ranks, worst_cases
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
