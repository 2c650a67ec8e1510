"""What probes of encoders share: inputs that are the same on every machine, and numbers for what came out."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from pullpush.encoders.interface import EncoderCard
from pullpush.golden import GoldenError

PLAIN = (str, int, float, type(None), tuple, list, Mapping)
SAMPLES, VIEWS = 32, 4  # numbers that stand for a tensor: some of its own, and sums of all
STATES = {"frozen": True, "trainable": "upper"}  # options that say what is trained


class Dice(TorchDispatchMode):
    """Dropout that draws the same everywhere: torch's own masks differ between processors' libraries.

    >>> with Dice():
    ...     dropped = nn.functional.dropout(torch.ones(4), 0.5)
    >>> sorted({*dropped.tolist()} | {0.0, 2.0})
    [0.0, 2.0]
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Bernoulli numbers by way of uniform ones; all else as it is."""
        if func is torch.ops.aten.bernoulli_.float:
            place, share = args[0], args[1] if len(args) > 1 else 0.5
            return place.copy_(torch.rand(place.shape) < share)
        return func(*args, **(kwargs or {}))


def noise(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, float32."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def clips(rate: int, *seconds: float) -> tuple[Tensor, Tensor]:
    """Noise whose level swells, `(B, T)`, and `(B,)` samples in each clip; what lies beyond must not matter.

    >>> clips(10, 0.5, 0.3)[0].shape, clips(10, 0.5, 0.3)[1]
    (torch.Size([2, 5]), tensor([5, 3]))
    """
    lengths = torch.tensor([round(each * rate) for each in seconds])
    level = 0.05 + 0.1 * torch.sin(torch.linspace(0, 7, int(lengths.max()))).abs()
    return noise(len(seconds), int(lengths.max())) * level, lengths


def thinned(x: Tensor) -> Tensor:
    """A few numbers for a tensor: some that lie evenly in it, and sums of all, each weighed otherwise.

    >>> thinned(torch.arange(3.0))[:3]
    tensor([0., 1., 2.], dtype=torch.float64)
    """
    x = x.detach().double().flatten()
    places = torch.linspace(0, len(x) - 1, min(len(x), SAMPLES)).round().long()
    angle = torch.arange(len(x), dtype=torch.float64)
    sums = [(x * torch.cos((1 + view) * math.sqrt(2 + view) * angle)).sum() for view in range(VIEWS)]
    return torch.cat([x[places], torch.stack(sums) / math.sqrt(max(1, len(x)))])


def trained(module: nn.Module, call: Callable[[], Tensor]) -> dict[str, Any]:
    """What training sees: what comes out in training mode, how much is trained, and the size of each gradient."""
    module.train()
    torch.manual_seed(1)
    with Dice():
        out = call()
    found: dict[str, Any] = {"training": thinned(out), "weights": count(module)}
    if out.requires_grad:
        (out * noise(*out.shape, seed=1)).sum().backward()
        gradients = [weight.grad for weight in module.parameters() if weight.grad is not None]
        found["gradients"] = [gradient.double().norm() for gradient in gradients]
        module.zero_grad()
    module.eval()
    return found


def count(module: nn.Module) -> int:
    """Numbers that are trained."""
    return sum(weight.numel() for weight in module.parameters() if weight.requires_grad)


def probed(card: EncoderCard, make: Callable[..., nn.Module], call: Callable[[Any], Tensor]) -> dict[str, Any]:
    """What an encoder gives, built small as its card says: in training, in evaluation, and where less is trained.

    Raises:
        GoldenError: it cannot be built or called; the message says what to do.
    """
    takes = inspect.signature(card.make).parameters
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # transformers' own, about what it calls itself
            encoder = make(card.name, **card.small)
            found = {"dim": encoder.dim, **trained(encoder, lambda: call(encoder))}
            with torch.no_grad():
                found["features"] = thinned(call(encoder))
                for option in STATES.keys() & takes.keys():
                    partly = make(card.name, **{**card.small, option: STATES[option]}).eval()
                    found |= {f"{option}.features": thinned(call(partly)), f"{option}.weights": count(partly)}
    except Exception as error:  # of whatever kind a reader's encoder raises
        raise GoldenError(
            f"the encoder {card.name!r} cannot be probed ({type(error).__name__}: {error}): let `probe` on its card "
            "give options with which it is built and run in a moment, with random weights and without a network"
        ) from error
    if card.wheel is not None:
        found["published"] = card.wheel.tensors
    return found | {"usual": usual(card.make, card.small)}


def usual(make: Callable[..., Any], names: Collection[str]) -> dict[str, str]:
    """What options are where nobody says, of those that a probe sets otherwise: it would not show that they change.

    >>> usual(round, ("ndigits",))
    {'ndigits': 'None'}
    """
    takes = inspect.signature(make).parameters
    defaults = {name: takes[name].default for name in sorted(names) if name in takes}
    return {name: repr(value) if isinstance(value, PLAIN) else "" for name, value in defaults.items()}
