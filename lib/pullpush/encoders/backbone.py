"""Layers with published weights, trained or kept as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class Backbone(nn.Module):
    """Holds layers with published weights; frozen ones are kept out of the module tree, but follow it to its device.

    >>> kept = Backbone(nn.Linear(2, 3), frozen=True)
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
    def model(self) -> nn.Module:
        """The layers."""
        return self.outside[0] if self.frozen else self.inside

    @property
    def device(self) -> torch.device:
        """Where their weights are."""
        return next(self.model.parameters()).device

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Backbone:
        """What `.to`, `.half` and their like call."""
        if self.frozen and recurse:
            self.model._apply(fn)
        return super()._apply(fn, recurse)

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the layers make of the inputs; without gradients where they are frozen."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            return self.model(*inputs, **options)
