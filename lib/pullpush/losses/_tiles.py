"""Losses of all N × N scores of a batch, tile by tile: rows of similarities are made, used and dropped.

`svr`, `info_nce` and `siglip` go through it. A `Rule` says what one of them makes of a tile: its share of the loss,
and in place of each score the loss's slope there. From the slopes come the gradients of the embeddings, of the scale
1/τ and of the offset β while the tile is at hand, so that no N × N matrix is ever kept, forwards or backwards.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

# Scores held at once, 64 MiB in float32: many enough to fill a GPU, few enough not to count beside an encoder.
BLOCK = 2**24


class Tile(NamedTuple):
    """The groups and the rows whose scores are at hand."""

    group: slice
    row: slice


class Rule(ABC):
    """What a loss makes of scores; made anew for every call, for it adds up what it sees.

    looks_first: whether a slope depends on scores of other rows. Then all tiles are seen once for the loss and once
    more, in the backward pass, for the slopes: four matrix products in place of three. Else loss and slopes come at
    once, in the forward pass: three products, as many as autograd needs.
    spare: whether it needs a second tile to work in.
    """

    looks_first: ClassVar[bool] = False
    spare: ClassVar[bool] = False
    sum: Tensor  # over rows and groups, as far as tiles were seen

    @abstractmethod
    def see(self, scores: Tensor, spare: Tensor, tile: Tile, slopes: bool) -> Tensor | None:
        """Add a tile's share to the loss, or, where the rule looks first, either that or the slopes.

        Args:
            scores: `(G, B, N)` of B rows; their positives lie on the diagonal that starts at column `tile.row.start`.
                May be overwritten; with `slopes`, holds ∂ sum/∂ score afterwards.
            spare: a tensor like it, of any content, if the rule has asked for one, else empty.
            tile: where it lies.
            slopes: whether slopes are wanted.

        Returns:
            `(G, B, 1)`, factors of the rows of slopes that are still to be multiplied, or None: multiplying rows of d
            numbers costs less than rows of N.
        """

    def total(self) -> Tensor:
        """The loss of all tiles, 0-d: the sum over rows and groups."""
        return self.sum


class Parts(NamedTuple):
    """What scores are made of; or gradients of the sum by these, None where none is wanted."""

    query: Any
    key: Any
    scale: Any
    offset: Any
    each: Any


Make = Callable[[Tensor, Tensor, Tensor], Tensor]  # rows of query, key and each → those that take the query's place


def fits(n: int) -> bool:
    """Whether the N × N scores are no more than one tile: then nothing is gained by tiles."""
    return n * n <= BLOCK


def tiled(
    query: Tensor,
    key: Tensor,
    rule: Rule,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    *,
    each: Tensor | None = None,
    make: Make | None = None,
) -> Tensor:
    """The loss that a rule makes of the scores scale·query·keyᵀ + offset, the mean over N and G.

    Args:
        query: `(G, N, d)` float32 or float64; groups are contrasted each among itself.
        key: `(G, N, d)` of the same dtype; key i is the positive of query i.
        rule: a new one.
        scale: 0-d, positive, of that dtype; None is 1.
        offset: 0-d, of that dtype; None is 0.
        each: `(G, N)`, a number a row, for `make`.
        make: what makes the queries' rows of a tile, of rows of query, key and `each`, so that no others are held.

    Returns:
        0-d. Differentiable once, in all of them; gradients are made for those that require one.

    Raises:
        RuntimeError: backwards, with `create_graph=True`.

    Example:
        >>> from pullpush.losses._softmax import Rows
        >>> pairs = torch.eye(3)[None]
        >>> tiled(pairs, pairs, Rows(pairs), scale=torch.tensor(2.0))
        tensor(0.2395)
    """
    graph = torch.is_grad_enabled()
    parts = Parts(query, key, scale, offset, each)
    wanted = tuple(graph and x is not None and x.requires_grad for x in parts)
    return _Tiled.apply(rule, make, wanted, *parts)


def tiles(groups: int, n: int) -> Iterator[Tile]:
    """Groups and rows whose scores fit into BLOCK: many whole groups at a time, or rows of one group."""
    many, step = max(1, BLOCK // n**2), max(1, BLOCK // n)
    for group in range(0, groups, many):
        for row in range(0, n, step):
            yield Tile(slice(group, min(group + many, groups)), slice(row, min(row + step, n)))


def inverse(tau: float | Tensor, like: Tensor) -> Tensor:
    """1/τ, 0-d, of a tensor's dtype and on its device."""
    return torch.as_tensor(tau).to(like).reciprocal()


