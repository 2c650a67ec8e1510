import warnings

import numpy as np
import pytest
import torch
from embeddings import sphere
from standin import WORDS, TinyClips, TinyModel

from pullpush import metrics
from pullpush.metrics._retrieval import scores_of
from pullpush.training import embed, retrieval_rows, retrieval_table, zero_shot
from pullpush.training.evaluate import embed_texts, first_captions, recall_at_1


def test_embeddings_are_those_of_the_model_in_eval_mode():
    model, clips = TinyModel(), TinyClips(10)
    audio, text = embed(model, clips, batch_size=3, language="fra", caption=1)
    assert model.training
    assert not audio.requires_grad
    model.eval()
    torch.testing.assert_close(audio[4:5], model.encode_audio(*clips.audio(4)))
    torch.testing.assert_close(text[4], model.encode_text([clips.captions("fra")[4][1]])[0])


def test_a_part_that_the_caller_froze_in_eval_mode_stays_there():
    model = TinyModel()
    model.audio[1].eval()
    embed(model, TinyClips(10))
    assert [part.training for part in (model, model.audio, model.audio[1])] == [True, True, False]


def test_blank_captions_are_none_and_the_clip_stays():
    model, clips = TinyModel(), TinyClips(6)
    gaps = [["a", "b"], ["c", ""], [None, "d"], ["e", "f"], ["g", " "], ["h"]]
    clips.captions = lambda language: gaps
    assert first_captions(clips, "eng") == ([*range(6)], ["a", "c", "d", "e", "g", "h"])
    assert embed(model, clips)[1].shape == (6, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(retrieval_table(model, clips)) == 10
    with pytest.raises(ValueError, match="caption 1 of each clip was asked for, and one has 1"):
        embed(model, clips, caption=1)


def test_ragged_captions_are_refused():
    clips = TinyClips(3)
    clips.captions = lambda language: [["a"], ["b", "c"], ["d"]]
    assert embed(TinyModel(), clips)[1].shape == (3, 8)
    with pytest.raises(ValueError, match=r"\[1, 2\]"):
        embed(TinyModel(), clips, caption="all")


def test_rows_agree_with_the_metrics_and_lie_in_their_intervals():
    audio, text = sphere(20, 6), sphere(20, 3, 6, seed=1)
    table = retrieval_rows(audio, text)
    expected = {name: values.mean().item() for name, values in metrics.by_clip(audio, text).items()}
    for row in table.itertuples():
        assert row.value == pytest.approx(expected[f"{row.direction} {row.metric}"])
        assert row.low <= row.value <= row.high
    assert len(table) == 10


def test_intervals_are_those_of_the_one_inference_over_clips():
    audio, text = sphere(20, 6), sphere(20, 3, 6, seed=1)
    row = retrieval_rows(audio, text).set_index(["direction", "metric"]).loc[("T2A", "R@5")]
    sure = metrics.difference(metrics.by_clip(audio, text)["T2A R@5"].numpy()[None])
    assert (row["value"], row["low"], row["high"]) == (sure.value, max(sure.low, 0), min(sure.high, 1))


def test_table_has_a_block_for_each_language():
    model, clips = TinyModel(), TinyClips(10)
    table = retrieval_table(model, clips, ("eng", "fra"))
    assert table.groupby("language").size().to_dict() == {"eng": 10, "fra": 10}
    audio, text = embed(model, clips, language="fra", caption="all")
    one = table[table["language"] == "fra"].drop(columns="language").reset_index(drop=True)
    assert one.equals(retrieval_rows(audio, text))


def test_a_language_that_no_clip_has_is_left_out_with_a_word():
    model, clips = TinyModel(), TinyClips(6)
    clips.captions = lambda code, told=clips.captions: [["Hund"], *[[]] * 5] if code == "deu" else told(code)
    with pytest.warns(UserWarning, match="no two clips have a caption in 'deu', which is left out"):
        assert retrieval_table(model, clips, ("eng", "deu")).equals(retrieval_table(model, clips))
    with pytest.raises(ValueError, match="no two clips have a caption in 'deu'"):
        retrieval_table(model, clips, ("deu",))


@pytest.mark.parametrize(("relevant", "items"), [(1, 7), (3, 12), (5, 50), (1, 1), (4, 4)])
@pytest.mark.parametrize("metric", ["R@1", "R@5", "mAP@10", "mAP@16"])
def test_chance_on_the_card_is_the_mean_over_random_orders(metric, relevant, items):
    chance = {score.name: score.chance for score in scores_of((1, 5), (10, 16))}[f"T2A {metric}"]
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(20_000, items, generator=generator)
    truth = torch.zeros(20_000, items, dtype=torch.bool)
    truth[:, :relevant] = True
    k = int(metric.split("@")[1])
    simulated = metrics.retrieval(scores, truth, (k,), (k,))[metric]
    assert chance(relevant, items) == pytest.approx(simulated, abs=0.012)


def test_recall_at_1_uses_the_first_captions():
    model, clips = TinyModel(), TinyClips(10)
    audio, text = embed(model, clips)
    expected = {name: values.mean().item() for name, values in metrics.by_clip(audio, text).items()}
    scores = recall_at_1(model, clips)
    assert scores["T2A R@1"] == pytest.approx(expected["T2A R@1"])
    assert scores["A2T R@1"] == pytest.approx(expected["A2T R@1"])
    assert scores["R@1"] == pytest.approx((scores["T2A R@1"] + scores["A2T R@1"]) / 2)


def test_zero_shot_counts_right_clips():
    model, clips = TinyModel(), TinyClips(24)
    prompts = [f"This is a sound of {word}." for word in WORDS]
    table = zero_shot(model, clips, prompts).set_index("metric")
    audio, _ = embed(model, clips)
    text = embed_texts(model, prompts)
    right = [
        int(np.argmax(text.numpy() @ one)) == label for one, label in zip(audio.numpy(), clips.labels, strict=True)
    ]
    assert table.loc["accuracy", "value"] == pytest.approx(np.mean(right))
    assert table.loc["macro accuracy", "value"] == pytest.approx(np.mean(right))  # classes of one size
    assert table.loc["accuracy", "chance"] == pytest.approx(1 / 6)


def test_zero_shot_of_unequal_classes():
    clips = TinyClips(23)
    table = zero_shot(TinyModel(), clips, WORDS).set_index("metric")
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    with pytest.raises(ValueError, match="one prompt a class"):
        zero_shot(TinyModel(), clips, WORDS[:5])
