"""What each further language brings: orders of languages, and scores by whether one was trained on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.lab.experiments import Experiment, Trial
from pullpush.lab.provenance import Stamp
from pullpush.lab.scores import Scores
from pullpush.studies.consistency import experiments


def test_languages_come_one_by_one():
    order = experiments.language_order(0)
    assert order[0] == "eng"
    assert sorted(order) == sorted(LANGUAGES)


def test_scores_stand_apart_for_languages_that_were_trained_on():
    trials = [
        Trial("kcl", "kcl", {"languages": experiments.language_order(s)[:k]}, {"K": k, "order": s}, seeds=(s,))
        for s in (0, 1)
        for k in (1, 3)
    ]
    experiment = Experiment("languages", tuple(trials), (0, 1), languages=LANGUAGES)
    level = {name: 0.1 * number for number, name in enumerate(LANGUAGES)}
    clips = {
        (str(trial), seed): {"T2A R@1": np.tile(list(level.values()), (4, 1)) + trial.where["K"]}
        for trial, seed in experiment.cells
    }
    rows = [{"system": "kcl", **trial.where, "seed": seed} for trial, seed in experiment.cells]
    history = pd.DataFrame(rows).assign(epoch=1, step=1, **{"R@1": 0.1})
    scores = Scores(experiment, clips, history, pd.DataFrame(), Stamp("now", "", (0, 1), 0.0, {}))
    table = experiments.by_count(scores).set_index(["K", "seed", "group"])["T2A R@1"].sort_index()
    assert set(table.loc[1, 0].index) == {"English", "never trained on", "all eight"}
    assert table[3, 1, "English"] == pytest.approx(3 + level["eng"])
    trained = experiments.language_order(1)[1:3]
    assert table[3, 1, "trained on"] == pytest.approx(3 + np.mean([level[name] for name in trained]))
