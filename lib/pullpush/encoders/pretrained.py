"""What encoders with published weights share: layers that are trained or kept as they are, and models of the hub.

Encoders of `transformers`' classes take `model`: a name on the Hugging Face hub, "owner/name" or "owner/name@commit"
for one version of it, or a local folder (pretrained weights, unless `pretrained=False` asks for random ones in the same
architecture), or a configuration (random weights). The models of the cards are pinned to a commit. Only classes that
ship with `transformers` are used: no code is fetched. With `frozen=True` the weights stay as they are, in evaluation
mode, outside the optimiser and outside checkpoints.
"""

import copy
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pullpush.catalogue import Card, Catalogue
from pullpush.encoders.dual import normalise
from pullpush.encoders.interface import SAMPLE_RATE, AudioEncoder, Model
from pullpush.encoders.wheels import fetch, pinned
from pullpush.encoders.windows import check_audio, check_texts, over_windows
from pullpush.errors import check_all_known

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase, PreTrainedTokenizerFast


class Pretrained(nn.Module):
    """Holds layers with published weights; frozen ones are kept out of the module tree, but follow it to its device.

    >>> kept = Pretrained(nn.Linear(2, 3), frozen=True)
    >>> kept(torch.zeros(1, 2)).shape, list(kept.parameters()), kept.state_dict()
    (torch.Size([1, 3]), [], OrderedDict())
    """

    def __init__(self, model: nn.Module, *, frozen: bool) -> None:
        super().__init__()
        self.frozen = frozen
        if frozen:
            # In a tuple it is no submodule: neither trained, nor saved, nor put into training mode.
            self.outside = (model.eval().requires_grad_(False),)
        else:
            self.inside = model.train()

    @property
    def model(self) -> Any:
        """The layers."""
        return self.outside[0] if self.frozen else self.inside

    @property
    def device(self) -> torch.device:
        """Where their weights are."""
        return next(self.model.parameters()).device

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Pretrained":
        """What `.to`, `.half` and their like call."""
        if self.frozen and recurse:
            self.model._apply(fn)
        return super()._apply(fn, recurse)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the layers make of the inputs; without gradients where they are frozen."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            return self.model(*inputs, **options)


class WindowedEncoder(AudioEncoder):
    """A published network on windows of its own length; of longer clips the features of windows are averaged.

    A subclass sets `network`, which takes `audio` and `lengths` unless it gives `_encode`, and `window`, in samples.
    """

    network: Pretrained
    window: int

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        return over_windows(self._encode, audio.to(self.network.device), lengths, self.window)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        """`(M, W)` windows and `(M,)` samples in each → `(M, dim)`."""
        return self.network(audio=audio, lengths=lengths)


def from_hub(kind: Any, model: str, **options: Any) -> Any:
    """`kind.from_pretrained` of a name on the hub, at its commit, or of a folder; raises as `fetch` does."""
    name, commit = pinned(model)
    return fetch(lambda: kind.from_pretrained(name, **commit, **options), model)


def build(architecture: type, model: "str | PretrainedConfig", *, pretrained: bool = True, **overrides: Any) -> Any:
    """Pretrained weights for a name, random ones for a configuration, or for a name whose weights are not wanted.

    `overrides` change what the configuration says; those that it does not know go to the architecture.
    """
    if isinstance(model, str) and pretrained:
        return from_hub(architecture, model, **overrides)
    config: Any = from_hub(architecture.config_class, model) if isinstance(model, str) else copy.deepcopy(model)
    for key in overrides.keys() & config.to_dict().keys():
        setattr(config, key, overrides.pop(key))
    return architecture(config, **overrides)


def front_end(kind: Any, model: "str | PretrainedConfig", **settings: Any) -> Any:
    """The feature extractor of a published model; with these settings for a configuration, which has none."""
    return from_hub(kind, model) if isinstance(model, str) else kind(**settings)


def tokenizer_of(
    model: "str | PretrainedConfig", tokenizer: "PreTrainedTokenizerBase | None" = None
) -> "PreTrainedTokenizerBase":
    """The tokenizer that is given, or the model's own; ValueError for a configuration, which has none."""
    import transformers

    if tokenizer is None and not isinstance(model, str):
        raise ValueError("a model made from a configuration has no tokenizer: give one as tokenizer=")
    return from_hub(transformers.AutoTokenizer, model) if tokenizer is None else tokenizer


