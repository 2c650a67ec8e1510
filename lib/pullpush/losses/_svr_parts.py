"""SVR with a fixed radius, taken apart: the three things that the radius does, switched one by one, and the first of
them, the softmax, again: how much push, how it is shared and how evenly, and which vector pushes.
"""

from typing import Any, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_number, check_temperature
from pullpush.losses._softmax import negatives
from pullpush.losses._svr import Similarity, _stack, _support_loss, _unit, support_vector
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import EXACT, checked, surrogate


def svr_parts(
    audio: Tensor,
    text: Tensor,
    radius: float,
    tau: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
    similarity: Similarity = "cosine",
    probabilities: bool = True,
    jacobian: bool = True,
    partner: bool = True,
) -> Tensor:
    """L_svr (SupCLAP Eq. 6) with each of the three effects of its radius on or off, by surrogate gradients.

    `svr` contrasts t_sup = t⁺ + R·û, û = (a⁺ − t⁺)/‖a⁺ − t⁺‖, in place of the anchor t⁺. This does three things:

    - `probabilities`: the softmax is that of t_sup, P_sup. Off: that of t⁺, so that the value is InfoNCE's.
    - `jacobian`: the gradient at t_sup reaches t⁺ through Eq. 15, I − R/‖a⁺ − t⁺‖·(I − ûûᵀ), which scales what is
      across û. Off: through the identity, as it is.
    - `partner`: t_sup depends on a⁺, so that a part of the gradient at t_sup goes to the positive. Off: a⁺ is held
      constant in t_sup, and gets the gradient of a candidate alone.

    "The gradient at t_sup" is that of the loss there, with `similarity="cosine"` through the normalisation of t_sup.
    All on: `svr` in value and gradient. All off, or R = 0: InfoNCE, with `similarity="cosine"` that of normalised
    anchors. In between the gradient is not that of the value, and finite differences will not find it.

    Scale: each direction is a mean over N (and G), and the two are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings; or `(G, N, d)`, G groups contrasted each among itself.
        text: of the same shape, L2-normalised text embeddings; row i matches row i of `audio`.
        radius: R, a finite number, the same for all.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).
        similarity: `"cosine"` or `"dot"`, as in `svr`.
        probabilities: whether the softmax is that of the support vector.
        jacobian: whether the anchor's gradient goes through Eq. 15.
        partner: whether the positive gets a gradient through the support vector.

    Returns:
        0-d tensor, mean over N and G, float32 at least.

    Raises:
        ValueError: wrong shapes, a radius that is not finite, a temperature that is not positive, an unknown
            direction or similarity.
        TypeError: embeddings that are not floating point.

    Example:
        >>> import torch
        >>> audio, text = torch.eye(3), torch.eye(3).roll(1, 0)
        >>> svr_parts(audio, text, 2**0.5, 0.5, direction="t2a")  # every text on its clip
        tensor(0.2395)
        >>> svr_parts(audio, text, 2**0.5, 0.5, direction="t2a", probabilities=False)  # InfoNCE, another gradient
        tensor(2.2395)
    """
    check_number("radius", radius)
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    check_choice("similarity", similarity, get_args(Similarity))
    with checked(groups=True, audio=audio, text=text) as (a, t):
        loss = t.new_zeros(())
        for anchor, positive in {"t2a": [(t, a)], "a2t": [(a, t)], "both": [(t, a), (a, t)]}[direction]:
            value = _moved(anchor, positive, radius) if probabilities else anchor
            ways = [_moved(anchor, positive.detach(), radius) if jacobian else anchor]
            if partner:
                ways.append(_moved(anchor.detach(), positive, radius))
            moved = surrogate(value, *ways)
            loss = loss + _support_loss(*_stack(positive, moved, "t2a"), tau, similarity, include=True)
    return loss


def svr_softmax(
    audio: Tensor,
    text: Tensor,
    radius: float,
    tau: float | Tensor = 0.07,
    *,
    direction: Direction = "both",
    certainty: bool = False,
    shares: bool = False,
    concentration: bool | None = None,
    vector: bool = False,
) -> Tensor:
    """The *probabilities* of `svr_parts`, in parts that are on or off, by surrogate gradients.

    Without Jacobian and partner, L_svr pulls with m/τ and pushes with m·qⱼ/τ on the similarity of negative j, where
    m = 1 − P⁺ and Σⱼ qⱼ = 1, both of the softmax of t_sup, and takes the gradient of the similarities at t_sup. Here
    each is that of t_sup or that of the anchor t⁺:

    - `certainty`: m, how much is pulled and pushed in all.
    - `shares`: q, how the push is shared among the negatives.
    - `concentration`: how concentrated these shares are, by a factor of each row's scores, which keeps their order and
      gives them the entropy that those of t_sup have, or those of t⁺, as near as a factor from 2⁻¹⁶ to 2¹⁶ comes. It is
      found in 40 steps, a softmax each. None: as they are.
    - `vector`: the point of the similarities: all candidates are moved along t̂_sup, and the anchor across it.

    All on: `svr_parts` with the probabilities alone and the cosine, in value and gradient. All off, or R = 0: InfoNCE
    of normalised anchors. The value is −log P⁺ of the softmax that `certainty` names; with any of them on the gradient
    is not that of the value, and finite differences will not find it.

    Scale: each direction is a mean over N, and the two are summed. All N × N similarities are held at once.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i matches row i of `audio`.
        radius: R, a finite number, the same for all.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"` (sum).
        certainty, shares, concentration, vector: whether each is the support vector's; else it is the anchor's, but of
            `concentration` None, that of the shares.

    Returns:
        0-d tensor, mean over N, float32 at least. Zero for N = 1.

    Raises:
        ValueError: wrong shapes, a radius that is not finite, a temperature that is not positive, an unknown direction.
        TypeError: embeddings that are not floating point.

    Example:
        >>> import torch
        >>> audio, text = torch.eye(3), torch.eye(3).roll(1, 0)
        >>> svr_softmax(audio, text, 2**0.5, 0.5, direction="t2a", certainty=True)  # every text on its clip
        tensor(0.2395)
        >>> svr_softmax(audio, text, 2**0.5, 0.5, direction="t2a", shares=True)  # InfoNCE, another gradient
        tensor(2.2395)
    """
    check_number("radius", radius)
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    with checked(audio=audio, text=text) as (a, t):
        loss = t.new_zeros(())
        for anchor, positive in {"t2a": [(t, a)], "a2t": [(a, t)], "both": [(t, a), (a, t)]}[direction]:
            moved = surrogate(support_vector(anchor, positive, radius), anchor)
            of_anchor, of_moved = (_unit(point) @ positive.T / tau for point in (anchor, moved))
            sure, sharing, scores = (of_moved if on else of_anchor for on in (certainty, shares, vector))
            x = negatives(sure).logsumexp(dim=1) - sure.diagonal()  # 1 − P⁺ = σ(x), −log P⁺ = softplus(x)
            q = negatives(sharing).softmax(dim=1).detach()
            if concentration is not None and concentration != shares:
                q = _as_concentrated(sharing.detach(), of_moved if concentration else of_anchor)
            force = x.sigmoid().detach() * ((q * scores).sum(dim=1) - scores.diagonal())
            loss = loss + surrogate(F.softplus(x, threshold=EXACT), force).mean()
    return loss


