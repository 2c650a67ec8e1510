"""Speech by its length alone: a longer text is a longer recording, and no word need be understood to match them.

It stands as a system of its own beside the trained ones, and all are asked once more among clips of equal length.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from pullpush.data.mixture import SEVERAL
from pullpush.data.speech.spoken import by_length
from pullpush.lab.compute import plan_of
from pullpush.lab.experiments import Derived, Trial
from pullpush.metrics import retrieval_per_query
from pullpush.metrics.cards import Values
from pullpush.studies.glap.data import Grounds
from pullpush.studies.glap.experiments import Run, on_tests
from pullpush.training.evaluate import embed

ALONE = "length alone"
NEAR = 0.1  # clips whose lengths are apart by no more are of equal length
AMONG = ", equal length"


def over_length(runs: Sequence[Run], tests: Iterable[str], words: Iterable[str], *, seeds: Iterable[int]) -> Derived:
    """Retrieval of speech among all clips of a test and among those of equal length; and, of ALONE, the accuracy of
    naming words, by class.

    runs: of systems; tests: of speech; words: tests of words and sentences that are named.
    """
    words = [*words]
    source = on_tests("over-length-runs", runs, tests, seeds=seeds)
    tests = [*dict.fromkeys(trial.where["test"] for trial in source.trials)]
    at = [(trial.system, trial.where["test"]) for trial in source.trials]
    at += [(ALONE, test) for test in dict.fromkeys([*tests, *words])]

    def make(ground: Grounds, seed: int) -> Mapping[str, Values]:
        found = {}
        for trial in source.trials:
            model = plan_of(ground, source, trial, seed).train(progress=False).model
            audio, text = embed(model, ground.view(trial.test).data.test, language=SEVERAL)
            found[str(trial)] = ranked(text @ audio.T, _sizes(ground, trial.where["test"])[1])
        for test in tests:
            texts, clips = _sizes(ground, test)
            places = [torch.from_numpy(rankdata(sizes)) for sizes in (texts, clips)]
            found[_alone(test)] = ranked(-(places[0][:, None] - places[1][None]).abs(), clips)
        for test in words:
            language = test.split(" ")[-1]
            of_words = {f"accuracy {language}": by_length(ground.test(test).singles)}
            found[_alone(test)] = {**found.get(_alone(test), {}), **of_words}
        return found

    trials = tuple(Trial(system, "", {}, {"test": test}) for system, test in at)
    return Derived(
        "over-length", trials, tuple(seeds), source=source, make=make, long=True, languages=("mul",),
        parts=("metrics/retrieval", "training/evaluate"),
    )  # fmt: skip


def ranked(similarity: Tensor, lengths: np.ndarray) -> Values:
    """R@1, R@10 and mAP@10 of texts `(N,)` and their clips in both directions, and R@1 among clips of equal length.

    >>> found = ranked(torch.tensor([[0.1, 0.2], [0.0, 0.3]]), np.array([1.0, 2.0]))
    >>> [float(found[name][0]) for name in ("T2A R@1", "T2A R@1, equal length")]
    [0.0, 1.0]
    """
    values, is_near = {}, _are_near(lengths)
    for side, matrix in (("T2A", similarity), ("A2T", similarity.T)):
        among = torch.where(is_near, matrix, matrix.min() - 1)
        whole = retrieval_per_query(matrix, ks=(1, 10), map_at=(10,))
        whole[f"R@1{AMONG}"] = retrieval_per_query(among, ks=(1,), map_at=())["R@1"]
        values |= {f"{side} {name}": value.numpy() for name, value in whole.items()}
    return values


def guessed(ground: Grounds, test: str) -> float:
    """R@1 of a guesser among the clips of a test that are as long as the right one."""
    return float((1 / _are_near(_sizes(ground, test)[1]).sum(dim=1)).mean())


def _are_near(lengths: np.ndarray) -> Tensor:
    """Which clips are of equal length, `(N, N)`."""
    logs = torch.from_numpy(np.log(lengths.astype(float)))
    return (logs[:, None] - logs[None]).abs() <= np.log(1 + NEAR)


def _alone(test: str) -> str:
    return f"{ALONE} test={test}"


@cache
def _sizes(ground: Grounds, test: str) -> tuple[np.ndarray, np.ndarray]:
    """Characters of a test's texts and lengths of its clips, `(N,)` each."""
    clips = ground.test(test).test
    return np.array([len(texts[0]) for texts in clips.captions(SEVERAL)]), clips.lengths.numpy()