# Of models that are made in a moment, with random weights and without a download: what cards give to probes.
ENDS = ("<s>", "<pad>", "</s>", "<unk>")  # their places are their numbers
WORDS = ("a", "frog", "croaks", "bell", "rings", "dog", "barks", "then", "une", "grenouille", "coasse")
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def tiny_tokenizer(*, languages: Iterable[str] = ()) -> "PreTrainedTokenizerFast":
    """A tokenizer of one token a word of `ENDS`, `WORDS` and `languages`; where there are languages, it puts the code
    in `src_lang` before a text, as NLLB's does, in place of what begins and ends it.
    """
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    class Marking(transformers.PreTrainedTokenizerFast):
        src_lang = ""

        def __call__(self, text: Any, **options: Any) -> Any:
            return super().__call__(f"{self.src_lang} {text}", **options)

    codes = sorted(languages)
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate((*ENDS, *WORDS, *codes))}, unk_token=ENDS[3]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit() if codes else pre_tokenizers.Whitespace()
    if not codes:
        ends = [(ENDS[0], 0), (ENDS[2], 2)]
        words.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    kind = Marking if codes else transformers.PreTrainedTokenizerFast
    return kind(tokenizer_object=words, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


class PublishedModel(Model):
    """A published model; a file of a model gives `_windows` and `_texts`.

    Args:
        network: what holds all weights; it stays in evaluation mode, without gradients.
        tau: τ of its softmax or sigmoid, 1 over the scale of its logits.
        bias: added to its logits, which are s/τ + bias.
        sample_rate: in Hz, of the audio that it takes.
        longest: samples in its window, None for whole clips. Of a longer clip the embeddings of windows are averaged.
    """

    tokenizer: Any

    def __init__(
        self,
        network: nn.Module,
        *,
        tau: float,
        bias: float = 0.0,
        sample_rate: int = SAMPLE_RATE,
        longest: int | None = None,
    ) -> None:
        super().__init__()
        self.pretrained = Pretrained(network, frozen=True)
        self.tau, self.bias, self.longest = tau, bias, longest
        self.sample_rate = sample_rate

    @property
    def network(self) -> Any:
        """What holds all weights."""
        return self.pretrained.model

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.pretrained.device

    @torch.no_grad()
    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Clips to embeddings; see `Model`.

        Raises:
            AudioError: wrong shape or dtype, lengths outside 1 … T, or samples that are not finite.
        """
        audio, lengths = check_audio(audio, lengths)
        longest = audio.shape[1] if self.longest is None else self.longest
        return normalise(over_windows(self._windows, audio.to(self.device), lengths.to(self.device), longest))

    @torch.no_grad()
    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        """Texts to embeddings; see `Model`.

        Raises:
            TypeError, ValueError: not a list of at least one string.
        """
        return normalise(self._texts(check_texts(texts, languages), languages))

    def _tokens(self, texts: list[str], longest: int) -> dict[str, Tensor]:
        """Texts cut to so many tokens, as `transformers` takes them; where `tokenizer` is set."""
        batch = self.tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        return {name: batch[name].to(self.device) for name in ("input_ids", "attention_mask")}

    @abstractmethod
    def _windows(self, audio: Tensor, lengths: Tensor) -> Tensor:
        """`(M, W)` windows and `(M,)` samples in each → `(M, d)`."""

    @abstractmethod
    def _texts(self, texts: list[str], languages: Sequence[str] | None) -> Tensor:
        """Texts → `(B, d)`."""


@dataclass(frozen=True, kw_only=True)
class ModelCard(Card):
    """A whole published model. `make` takes `model` and gives a `PublishedModel`.

    licence, weights: as for encoders; remote: its code is the publisher's, and runs only where the reader asks for it
    by `trust_remote_code=True`; sample_rate: in Hz; languages: of its texts, in words; probe: gives options of `make`
    for a model with random weights that is made in a moment, by which its golden file knows it, where there are such.
    """

    licence: str
    weights: str
    remote: bool = False
    sample_rate: int = SAMPLE_RATE
    languages: str = "eng"
    probe: Callable[[], Mapping[str, Any]] | None = None


MODELS: Catalogue[ModelCard] = Catalogue("pullpush.encoders", ModelCard, "published model")


def open_model(name: str, **options: Any) -> PublishedModel:
    """A whole published model, "name" or "name:weights".

    Args:
        name: of a card in `MODELS`; after a colon a name on the hub or a folder, to take instead of the card's.
        options: of the model, such as `trust_remote_code`.

    Raises:
        UnknownNameError: no such model or option.
        DataNotFoundError: its weights are not to be had.
    """
    kind, _, weights = name.partition(":")
    make = MODELS[kind].make
    check_all_known(f"option of {kind}", options, inspect.signature(make).parameters)
    return make(**({"model": weights} if weights else {}), **options)
