"""Declarations with fewer seeds, told from what was kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pullpush.lab.experiments import Experiment
from pullpush.lab.growth import fewer

SYSTEMS = {"InfoNCE": ("infonce", {}), "SVR": ("infonce+bi-static-svr", {})}
COMMON = Experiment.of("common", SYSTEMS, seeds=range(4))
OWN = replace(  # the first trial's seeds are the experiment's, as where protocols have seeds of their own
    COMMON, trials=(replace(COMMON.trials[0], seeds=(0, 1, 2, 3)), replace(COMMON.trials[1], seeds=(0, 1, 2)))
)


def test_common_seeds_become_fewer_in_all_trials():
    assert fewer(COMMON, {0: (0, 1), 1: (0, 1)}) == replace(COMMON, seeds=(0, 1))


def test_a_trial_with_seeds_of_its_own_gains_some_while_others_stay():
    declared_then = replace(OWN, trials=(OWN.trials[0], replace(OWN.trials[1], seeds=(0,))))
    assert fewer(OWN, {0: (0, 1, 2, 3), 1: (0,)}) == declared_then


def test_common_seeds_follow_the_trial_that_was_given_the_same():
    declared_then = replace(OWN, trials=tuple(replace(trial, seeds=(0,)) for trial in OWN.trials), seeds=(0,))
    assert fewer(OWN, {0: (0,), 1: (0,)}) == declared_then


@pytest.mark.parametrize(
    "seeds",
    [
        {0: (0, 1, 2, 3), 1: (0, 1, 2, 3)},  # all of them: nothing was gained
        {0: (3, 2, 1, 0), 1: (3, 2, 1, 0)},  # nor is another order
        {0: (0, 9), 1: (0, 9)},  # one that is not declared
        {0: (0, 1)},  # a trial is missing
        {0: (0,), 1: (0,), 2: (0,)},  # one too many
    ],
)
def test_what_is_no_part_of_the_declaration_is_not_taken(seeds):
    assert fewer(COMMON, seeds) is None