class SVRParts(Tempered):
    """α·`svr_parts`, to be added to InfoNCE: `recipe("infonce+svr-parts", jacobian=False)`.

    alpha: its weight, as in `SVR`; radius: R, fixed; probabilities, jacobian, partner: the effects of R that are on.

    Example:
        >>> import torch
        >>> SVRParts(0.5, radius=0.0)(torch.eye(3), torch.eye(3)).value  # R = 0: InfoNCE
        tensor(0.4791)
    """

    languages = "groups"

    def __init__(
        self,
        tau: float = 0.07,
        *,
        radius: float = 0.6,
        direction: Direction = "both",
        alpha: float = 1.0,
        similarity: Similarity = "cosine",
        probabilities: bool = True,
        jacobian: bool = True,
        partner: bool = True,
    ) -> None:
        super().__init__(tau)
        check_number("radius", radius)
        check_choice("direction", direction, DIRECTIONS)
        check_choice("similarity", similarity, get_args(Similarity))
        self.radius, self.direction, self.alpha, self.similarity = radius, direction, alpha, similarity
        self.switches = {"probabilities": probabilities, "jacobian": jacobian, "partner": partner}

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` L2-normalised → the loss; or `(G, N, d)`, `(G, N, d)` → the mean over the G groups."""
        options: dict[str, Any] = {"direction": self.direction, "similarity": self.similarity, **self.switches}
        return Output(self.alpha * svr_parts(audio, text, self.radius, self.tau, **options))


class SVRSoftmax(Tempered):
    """`svr_softmax`, to be added to InfoNCE: `recipe("infonce+svr-softmax", shares=True)`.

    Example:
        >>> import torch
        >>> SVRSoftmax(0.5)(torch.eye(3), torch.eye(3)).value  # none on: InfoNCE
        tensor(0.4791)
    """

    def __init__(
        self,
        tau: float = 0.07,
        *,
        radius: float = 0.6,
        direction: Direction = "both",
        certainty: bool = False,
        shares: bool = False,
        concentration: bool | None = None,
        vector: bool = False,
    ) -> None:
        super().__init__(tau)
        check_number("radius", radius)
        check_choice("direction", direction, DIRECTIONS)
        self.radius, self.direction = radius, direction
        self.switches = {"certainty": certainty, "shares": shares, "concentration": concentration, "vector": vector}

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` L2-normalised → the loss."""
        return Output(svr_softmax(audio, text, self.radius, self.tau, direction=self.direction, **self.switches))


CARDS = (
    LossCard(
        name="svr-parts",
        make=SVRParts,
        title="SVR in parts",
        about="SVR with a fixed radius, each of whose three effects can be switched off; to be added to a loss.",
        source="a control of SupCLAP Eq. 6 and 15",
        citation="supclap",
    ),
    LossCard(
        name="svr-softmax",
        make=SVRSoftmax,
        title="SVR's softmax",
        about="InfoNCE whose pull and push are, part by part, those of a support vector's softmax; to be added to one.",
        source="a control of SupCLAP Eq. 6",
        citation="supclap",
    ),
)


def _moved(anchor: Tensor, positive: Tensor, radius: float) -> Tensor:
    """Support vectors of `(…, N, d)`."""
    return support_vector(anchor.flatten(0, -2), positive.flatten(0, -2), radius).view_as(anchor)


def _as_concentrated(scores: Tensor, others: Tensor) -> Tensor:
    """Softmax over negatives of β·scores, each row's β > 0 by bisection, as t-SNE's: as much entropy as of others."""
    wanted = torch.special.entr(negatives(others.detach()).softmax(dim=1)).sum(dim=1)
    power = torch.zeros_like(wanted)
    for halving in range(40):  # of log₂ β, from −16 to 16
        shares = negatives(power.exp2()[:, None] * scores).softmax(dim=1)
        power = power + 2.0 ** (3 - halving) * (torch.special.entr(shares).sum(dim=1) - wanted).sign()
    return shares
