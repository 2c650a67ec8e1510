"""Texts that are missing in some languages: from the captions to the loss, and in evaluation."""

import numpy as np
import pytest
import torch
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.losses import kcl
from pullpush.training import Diagnostics, recipe, train
from pullpush.training.evaluate import recall_at_1
from pullpush.training.objective import Objective

LANGUAGES = ("eng", "fra", "zho")
pytestmark = pytest.mark.filterwarnings("ignore:missing captions")


class Gaps(TinyClips):
    """A third of the clips has no Chinese; clip 5 has no English and clip 4 no French."""

    def captions(self, language):
        gone = {"zho": lambda i: i % 3 == 0, "eng": lambda i: i == 5, "fra": lambda i: i == 4}[language]
        return [[] if gone(i) else texts for i, texts in enumerate(super().captions(language))]


PRESENT = torch.tensor([[i != 5, i != 4, i % 3 != 0] for i in range(7)])


def batch():
    dataset = PairDataset(Gaps(7), languages=LANGUAGES, sampling="all")
    return collate([dataset[row] for row in range(7)])


@pytest.mark.parametrize("chunk", [0, 1, 4, 100])
def test_kcl_is_that_of_the_texts_that_are_there(chunk):
    model = TinyModel(dropout=0)
    one = batch()
    outcome = Objective(model, recipe("kcl", languages=LANGUAGES, text_chunk=chunk))(one)
    assert torch.equal(outcome.offer.present, PRESENT)
    texts = torch.full((7, 3, 8), float("nan"))  # of gaps nothing is read
    for k, column in enumerate((one.texts, *one.parallel)):
        for i, text in enumerate(column):
            if text is not None:
                texts[i, k] = model.encode_text([text])[0]
    torch.testing.assert_close(outcome.loss, kcl(outcome.offer.audio, texts, present=PRESENT))


def test_a_batch_without_any_main_text_is_one_of_the_others():
    dataset = PairDataset(Gaps(7), languages=LANGUAGES, sampling="all")
    model, one = TinyModel().eval(), collate([dataset[5]])
    alone, both = (Objective(model, recipe(name, languages=LANGUAGES))(one).loss for name in ("kcl", "kcl+simcse"))
    torch.testing.assert_close(both, alone)


def test_a_blank_text_is_missing_and_never_encoded():
    one = batch()
    one.texts[5], one.parallel[0][4] = "", "  "
    model = TinyModel()
    encode = model.encode_text
    seen = []
    model.encode_text = lambda texts, languages: (seen.extend(texts), encode(texts))[1]
    outcome = Objective(model, recipe("kcl"))(one)
    assert torch.equal(outcome.offer.present, PRESENT)
    assert all(text and text.strip() for text in seen)


@pytest.mark.parametrize("name", ["kcl", "kcl+bi-dynamic-svr"])
@pytest.mark.parametrize("chunk", [0, 5])
def test_training_goes_on_and_reports_the_gaps(name, chunk):
    one = recipe(name, languages=LANGUAGES, dim=8, batch_size=7, epochs=2, text_chunk=chunk)
    dataset = PairDataset(Gaps(21), languages=LANGUAGES, sampling="all")
    result = train(TinyModel(), one, dataset, Gaps(12, seed=1), diagnostics=Diagnostics())
    assert result.steps["missing texts"].groupby(result.steps["epoch"]).sum().tolist() == [7 + 2, 7 + 2]
    assert np.isfinite(result.steps.select_dtypes("number")).all(axis=None)


def test_clips_without_a_caption_are_no_queries():
    model = TinyModel(dropout=0)
    clips = Gaps(12)
    rows = [i for i in range(12) if i % 3]
    audio = model.eval().encode_audio(*clips.audio(range(12))).detach()
    text = model.encode_text([own[0] for own in clips.captions("zho") if own]).detach()
    similarity = text @ audio.T
    expected = np.mean([row.argmax() == right for row, right in zip(similarity, rows, strict=True)])
    assert recall_at_1(model, clips, language="zho")["T2A R@1"] == pytest.approx(expected)
