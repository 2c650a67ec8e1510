"""Tiles give the loss and the gradients of the whole matrix, and hold no more than one tile."""

from contextlib import contextmanager

import pytest
import torch
from embeddings import DOUBLE, each_direction, pairs, same_with_gradients
from hypothesis import given, settings, strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from pullpush.losses import InfoNCE, SigLIP, _tiles, info_nce, siglip, svr

LOSSES = {
    "infonce t2a": lambda audio, text, tau, bias: info_nce(audio, text, tau, "t2a"),
    "infonce a2t": lambda audio, text, tau, bias: info_nce(audio, text, tau, "a2t"),
    "infonce both": lambda audio, text, tau, bias: info_nce(audio, text, tau),
    "siglip glap": siglip,
    "siglip siglip": lambda audio, text, tau, bias: siglip(audio, text, tau, bias, "siglip"),
}
each_loss = pytest.mark.parametrize("name", LOSSES)


def inputs(n, d=5, seed=0, tau=0.2, bias=-0.6):
    """Audio, text, temperature and bias, leaves that gradients reach."""
    scalars = (torch.tensor(value, dtype=DOUBLE, requires_grad=True) for value in (tau, bias))
    return *(x.requires_grad_() for x in pairs(n, d, seed)), *scalars


@contextmanager
def tiles_of(block):
    """No more than so many scores, or one row of them, are held, forwards and backwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tiles, "BLOCK", block)
        yield


def same(loss, leaves, block, tolerance=1e-12):
    """Value and gradients in tiles and of the whole matrix."""
    whole = loss(*leaves)
    with tiles_of(block):
        tiled = loss(*leaves)
        assert "_Tiled" in operations(tiled), "or nothing has been tested"
        same_with_gradients(tiled, whole, leaves, tolerance)


def operations(loss):
    """The names of the operations of a graph."""
    found, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        found.add(type(node).__name__.removesuffix("Backward"))
        todo += [up for up, _ in node.next_functions if up is not None]
    return found


class Watch(TorchDispatchMode):
    """Counts matrix products, and the elements of the largest tensor that any operation makes."""

    def __init__(self):
        super().__init__()
        self.products, self.largest = 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **kwargs or {})
        self.products += "mm" in str(function)
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, torch.Tensor):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // tensor.itemsize)
        return made


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([*LOSSES]),
    n=st.integers(2, 13),
    rows=st.integers(1, 13),
    tau=st.floats(0.01, 2.0),
    bias=st.floats(-10.0, 3.0),
    seed=st.integers(0, 1000),
)
def test_tiles_give_the_loss_and_gradients_of_the_whole(name, n, rows, tau, bias, seed):
    same(LOSSES[name], inputs(n, seed=seed, tau=tau, bias=bias), min(rows * n, n * n - 1), tolerance=1e-9)


@each_loss
def test_a_matrix_that_fits_is_computed_plainly_and_differentiable_twice(name):
    leaves = inputs(4, d=3)
    with tiles_of(16):
        assert "_Tiled" not in operations(LOSSES[name](*leaves))
    with tiles_of(15):
        assert "_Tiled" in operations(LOSSES[name](*leaves))
    assert torch.autograd.gradgradcheck(LOSSES[name], leaves)


@each_loss
def test_tiles_refuse_a_second_derivative(name):
    audio, *others = inputs(4)
    with tiles_of(8):
        loss = LOSSES[name](audio, *others)
        with pytest.raises(RuntimeError, match="no second derivative"):
            torch.autograd.grad(loss, audio, create_graph=True)


@each_loss
@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1), (0, 1, 2, 3)])
def test_gradients_are_made_where_they_are_asked_for(name, asked):
    leaves = [x if i in asked else x.detach() for i, x in enumerate(inputs(5))]
    same(LOSSES[name], leaves, block=10)
    with tiles_of(24), Watch() as watch:  # two tiles
        LOSSES[name](*leaves).backward()
    texts = {*asked} & ({0, 2} if name.endswith("a2t") else {1, 2})  # the gradient of the queries gives that of τ
    keys = {*asked} & ({1} if name.endswith("a2t") else {0})
    assert watch.products == 2 * ((2 if name.endswith("both") else 1) + bool(texts) + bool(keys))


@each_loss
def test_no_gradient_no_work_for_it(name):
    leaves = inputs(6)
    with torch.no_grad(), tiles_of(30), Watch() as watch:
        loss = LOSSES[name](*leaves)
    assert not loss.requires_grad
    assert watch.products == 2  # two tiles
    torch.testing.assert_close(loss, LOSSES[name](*leaves).detach())


@given(number=st.integers(1, 6), n=st.integers(1, 12), block=st.integers(1, 200))
def test_tiles_hold_every_score_once_and_no_more_than_fit(number, n, block):
    seen = torch.zeros(number, n, n)
    with tiles_of(block):
        for tile in _tiles.tiles(number, n):
            assert seen[tile].numel() <= max(block, n)  # one row at least
            seen[tile] += 1
    assert torch.equal(seen, torch.ones_like(seen))


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@each_direction
def test_support_vectors_made_tile_by_tile_are_those_made_at_once(direction, similarity, include):
    audio, text, tau, _ = inputs(12)
    with torch.no_grad():
        text[3] = audio[3]  # no way to move in
    for radius in (torch.linspace(-0.5, 2.5, 12, dtype=DOUBLE).requires_grad_(), torch.tensor(0.4).requires_grad_()):
        loss = lambda a, t, r, tau: svr(a, t, r, tau, direction, similarity, include)  # noqa: E731
        same(loss, (audio, text, radius, tau), block=40)


@pytest.mark.parametrize("name", [*LOSSES, "svr"])
def test_no_tensor_is_larger_than_a_tile(name):
    n, d, block = 60, 4, 300
    loss = {**LOSSES, "svr": lambda a, t, tau, bias: svr(a, t, tau, tau)}[name]
    leaves = inputs(n, d)
    with tiles_of(block), Watch() as tiles:
        loss(*leaves).backward()
    assert tiles.largest == block > n * d
    with Watch() as plainly:
        LOSSES["infonce both"](*leaves).backward()
    assert plainly.largest == n * n, "the count sees what is made"


@each_loss
def test_single_precision_is_as_near_to_the_exact_gradient_as_autograd_is(name):
    """Confident pairs at a temperature of 0.01, where scores reach 100."""
    audio, noise = pairs(40, d=16)
    text = torch.nn.functional.normalize(audio + 0.05 * noise, dim=1).requires_grad_()
    (exact,) = torch.autograd.grad(LOSSES[name](audio, text, 0.01, -0.3), text)
    errors = []
    for block in (_tiles.BLOCK, 100):
        single = text.detach().float().requires_grad_()
        with tiles_of(block):
            LOSSES[name](audio.float(), single, 0.01, -0.3).backward()
        errors.append(float((single.grad - exact).abs().max()))
    assert errors[1] <= 2 * errors[0] + 1e-7


@pytest.mark.parametrize(
    "make", [lambda: InfoNCE(learnable=True), lambda: SigLIP(form="glap"), lambda: SigLIP(form="siglip")]
)
def test_modules_learn_through_tiles(make):
    audio, text = (x.float() for x in pairs(7))
    module = make()
    leaves = tuple(module.parameters())
    assert leaves
    same(lambda *_: module(audio, text).value, leaves, block=14, tolerance=1e-5)
