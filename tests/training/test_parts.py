"""A loss on parts of a batch is what processes compute that do not exchange their embeddings."""

import pytest
import torch
from standin import TinyClips, TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.losses import InfoNCE, Offer
from pullpush.training import recipe
from pullpush.training.objective import Objective, in_parts, parts_of


def batch(rows, **options):
    dataset = PairDataset(TinyClips(12), **options)
    return collate([dataset[row] for row in rows])


def objective(name, parts, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Objective(TinyModel(dropout=0), recipe(name, batch_size=7, dim=8, loss_parts=parts, **options))


def gradients(module):
    return [parameter.grad.clone() for parameter in module.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("name", ["infonce-learnable", "siglip", "infonce+bi-static-svr"])
def test_loss_and_gradient_are_the_mean_over_the_parts(name):
    whole = objective(name, 2)
    outcome = whole(batch(range(7)))
    outcome.loss.backward()
    each = objective(name, 1)
    losses = [each(batch(rows)).loss for rows in (range(3), range(3, 7))]
    (sum(losses) / 2).backward()
    torch.testing.assert_close(outcome.loss, sum(losses) / 2)
    torch.testing.assert_close(gradients(whole), gradients(each), rtol=1e-4, atol=1e-6)
    assert len(outcome.offer.audio) == 7
    assert not torch.isclose(outcome.loss, objective(name, 1)(batch(range(7))).loss)


def test_parallel_texts_and_what_comes_with_clips_go_along():
    languages = ("eng", "fra", "deu")
    outcome = objective("kcl", 2, languages=languages)(batch(range(7), languages=languages, sampling="all"))
    each = [
        objective("kcl", 1, languages=languages)(batch(rows, languages=languages, sampling="all")).loss
        for rows in (range(3), range(3, 7))
    ]
    torch.testing.assert_close(outcome.loss, sum(each) / 2)


def test_all_that_is_known_of_clips_is_divided():
    similarity = torch.arange(25.0).view(5, 5)
    present = torch.tensor([[True, True], [True, True], [True, False], [True, True], [True, True]])
    clips = torch.eye(5)
    offer = Offer(clips, clips, (2 * clips,), present, teacher_similarity=similarity, clusters=torch.arange(5))
    first, second = parts_of(offer, 2)
    assert torch.equal(first.teacher_similarity, similarity[:2, :2])
    assert torch.equal(second.teacher_similarity, similarity[2:, 2:])
    assert torch.equal(second.parallel[0], 2 * clips[2:])
    assert second.clusters.tolist() == [2, 3, 4]
    assert first.present is None, "none is missing here"
    assert torch.equal(second.present, present[2:])
    assert parts_of(offer, 1)[0] is offer


def test_a_part_without_texts_is_left_out_and_a_batch_without_them_teaches_nothing():
    clips, present = torch.eye(5).requires_grad_(), torch.tensor([[False], [False], [True], [True], [True]])
    half = in_parts(InfoNCE(), parts_of(Offer(clips, clips, present=present), 2))
    assert half.value == InfoNCE()(clips[2:], clips[2:]).value
    (silent := in_parts(InfoNCE(), parts_of(Offer(clips, clips, present=present & False), 2))).backward()
    assert (silent.item(), clips.grad.abs().sum()) == (0, 0)


@pytest.mark.parametrize("parts", [0, 9])
def test_parts_are_as_many_as_clips_at_most(parts):
    with pytest.raises(ValueError, match=f"loss_parts must be at (least 1|most batch_size), got {parts}"):
        recipe("infonce", batch_size=8, loss_parts=parts)
