"""A bridge from texts to sounds that nobody trained: by the names of the classes that a tagger knows.

    model = Bridge(YAMNet(frozen=True), class_names(), TEXT["use"].make())
    audio, texts = embed(model, world.split("events"), caption="all")  # training.evaluate: as any model

A query says by its meaning which classes it is about; the tagger says in which clips they are heard. So it finds events
that no training has named, which is what projections that were trained on other events are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.encoders.checks import check_audio, check_texts
from pullpush.encoders.interface import Model, TextEncoder
from pullpush.encoders.yamnet import YAMNet

SOFTNESS = 0.08  # chosen on validation scenes of named events, for USE and MiniLM


class Bridge(Model):
    """Clips and texts as points of the space of a tagger's classes; nothing in it is trained.

    A text is a weight for each class, w(q) = softmax of cos(q, name of c) / T to a sentence encoder; a clip is √p, the
    square roots of the classes' scores in it, so that a sound that is heard faintly counts beside a loud one. Both are
    of unit length.

    Args:
        ears: the tagger.
        names: of its classes.
        reader: the sentence encoder.
        softness: T: the higher, the more classes a text is about.

    >>> from pullpush.encoders import TEXT
    >>> model = Bridge(YAMNet(pretrained=False), [f"class {n}" for n in range(521)], TEXT["hashed"].make())
    >>> model.encode_audio(torch.zeros(1, 16_000)).shape, model.encode_text(["a cow", "a bell"]).shape
    (torch.Size([1, 521]), torch.Size([2, 521]))
    """

    def __init__(self, ears: YAMNet, names: Sequence[str], reader: TextEncoder, *, softness: float = SOFTNESS) -> None:
        super().__init__()
        self.ears, self.reader, self.names, self.softness = ears, reader, tuple(names), softness
        with torch.no_grad():
            self.register_buffer("classes", F.normalize(reader(self.names).float(), dim=1))

    @property
    def sample_rate(self) -> int | None:
        """The tagger's."""
        return self.ears.sample_rate

    def weights(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """w(q): how much each class counts for each text, `(B, C)`, rows that sum to 1."""
        similarity = F.normalize(self.reader(check_texts(texts), languages).float(), dim=1) @ self.classes.T
        return (similarity / self.softness).softmax(dim=1)

    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """See `Model`."""
        return F.normalize(self.weights(texts, languages), dim=1)

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """See `Model`."""
        audio, lengths = check_audio(audio, lengths)
        return F.normalize(self.ears.tag(audio.to(self.classes.device), lengths.to(self.classes.device)).sqrt(), dim=1)
