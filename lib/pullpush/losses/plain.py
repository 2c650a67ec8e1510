"""The methods of the papers in a few lines of torch each, as printed: what lessons show and tests compare with.

N clips, K languages, d dimensions; embeddings are L2-normalised. `pullpush.losses` has the same functions with checks,
options, and care for half precision, memory, and texts that are missing. No method needs anything from this file.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def info_nce(audio: Tensor, text: Tensor, tau: float = 0.07) -> Tensor:
    """L = −1/N Σᵢ log P(aᵢ | tᵢ) − 1/N Σᵢ log P(tᵢ | aᵢ), P a softmax of similarities over τ (SupCLAP Eq. 1, 5)."""
    scores = text @ audio.T / tau  # (N, N): s(t_i, a_j)
    t2a = -scores.log_softmax(dim=1).diagonal()
    a2t = -scores.log_softmax(dim=0).diagonal()
    return t2a.mean() + a2t.mean()


def siglip(audio: Tensor, text: Tensor, tau: float = 0.1, bias: float = -1.0) -> Tensor:
    """L = −1/N Σᵢⱼ log σ(ψᵢⱼ (s(tᵢ, aⱼ) + β)/τ), ψ = 1 for a pair, else −1 (GLAP Eq. 1, 2)."""
    logits = (text @ audio.T + bias) / tau
    psi = 2 * torch.eye(len(text), dtype=logits.dtype) - 1
    return -F.logsigmoid(psi * logits).sum() / len(text)


def support_vector(anchor: Tensor, positive: Tensor, radius: float) -> Tensor:
    """t_sup = t⁺ + R·(a⁺ − t⁺)/‖a⁺ − t⁺‖ (SupCLAP §3.1)."""
    difference = positive - anchor
    return anchor + radius * difference / difference.norm(dim=1, keepdim=True)


def svr(audio: Tensor, text: Tensor, radius: float, tau: float = 0.07) -> Tensor:
    """L_svr = −1/N Σᵢ log P(aᵢ | t_sup,ᵢ): InfoNCE of the texts moved by R towards their audio (SupCLAP Eq. 6)."""
    moved = F.normalize(support_vector(text, audio, radius), dim=1)
    scores = moved @ audio.T / tau  # (N, N): s(t_sup,i, a_j)
    return -scores.log_softmax(dim=1).diagonal().mean()


def radius_constraint(radius: Tensor, distance: Tensor) -> Tensor:
    """L_cons = 1/N Σᵢ [ReLU(R − ‖aᵢ − tᵢ‖) + ReLU(−R)] (SupCLAP Appendix B)."""
    return (F.relu(radius - distance) + F.relu(-radius)).mean()


def simple_reweight(audio: Tensor, text: Tensor, weight: float, tau: float = 0.07) -> Tensor:
    """InfoNCE whose pull is (w·P⁺ − 1)·a⁺/τ in place of (P⁺ − 1)·a⁺/τ (SupCLAP Eq. 4, Appendix E.4)."""
    scores = text @ audio.T / tau
    positive = scores.diagonal()  # s⁺/τ
    loss = 0
    for log_p in (scores.log_softmax(dim=1).diagonal(), scores.log_softmax(dim=0).diagonal()):
        loss = loss + ((weight - 1) * log_p.exp().detach() * positive - log_p).mean()
    return loss


def scaled_push(audio: Tensor, text: Tensor, perpendicular: float, tau: float = 0.07) -> Tensor:
    """InfoNCE with the gradient F_pull + F_∥ + κ·F_⊥ on each anchor, κ = `perpendicular` (SupCLAP §2)."""
    loss = info_nce(audio, text, tau)
    for anchor, positive in ((text, audio), (audio, text)):
        across = decompose(anchor, positive, tau)[3].detach()  # F_⊥
        change = (perpendicular - 1) * (across * anchor).sum(dim=1).mean()
        loss = loss + (change - change.detach())
    return loss


def svr_parts(
    audio: Tensor, text: Tensor, radius: float, tau: float = 0.07, *, probabilities=True, jacobian=True, partner=True
) -> Tensor:
    """L_svr with the softmax of t or t_sup, with Eq. 15 or without, with a⁺ free or held in t_sup (SupCLAP Eq. 6)."""
    loss = 0
    for t, a in ((text, audio), (audio, text)):
        own = support_vector(t, a.detach(), radius) if jacobian else t
        way = own + support_vector(t.detach(), a, radius) if partner else own
        value = support_vector(t, a, radius) if probabilities else t
        loss = loss + svr(a, value.detach() + (way - way.detach()), 0.0, tau)
    return loss


def svr_softmax(
    audio: Tensor, text: Tensor, radius: float, tau: float = 0.07, *, certainty=False, shares=False, vector=False
) -> Tensor:
    """InfoNCE whose 1 − P⁺, shares of the negatives and point are those of t or t_sup (SupCLAP Eq. 6)."""
    loss = 0
    for t, a in ((text, audio), (audio, text)):
        scores = [F.normalize(t + (support_vector(t, a, r) - t).detach(), dim=1) @ a.T / tau for r in (0, radius)]
        p, q = (scores[on].softmax(dim=1).detach() for on in (certainty, shares))
        weights = q.fill_diagonal_(0) / q.sum(dim=1, keepdim=True) - torch.eye(len(t), dtype=t.dtype)
        force = (1 - p.diagonal()) * (weights * scores[vector]).sum(dim=1)
        loss = loss + (force - force.detach() - p.diagonal().log()).mean()
    return loss


def focal(audio: Tensor, text: Tensor, gamma: float = 2.0, tau: float = 0.07) -> Tensor:
    """L = −1/N Σᵢ (1 − P⁺)^γ log P⁺, both directions summed (Focal Loss Eq. 4)."""
    scores = text @ audio.T / tau
    loss = 0
    for log_p in (scores.log_softmax(dim=1).diagonal(), scores.log_softmax(dim=0).diagonal()):
        loss = loss - ((1 - log_p.exp()) ** gamma * log_p).mean()
    return loss


def additive_margin(audio: Tensor, text: Tensor, margin: float = 0.1, tau: float = 0.07) -> Tensor:
    """InfoNCE whose s⁺ is (cos − m)/τ (AM-Softmax Eq. 6)."""
    scores = (text @ audio.T - margin * torch.eye(len(text), dtype=text.dtype)) / tau
    return -(scores.log_softmax(dim=1) + scores.log_softmax(dim=0)).diagonal().mean()


def ml_clap(audio: Tensor, text: Tensor, tau: float = 0.07) -> Tensor:
    """InfoNCE with its directions averaged, each clip with its text in one random language (ATRI Eq. 4)."""
    return info_nce(audio, text, tau) / 2


def kcl(audio: Tensor, texts: Tensor, tau: float = 0.07) -> Tensor:
    """L = −1/2NK Σₖ Σᵢ log P(tᵢₖ | aᵢ) + log P(aᵢ | tᵢₖ), a clip with all its texts, (N, K, d) (ATRI Eq. 9–11)."""
    scores = torch.einsum("id,jkd->kij", audio, texts) / tau  # (K, N, N): s(a_i, t_jk)
    a2t = -scores.log_softmax(dim=2).diagonal(dim1=1, dim2=2)  # Eq. 10
    t2a = -scores.log_softmax(dim=1).diagonal(dim1=1, dim2=2)  # Eq. 11
    return (a2t + t2a).mean() / 2


def cacl(audio: Tensor, english: Tensor, other: Tensor, tau: float = 0.07) -> Tensor:
    """L = 1/6N Σ over audio–English, audio–other, English–other of both directions of InfoNCE (ATRI Eq. 12, 13)."""
    return (info_nce(audio, english, tau) + info_nce(audio, other, tau) + info_nce(english, other, tau)) / 6


def cross_cyclic(audio: Tensor, text: Tensor) -> Tensor:
    """L = Σⱼₖ (⟨aⱼ, tₖ⟩ − ⟨aₖ, tⱼ⟩)² (On the Language Encoder §3)."""
    similarity = audio @ text.T
    return (similarity - similarity.T).square().sum()


def in_modal_cyclic(audio: Tensor, text: Tensor) -> Tensor:
    """L = Σⱼₖ (⟨aⱼ, aₖ⟩ − ⟨tₖ, tⱼ⟩)² (On the Language Encoder §3)."""
    return (audio @ audio.T - text @ text.T).square().sum()


def simcse(view1: Tensor, view2: Tensor, tau: float = 0.05) -> Tensor:
    """L = −1/N Σⱼ log P(tⱼ⁺ | tⱼ), P a softmax over the second views of all texts (On the Language Encoder §3)."""
    return -(view1 @ view2.T / tau).log_softmax(dim=1).diagonal().mean()


def nli(anchor: Tensor, entailment: Tensor, contradiction: Tensor, tau: float = 0.05) -> Tensor:
    """L = −1/N Σⱼ log P(eⱼ | aⱼ), P a softmax over all entailments and contradictions (On the Language Encoder §3)."""
    scores = anchor @ torch.cat([entailment, contradiction]).T / tau  # (N, 2N)
    return -scores.log_softmax(dim=1).diagonal().mean()


def sparsity(audio: Tensor, text: Tensor) -> Tensor:
    """L = mean|A|/‖A‖_F + mean|T|/‖T‖_F, ‖·‖_F the root of the sum of squares (GLAP's published code)."""
    return audio.abs().mean() / audio.square().sum().sqrt() + text.abs().mean() / text.square().sum().sqrt()


def distillation(audio: Tensor, text: Tensor, teacher_similarity: Tensor, tau: float = 0.05) -> Tensor:
    """L = H(p̂_a, q_a) + H(p̂_c, q_c): the student's softmax follows the teachers' (Soft-Label Distillation Eq. 8)."""
    c = audio @ text.T / tau  # (N, N): C(a_i, c_j), Eq. 1
    p = teacher_similarity.detach() / tau  # Ĉ, Eq. 5; no gradient reaches a teacher
    audio_for_text = -(p.softmax(dim=0) * c.log_softmax(dim=0)).sum(dim=0)  # Eq. 2 and 6
    text_for_audio = -(p.softmax(dim=1) * c.log_softmax(dim=1)).sum(dim=1)  # Eq. 3 and 7
    return audio_for_text.mean() + text_for_audio.mean()


def label_smoothing(audio: Tensor, text: Tensor, tau: float = 0.05, epsilon: float = 0.1) -> Tensor:
    """InfoNCE with labels 1 − ε for the pair and ε/(N − 1) for the others (a control of Soft-Label Distillation)."""
    c = text @ audio.T / tau
    label = torch.full_like(c, epsilon / (len(c) - 1)).fill_diagonal_(1 - epsilon)
    return -(label * (c.log_softmax(dim=0) + c.log_softmax(dim=1))).sum() / len(c)


def clusters(audio_logits: Tensor, text_logits: Tensor, labels: Tensor) -> Tensor:
    """L = L_cls^a + L_cls^c, of the clips whose caption has a topic, label ≥ 0 (Soft-Label Distillation Eq. 10)."""
    known = labels >= 0
    return sum(F.cross_entropy(logits[known], labels[known]) for logits in (audio_logits, text_logits))


def decompose(text: Tensor, audio: Tensor, tau: float = 0.07) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """∇L = F_pull + F_push for each text, and F_push = F_∥ + F_⊥ along û and across it (SupCLAP Eq. 4, §2)."""
    p = (text @ audio.T / tau).softmax(dim=1)  # (N, N): P of Eq. 2 and 3
    pull = (p.diagonal()[:, None] - 1) * audio / tau  # (P⁺ − 1) a⁺/τ
    push = (p - p.diag().diag()) @ audio / tau  # Σⱼ Pⱼ⁻ aⱼ⁻/τ
    unit = F.normalize(audio - text, dim=1)  # û
    parallel = (push * unit).sum(dim=1, keepdim=True) * unit
    return pull, push, parallel, push - parallel
