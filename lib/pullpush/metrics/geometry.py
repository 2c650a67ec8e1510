"""The geometry of both spaces: alignment, uniformity, anisotropy, gap, and how far from cyclic they are; and by clip.

What is a mean over pairs of clips enters by clip as 2 eᵢ − E (a factor of order 1/N aside), with eᵢ the mean over the
pairs that hold clip i and E over all: a clip is in pairs on either side, and counted once it would halve the standard
error (Hoeffding 1948). These are the jackknife's pseudo-values; what is a function of such means enters by its first
order (Efron 1982, § 6). Their mean is the statistic itself, so that they go through `difference` as scores do.
"""

import math

import torch
from torch import Tensor

from pullpush.checks import check_alike, check_number, check_tensors
from pullpush.metrics.cards import Embeddings, MetricCard, Score, Values
from pullpush.precision import in_single

T = 2.0  # of uniformity, as in the paper
PAIRS = 2**18  # of clips whose cosines are held at a time: 2 MB a matrix, which stays in the cache
MOST = 100.0  # of exponents
FLAT = 1e-12  # variance of cosines of float32 vectors below which they are all the same


@in_single
def alignment(audio: Tensor, text: Tensor, *, alpha: float = 2.0) -> Tensor:
    """Mean ‖a − t‖^α over positive pairs; `(N, d)`, `(N, d)` L2-normalised → 0-d. 0 is perfect.

    >>> alignment(torch.eye(2), torch.eye(2).flip(0))
    tensor(2.0000)

    Raises:
        ValueError: shapes that differ or hold no pair, values that are not finite, or alpha beyond (0, 100].
        TypeError: what is no floating-point tensor.
    """
    check_tensors(audio=audio, text=text)
    check_alike(audio=audio, text=text)
    if audio.ndim != 2 or len(audio) == 0:
        raise ValueError(f"audio and text must be (N, d) with N ≥ 1, got {tuple(audio.shape)}")
    check_number("alpha", alpha, above=0, most=MOST)
    return (audio - text).norm(dim=1).pow(alpha).mean()


def uniformity(embeddings: Tensor, *, t: float = 2.0) -> Tensor:
    """log of the mean of exp(−t‖x − y‖²) over distinct pairs; `(N, d)` L2-normalised, N ≥ 2 → 0-d.

    Lower is more uniform; 0 means that all points coincide.

    >>> uniformity(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    tensor(-8.)

    Raises:
        ValueError: fewer than two embeddings, values that are not finite, or t beyond (0, 100].
        TypeError: what is no float32 or float64 tensor.
    """
    check_tensors(embeddings=embeddings)
    check_number("t", t, above=0, most=MOST)
    if embeddings.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"embeddings must be float32 or float64, got {embeddings.dtype}")
    if embeddings.ndim != 2 or len(embeddings) < 2:
        raise ValueError(f"uniformity needs at least two embeddings, as (N, d), got {tuple(embeddings.shape)}")
    squared = torch.nn.functional.pdist(embeddings).square()
    # log-mean-exp keeps far points from underflowing to log 0.
    return torch.logsumexp(-t * squared, dim=0) - math.log(len(squared))


def space(audio: Tensor, text: Tensor) -> dict[str, Tensor]:
    """By clip, `(N,)` float64, of values whose means are, over pairs i ≠ k of clips where it is pairs:

    - "alignment": ‖aᵢ − tᵢ‖² (Wang & Isola 2020);
    - "text uniformity", "audio uniformity": log of the mean exp(−2 ‖xᵢ − xₖ‖²), in nats; 0 where all points coincide;
    - "text anisotropy", "audio anisotropy": mean cosine (Ethayarajh 2019);
    - "gap": ‖mean a − mean t‖ (Liang et al. 2022);
    - "cross-cyclic": mean (⟨aᵢ, tₖ⟩ − ⟨aₖ, tᵢ⟩)², "in-modal cyclic": mean (⟨aᵢ, aₖ⟩ − ⟨tᵢ, tₖ⟩)² (CyCLIP);
    - "asymmetry": cross-cyclic over the variance of ⟨aᵢ, tₖ⟩, which is 2 (1 − r) with the correlation r of ⟨aᵢ, tₖ⟩ and
      ⟨aₖ, tᵢ⟩: a narrow range of cosines is not taken for symmetry. 0 where all cosines are the same.

    A single caption that all clips share has uniformity 0 and anisotropy 1. Of two clips there is one pair, whose value
    both have.

    Args:
        audio, text: `(N, d)` L2-normalised, row by row the same clips.

    Raises:
        ValueError: fewer than two clips, or shapes that differ.

    >>> found = space(torch.eye(3), torch.eye(3)[[1, 0, 2]])
    >>> [round(found[name].mean().item(), 3) for name in ("alignment", "gap", "cross-cyclic", "text anisotropy")]
    [1.333, 0.0, 0.0, 0.0]
    """
    check_tensors(audio=audio, text=text)
    if audio.shape != text.shape or audio.ndim != 2 or len(audio) < 2:
        raise ValueError(
            f"audio and text must be (N, d) with at least two clips, got {tuple(audio.shape)} and {tuple(text.shape)}"
        )
    audio, text = audio.double(), text.double()
    apart = audio - text
    centre = apart.mean(dim=0)
    pairs = _over_others(audio, text)
    crossed, size = pairs["cross-cyclic"], pairs["mean"].mean()
    variance = pairs["square"] - 2 * size * pairs["mean"] + size.square()
    return {
        "alignment": apart.square().sum(dim=1),
        "text uniformity": _of_log(pairs["text kernel"]),
        "audio uniformity": _of_log(pairs["audio kernel"]),
        "text anisotropy": _of_pairs(pairs["text cosine"]),
        "audio anisotropy": _of_pairs(pairs["audio cosine"]),
        "gap": apart @ (centre / centre.norm().clamp(min=torch.finfo(centre.dtype).tiny)),
        "cross-cyclic": _of_pairs(crossed),
        "in-modal cyclic": _of_pairs(pairs["in-modal cyclic"]),
        "asymmetry": _of_ratio(crossed, variance),
    }


