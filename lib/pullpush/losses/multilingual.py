"""Losses for one clip with texts in several languages: ML-CLAP, KCL and CACL (ATRI §3.1 and §4).

All three are averages of one symmetric term, ½ (InfoNCE a2t + InfoNCE t2a), over different pairs:

* `ml_clap`: the clip and its text in one language, drawn at random for each clip and epoch by the data set;
* `kcl`: the clip and each of its K texts (1-to-K);
* `cacl`: clip–English, clip–other and English–other (co-anchors).

So their scales agree, and half that of `info_nce`, which sums its directions as SupCLAP does.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from pullpush.losses._checks import check_pair, check_temperature
from pullpush.losses.infonce import info_nce
from pullpush.losses.temperature import Tempered

Candidates = Literal["language", "all"]
CANDIDATES = ("language", "all")


def ml_clap(audio: Tensor, text: Tensor, tau: float | Tensor = 0.07) -> Tensor:
    """ML-CLAP's loss: InfoNCE with its two directions averaged, on texts of mixed languages (ATRI Eq. 4).

    Which language each text is in is the data set's choice (`PairDataset(sampling="random")`: one language per clip
    and epoch). The negatives of a text therefore come in other languages than its own, as in Eq. 4.

    The training goal that ATRI prints for it, Eq. 5, weights each log-probability with the probability itself and has
    one denominator over the matching pairs alone; that sum of p·log p is the negative entropy of p and knows no
    mismatched pair. ATRI's own loss with K = 1 is this one, and so is that of Yan et al. (2024).

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        text: `(N, d)` L2-normalised text embeddings; row i belongs to clip i.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.

    Returns:
        0-d tensor: half of `info_nce(audio, text, tau)`.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
    """
    return info_nce(audio, text, tau) / 2


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
    read (any placeholder does, and gets gradient 0), and 2NK becomes twice the number of texts that are there.

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        texts: `(N, K, d)` L2-normalised text embeddings; `texts[i, k]` is the text of clip i in language k.
        tau: temperature, a positive number or a 0-d tensor that gradients reach.
        present: `(N, K)` boolean, False where the translation is missing; None: all are there.
        candidates: `"language"` or `"all"`, see above.

    Returns:
        0-d tensor in the dtype of the embeddings. For K = 1 half of `info_nce`.

    Raises:
        ValueError: wrong shapes, no text present, a temperature that is not positive, unknown candidates.
        TypeError: embeddings that are not floating point, or `present` that is not boolean.
    """
    _check_languages(audio, texts, present)
    check_temperature(tau)
    if candidates not in CANDIDATES:
        raise ValueError(f"candidates must be one of {CANDIDATES}, got {candidates!r}")
    if present is None:
        present = texts.new_ones(texts.shape[:2], dtype=torch.bool)
    texts = torch.where(present[..., None], texts, 0)  # a NaN placeholder must not reach a gradient
    logits = torch.einsum("id,jkd->ikj", audio, texts) / tau  # (N, K, N): s(a_i, t_jk)/τ
    positive = logits.diagonal(dim1=0, dim2=2).T  # (N, K): s(a_i, t_ik)/τ
    # −inf takes an absent text out of the denominators.
    if candidates == "all":
        a2t = logits.masked_fill(~present.T, -math.inf).logsumexp(dim=(1, 2))[:, None] - positive
    else:
        # Rows of absent texts keep their own entry, so that a language that no clip has is not all −inf (NaN).
        own = torch.eye(len(audio), dtype=torch.bool, device=audio.device)[:, None]
        a2t = logits.masked_fill(~present.T & ~own, -math.inf).logsumexp(dim=2) - positive  # Eq. 10
    t2a = logits.logsumexp(dim=0).T - positive  # Eq. 11
    return (a2t + t2a)[present].sum() / (2 * present.sum())  # Eq. 9


def cacl(audio: Tensor, english: Tensor, other: Tensor, tau: float | Tensor = 0.07) -> Tensor:
    """Audio–English co-anchor contrastive learning (ATRI Eq. 12–13).

    The symmetric contrastive sum over N of Eq. 13 for audio–English, audio–other and English–other, times 1/(6N).

    Args:
        audio: `(N, d)` L2-normalised audio embeddings.
        english: `(N, d)` L2-normalised embeddings of the English texts.
        other: `(N, d)` L2-normalised embeddings of the texts in a random other language, one per clip and epoch
            (`PairDataset(sampling="pair")`).
        tau: temperature, a positive number or a 0-d tensor that gradients reach.

    Returns:
        0-d tensor in the dtype of the embeddings. Symmetric in all three arguments.

    Raises:
        ValueError: wrong shapes, or a temperature that is not positive.
    """
    check_pair(english, other)
    pairs = ((audio, english), (audio, other), (english, other))
    return sum(ml_clap(u, v, tau) for u, v in pairs) / 3  # Eq. 12


class MLCLAP(Tempered):
    """`ml_clap` with a fixed or learnable temperature."""

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)` → 0-d loss."""
        return ml_clap(audio, text, self.tau)


class KCL(Tempered):
    """`kcl` with a fixed or learnable temperature."""

    def __init__(
        self,
        tau: float = 0.07,
        *,
        learnable: bool = False,
        max_scale: float = 100.0,
        candidates: Candidates = "language",
    ) -> None:
        super().__init__(tau, learnable=learnable, max_scale=max_scale)
        self.candidates = candidates

    def forward(self, audio: Tensor, texts: Tensor, present: Tensor | None = None) -> Tensor:
        """`(N, d)`, `(N, K, d)`, `(N, K)` boolean or None → 0-d loss."""
        return kcl(audio, texts, self.tau, present=present, candidates=self.candidates)


class CACL(Tempered):
    """`cacl` with a fixed or learnable temperature."""

    def forward(self, audio: Tensor, english: Tensor, other: Tensor) -> Tensor:
        """`(N, d)`, `(N, d)`, `(N, d)` → 0-d loss."""
        return cacl(audio, english, other, self.tau)


def _check_languages(audio: Tensor, texts: Tensor, present: Tensor | None) -> None:
    """Require `(N, d)`, `(N, K, d)` with K ≥ 1 and, if given, `(N, K)` boolean with something present."""
    if not torch.is_tensor(texts) or texts.ndim != 3 or texts.shape[1] == 0:
        came = tuple(texts.shape) if torch.is_tensor(texts) else type(texts).__name__
        raise ValueError(f"texts must have shape (N, K, d) with K ≥ 1 languages, got {came}")
    check_pair(audio, texts[:, 0])
    if present is None:
        return
    if present.dtype != torch.bool:
        raise TypeError(f"present must be boolean, got {present.dtype}")
    if present.shape != texts.shape[:2]:
        raise ValueError(f"present must have shape (N, K) = {tuple(texts.shape[:2])}, got {tuple(present.shape)}")
    if not present.any():
        raise ValueError("no text of this batch is present in any language: leave such clips out before")
