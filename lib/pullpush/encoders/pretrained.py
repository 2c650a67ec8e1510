"""What encoders with published weights share: layers that are trained or kept as they are, and models of the hub.

Encoders of `transformers`' classes take `model`: a name on the Hugging Face hub, "owner/name" or "owner/name@commit"
for one version of it, or a local folder (pretrained weights, unless `pretrained=False` asks for random ones in the same
architecture), or a configuration (random weights). The models of the cards are pinned to a commit. Only classes that
ship with `transformers` are used: no code is fetched. With `frozen=True` the weights stay as they are, in evaluation
mode, outside the optimiser and outside checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from pullpush.encoders.interface import AudioEncoder
from pullpush.encoders.windows import over_windows
from pullpush.errors import DataNotFoundError

if TYPE_CHECKING:  # transformers takes seconds to import: only a pretrained encoder pays for it
    from transformers import PretrainedConfig, PreTrainedTokenizerBase, PreTrainedTokenizerFast

T = TypeVar("T")


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

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Pretrained:
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
        """`(B, T)` at the encoder's rate, `(B,)` samples → `(B, dim)`."""
        return over_windows(self._encode, audio.to(self.network.device), lengths, self.window)

    def _encode(self, audio: Tensor, lengths: Tensor) -> Tensor:
        """`(M, W)` windows and `(M,)` samples in each → `(M, dim)`."""
        return self.network(audio=audio, lengths=lengths)


def pinned(model: str) -> tuple[str, dict[str, str]]:
    """A hub's or folder's name and what `from_pretrained` is to be told besides: the commit after the `@`, if any.

    >>> pinned("laion/clap-htsat-unfused@8fa0f1c")
    ('laion/clap-htsat-unfused', {'revision': '8fa0f1c'})
    """
    name, _, commit = model.rpartition("@")
    if not name or Path(model).exists():
        return model, {}
    return name, {"revision": commit}


def fetch(load: Callable[[], T], name: str) -> T:
    """Run `load`, which takes `name` from the local cache or the hub.

    Raises:
        DataNotFoundError: the model is in neither; the message says what to do.
    """
    try:
        return load()
    except OSError as error:
        raise DataNotFoundError(
            f"cannot load {name!r} from the local Hugging Face cache or the hub: {str(error).splitlines()[0]} "
            f"Connect to the network once, or copy the model's files to a folder and give its path as the model."
        ) from error


def from_hub(kind: Any, model: str, **options: Any) -> Any:
    """`kind.from_pretrained` of a name on the hub, at its commit, or of a folder; raises as `fetch` does."""
    name, commit = pinned(model)
    return fetch(lambda: kind.from_pretrained(name, **commit, **options), model)


def build(architecture: type, model: str | PretrainedConfig, *, pretrained: bool = True, **overrides: Any) -> Any:
    """Pretrained weights for a name, random ones for a configuration, or for a name whose weights are not wanted.

    `overrides` change what the configuration says; those that it does not know go to the architecture.
    """
    if isinstance(model, str) and pretrained:
        return from_hub(architecture, model, **overrides)
    config: Any = from_hub(architecture.config_class, model) if isinstance(model, str) else copy.deepcopy(model)
    for key in overrides.keys() & config.to_dict().keys():
        setattr(config, key, overrides.pop(key))
    return architecture(config, **overrides)


def front_end(kind: Any, model: str | PretrainedConfig, **settings: Any) -> Any:
    """The feature extractor of a published model; with these settings for a configuration, which has none."""
    return from_hub(kind, model) if isinstance(model, str) else kind(**settings)


def tokenizer_of(
    model: str | PretrainedConfig, tokenizer: PreTrainedTokenizerBase | None = None
) -> PreTrainedTokenizerBase:
    """The tokenizer that is given, or the model's own; ValueError for a configuration, which has none."""
    import transformers

    if tokenizer is None and not isinstance(model, str):
        raise ValueError("a model made from a configuration has no tokenizer: give one as tokenizer=")
    return from_hub(transformers.AutoTokenizer, model) if tokenizer is None else tokenizer


# Of models that are made in a moment, with random weights and without a download: what cards give to probes.
ENDS = ("<s>", "<pad>", "</s>", "<unk>")  # their places are their numbers
WORDS = ("a", "frog", "croaks", "bell", "rings", "dog", "barks", "then", "une", "grenouille", "coasse")
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def tiny_tokenizer(*, languages: Iterable[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer of one token a word of `ENDS`, `WORDS` and `languages`; where there are languages, it puts the code
    in `src_lang` before a text, as NLLB's does, in place of what begins and ends it.

    >>> tiny_tokenizer()("a frog").input_ids
    [0, 4, 5, 2]
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