def space_by_clip(embedded: Embeddings) -> Values:
    """`space` of the test clips and their first captions in the first language."""
    text = embedded.texts(embedded.languages[0])[:, 0]
    return {name: values.numpy() for name, values in space(embedded.audio, text).items()}


def closeness_by_clip(embedded: Embeddings) -> Values:
    """Cosines of the test clips with their first captions ("positive cosine", SupCLAP Figure 4), and beside them the
    mean and the spread of their cosines with all other clips ("negative cosine", "spread of negatives").
    """
    audio = embedded.audio
    cosine = embedded.texts(embedded.languages[0])[:, 0] @ audio.T
    others = cosine[~torch.eye(len(cosine), dtype=torch.bool)].view(len(cosine), -1)
    values = {"positive cosine": cosine.diagonal(), "negative cosine": others.mean(1)}
    values["spread of negatives"] = others.std(1)
    return {name: value.double().numpy() for name, value in values.items()}


def _over_others(audio: Tensor, text: Tensor) -> dict[str, Tensor]:
    """Means over the pairs that hold each clip, `(N,)`; a pair counts once, with ⟨aᵢ, tₖ⟩ and ⟨aₖ, tᵢ⟩ half each."""
    n, blocks = len(audio), []
    for rows in torch.arange(n).split(max(1, PAIRS // n)):
        there, back = audio[rows] @ text.T, text[rows] @ audio.T
        sounds, words = audio[rows] @ audio.T, text[rows] @ text.T
        blocks.append(
            {
                "text kernel": _kernel(words, text, rows),
                "audio kernel": _kernel(sounds, audio, rows),
                "text cosine": words,
                "audio cosine": sounds,
                "cross-cyclic": (there - back).square(),
                "in-modal cyclic": (sounds - words).square(),
                "mean": (there + back) / 2,
                "square": (there.square() + back.square()) / 2,
            }
        )
        for matrix in blocks[-1].values():
            matrix[torch.arange(len(rows)), rows] = 0  # a clip with itself
        blocks[-1] = {name: matrix.sum(dim=1) / (n - 1) for name, matrix in blocks[-1].items()}
    return {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]}


def _kernel(cosine: Tensor, vectors: Tensor, rows: Tensor) -> Tensor:
    """exp(−2 ‖x − y‖²), with the lengths that float32 vectors have rather than 1."""
    lengths = vectors.square().sum(dim=1)
    squared = lengths[rows, None] + lengths[None] - 2 * cosine
    return torch.exp(-T * squared.clamp(min=0))


def _of_pairs(means: Tensor) -> Tensor:
    """Pseudo-values of a mean over pairs, from the means over the pairs of each clip; of two clips, these."""
    n, mean = len(means), means.mean()
    return mean + (2 * (n - 1) / (n - 2) if n > 2 else 0) * (means - mean)


def _of_log(means: Tensor) -> Tensor:
    """log E and its first order in the pseudo-values of E."""
    mean = means.mean()
    return mean.log() + (_of_pairs(means) - mean) / mean


def _of_ratio(over: Tensor, under: Tensor) -> Tensor:
    """E/V and its first order in the pseudo-values of E and V; 0 where V is."""
    mean = under.mean()
    if mean <= FLAT:
        return torch.zeros_like(over)
    ratio = over.mean() / mean
    return ratio + _of_pairs(over - ratio * under) / mean


ABOUT = "Alignment, uniformity, anisotropy, the gap between the modalities, and what the cyclic terms make small."
CARDS = (
    MetricCard(
        name="space",
        make=space_by_clip,
        title="Geometry of both spaces",
        about=ABOUT,
        source="On the Language Encoder of Contrastive Cross-modal Models, §3, §5.2, Figures 1, 2, 4",
        citation="language_encoder",
        needs=("audio", "texts"),
        scores=(
            Score("alignment", "squared distance", "lower"),
            Score("text uniformity", "nats", "lower"),
            Score("audio uniformity", "nats", "lower"),
            Score("text anisotropy", "cosine", "lower"),
            Score("audio anisotropy", "cosine", "lower"),
            Score("gap", "distance"),
            Score("cross-cyclic", "squared cosine", "lower"),
            Score("in-modal cyclic", "squared cosine", "lower"),
            Score("asymmetry", better="lower"),
        ),
    ),
    MetricCard(
        name="closeness",
        make=closeness_by_clip,
        title="Closeness",
        about="Cosines of clips with their first captions, and with those of other clips.",
        source="SupCLAP Figure 4",
        citation="supclap",
        needs=("audio", "texts"),
        scores=(
            Score("positive cosine", better="higher"),
            Score("negative cosine", better="lower"),
            Score("spread of negatives"),
        ),
    ),
)
