"""What encoders with the classes of `transformers` share: fetching, freezing, random weights on demand.

Each takes `model`: a name on the Hugging Face hub or a local folder (pretrained weights, unless `pretrained=False` asks
for random ones in the same architecture), or a configuration (random weights). Only classes that ship with
`transformers` are used: no code is fetched. With `frozen=True` the weights stay as they are, in evaluation mode,
outside the optimiser and outside checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from torch import Tensor, nn

from pullpush.encoders.backbone import Backbone as Backbone
from pullpush.encoders.masks import zero_padding
from pullpush.errors import DataNotFoundError

if TYPE_CHECKING:  # transformers takes seconds to import: only a pretrained encoder pays for it
    from transformers import PretrainedConfig

T = TypeVar("T")


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


def build(architecture: type, model: str | PretrainedConfig, *, pretrained: bool = True, **overrides: Any) -> nn.Module:
    """Pretrained weights for a name, random ones for a configuration, or for a name whose weights are not wanted.

    `overrides` change what the configuration says; those that it does not know go to the architecture.
    """
    if isinstance(model, str) and pretrained:
        return fetch(lambda: architecture.from_pretrained(model, **overrides), model)
    if isinstance(model, str):
        model = fetch(lambda: architecture.config_class.from_pretrained(model), model)
    config: Any = copy.deepcopy(model)
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
