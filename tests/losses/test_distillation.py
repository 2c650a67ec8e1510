"""Soft labels against loops over numbers, and against the supervised loss that they become where teachers are sure."""

import math

import pytest
import torch
from embeddings import pairs, sphere
from hypothesis import given, settings, strategies as st
from loss_ranks import clips
from standin import TinyModel

from pullpush.data.batches import PairDataset, collate
from pullpush.losses import Distillation, LabelSmoothing, distillation, epsilon_of_entropy, info_nce, label_smoothing
from pullpush.training import recipe
from pullpush.training.objective import Objective


def softmax(numbers):
    """Of a list."""
    total = sum(math.exp(x) for x in numbers)
    return [math.exp(x) / total for x in numbers]


def by_loops(audio, text, teacher, tau, teacher_tau):
    """Eq. 1 to 8, number by number."""
    n = len(audio)
    student = [[float(audio[i] @ text[j]) / tau for j in range(n)] for i in range(n)]
    soft = [[float(teacher[i, j]) / teacher_tau for j in range(n)] for i in range(n)]
    total = 0.0
    for j in range(n):  # a text asks for clips
        q, p = (softmax([table[k][j] for k in range(n)]) for table in (student, soft))
        total -= sum(p[k] * math.log(q[k]) for k in range(n)) / n
    for i in range(n):  # a clip asks for texts
        q, p = softmax(student[i]), softmax(soft[i])
        total -= sum(p[k] * math.log(q[k]) for k in range(n)) / n
    return total


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 7),
    seed=st.integers(0, 1000),
    tau=st.floats(0.05, 2),
    teacher_tau=st.one_of(st.none(), st.floats(0.05, 2)),
)
def test_value_is_that_of_loops(n, seed, tau, teacher_tau):
    audio, text = pairs(n, seed=seed)
    teacher = sphere(n, 5, seed=seed + 7) @ sphere(n, 5, seed=seed + 8).T
    expected = by_loops(audio, text, teacher, tau, teacher_tau or tau)
    assert float(distillation(audio, text, teacher, tau, teacher_tau=teacher_tau)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_teacher_that_is_the_targets_gives_the_supervised_loss_with_its_gradient(scale):
    """One-hot at a vanishing temperature, or an identity similarity of large scale."""
    audio, text = (side.requires_grad_() for side in pairs(6, seed=1))
    teacher = scale * torch.eye(6, dtype=torch.float64)
    soft, supervised = distillation(audio, text, teacher, 0.1, teacher_tau=1e-3 * scale), info_nce(audio, text, 0.1)
    torch.testing.assert_close(soft, supervised)
    torch.testing.assert_close(*(torch.autograd.grad(loss, (audio, text)) for loss in (soft, supervised)))


def test_a_student_that_agrees_is_at_rest_and_its_loss_the_entropy():
    audio, text = (side.requires_grad_() for side in pairs(5, seed=2))
    teacher = (audio @ text.T).detach()
    loss = distillation(audio, text, teacher, 0.2)
    entropies = [torch.special.entr((teacher / 0.2).softmax(over)).sum(over).mean() for over in (0, 1)]
    torch.testing.assert_close(loss, sum(entropies))
    for gradient in torch.autograd.grad(loss, (audio, text)):
        assert gradient.abs().max() < 1e-12


def test_wrong_options_are_named():
    audio, text = pairs(3)
    teacher = torch.eye(3).double()
    with pytest.raises(ValueError, match="tau must be positive, got 0"):
        distillation(audio, text, teacher, 0.0)
    with pytest.raises(ValueError, match="tau must be positive, got -1"):
        Distillation(teacher_tau=-1.0)
    with pytest.raises(ValueError, match=r"teacher_similarity \(3, 2\)"):
        distillation(audio, text, teacher[:, :2])
    with pytest.raises(ValueError, match=r"epsilon must be at least 0 and at most 1, got 1.2"):
        LabelSmoothing(epsilon=1.2)
    with pytest.raises(ValueError, match="like_teacher takes clips with teachers"):
        LabelSmoothing(like_teacher=True)(audio, text)


# --- label smoothing


def smoothed_by_loops(audio, text, tau, epsilon):
    """Targets written out."""
    n, total = len(audio), 0.0
    label = [[1 - epsilon if i == j else epsilon / (n - 1) for j in range(n)] for i in range(n)]
    for i in range(n):
        for logits in (
            [float(text[i] @ audio[k]) / tau for k in range(n)],
            [float(audio[i] @ text[k]) / tau for k in range(n)],
        ):
            total -= sum(share * math.log(q) for share, q in zip(label[i], softmax(logits), strict=True)) / n
    return total


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 7), seed=st.integers(0, 1000), epsilon=st.floats(0, 1))
def test_smoothing_is_that_of_loops(n, seed, epsilon):
    audio, text = pairs(n, seed=seed)
    expected = smoothed_by_loops(audio, text, 0.3, epsilon)
    assert float(label_smoothing(audio, text, 0.3, epsilon=epsilon)) == pytest.approx(expected, abs=1e-10)


