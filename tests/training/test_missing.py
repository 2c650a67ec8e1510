"""Texts that are missing in some languages: from the captions to the loss, and in evaluation."""

import warnings

import numpy as np
import pytest
import torch
from standin import TinyClips, TinyModel
from torch.nn import functional as F

from pullpush.data.batches import PairDataset, collate
from pullpush.losses import CACL, KCL, InfoNCE, info_nce, kcl
from pullpush.training import Diagnostics, embed, recipe, retrieval_table, train
from pullpush.training.adapters import OnEachLanguage, OnLanguages, OnPair, OnTriplet, Pair
from pullpush.training.evaluate import recall_at_1
from pullpush.training.objective import Objective, present

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


def pair(seed=0):
    audio, *texts = F.normalize(torch.randn(4, 7, 5, generator=torch.Generator().manual_seed(seed)), dim=-1)
    return Pair(audio, texts[0], tuple(texts[1:]), PRESENT)


@pytest.mark.parametrize("chunk", [0, 1, 4, 100])
def test_kcl_is_that_of_the_texts_that_are_there(chunk):
    model = TinyModel(dropout=0)
    one = batch()
    outcome = Objective(model, recipe("kcl", languages=LANGUAGES, text_chunk=chunk))(one)
    assert torch.equal(outcome.pair.present, PRESENT)
    texts = torch.full((7, 3, 8), float("nan"))  # of gaps nothing is read
    for k, column in enumerate((one.texts, *one.parallel)):
        for i, text in enumerate(column):
            if text is not None:
                texts[i, k] = model.encode_text([text])[0]
    torch.testing.assert_close(outcome.loss, kcl(outcome.pair.audio, texts, present=PRESENT))


def test_presence_is_told_only_where_something_is_missing():
    complete = PairDataset(TinyClips(4), languages=LANGUAGES, sampling="all")
    assert present(collate([complete[0], complete[1]])) is None
    assert torch.equal(present(batch()), PRESENT)


def test_a_blank_text_is_missing_and_never_encoded():
    one = batch()
    one.texts[5], one.parallel[0][4] = "", "  "
    model = TinyModel()
    encode = model.encode_text
    seen = []
    model.encode_text = lambda texts, languages: (seen.extend(texts), encode(texts))[1]
    outcome = Objective(model, recipe("kcl"))(one)
    assert torch.equal(outcome.pair.present, PRESENT)
    assert all(text and text.strip() for text in seen)


def test_pair_losses_see_the_pairs_that_are_there():
    one = pair()
    rows = [0, 1, 2, 3, 4, 6]
    torch.testing.assert_close(OnPair(InfoNCE())(one), info_nce(one.audio[rows], one.text[rows]))
    with pytest.raises(ValueError, match="no clip of this batch has a text in the main language"):
        OnPair(InfoNCE())(one._replace(present=PRESENT & torch.tensor([False, True, True])))


def test_a_language_counts_as_often_as_it_is_there():
    one = pair()
    columns = (one.text, *one.parallel)
    total = sum(
        int(own.sum()) * info_nce(one.audio[own], text[own]) for own, text in zip(PRESENT.T, columns, strict=True)
    )
    torch.testing.assert_close(OnEachLanguage(InfoNCE())(one), total / PRESENT.sum())
    whole = one._replace(present=torch.ones(7, 3, dtype=torch.bool))
    torch.testing.assert_close(OnEachLanguage(InfoNCE())(whole), OnEachLanguage(InfoNCE())(one._replace(present=None)))


def test_a_language_that_no_clip_has_is_left_out():
    one = pair()._replace(present=torch.tensor([[True, False, True]] * 7))
    two = Pair(one.audio, one.text, one.parallel[1:])
    for term in (OnEachLanguage(InfoNCE()), OnLanguages(KCL())):
        torch.testing.assert_close(term(one), term(two))


def test_triplets_need_all_texts():
    with pytest.raises(ValueError, match="texts are missing, which CACL needs"):
        OnTriplet(CACL())(pair()._replace(parallel=pair().parallel[:1]))


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


def test_tables_say_how_many_clips_are_left_out():
    model = TinyModel(dropout=0)
    with pytest.warns(UserWarning, match="4 of 12 clips without a caption in 'zho' left out"):
        table = retrieval_table(model, Gaps(12), ("zho",))
    assert (table.query("metric == 'R@1' and direction == 'A2T'")["chance"] == 1 / 8).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        retrieval_table(model, TinyClips(12), ("zho",))
    with pytest.raises(ValueError, match="4 of 12 clips have no caption in 'zho'"):
        embed(model, Gaps(12), language="zho")
