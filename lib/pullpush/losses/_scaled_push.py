"""InfoNCE whose push across the way to the positive is scaled, by a number or one for each negative: SupCLAP's thesis,
and nothing else.
"""

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_number, check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked, surrogate

Part = Literal["perpendicular", "sideways"]


def scaled_push(
    audio: Tensor,
    text: Tensor,
    perpendicular: float | Tensor,
    tau: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
    part: Part = "perpendicular",
) -> Tensor:
    """InfoNCE in value; in the gradient of each anchor the push across the way to its positive is multiplied by κ.

    SupCLAP Eq. 4 splits an anchor's gradient into F_pull and F_push, and §2 splits F_push into F_∥ along
    û = (a⁺ − t⁺)/‖a⁺ − t⁺‖ and F_⊥ across it. Here the gradient is F_pull + F_∥ + κ·F_⊥: what the support vector does
    to the push at fixed probabilities (Eq. 16, κ = 1 − R/‖a⁺ − t⁺‖). All else stays as it is in `info_nce`: the pull,
    the gradients of the candidates and of τ. With `direction="both"` texts are anchors of one half and clips of the
    other. κ = 1 is `info_nce`. As its gradient is not that of its value, finite differences will not find it.

    Scale: each direction is a mean over N, and the two are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        perpendicular: κ, a finite number of any sign; or `(N, N)`, one for each negative: entry i, j for text i and
            clip j, whichever pushes the other. The diagonal does not count.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).
        part: what κ multiplies: `"perpendicular"`, all of F_⊥, or `"sideways"`, what is left of it outside the plane
            of anchor and positive (see `pullpush.forces.sideways`). Where a⁺ = t⁺ nothing is along û.

    Returns:
        0-d tensor, mean over N, float32 at least.

    Raises:
        ValueError: wrong shapes, a κ that is not finite, a temperature that is not positive, an unknown direction or
            part.
        TypeError: embeddings that are not floating point.

    Example:
        >>> audio, text = torch.eye(3), torch.eye(3).roll(1, 0).requires_grad_()
        >>> losses = [scaled_push(audio, text, factor, tau=0.5, direction="t2a") for factor in (1.0, 0.0)]
        >>> losses[0] == losses[1]
        tensor(True)
        >>> [torch.autograd.grad(loss, text)[0][0] for loss in losses]  # text 0 lies on clip 2, away from clips 0 and 1
        [tensor([-0.5957,  0.0710,  0.5247]), tensor([-0.8580,  0.0000,  0.2623])]
    """
    each: dict[str, Any] = {}
    if torch.is_tensor(perpendicular) and perpendicular.ndim:
        each["perpendicular"] = perpendicular
    else:
        check_number("perpendicular", perpendicular)
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    check_choice("part", part, get_args(Part))
    with checked(audio=audio, text=text, **each) as (a, t, *given):
        factors = given[0] if given else torch.as_tensor(perpendicular, dtype=t.dtype, device=t.device)
        factors = factors.expand(len(t), len(t)).clone().fill_diagonal_(1.0)  # the pull stays as it is
        ways = {"t2a": (t, a, factors), "a2t": (a, t, factors.T)}
        loss = t.new_zeros(())
        for anchor, candidates, factor in [ways[direction]] if direction in ways else ways.values():
            within, across = _split(anchor, candidates, part)
            scores = (within @ candidates.T + factor * (across @ candidates.T)) / tau
            loss = loss + F.cross_entropy(scores, torch.arange(len(t), device=t.device))
    return loss


def _split(anchor: Tensor, positive: Tensor, part: Part) -> tuple[Tensor, Tensor]:
    """Twice `(N, d)`: the anchors, whose gradient is what is left of it without the part, and zeros, whose is that."""
    with torch.no_grad():
        unit = F.normalize(positive - anchor, dim=1)
        kept = [unit]
        if part == "sideways":  # within the plane: the bisector of anchor and positive, made orthogonal to û
            middle = positive + anchor
            kept.append(F.normalize(middle - (middle * unit).sum(dim=1, keepdim=True) * unit, dim=1))
    # A projection is its own transpose, so that the gradient is projected as the anchor is.
    within = torch.stack([(anchor * axis).sum(dim=1, keepdim=True) * axis for axis in kept]).sum(dim=0)
    return surrogate(anchor, within), surrogate(torch.zeros_like(anchor), anchor - within)


class _Scaled(Tempered):
    """`scaled_push` of one part and direction, by whatever factors."""

    def __init__(self, tau: float, part: Part, direction: Direction) -> None:
        super().__init__(tau)
        check_choice("part", part, get_args(Part))
        check_choice("direction", direction, DIRECTIONS)
        self.part, self.direction = part, direction

    def scaled(self, audio: Tensor, text: Tensor, factors: float | Tensor) -> Output:
        return Output(scaled_push(audio, text, factors, self.tau, direction=self.direction, part=self.part))


class ScaledPush(_Scaled):
    """`scaled_push`, in place of InfoNCE; κ = 1, the default, is InfoNCE.

    Example:
        >>> ScaledPush(0.5, perpendicular=0.25)(torch.eye(3), torch.eye(3)).value
        tensor(0.4791)
    """

    def __init__(
        self,
        tau: float = 0.07,
        *,
        perpendicular: float = 1.0,
        part: Part = "perpendicular",
        direction: Direction = "both",
    ) -> None:
        super().__init__(tau, part, direction)
        check_number("perpendicular", perpendicular)
        self.perpendicular = perpendicular

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return self.scaled(audio, text, self.perpendicular)


class GradedPush(_Scaled):
    """`scaled_push` with one κ for negatives that fit in part and another for those that do not; both 1 is InfoNCE.

    related: κ of negatives whose `teacher_similarity`, such as graded relevance, is above 0; unrelated: of the others.

    Example:
        >>> fits = torch.tensor([[1.0, 0.2, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> GradedPush(0.5, related=0.0)(torch.eye(3), torch.eye(3), fits).value
        tensor(0.4791)
    """

    needs = ("audio", "text", "teacher_similarity")

    def __init__(
        self,
        tau: float = 0.07,
        *,
        related: float = 1.0,
        unrelated: float = 1.0,
        part: Part = "sideways",
        direction: Direction = "both",
    ) -> None:
        super().__init__(tau, part, direction)
        check_number("related", related)
        check_number("unrelated", unrelated)
        self.related, self.unrelated = related, unrelated

    def forward(self, audio: Tensor, text: Tensor, teacher_similarity: Tensor) -> Output:
        """`(N, d)`, `(N, d)`, `(N, N)` → the loss."""
        unrelated = text.new_full(teacher_similarity.T.shape, self.unrelated)
        return self.scaled(audio, text, unrelated.masked_fill(teacher_similarity.T > 0, self.related))


CARDS = (
    LossCard(
        name="scaled-push",
        make=ScaledPush,
        title="Scaled push",
        about="InfoNCE whose push on an anchor is scaled where it is across the way to the positive.",
        source="a control of SupCLAP §2 and Eq. 16",
        citation="supclap",
    ),
    LossCard(
        name="graded-push",
        make=GradedPush,
        title="Graded push",
        about="InfoNCE whose sideways push is scaled apart for negatives that fit in part and for those that do not.",
        source="a control of SupCLAP §2",
        citation="supclap",
    ),
)
