"""Batch normalisation of two processes is that of one, masked frames left out, to rounding in double precision."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from processes import of_two
from torch import nn

from pullpush.encoders.cnn import CNN
from pullpush.training.distributed import gather
from pullpush.training.statistics import of_the_whole_batch

SHARES = (slice(0, 2), slice(2, 5))
LENGTHS = torch.tensor([4000, 2500, 4000, 3000, 1200])


def clips() -> torch.Tensor:
    noise = torch.randn(5, 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return noise * (torch.arange(4000) < LENGTHS[:, None])


def network(momentum: float | None = 0.1) -> CNN:
    torch.manual_seed(0)
    made = CNN(channels=(4, 8)).double().train()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.momentum = momentum
    return made


def trained(model: CNN, share: slice, processes: int = 1) -> list[torch.Tensor]:
    """What comes out of a forward and a backward pass: embeddings, gradients, running statistics."""
    out = gather(model(clips()[share], LENGTHS[share]))
    (out @ out.T).sin().sum().backward()
    gradients = [parameter.grad / processes for parameter in model.parameters()]
    if processes > 1:
        for gradient in gradients:
            dist.all_reduce(gradient)
    return [out.detach(), *gradients, *(value.double() for value in model.buffers())]


def work(rank: int, _: Path) -> dict[str, list[torch.Tensor]]:
    found = {"apart": trained(network(), SHARES[rank], 2)}
    with of_the_whole_batch():
        found |= {str(momentum): trained(network(momentum), SHARES[rank], 2) for momentum in (0.1, None)}
    return found | {"after": trained(network(), SHARES[rank], 2)}


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    return of_two(work, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("momentum", [0.1, None])
def test_embeddings_gradients_and_statistics_are_those_of_one_process(two_processes, momentum):
    alone = trained(network(momentum), slice(None))
    for result in two_processes:
        for together, one in zip(result[str(momentum)], alone, strict=True):
            torch.testing.assert_close(together, one, rtol=1e-9, atol=1e-9)


def test_without_it_each_process_has_its_own_and_so_it_is_again_afterwards(two_processes):
    alone = trained(network(), slice(None))
    for result in two_processes:
        assert (result["apart"][0] - alone[0]).abs().max() > 0.01
        for before, after in zip(result["apart"], result["after"], strict=True):
            torch.testing.assert_close(before, after)


def test_one_process_is_left_as_it_is():
    before = nn.BatchNorm1d.forward
    with of_the_whole_batch():
        assert nn.BatchNorm1d.forward is before
