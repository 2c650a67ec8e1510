"""Soft labels: a student follows what teachers make of the batch (Soft-Label Distillation Eq. 5–9)."""

import torch
from torch import Tensor

from pullpush.checks import check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked


def distillation(
    audio: Tensor,
    text: Tensor,
    teacher_similarity: Tensor,
    tau: float | Tensor = 0.05,
    *,
    teacher_tau: float | Tensor | None = None,
) -> Tensor:
    """L_dist = H(p̂_a, q_a) + H(p̂_c, q_c): cross-entropy of the student's softmax to the teachers' (Eq. 8).

    q and p̂ are softmaxes of similarities over τ, of the student (Eq. 2, 3) and of the teachers' mean (Eq. 5–7): over
    the clips for each text, `a`, and over the texts for each clip, `c`. Each direction is a mean over the batch, and
    the two are summed, as InfoNCE's are. Teachers that know only the pair (similarity 1 for it, 0 elsewhere, and
    `teacher_tau` → 0) give InfoNCE. The loss is not zero where student and teachers agree: there it is the entropy of
    the soft labels, which no gradient sees.

    Scale: each direction is a mean over N, and the two are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings of the student.
        text: `(N, d)` L2-normalised text embeddings of the student.
        teacher_similarity: `(N, N)`, Ĉ of Eq. 5: entry i, j is the teachers' mean similarity of clip i and text j.
        tau: temperature of the student, a positive number or a 0-d tensor; 0.05 in the paper.
        teacher_tau: of the teachers, from which the softness of their labels comes; None: the student's, as printed
            (of a learnable one its value).

    Returns:
        0-d tensor, float32 at least. Zero for N = 1.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
        TypeError: embeddings or similarities that are not floating point.

    Example:
        >>> pairs, binary, unsure = torch.eye(3), torch.eye(3), torch.full((3, 3), 0.5)
        >>> distillation(pairs, pairs, binary, 0.5, teacher_tau=0.01)  # InfoNCE's value
        tensor(0.4791)
        >>> distillation(pairs, pairs, unsure, 0.5)
        tensor(3.1458)
    """
    check_temperature(tau)
    if teacher_tau is not None:
        check_temperature(teacher_tau, "teacher_tau")
    with checked(audio=audio, text=text, teacher_similarity=teacher_similarity) as (a, t, teacher):
        soft = tau if teacher_tau is None else teacher_tau
        soft = soft.detach() if torch.is_tensor(soft) else soft
        student, teacher = a @ t.T / tau, teacher.detach() / soft  # (N, N): clips in rows; teachers do not learn
        loss = a.new_zeros(())
        for over in (0, 1):  # Eq. 6 for each text over the clips, Eq. 7 for each clip over the texts
            targets = teacher.softmax(dim=over)
            loss = loss - (targets * student.log_softmax(dim=over)).sum(dim=over).mean()
    return loss


class Distillation(Tempered):
    """`distillation` beside a supervised loss, whose temperature it shares: L = L_sup + λ·L_dist, λ = 1 (Eq. 9).

    The teachers come with the clips, in their column "teachers".

    Example:
        >>> Distillation(0.5)(torch.eye(3), torch.eye(3), torch.full((3, 3), 0.5)).value
        tensor(3.1458)
    """

    needs = ("audio", "text", "teacher_similarity")

    def __init__(self, tau: float = 0.05, *, teacher_tau: float | None = None) -> None:
        super().__init__(tau)
        if teacher_tau is not None:
            check_temperature(teacher_tau, "teacher_tau")
        self.teacher_tau = teacher_tau

    def forward(self, audio: Tensor, text: Tensor, teacher_similarity: Tensor) -> Output:
        """`(N, d)`, `(N, d)`, `(N, N)` → the loss."""
        return Output(distillation(audio, text, teacher_similarity, self.tau, teacher_tau=self.teacher_tau))


CARD = LossCard(
    name="distillation",
    make=Distillation,
    title="Soft labels",
    about="Softmax over the batch follows that of the mean of several teachers, both directions, beside a loss.",
    source="Primus et al. 2024; Soft-Label Distillation Eq. 5–9",
    citation="distill_cluster",
)