def take_positives(scores: Tensor, tile: Tile) -> tuple[Tensor, Tensor]:
    """`(G, B)` each: the positives' scores, and a view of their places in `scores`, which now hold −∞."""
    diagonal = scores.diagonal(tile.row.start, 1, 2)  # row b's positive is column start + b
    positive = diagonal.clone()
    diagonal.fill_(-torch.inf)
    return positive, diagonal


class _Tiled(torch.autograd.Function):
    """`tiled`; gradients of the forward pass are handed on uncopied, and made anew for a second backward pass."""

    @staticmethod
    def forward(ctx: Any, rule: Rule, make: Make | None, wanted: tuple[bool, ...], *given: Tensor | None) -> Tensor:
        ctx.save_for_backward(*given)
        ctx.rule, ctx.make, ctx.wanted, parts = rule, make, wanted, Parts(*given)
        at_once = any(wanted) and not rule.looks_first
        made = _sweep(parts, rule, make, wanted if at_once else (False,) * len(parts))
        ctx.made = made if at_once else None
        return rule.total() / (parts.query.shape[0] * parts.query.shape[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyrefly: ignore[bad-override]
        if torch.is_grad_enabled():  # else the gradient would be taken for a constant, without a word
            message = "svr, and other losses above N = 4,096, have no second derivative: drop create_graph=True"
            raise RuntimeError(message)
        parts = Parts(*ctx.saved_tensors)
        made, ctx.made = ctx.made, None
        made = made or _sweep(parts, ctx.rule, ctx.make, ctx.wanted)
        mean = gradient / (parts.query.shape[0] * parts.query.shape[1])
        return None, None, None, *(None if x is None else x.mul_(mean) for x in made)


def _sweep(parts: Parts, rule: Rule, make: Make | None, wanted: tuple[bool, ...]) -> Parts:
    """Show a rule all tiles, and gather the gradients that are wanted, if any is."""
    query, key, scale, offset, each = parts
    groups, n, _ = query.shape
    # Rows of query are filled tile by tile, all else adds up.
    made = Parts(*(torch.zeros_like(part) if want else None for part, want in zip(parts, wanted, strict=True)))
    scores = spare = query.new_empty(0)
    for tile in tiles(groups, n):
        queries, given = query[tile], ()
        if make is not None:
            with torch.enable_grad():
                given = tuple(x[tile].detach().requires_grad_() for x in (query, key, each))
                queries = make(*given)
        rows = queries.detach() if scale is None else queries.detach() * scale
        size = (*rows.shape[:2], n)
        if not scores.numel():  # the first tile is the largest; the others take a part of its memory
            scores = query.new_empty(math.prod(size))
            spare = torch.empty_like(scores) if rule.spare else spare
        here, beside = (x[: math.prod(size)].view(size) if x.numel() else x for x in (scores, spare))
        torch.bmm(rows, key[tile.group].mT, out=here)
        if offset is not None:
            here += offset
        factor = rule.see(here, beside, tile, any(wanted))
        if any(wanted):
            _gather(made, parts, tile, here, rows if factor is None else factor * rows, factor, [queries, *given])
    return made


def _gather(
    made: Parts, parts: Parts, tile: Tile, slopes: Tensor, rows: Tensor, factor: Tensor | None, own: list[Tensor]
) -> None:
    """Add what the slopes of a tile, times the factors of its rows, give to the gradients; `rows` has both factors.

    own: the rows without them, and of what they are made where they are.
    """
    keys, (queries, *given) = parts.key[tile.group], own
    if made.query is not None or made.scale is not None or given:
        push = torch.bmm(slopes, keys, out=None if given or made.query is None else made.query[tile])
        if factor is not None:
            push *= factor
        if made.scale is not None:  # ∂ score/∂ scale = query·key, whose sum over slopes is query·push
            made.scale.add_(torch.linalg.vecdot(queries.detach(), push).sum())
        if parts.scale is not None:
            push *= parts.scale
        if given:
            for total, row in zip(made[:2] + made[4:], torch.autograd.grad(queries, given, push), strict=True):
                if total is not None:
                    total[tile] += row
    if made.key is not None:
        made.key[tile.group].baddbmm_(slopes.mT, rows)
    if made.offset is not None:
        made.offset.add_((slopes.sum(dim=2, keepdim=True) * (1 if factor is None else factor)).sum())
