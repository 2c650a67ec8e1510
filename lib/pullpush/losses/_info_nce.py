"""InfoNCE, the softmax contrastive loss (SupCLAP Eq. 1 and 5; ML-CLAP; CLIP)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.checks import DIRECTIONS, Direction, check_choice, check_temperature
from pullpush.losses._softmax import Rows, RowsAndColumns
from pullpush.losses._tiles import fits, inverse, tiled
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked


def info_nce(audio: Tensor, text: Tensor, tau: float | Tensor = 0.07, direction: Direction = "both") -> Tensor:
    """InfoNCE over the batch; row i of `audio` and row i of `text` are the positive pair.

    `"t2a"` is SupCLAP Eq. 1 with each text as anchor and all N audios as candidates, averaged over N;
    `"a2t"` exchanges the roles; `"both"` is their **sum** (Eq. 5; CLIP and ML-CLAP halve it).

    Up to N = 4,096 all similarities are held, and the loss is differentiable twice. Above, they are made, used and
    dropped in tiles: beyond the embeddings and their gradients it takes 64 MiB in float32 (128 MiB for both
    directions), whatever N is, and is differentiable once.

    Scale: each direction is a mean over N, and the two are summed.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        direction: anchors: `"t2a"`, `"a2t"` or `"both"`.

    Returns:
        0-d tensor, float32 at least. Zero for N = 1, where there is nothing to push away from.

    Raises:
        ValueError: wrong shapes, a temperature that is not positive, an unknown direction.
        TypeError: embeddings that are not floating point.

    Example:
        >>> pairs = torch.eye(3)  # each text equals its clip and is orthogonal to the others
        >>> info_nce(pairs, pairs, tau=0.5)
        tensor(0.4791)
    """
    check_temperature(tau)
    check_choice("direction", direction, DIRECTIONS)
    with checked(audio=audio, text=text) as (a, t):
        if not fits(len(t)):
            return _tiled(a, t, tau, direction)
        logits = t @ a.T / tau  # (N, N): texts in rows, s(t_i, a_j)
        target = torch.arange(len(t), device=t.device)
        loss = logits.new_zeros(())
        for scores in {"t2a": [logits], "a2t": [logits.T], "both": [logits, logits.T]}[direction]:
            loss = loss + F.cross_entropy(scores, target)
    return loss


def _tiled(audio: Tensor, text: Tensor, tau: float | Tensor, direction: Direction) -> Tensor:
    """The same without the N × N logits."""
    query, key = (text[None], audio[None]) if direction != "a2t" else (audio[None], text[None])
    rule = RowsAndColumns(query) if direction == "both" else Rows(query)
    return tiled(query, key, rule, scale=inverse(tau, query))


class InfoNCE(Tempered):
    """`info_nce` with a fixed or learnable temperature (see `Temperature`).

    Example:
        >>> InfoNCE(0.5)(torch.eye(3), torch.eye(3)).value
        tensor(0.4791)
    """

    def __init__(
        self, tau: float = 0.07, *, learnable: bool = False, max_scale: float = 100.0, direction: Direction = "both"
    ) -> None:
        super().__init__(tau, learnable=learnable, max_scale=max_scale)
        check_choice("direction", direction, DIRECTIONS)
        self.direction = direction

    def forward(self, audio: Tensor, text: Tensor) -> Output:
        """`(N, d)`, `(N, d)` → the loss."""
        return Output(info_nce(audio, text, self.tau, self.direction))


CARD = LossCard(
    name="infonce",
    make=InfoNCE,
    title="InfoNCE",
    about="Softmax over the batch: each text finds its clip among all clips, each clip its text among all texts.",
    source="SupCLAP Eq. 1 and 5; CLIP",
    citation="supclap",
    colour="blue",
)
