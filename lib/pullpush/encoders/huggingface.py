"""What encoders with the classes of `transformers` share: fetching, freezing, random weights on demand.

Each takes `model`: a name on the Hugging Face hub, "owner/name" or "owner/name@commit" for one version of it, or a
local folder (pretrained weights, unless `pretrained=False` asks for random ones in the same architecture), or a
configuration (random weights). The models of the cards are pinned to a commit. Only classes that ship with
`transformers` are used: no code is fetched. With `frozen=True` the weights stay as they are, in evaluation mode,
outside the optimiser and outside checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, nn

from pullpush.encoders.backbone import Backbone as Backbone
from pullpush.encoders.masks import zero_padding
from pullpush.errors import DataNotFoundError

if TYPE_CHECKING:  # transformers takes seconds to import: only a pretrained encoder pays for it
    from transformers import PretrainedConfig

T = TypeVar("T")


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


def build(architecture: type, model: str | PretrainedConfig, *, pretrained: bool = True, **overrides: Any) -> nn.Module:
    """Pretrained weights for a name, random ones for a configuration, or for a name whose weights are not wanted.

    `overrides` change what the configuration says; those that it does not know go to the architecture.
    """
    if isinstance(model, str) and pretrained:
        return from_hub(architecture, model, **overrides)
    config: Any = from_hub(architecture.config_class, model) if isinstance(model, str) else copy.deepcopy(model)
    for key in overrides.keys() & config.to_dict().keys():
        setattr(config, key, overrides.pop(key))
    return architecture(config, **overrides)


def split_rows(audio: Tensor, lengths: Tensor | None) -> list[Tensor]:
    """`(B, T)`, `(B,)` → B clips `(lengths[i],)`.

    >>> import torch
    >>> split_rows(torch.ones(2, 3), torch.tensor([1, 2]))
    [tensor([1.]), tensor([1., 1.])]
    """
    audio, lengths = zero_padding(audio, lengths)
    return [row[:length] for row, length in zip(audio, lengths.tolist(), strict=True)]


def by_length(encode: Callable[[list[Tensor]], Tensor], clips: list[Tensor]) -> Tensor:
    """Features `(B, dim)` of clips `(T,)`, encoded together with those of their own length alone.

    For networks in which padding would leak: a clip's features are those that it has alone.

    >>> by_length(lambda same: torch.stack(same).sum(1, keepdim=True), [torch.ones(3), torch.ones(1), torch.ones(3)])
    tensor([[3.],
            [1.],
            [3.]])
    """
    sizes = [len(clip) for clip in clips]
    places = [[i for i, size in enumerate(sizes) if size == wanted] for wanted in dict.fromkeys(sizes)]
    features = torch.cat([encode([clips[i] for i in group]) for group in places])
    order = torch.tensor([i for group in places for i in group], device=features.device)
    return features[order.argsort()]
