"""Topics as an auxiliary task: both encoders name the cluster of the caption (Soft-Label Distillation §2.3, Eq. 10)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.checks import check_shapes
from pullpush.losses.contract import Loss, LossCard, Output
from pullpush.precision import checked

NONE = -1  # the cluster of a clip whose caption belongs to no topic
WIDER = 3  # the hidden layer, as a multiple of the input


def clusters(audio_logits: Tensor, text_logits: Tensor, labels: Tensor) -> Tensor:
    """L_cls^a + L_cls^c: cross-entropy of the topics that are read from the clips, and from their captions (Eq. 10).

    Scale: both modalities are averaged, each a mean over the clips that have a topic.

    Args:
        audio_logits: `(N, K)` floating point, of K topics, read from the clips.
        text_logits: `(N, K)`, read from their captions.
        labels: `(N,)` int64, the topic of each clip's caption; −1: none, which is left out.

    Returns:
        0-d tensor, float32 at least, each half the mean over clips with a topic. Zero, with its gradient, for none.

    Raises:
        ValueError: wrong shapes, or a label that is no topic.
        TypeError: logits that are not floating point, or labels that are not int64.

    Example:
        >>> sure = 4 * torch.eye(3)
        >>> clusters(sure, sure, torch.tensor([0, 1, -1]))
        tensor(0.0720)
    """
    check_shapes(audio_logits=audio_logits, clusters=labels)
    topics = audio_logits.shape[1]
    if bool(((labels < NONE) | (labels >= topics)).any()):
        low, high = int(labels.min()), int(labels.max())
        raise ValueError(
            f"clusters must be 0 … {topics - 1} for {topics} topics, or {NONE} for none, got {low} … {high}: "
            "give the heads as many topics as the clips have"
        )
    with checked(audio_logits=audio_logits, text_logits=text_logits) as both:
        count = (labels != NONE).sum().clamp(min=1)
        sums = [F.cross_entropy(logits, labels, ignore_index=NONE, reduction="sum") for logits in both]
        return torch.stack(sums).sum() / count


class ClusterHeads(Loss):
    """`clusters` read by a head on each encoder's output: Linear(d, 3d), ReLU, Linear(3d, K), beside a loss, λ₂ = 0.05.

    The topics of the clips' captions come in their column "clusters". The heads are needed in training only. Both see
    unit vectors, scaled by √d to a unit variance a dimension, without which their outputs would be nearly constant at
    first.

    Args:
        topics: K, at least 2.
        dim: d of the joint space.

    Raises:
        ValueError: a single topic, which has nothing to tell apart; embeddings of another width.

    Example:
        >>> heads = ClusterHeads(topics=3, dim=4)
        >>> heads(torch.eye(4), torch.eye(4), torch.tensor([-1, -1, -1, -1])).value.item()
        0.0
        >>> [tuple(layer.weight.shape) for layer in heads.audio if hasattr(layer, "weight")]
        [(12, 4), (3, 12)]
    """

    needs = ("audio", "text", "clusters")

    def __init__(self, topics: int, dim: int) -> None:
        super().__init__()
        if topics < 2:
            raise ValueError(f"topics must be at least 2, got {topics}: one topic has nothing to tell apart")
        if dim < 1:
            raise ValueError(f"dim must be at least 1, the width of the joint space, got {dim}")
        self.topics, self.dim = topics, dim
        self.audio, self.text = (
            nn.Sequential(nn.Linear(dim, WIDER * dim), nn.ReLU(), nn.Linear(WIDER * dim, topics)) for _ in range(2)
        )

    def forward(self, audio: Tensor, text: Tensor, clusters: Tensor) -> Output:
        """`(N, d)`, `(N, d)`, `(N,)` → the loss, and how many captions have a topic (share) and are named right."""
        if audio.shape[1] != self.dim:
            raise ValueError(
                f"heads of dim={self.dim} got embeddings of {audio.shape[1]} dimensions: "
                f'give the recipe **{{"clusters.dim": {audio.shape[1]}}}'
            )
        wide = next(self.parameters()).dtype
        read = (self.audio(self.dim**0.5 * audio.to(wide)), self.text(self.dim**0.5 * text.to(wide)))
        value = _clusters(*read, clusters)
        has = clusters != NONE
        right = torch.stack([(each.argmax(dim=1) == clusters)[has].float().sum() for each in read]).detach()
        named = right / has.sum().clamp(min=1)
        report = {"topic of audio": named[0], "topic of text": named[1], "clips with a topic": has.float().mean()}
        return Output(value, report)


_clusters = clusters  # the argument of `forward` has the name of the function

CARD = LossCard(
    name="clusters",
    make=ClusterHeads,
    title="Clusters",
    about="A head on each encoder names the topic of the clip's caption, to be added to a loss.",
    source="Soft-Label Distillation §2.3, Eq. 10",
    citation="distill_cluster",
)
