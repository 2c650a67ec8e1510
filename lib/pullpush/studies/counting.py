"""What a forward and a backward pass compute and keep, counted by torch: the same numbers on every machine.

cost(encoder, lambda: encoder(audio))  # Cost(forward=…, both=…, kept=…)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count, sdpa_backward_flop_count, sdpa_flop_count


class Cost(NamedTuple):
    """forward, both: FLOPs of matrix products and convolutions, of the forward pass and of forward and backward; kept:
    bytes that the forward pass keeps for the backward one, beside the weights.
    """

    forward: int
    both: int
    kept: int


def flop_counter() -> FlopCounterMode:
    """torch's counter, with the attention of CPUs, which it does not know, and convolutions in groups, whose backward
    pass it takes for one without groups. 2 FLOPs a multiplication and addition.

    >>> with flop_counter() as flops:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 5)
    >>> flops.get_total_flops()
    60
    """
    return FlopCounterMode(display=False, custom_mapping=CORRECTED)


def _attention_back(gradient: Any, query: Any, key: Any, value: Any, *others: Any, **options: Any) -> int:
    return sdpa_backward_flop_count(gradient, query, key, value)


def _convolution_back(
    gradient: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, wanted: Any, out_shape: Any = None,
) -> int:  # fmt: skip
    each = conv_flop_count(x, weight, gradient, transposed=transposed)  # as forward: by the input, and by the weights
    return each * (bool(wanted[0]) + bool(wanted[1]))


CORRECTED = {
    torch.ops.aten.convolution_backward: _convolution_back,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_back,
}


def cost(module: nn.Module, encode: Callable[[], Tensor]) -> Cost:
    """What one call computes and keeps, as training does it; nothing is kept for weights that are not trained.

    Args:
        module: whose weights the call goes through.
        encode: gives features of any shape; the backward pass starts from their sum.

    >>> layer = nn.Linear(3, 5, bias=False)
    >>> cost(layer, lambda: layer(torch.ones(2, 3)))  # backward: the gradient of the weights alone
    Cost(forward=60, both=120, kept=24)
    """
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:  # views of one storage are kept once
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with flop_counter() as flops:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            features = encode()
        forward = flops.get_total_flops()
        if features.requires_grad:
            features.sum().backward()
    module.zero_grad()
    return Cost(forward, flops.get_total_flops(), sum(kept.values()))
