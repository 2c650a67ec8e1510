"""KCL: 1-to-K contrastive learning, every clip with its texts in all K languages (ATRI §4.1)."""

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from pullpush.checks import check_choice, check_shapes, check_temperature
from pullpush.losses.contract import LossCard, Output
from pullpush.losses.temperature import Tempered
from pullpush.precision import checked

Candidates = Literal["language", "all"]


def kcl(
    audio: Tensor,
    texts: Tensor,
    tau: float | Tensor = 0.07,
    *,
    present: Tensor | None = None,
    candidates: Candidates = "language",
) -> Tensor:
    """1-to-K contrastive learning: every clip against its texts in all K languages (ATRI Eq. 9–11).

    Summed over languages, clips and both directions, divided by 2NK.

    Two readings of the negatives: Eq. 10 as printed draws the candidates of a clip from one language at a time
    (`candidates="language"`), while the distribution of Eq. 1 has one denominator over all languages
    (`candidates="all"`): then a clip's a2t candidates are the N·K texts, its own other languages among them, and the
    least value is log K in that direction. The candidates of a text are the N clips in both readings (Eq. 11).

    Missing translations: with `present`, absent texts are neither anchors nor candidates, their embeddings are never
    read (any placeholder does, and gets gradient 0), and 2NK becomes twice the number of texts that are present.

    Scale: both directions and all K languages are averaged: half of `info_nce` for K = 1.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        texts: `(N, K, d)` L2-normalised text embeddings; `texts[i, k]` is the text of clip i in language k.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        present: `(N, K)` boolean, False where the translation is missing; None: all are present.
        candidates: `"language"` or `"all"`, see above.

    Returns:
        0-d tensor, float32 at least. For K = 1 half of `info_nce`.

    Raises:
        ValueError: wrong shapes, no text present, a temperature that is not positive, unknown candidates.
        TypeError: embeddings that are not floating point, or `present` that is not boolean.

    Example:
        >>> audio = torch.eye(3)
        >>> kcl(audio, audio[:, None].expand(3, 2, 3), tau=0.5)  # two languages with the same embeddings
        tensor(0.2395)
    """
    check_temperature(tau)
    check_choice("candidates", candidates, get_args(Candidates))
    with checked(audio=audio, texts=texts) as (a, t):
        if present is not None:
            check_shapes(texts=t, present=present)
            if not present.any():
                raise ValueError("no text of this batch is present in any language: leave such clips out before")
            t = torch.where(present[..., None], t, 0)  # a NaN placeholder must not reach a gradient
        logits = torch.einsum("id,jkd->ikj", a, t) / tau  # (N, K, N): s(a_i, t_jk)/τ
        positive = logits.diagonal(dim1=0, dim2=2).T  # (N, K): s(a_i, t_ik)/τ
        shown = logits
        if present is not None:
            # −inf takes an absent text out of the denominators. Where a clip is contrasted with one language, rows of
            # absent texts keep their positive, so that a language that no clip has is not all −inf (NaN).
            diagonal = torch.eye(len(a), dtype=torch.bool, device=a.device)[:, None]
            kept = present.T | diagonal if candidates == "language" else present.T
            shown = logits.masked_fill(~kept, -math.inf)
        # Eq. 10
        a2t = (shown.logsumexp(dim=(1, 2))[:, None] if candidates == "all" else shown.logsumexp(dim=2)) - positive
        t2a = logits.logsumexp(dim=0).T - positive  # Eq. 11
        # Where all are present, no mask: choosing by one would have to wait for a GPU.
        both = (a2t + t2a).flatten() if present is None else (a2t + t2a)[present]
        return both.sum() / (2 * both.numel())  # Eq. 9


class KCL(Tempered):
    """`kcl` with a fixed or learnable temperature.

    Example:
        >>> KCL(0.5)(torch.eye(3), torch.eye(3)[:, None]).value
        tensor(0.2395)
    """

    needs = ("audio", "texts")
    uses = ("present",)

    def __init__(
        self,
        tau: float = 0.07,
        *,
        learnable: bool = False,
        max_scale: float = 100.0,
        candidates: Candidates = "language",
    ) -> None:
        super().__init__(tau, learnable=learnable, max_scale=max_scale)
        check_choice("candidates", candidates, get_args(Candidates))
        self.candidates = candidates

    def forward(self, audio: Tensor, texts: Tensor, present: Tensor | None = None) -> Output:
        """`(N, d)`, `(N, K, d)`, `(N, K)` boolean or None → the loss."""
        return Output(kcl(audio, texts, self.tau, present=present, candidates=self.candidates))


CARD = LossCard(
    name="kcl",
    make=KCL,
    title="KCL",
    about="Every clip with its texts in all languages at once, one InfoNCE a language.",
    source="ATRI Eq. 9–11",
    citation="atri",
    colour="green",
    sampling="all",
)
