"""Small transformers over the bytes or the words of a text, trained from scratch: all is to be learnt."""

import zlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from pullpush.data.language.vocabulary import words
from pullpush.encoders.attention import sinusoids, transformer_layers
from pullpush.encoders.interface import TextEncoder, TextEncoderCard
from pullpush.encoders.windows import length_mask, masked_mean

BYTES = 256


class ByteTransformer(TextEncoder):
    """A small transformer over UTF-8 bytes, trained from scratch: every language, no vocabulary.

    Two bytes that follow each other share a place (a convolution of width 3 and stride 2), which halves the sequence.
    width: of a place's vector, and of the features; max_bytes: longer texts are cut; 384 are 128 Chinese characters.
    """

    def __init__(
        self, *, width: int = 128, layers: int = 3, heads: int = 4, dropout: float = 0.0, max_bytes: int = 384
    ) -> None:
        super().__init__()
        self.dim, self.max_bytes = width, max_bytes
        self.embed = nn.Embedding(BYTES, width)
        self.shorten = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.layers = transformer_layers(width, layers, heads, dropout)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        codes, lengths = encode_bytes(texts, self.max_bytes)
        codes, lengths = codes.to(self.embed.weight.device), lengths.to(self.embed.weight.device)
        x = self.embed(codes).masked_fill(~length_mask(lengths, codes.shape[1])[:, :, None], 0.0)
        x = F.gelu(self.shorten(x.mT)).mT
        mask = length_mask((lengths + 1) // 2, x.shape[1])
        x = x + sinusoids(x.shape[1], self.dim, x.device)
        return masked_mean(self.layers(x, src_key_padding_mask=~mask).mT, mask)


def encode_bytes(texts: Sequence[str], max_bytes: int) -> tuple[Tensor, Tensor]:
    """UTF-8 bytes of each text, at least one: `(B, longest)` int64 padded with zeros, and `(B,)` lengths.

    >>> encode_bytes(["ab", ""], 8)
    (tensor([[97, 98],
            [32,  0]]), tensor([2, 1]))
    """
    rows = [torch.tensor(list(text.encode("utf-8", "surrogatepass")[:max_bytes] or b" ")) for text in texts]
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows])


class WordTransformer(TextEncoder):
    """A small transformer over the words of a text, in lower case and without punctuation; mean over its words.

    A word's vector is one of `slots`, found by a hash of the word, so that no vocabulary has to be made first; with a
    few hundred or thousand different words hardly two share one. Dropout is on while it is trained, as SimCSE needs it:
    0.1 in On the Language Encoder (Tables 8 and 9). max_words: longer texts are cut.
    """

    def __init__(
        self,
        *,
        width: int = 128,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.1,
        slots: int = 8192,
        max_words: int = 64,
    ) -> None:
        super().__init__()
        self.dim, self.slots, self.max_words = width, slots, max_words
        self.embed = nn.Embedding(slots, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = transformer_layers(width, layers, heads, dropout)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """B texts → `(B, dim)`; the languages are not needed. A text without words counts as one empty word."""
        raw = [[word.encode("utf-8", "surrogatepass") for word in words(text)] or [b""] for text in texts]
        rows = [torch.tensor([zlib.crc32(word) % self.slots for word in each[: self.max_words]]) for each in raw]
        lengths = torch.tensor([len(row) for row in rows], device=self.embed.weight.device)
        x = self.embed(pad_sequence(rows, batch_first=True).to(lengths.device))
        x = self.dropout(x + sinusoids(x.shape[1], self.dim, x.device))
        mask = length_mask(lengths, x.shape[1])
        return masked_mean(self.layers(x, src_key_padding_mask=~mask).mT, mask)


CARDS = (
    TextEncoderCard(
        name="transformer",
        make=ByteTransformer,
        title="byte transformer",
        about="Self-attention over UTF-8 bytes: every language, no vocabulary.",
        source="ours; trained from scratch",
        licence="MIT",
        probe=lambda: {"width": 16, "layers": 2, "heads": 2, "dropout": 0.1},
    ),
    TextEncoderCard(
        name="words",
        make=WordTransformer,
        title="word transformer",
        about="Self-attention over the words of a text, with dropout, trained from scratch.",
        source="ours; trained from scratch",
        licence="MIT",
        probe=lambda: {"width": 16, "slots": 64},
    ),
)
