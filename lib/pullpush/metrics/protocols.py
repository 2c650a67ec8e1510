"""How other projects' code scores retrieval, from the same embeddings of N clips with C captions each.

Each function does what the file that its docstring names does, in its own way of counting, so that a published figure
can be computed here as it was there. The book's own protocol is `by_clip`; with C = 5 and no equal scores it agrees
with LAION-CLAP, ML-CLAP and GLAP to the last digit, and `trec` with none of them from clips to captions.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from pullpush.checks import check_embeddings
from pullpush.metrics._retrieval import KS, by_clip
from pullpush.precision import in_single

Scores = dict[str, float]
CUT = 10  # of mean average precision, in all of them


def book(audio: Tensor, text: Tensor) -> Scores:
    """`by_clip`: ties against the system, mAP@k over min(k, C)."""
    return {name: values.mean().item() for name, values in by_clip(audio, text, map_at=(CUT,)).items()}


def passes(audio: Tensor, text: Tensor) -> Scores:
    """LAION-CLAP, `training/train.py: evaluate_clotho_audiocaps`: captions in C passes of N, whose means are averaged;
    from a clip the best rank of its captions counts, and mAP@10 is over C."""
    rounds = [_first(_ranks(text[:, number] @ audio.T).diagonal()) for number in range(text.shape[1])]
    asked = {name: sum(scores[name] for scores in rounds) / len(rounds) for name in rounds[0]}
    return _sided(asked, _answered(audio, text))


def pooled(audio: Tensor, text: Tensor) -> Scores:
    """ML-CLAP, `tools/utils.py: t2a, a2t` (as WavCaps), and GLAP, `metrics.py: clap_metrics2`: N·C queries at once."""
    return _sided(_asked(audio, text), _answered(audio, text))


def first_caption(audio: Tensor, text: Tensor) -> Scores:
    """LAION-CLAP's `get_metrics`, for data other than AudioCaps and Clotho: one caption a clip, in both directions."""
    similarity = text[:, 0] @ audio.T
    return _sided(_first(_ranks(similarity).diagonal()), _first(_ranks(similarity.T).diagonal()))


def top_ten(audio: Tensor, text: Tensor) -> Scores:
    """DCASE 2024 and the captions of 2025, `retrieval_module.py`: from captions to clips alone, in the first ten."""
    clips, captions, _ = text.shape
    found = (text.flatten(0, 1) @ audio.T).topk(CUT, dim=1).indices
    hits = (found == torch.arange(clips).repeat_interleave(captions)[:, None]).double()
    precision = hits / torch.arange(1, CUT + 1)
    recall = {f"R@{k}": hits[:, :k].sum(dim=1).mean().item() for k in KS}
    return _sided(recall | {f"mAP@{CUT}": precision.sum(dim=1).mean().item()}, {})


def trec(audio: Tensor, text: Tensor) -> Scores:
    """mteb, by trec_eval: from a clip, recall is the share of its C captions that are found, not whether any is."""
    ranks = _own(audio, text)
    shares = {f"R@{k}": (ranks <= k).double().mean().item() for k in KS}
    return _sided(_asked(audio, text), shares | {f"mAP@{CUT}": _average_precision(ranks)})


def _ranks(similarity: Tensor) -> Tensor:
    """Rank of every item for every query, from 1; ties as the sort leaves them."""
    return similarity.argsort(dim=1, descending=True).argsort(dim=1) + 1


def _own(audio: Tensor, text: Tensor) -> Tensor:
    """Ranks of each clip's own captions among all, sorted, `(N, C)`."""
    clips, captions, _ = text.shape
    columns = torch.arange(clips * captions).view(clips, captions)
    return _ranks(audio @ text.flatten(0, 1).T).gather(1, columns).sort(dim=1).values


def _first(ranks: Tensor) -> Scores:
    """Of the rank of the one right item, `(Q,)`."""
    recall = {f"R@{k}": (ranks <= k).double().mean().item() for k in KS}
    return recall | {f"mAP@{CUT}": torch.where(ranks <= CUT, 1 / ranks.double(), 0).mean().item()}


def _asked(audio: Tensor, text: Tensor) -> Scores:
    """From captions, all N·C at once: the rank of the clip of each."""
    clips, captions, _ = text.shape
    place = torch.arange(clips).repeat_interleave(captions)
    return _first(_ranks(text.flatten(0, 1) @ audio.T).gather(1, place[:, None])[:, 0])


def _answered(audio: Tensor, text: Tensor) -> Scores:
    """From clips: the best rank of a clip's captions, and the precision at each of them over their number."""
    ranks = _own(audio, text)
    return {**_first(ranks[:, 0]), f"mAP@{CUT}": _average_precision(ranks)}


def _average_precision(ranks: Tensor) -> float:
    """Of sorted ranks `(Q, R)`: the sum of found / rank over the first ten, divided by R."""
    found = torch.arange(1, ranks.shape[1] + 1)
    return torch.where(ranks <= CUT, found / ranks.double(), 0).mean().item()


def _sided(asked: Scores, answered: Scores) -> Scores:
    sides = (("T2A", asked), ("A2T", answered))
    return {f"{side} {name}": value for side, scores in sides for name, value in scores.items()}


# By title what a project's code makes of `(N, d)` clips and `(N, C, d)` captions, both L2-normalised.
PROTOCOLS: Mapping[str, Callable[[Tensor, Tensor], Scores]] = {
    "Pull & Push": book,
    "LAION-CLAP": passes,
    "LAION-CLAP, first caption": first_caption,
    "ML-CLAP, WavCaps, GLAP": pooled,
    "DCASE, captions": top_ten,
    "mteb": trec,
}


@in_single
def scored(audio: Tensor, text: Tensor) -> dict[str, Scores]:
    """One embedding by every protocol: title → "T2A R@1" … "A2T mAP@10", fractions; what it has not is left out.

    Args:
        audio: `(N, d)` L2-normalised clip embeddings, N ≥ 10.
        text: `(N, C, d)` L2-normalised caption embeddings.

    Raises:
        ValueError: shapes that do not match.

    >>> clips = torch.eye(10)
    >>> scores = scored(clips, clips[:, None].repeat(1, 5, 1))
    >>> scores["ML-CLAP, WavCaps, GLAP"]["A2T R@1"], scores["mteb"]["A2T R@1"]
    (1.0, 0.2)
    """
    check_embeddings(audio=audio, text=text)
    if audio.ndim != 2 or text.ndim != 3 or len(text) != len(audio) or len(audio) < CUT:
        raise ValueError(
            f"give audio (N, d) and text (N, C, d) of {CUT} clips at least, got {tuple(audio.shape)} and "
            f"{tuple(text.shape)}"
        )
    audio, text = audio.cpu(), text.cpu()
    return {title: score(audio, text) for title, score in PROTOCOLS.items()}
