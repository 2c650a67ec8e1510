"""A metric is one file: a toy is found by its name and stands among the scores of an experiment."""

import numpy as np
import pytest
from toys import add  # noqa: F401 - a fixture

from pullpush.encoders import create
from pullpush.errors import UnknownNameError
from pullpush.golden import version
from pullpush.lab import compute, material, session
from pullpush.lab.experiments import Experiment
from pullpush.metrics import METRICS
from pullpush.training import embed

TOY = '''
"""Distance of a clip from its captions."""

from pullpush.metrics import MetricCard, Score


def distance_by_clip(embedded):
    text = embedded.texts(embedded.languages[0])
    return {"distance": (embedded.audio[:, None] - text).norm(dim=-1).mean(dim=1).numpy()}


CARD = MetricCard(
    name="distance",
    make=distance_by_clip,
    title="Distance",
    about="How far a clip lies from its captions.",
    source="a test",
    needs=("audio", "texts"),
    scores=(Score("distance", better="lower"),),
)
'''
SYSTEM = {"InfoNCE": ("infonce", {})}


@pytest.fixture(scope="module")
def ground(home, tmp_path_factory):
    return material.of(session.start("02-svr", profile="smoke", out=tmp_path_factory.mktemp("out")))


def test_its_scores_stand_beside_those_of_retrieval(add, ground):  # noqa: F811
    add("metrics/nearness.py", TOY)
    experiment = Experiment.of("toy", SYSTEM, seeds=(0, 1), evaluations=("retrieval", "distance"))
    scores = compute.run(ground, experiment)
    assert scores.clips["InfoNCE", 0].keys() >= {"T2A R@1", "distance"}
    values = [scores.clips["InfoNCE", seed]["distance"] for seed in (0, 1)]
    assert scores.contrast("InfoNCE", None, "distance").value == pytest.approx(np.mean(values))

    plan = scores.plans["InfoNCE", 0]
    audio, text = embed(plan.train().model, plan.world.test, caption="all")
    cosines = (audio[:, None] * text).sum(-1)
    expected = (2 - 2 * cosines).clamp(min=0).sqrt().mean(1)  # of unit vectors
    assert values[0] == pytest.approx(expected.numpy(), abs=1e-4)


def test_an_experiment_that_asks_for_an_unknown_metric_is_refused():
    with pytest.raises(UnknownNameError, match="unknown evaluation 'retreival': did you mean 'retrieval'"):
        Experiment.of("toy", SYSTEM, seeds=(0,), evaluations=("retreival",))


def test_it_is_told_apart_by_what_it_does(add, ground):  # noqa: F811
    add("metrics/nearness.py", TOY)
    add("metrics/largest.py", TOY.replace(".mean(dim=1)", ".amax(dim=1)").replace('name="distance"', 'name="largest"'))
    experiment = Experiment.of("toy", SYSTEM, seeds=(0,), evaluations=("distance",))
    assert "metrics/distance" in compute.parts_of(ground, experiment)
    add("metrics/reworded.py", TOY.replace("distance_by_clip", "by_clip").replace('name="distance"', 'name="reworded"'))
    assert version("metrics/distance") == version("metrics/reworded") != version("metrics/largest")


@pytest.fixture
def model():
    return create("cnn", "hashed", dim=8, audio_channels=(4, 4, 8))


def test_all_metrics_share_the_embeddings_of_a_run(model, world, monkeypatch):
    calls = []

    def count(name):
        real = getattr(compute, name)
        monkeypatch.setattr(compute, name, lambda *args, **options: calls.append(name) or real(*args, **options))

    count("embed_audio")
    count("embed_captions")
    embedded = compute.Embedded(lambda: model, world, ("eng", "fra"))
    assert calls == []
    METRICS["retrieval"].make(embedded)
    shared = METRICS["consistency"].make(embedded)
    assert sorted(calls) == ["embed_audio", "embed_captions", "embed_captions"]
    alone = METRICS["consistency"].make(compute.Embedded(lambda: model, world, ("eng", "fra")))
    assert all(np.array_equal(shared[name], alone[name]) for name in alone)


@pytest.mark.parametrize(
    ("part", "whole", "count"),
    [("rank-agreement", "consistency", 1), ("recall-at-1", "retrieval", 3), ("annotations-in-brief", "annotations", 4)],
)
def test_what_many_runs_keep_is_a_part_of_what_others_do(part, whole, count, model, world):
    embedded = compute.Embedded(lambda: model, world, ("eng", "fra", "deu"))
    few, every = (METRICS[name].make(embedded) for name in (part, whole))
    assert len(few) == count
    assert all(np.array_equal(values, every[name]) for name, values in few.items())


@pytest.mark.parametrize("languages", [("eng",), ("eng", "deu", "fra")])
@pytest.mark.parametrize("name", METRICS)
def test_every_metric_gives_the_scores_on_its_card_and_needs_what_it_says(name, languages, model, world):
    card, asked = METRICS[name], []

    class Watched(compute.Embedded):
        def __getattribute__(self, attribute):
            if attribute in ("audio", "texts", "relevance", "singles", "labels", "prompts", "columns"):
                asked.append(attribute)
            return super().__getattribute__(attribute)

    values = card.make(Watched(lambda: model, world, languages))
    assert set(asked) == set(card.needs)
    several = {"Gap", "Dis", "relative distance"} if len(languages) == 1 else set()  # of a language and another
    assert {score.name for score in card.scores} - several <= values.keys()
    of_singles = {len(world.singles.labels.unique()), len(world.singles)}  # by class, or by clip
    counts = of_singles if "singles" in card.needs else {len(world.test)}
    for array in values.values():
        assert array.dtype in (np.float32, np.float64)
        assert array.shape in {shape for count in counts for shape in ((count,), (count, len(languages)))}
        assert np.isfinite(array).all()