@settings(max_examples=25, deadline=None)
@given(items=st.integers(2, 300), share=st.floats(0, 1))
def test_epsilon_has_the_entropy_that_was_asked_for(items, share):
    wanted = share * math.log(items)
    epsilon = float(epsilon_of_entropy(torch.tensor(wanted), items))
    label = [1 - epsilon, *[epsilon / (items - 1)] * (items - 1)]
    assert -sum(p * math.log(p) for p in label if p) == pytest.approx(wanted, abs=1e-6)


def test_smoothing_like_a_teacher_has_its_entropy_and_none_of_its_knowledge():
    """A teacher that smooths is smoothing; one that knows more is not, at the same entropies."""
    audio, text = pairs(6, seed=4)
    even = 0.3 * torch.eye(6, dtype=torch.float64)
    same = LabelSmoothing(0.2, like_teacher=True)(audio, text, even)
    torch.testing.assert_close(same.value, distillation(audio, text, even, 0.2), rtol=1e-6, atol=0)
    expected = 1 - float((even / 0.2).softmax(0)[0, 0])
    assert float(same.report["epsilon"]) == pytest.approx(expected, rel=1e-6)
    knows = sphere(6, 5, seed=6) @ sphere(6, 5, seed=7).T + even
    assert LabelSmoothing(0.2, like_teacher=True)(audio, text, knows).value != pytest.approx(
        float(distillation(audio, text, knows, 0.2)), rel=1e-3
    )
    sharper = LabelSmoothing(0.2, like_teacher=True, teacher_tau=0.02)(audio, text, even)
    assert sharper.report["epsilon"] < same.report["epsilon"]


# --- in a recipe, with the teachers that clips bring


def test_it_shares_the_temperature_of_the_supervised_loss():
    one = recipe("infonce+distillation", tau=0.05)
    assert [(term.name, term.weight, dict(term.options)) for term in one.terms] == [
        ("infonce", 1.0, {"tau": 0.05}),
        ("distillation", 1.0, {}),
    ]
    objective = Objective(torch.nn.Identity(), one)
    assert [term.tau for term in objective.terms] == [0.05, 0.05]
    assert one.columns == ("teachers",)


def test_a_step_learns_from_the_mean_over_teachers():
    """The similarity of a batch is that of each clip's teachers with each text's, teacher by teacher."""
    one = recipe("infonce+distillation", tau=0.1, dim=8, batch_size=5)
    held = clips(5)
    dataset = PairDataset(held, columns=one.columns)
    outcome = Objective(TinyModel(dropout=0), one)(collate([dataset[row] for row in range(5)]))
    teachers = torch.stack([torch.from_numpy(one) for one in held.columns["teachers"]])  # (N, T, 2, D)
    expected = torch.stack(
        [torch.stack([(teachers[i, :, 0] * teachers[j, :, 1]).sum(-1).mean() for j in range(5)]) for i in range(5)]
    )
    torch.testing.assert_close(outcome.offer.teacher_similarity, expected)
    offer = outcome.offer
    torch.testing.assert_close(outcome.terms[1], distillation(offer.audio, offer.text, expected, 0.1))
    torch.testing.assert_close(outcome.loss, outcome.terms[0] + outcome.terms[1])
