"""Single and multiple annotation against counting by hand; nDCG against scikit-learn, too."""

from types import SimpleNamespace

import pytest
import torch
from sklearn.metrics import ndcg_score

from pullpush.metrics import retrieval_per_query
from pullpush.metrics.annotations import FITS, annotated_by_clip, graded_by_clip
from pullpush.metrics.cards import METRICS

unit = torch.nn.functional.normalize


def by_hand(scores, right, k):
    """Average precision within the first k, over all right clips."""
    order = sorted(range(len(scores)), key=lambda item: -scores[item])[:k]
    found, total = 0, 0.0
    for place, item in enumerate(order, start=1):
        if right[item]:
            found += 1
            total += found / place
    return total / sum(right)


@pytest.mark.parametrize("captions", [1, 3])
def test_both_annotations_by_hand(captions):
    clips = 40
    generator = torch.Generator().manual_seed(0)
    similarity = torch.randn(clips * captions, clips, generator=generator)
    relevance = torch.rand(clips, clips, generator=generator)
    relevance = ((relevance + relevance.T) / 2).fill_diagonal_(1.0)
    found = annotated_by_clip(similarity, relevance)
    for clip in range(clips):
        rows = similarity[clip * captions : (clip + 1) * captions].tolist()
        right = [float(relevance[clip, item]) >= FITS for item in range(clips)]
        for k in (10, 16):
            expected = sum(by_hand(row, right, k) for row in rows) / captions
            assert float(found[f"mAP@{k} multiple"][clip]) == pytest.approx(expected)
        places = [sum(score > row[clip] for score in row) for row in rows]
        for k in (1, 5, 10):
            assert float(found[f"R@{k} single"][clip]) == pytest.approx(sum(p < k for p in places) / captions)
        single = [1 / (p + 1) if p < 10 else 0 for p in places]
        assert float(found["mAP@10 single"][clip]) == pytest.approx(sum(single) / captions)


def test_where_a_caption_fits_its_own_clip_alone_both_are_one():
    similarity = torch.randn(20, 20, generator=torch.Generator().manual_seed(1))
    found = annotated_by_clip(similarity, torch.eye(20))
    torch.testing.assert_close(found["mAP@10 multiple"], found["mAP@10 single"])


def test_degrees_are_those_of_the_graded_metric():
    similarity = torch.randn(12, 12, generator=torch.Generator().manual_seed(2))
    relevance = torch.rand(12, 12, generator=torch.Generator().manual_seed(3)).fill_diagonal_(1.0)
    expected = retrieval_per_query(similarity, relevance, (), (16,))["nDCG@16"]
    torch.testing.assert_close(annotated_by_clip(similarity, relevance)["nDCG@16"], expected)


def drawn(clips: int, captions: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    audio, text = unit(torch.randn(clips, 6), dim=-1), unit(torch.randn(clips, captions, 6), dim=-1)
    return audio, text, torch.rand(clips, clips).fill_diagonal_(1)


def test_both_directions_are_those_of_scikit_learn():
    audio, text, relevance = drawn(20, 3)
    found = graded_by_clip(audio, text, relevance)
    similarity = (text.flatten(0, 1) @ audio.T).numpy()
    fits = relevance.numpy().repeat(3, axis=0)
    asked = [ndcg_score(fits[[row]], similarity[[row]], k=10) for row in range(60)]
    assert found["T2A nDCG@10"].tolist() == pytest.approx(torch.tensor(asked).view(20, 3).mean(dim=1).tolist())
    answered = [ndcg_score(fits.T[[row]], similarity.T[[row]], k=10) for row in range(20)]
    assert found["A2T nDCG@10"].tolist() == pytest.approx(answered)


def test_an_experiment_asks_for_it_by_name_and_gets_values_by_clip_and_language():
    audio, text, relevance = drawn(8, 2)
    embedded = SimpleNamespace(
        languages=("eng", "fra"), audio=audio, relevance=relevance, texts={"eng": text, "fra": audio[:, None]}.get
    )
    values = METRICS["graded"].make(embedded)
    assert values["A2T nDCG@10"].shape == (8, 2)
    english = graded_by_clip(audio, text, relevance)["A2T nDCG@10"]
    assert values["A2T nDCG@10"][:, 0] == pytest.approx(english.numpy())
