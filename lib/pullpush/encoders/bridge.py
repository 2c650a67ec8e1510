"""A bridge from texts to sounds that nobody trained: by the names of the classes that a tagger knows.

    reader, tagger = TEXT["use"].make(), YAMNet(frozen=True)
    scores = class_scores(world.split("events"), tagger)                     # (N, 521), once
    similarity = bridge(unit(reader(texts)), unit(reader(class_names())), scores)  # (Q, N), for metrics.retrieval

A query says by its meaning which classes it is about; the tagger says in which clips they are heard. It finds events
that no training has named, which is what projections that were trained on other events are compared with.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from tqdm.auto import tqdm

from pullpush.data.clips import Clips
from pullpush.encoders.checks import check_audio
from pullpush.encoders.yamnet import YAMNet
from pullpush.parallel import in_threads
from pullpush.progress import hidden

TAU = 0.05  # of the choice of classes, and
FLOOR = 0.001  # of their scores: both chosen on validation scenes of named events
BLOCK = 32  # clips heard at once


def bridge(queries: Tensor, classes: Tensor, scores: Tensor, *, tau: float = TAU, floor: float = FLOOR) -> Tensor:
    """How well each clip fits each query: Σ_c q(c) · log(p(c) + floor), q the softmax of cos(query, name of c) / τ.

    It is the cross-entropy between the classes that a query means and those that are heard, with its sign turned.

    Args:
        queries: `(Q, d)` L2-normalised sentence embeddings.
        classes: `(C, d)`, of the names of the classes by the same encoder.
        scores: `(N, C)` in [0, 1], how surely each class is heard in each clip.
        tau: how many classes a query means: the fewer, the lower.
        floor: below it a class is not heard.

    Returns:
        `(Q, N)`, higher for clips that fit better.

    Raises:
        ValueError: shapes that do not match.

    >>> bridge(torch.eye(2), torch.eye(2), torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.1, 0.1]])).argmax(dim=1)
    tensor([0, 1])
    """
    if queries.shape[1:] != classes.shape[1:] or scores.shape[1:] != classes.shape[:1]:
        raise ValueError(
            "expected queries (Q, d), classes (C, d) and scores (N, C), got "
            f"{tuple(queries.shape)}, {tuple(classes.shape)} and {tuple(scores.shape)}"
        )
    return (queries @ classes.T / tau).softmax(dim=1) @ (scores + floor).log().T


def class_scores(clips: Clips, tagger: YAMNet, *, progress: bool | None = None) -> Tensor:
    """What a tagger hears in each clip, `(N, C)` in [0, 1] on the CPU; see `YAMNet.tag`.

    >>> from pullpush.data.world import WorldConfig, load_world
    >>> world = load_world(WorldConfig("synthetic", n_train=2, n_valid=2, n_test=2, n_single_per_event=1))
    >>> class_scores(world.test, YAMNet(pretrained=False)).shape
    torch.Size([2, 521])
    """
    device = tagger.classifier.device

    def block(start: int) -> Tensor:
        audio, lengths = check_audio(*clips.audio(slice(start, start + BLOCK), sample_rate=tagger.sample_rate))
        scores = tagger.tag(audio.to(device), lengths.to(device)).cpu()
        bar.update(len(scores))
        return scores

    with tqdm(total=len(clips), desc=f"tagging {clips.name}", unit="clip", disable=hidden(progress)) as bar:
        jobs = None if device.type == "cpu" else 1
        return torch.cat(in_threads([partial(block, start) for start in range(0, len(clips), BLOCK)], jobs=jobs))
