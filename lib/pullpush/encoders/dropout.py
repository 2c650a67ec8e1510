"""A frozen text encoder behind dropout: cheap to train on, and two passes of one text differ."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from pullpush.encoders.cards import TEXT, TextEncoderCard
from pullpush.encoders.interface import TextEncoder
from pullpush.errors import unknown


class DropoutText(TextEncoder):
    """The features of a frozen text encoder, some of them set to zero while a model is trained.

    SimCSE needs two views of a text. An encoder whose features are looked up gives one; behind dropout they are two,
    and what learns to bear the difference is the projection that follows. Within an encoder that is trained itself,
    dropout falls on every layer, and every layer learns.

    Args:
        of: name of the text encoder, one whose card says that it is frozen.
        rate: share of a text's features that is left out, 0.1 as in SimCSE; the others grow by 1/(1 − rate).

    Raises:
        UnknownNameError: no such encoder, or one that is not frozen; those that are are named.

    >>> import torch
    >>> text = DropoutText(of="hashed", rate=0.5)
    >>> bool((text(["a frog"]) == text(["a frog"])).all())  # in training
    False
    >>> text = text.eval()
    >>> bool((text(["a frog"]) == text(["a frog"])).all())
    True
    """

    def __init__(self, *, of: str = "use", rate: float = 0.1) -> None:
        super().__init__()
        if not TEXT[of].frozen:
            raise unknown("frozen text encoder", of, (card.name for card in TEXT.values() if card.frozen))
        self.features = TEXT[of].make()
        self.dim = self.features.dim
        self.dropout = nn.Dropout(rate)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts → `(B, dim)`."""
        return self.dropout(self.features(texts, languages))

    def precompute(self, texts: Sequence[str]) -> None:
        """See `TextEncoder`."""
        self.features.precompute(texts)


CARD = TextEncoderCard(
    name="dropout",
    make=DropoutText,
    title="frozen features behind dropout",
    about="Another frozen text encoder, some of whose features are left out while a model is trained, as SimCSE asks.",
    source="ours; after SimCSE",
    licence="that of the encoder",
    weights="those of the encoder",
    languages="those of the encoder",
    probe=lambda: {"of": "hashed"},
)
