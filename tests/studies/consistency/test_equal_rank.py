"""Evenness at equal recall, and what a step is worth, of runs that were made to be so."""

import numpy as np
import pandas as pd
import pytest

from pullpush.studies.consistency.results import at_equal_rank, worth_of_steps

NOISE = np.random.default_rng(0)


def runs(above: float) -> pd.DataFrame:
    ranks_of = {"ml-clap": (8.0, 30.0), "cacl": (15.0,), "kcl": (5.0,)}
    rows = [
        (system, seed, rank, rank**1.3 * (1 + above * (system == "cacl")))
        for system, ranks in ranks_of.items()
        for rank in ranks
        for seed in range(4)
    ]
    table = pd.DataFrame(rows, columns=["system", "seed", "mean rank", "MRV"])
    return table.assign(MRV=table["MRV"] * np.exp(0.01 * NOISE.standard_normal(len(table))))


@pytest.mark.parametrize("above", [0.0, 0.2])
def test_what_lies_above_the_line_is_found_and_recall_alone_is_not(above):
    found = at_equal_rank(runs(above), ["ml-clap"], "cacl")
    assert found.low < above + 0.01
    assert found.high > above - 0.01
    assert abs(at_equal_rank(runs(above), ["ml-clap"], "kcl").value) < 0.05
    assert at_equal_rank(runs(0.2), ["ml-clap"], "kcl", "cacl").value == pytest.approx(1 / 1.2 - 1, abs=0.05)


def test_steps_are_worth_what_they_were_made_to_be():
    factor = {"ml-clap": 1.0, "cacl": 2.0, "kcl": 4.0}
    rows = [(system, seed, steps, np.log2(steps * worth) / 20 + 0.001 * NOISE.standard_normal())
            for system, worth in factor.items() for seed in range(3) for steps in (300, 600, 1200, 2400)]  # fmt: skip
    table = worth_of_steps(pd.DataFrame(rows, columns=["system", "seed", "steps", "T2A R@1"])).set_index("system")
    assert table["value"].to_dict() == pytest.approx(factor, rel=0.1)
    assert (table["fit"] > 0.99).all()
