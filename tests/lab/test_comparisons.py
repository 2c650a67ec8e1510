"""Tables as pages print them, from differences and runs whose answer is known."""

import pandas as pd
import pytest

from pullpush.lab import comparisons
from pullpush.metrics import difference
from pullpush.metrics.inference import holm

ONE, OTHER = difference([[0.01], [0.02], [0.015]]), difference([[0.08], [0.09], [0.07]])


def test_differences_are_listed_with_interval_p_within_the_table_and_size():
    pairs = [({"system": "kcl", "baseline": "ml-clap"}, ONE), ({"system": "cacl", "baseline": "ml-clap"}, OTHER)]
    table = comparisons.listed(comparisons.differences(pairs))
    assert list(table) == ["system", "over", "difference [95 %]", "p (Holm)", "n"]
    assert table.loc[0, "difference [95 %]"] == "+1.5 ± 1.2 [+0.3, +2.7]"
    assert table["p (Holm)"].tolist() == [f"{one.p_holm:.3f}" for one in holm([ONE, OTHER])]
    assert table.loc[0, "n"] == "3 × 1"
    turned = comparisons.listed(comparisons.differences([({"of": "x"}, ONE)]), scale=-1, digits=3)
    assert turned.loc[0, "difference [95 %]"].startswith("−0.015")
    with pytest.raises(TypeError, match="'clips'"):
        comparisons.differences([({"clips": "half"}, ONE)])


def test_systems_go_by_the_names_of_their_recipes_or_by_given_ones():
    table = pd.DataFrame({"system": ["ml-clap ×8", "twice"], "baseline": ["kcl", "infonce"]})
    assert comparisons.named(table, {"twice": "InfoNCE twice"}).to_numpy().tolist() == [
        ["ML-CLAP ×8", "KCL"],
        ["InfoNCE twice", "InfoNCE"],
    ]
    assert comparisons.paired(table)["pair"][0] == "ML-CLAP ×8 over KCL"


def test_standings_are_means_and_deviations_over_seeds_by_one_or_several_columns():
    runs = pd.DataFrame({"length": [1, 1, 2, 2], "system": "kcl", "seed": [0, 1] * 2, "R@1": [0.1, 0.2, 0.3, 0.5]})
    runs["unconverged"] = 0.01
    table = comparisons.standings(runs, ["R@1"], by=("length", "system"))
    assert table["length, system"].tolist() == ["1, KCL", "2, KCL"]
    assert table["R@1 (%)"].tolist() == ["15.0 ± 7.1", "40.0 ± 14.1"]
    assert table["still gained (%)"].tolist() == ["1.0 ± 0.0"] * 2
