"""The temperature τ of a softmax or sigmoid over similarities: one for all terms of a run, fixed or learnable."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from pullpush.checks import check_number, check_temperature
from pullpush.losses.contract import Loss, Output


class _Bounded(torch.autograd.Function):
    """A number, at most a bound; beyond it only gradients that lead back pass, so that momentum does not hold it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, bound: float) -> Tensor:
        return value.clamp(max=bound)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        value, bound = inputs
        ctx.save_for_backward(value)
        ctx.bound = bound

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (value,) = ctx.saved_tensors
        (gradient,) = gradients
        return torch.where((value <= ctx.bound) | (gradient > 0), gradient, 0), None


class Temperature(nn.Module):
    """τ > 0, fixed (exactly the number given) or learnable: then kept as log(1/τ) with 1/τ ≤ `max_scale`, as in CLIP.

    GLAP's published code learns τ as it is, with neither logarithm nor bound: `raw=True`. A step of the optimiser then
    changes 1/τ by much where τ is small, and nothing keeps τ above zero.

    Losses that are summed share one: `Objective` hands the first term's to all that name none of their own.

    Example:
        >>> Temperature(0.1)()
        0.1
        >>> Temperature(0.1, learnable=True)()
        tensor(0.1000, grad_fn=<ExpBackward0>)
        >>> Temperature(0.1, learnable=True, raw=True)()
        Parameter containing:
        tensor(0.1000, requires_grad=True)

    Args:
        tau: where it starts.
        learnable: whether the optimiser moves it.
        max_scale: the largest 1/τ of a learnable one (or where it starts, if that is larger), unless it is raw. No part
            of the state dict: build a module that loads one as that was built.
        raw: whether a learnable one is kept as τ itself.

    Raises:
        ValueError: tau is not positive, or a tensor that learns.
    """

    def __init__(
        self, tau: float = 0.07, *, learnable: bool = False, max_scale: float = 100.0, raw: bool = False
    ) -> None:
        super().__init__()
        if getattr(tau, "requires_grad", False):
            raise ValueError("tau is a number here: let it learn (learnable=True), or give yours with each call, tau=…")
        check_temperature(tau)
        check_number("max_scale", max_scale, above=0)
        self.fixed, self.raw = None if learnable else float(tau), raw
        if learnable and raw:
            self.tau = nn.Parameter(torch.tensor(float(tau)))
        elif learnable:
            log_scale = math.log(1 / tau)
            self.log_scale = nn.Parameter(torch.tensor(log_scale))
            self.max_log_scale = max(math.log(max_scale), log_scale)

    def forward(self) -> float | Tensor:
        """τ in use: a number, or a 0-d tensor that gradients reach."""
        if self.fixed is not None:
            return self.fixed
        if self.raw:
            return self.tau
        return torch.exp(-_Bounded.apply(self.log_scale, self.max_log_scale))


class Tempered(Loss):
    """A loss with a temperature: `temperature`, which may be shared, and its value `tau`.

    Two losses share one that learns by `svr.temperature = infonce.temperature`. Where it belongs to the model, as
    CLIP's `logit_scale`, it comes with the call, which then uses no other: `svr(audio, text, tau=1 / scale)`.

    Example:
        >>> from pullpush.losses import InfoNCE
        >>> infonce = InfoNCE(tau=0.1)
        >>> infonce.tau, infonce(torch.eye(3), torch.eye(3), tau=0.5).value
        (0.1, tensor(0.4791))
    """

    temperature: Temperature
    _given: float | Tensor | None = None  # τ of the call that is going on, if it brought one

    def __init__(
        self, tau: float = 0.07, *, learnable: bool = False, max_scale: float = 100.0, raw_tau: bool = False
    ) -> None:
        super().__init__()
        self.temperature = Temperature(tau, learnable=learnable, max_scale=max_scale, raw=raw_tau)

    def __call__(self, *given: Tensor, tau: float | Tensor | None = None, **named: Tensor | None) -> Output:
        """`Loss.__call__`; tau: for this call in place of its own, a positive number or 0-d."""
        if tau is None:
            return super().__call__(*given, **named)
        check_temperature(tau)
        self.__dict__["_given"] = tau  # not by setattr, which would register a parameter
        try:
            return super().__call__(*given, **named)
        finally:
            del self.__dict__["_given"]

    @property
    def tau(self) -> float | Tensor:
        """The temperature in use, a number or 0-d."""
        return self.temperature() if self._given is None else self._given
