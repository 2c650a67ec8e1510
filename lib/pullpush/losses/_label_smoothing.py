"""Label smoothing: soft labels that know nothing, the control of distillation."""

import math

import torch
from torch import Tensor

from pullpush.checks import check_floats, check_number, check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked

HALVINGS = 50  # of the interval in which ε lies


def label_smoothing(
    audio: Tensor, text: Tensor, tau: float | Tensor = 0.05, *, epsilon: float | tuple[Tensor, Tensor] = 0.1
) -> Tensor:
    """InfoNCE with targets 1 − ε for the pair and ε/(N − 1) for every other, both directions summed.

    ε = 0 is InfoNCE. As soft labels these are what a teacher would give that holds all wrong clips for equally likely:
    what `distillation` gains over it comes from what the teachers know, not from softness.

    Scale: each direction is a mean over N, and the two are summed. All N × N similarities are held at once.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings.
        tau: temperature, a positive number or a 0-d tensor.
        epsilon: ε in [0, 1], or two tensors `(N,)`: of each text as a query, and of each clip (see
            `epsilon_of_entropy`).

    Returns:
        0-d tensor, float32 at least. Zero for N = 1.

    Raises:
        ValueError: wrong shapes, an ε out of range, or a temperature that is not positive.
        TypeError: embeddings that are not floating point.

    Example:
        >>> pairs = torch.eye(3)
        >>> label_smoothing(pairs, pairs, 0.5, epsilon=0.0), label_smoothing(pairs, pairs, 0.5, epsilon=0.3)
        (tensor(0.4791), tensor(1.6791))
    """
    check_temperature(tau)
    if not isinstance(epsilon, tuple):
        check_number("epsilon", epsilon, least=0, most=1)
    with checked(audio=audio, text=text) as (a, t):
        check_epsilons(epsilon, len(a))
        scores = t @ a.T / tau  # (N, N): texts in rows
        loss = scores.new_zeros(())
        for direction, logits in enumerate((scores, scores.T)):
            share = epsilon[direction].detach() if isinstance(epsilon, tuple) else epsilon
            log_p = logits.log_softmax(dim=1)
            pair, others = log_p.diagonal(), log_p.sum(dim=1) - log_p.diagonal()
            loss = loss - ((1 - share) * pair + share * others / max(1, len(logits) - 1)).mean()
    # For N = 1 there is nothing to smooth with, and the log-probability of the only candidate is 0.
    return loss


def epsilon_of_entropy(entropy: Tensor, items: int) -> Tensor:
    """The ε whose smoothed label over `items` candidates has this entropy (nats); `(…)` → `(…)`, float64.

    H(ε) = −(1 − ε) log(1 − ε) − ε log(ε/(N − 1)) grows from 0 at ε = 0 to log N at ε = (N − 1)/N, between which it is
    inverted by halving. Entropies beyond these ends, which rounding may bring, give the ends.

    >>> epsilon_of_entropy(torch.tensor([0.0, 0.5, torch.log(torch.tensor(4.0))]), 4)
    tensor([0.0000, 0.1204, 0.7500], dtype=torch.float64)
    """
    if items < 1:
        raise ValueError(f"items must be at least 1, got {items}")
    wanted = entropy.detach().double()
    if items == 1:
        return torch.zeros_like(wanted)
    low, high = torch.zeros_like(wanted), torch.full_like(wanted, (items - 1) / items)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = torch.special.entr(1 - middle) + torch.special.entr(middle) + middle * math.log(items - 1)
        low, high = torch.where(found < wanted, middle, low), torch.where(found < wanted, high, middle)
    ends = wanted >= math.log(items)
    return torch.where(wanted <= 0, 0.0, torch.where(ends, (items - 1) / items, (low + high) / 2))


class LabelSmoothing(Tempered):
    """`label_smoothing` beside a supervised loss, whose temperature it shares.

    like_teacher: ε of each query is the one whose entropy equals that of the soft label that the teachers of the clips
    would give it at `teacher_tau` (None: the student's τ), so that nothing but their knowledge is missing.

    Example:
        >>> LabelSmoothing(0.5, epsilon=0.3)(torch.eye(3), torch.eye(3)).value
        tensor(1.6791)
    """

    uses = ("teacher_similarity",)

    def __init__(
        self,
        tau: float = 0.05,
        *,
        epsilon: float = 0.1,
        like_teacher: bool = False,
        teacher_tau: float | None = None,
    ) -> None:
        super().__init__(tau)
        check_number("epsilon", epsilon, least=0, most=1)
        if teacher_tau is not None:
            check_temperature(teacher_tau, "teacher_tau")
        self.epsilon, self.like_teacher, self.teacher_tau = epsilon, like_teacher, teacher_tau

    def forward(self, audio: Tensor, text: Tensor, teacher_similarity: Tensor | None = None) -> Output:
        """`(N, d)`, `(N, d)` and, with `like_teacher`, the teachers' similarities `(N, N)` → the loss; then the mean ε
        is in its report.

        Raises:
            ValueError: `like_teacher` without teachers.
        """
        if not self.like_teacher:
            return Output(label_smoothing(audio, text, self.tau, epsilon=self.epsilon))
        if teacher_similarity is None:
            raise ValueError('like_teacher takes clips with teachers: give them a column "teachers"')
        teacher = teacher_similarity.T.double() / (self.tau if self.teacher_tau is None else self.teacher_tau)
        labels = (logits.softmax(dim=1) for logits in (teacher, teacher.T))  # of each text, of each clip
        entropies = (torch.special.entr(label).sum(dim=1) for label in labels)
        of_texts, of_clips = (epsilon_of_entropy(each, len(audio)).to(audio.dtype) for each in entropies)
        report = {"epsilon": torch.cat([of_texts, of_clips]).mean()}
        return Output(label_smoothing(audio, text, self.tau, epsilon=(of_texts, of_clips)), report)


def check_epsilons(epsilon: float | tuple[Tensor, Tensor], rows: int) -> None:
    """Require of two tensors one ε for each row."""
    if not isinstance(epsilon, tuple):
        return
    check_floats(**{f"epsilon[{place}]": each for place, each in enumerate(epsilon)})
    if [each.shape for each in epsilon] != [(rows,), (rows,)]:
        raise ValueError(f"epsilon must be a number or two tensors ({rows},), got {[tuple(e.shape) for e in epsilon]}")
    if any(each.device.type == "cpu" and not ((each >= 0) & (each <= 1)).all() for each in epsilon):
        raise ValueError("epsilon must lie in [0, 1], and some of its rows do not")


CARD = LossCard(
    name="label-smoothing",
    make=LabelSmoothing,
    title="Label smoothing",
    about="InfoNCE with a share of each label spread evenly over the wrong clips: soft labels that know nothing.",
    source="Szegedy et al. 2016; a control of Soft-Label Distillation Eq. 8",
    citation="distill_cluster",
)
