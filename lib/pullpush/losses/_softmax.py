"""Softmax over scores in tiles: each row finds its positive, or each row and each column (see `_tiles`)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.losses._tiles import Rule, Tile, take_positives
from pullpush.precision import EXACT


def negatives(scores: Tensor) -> Tensor:
    """`(N, N)` scores with the least number, and not −∞, in place of the positives: finite for N = 1."""
    pairs = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    return scores.masked_fill(pairs, torch.finfo(scores.dtype).min)


class Rows(Rule):
    """Σ −log softmax of each row at its positive, as `cross_entropy(scores, arange(N), reduction="sum")`.

    positive_in_denominator: whether the positive is one of the candidates; without it, N must be at least 2.

    Example:
        >>> from pullpush.losses._tiles import tiled
        >>> pairs = torch.eye(3)[None]
        >>> tiled(pairs / 0.5, pairs, Rows(pairs))
        tensor(0.2395)
    """

    def __init__(self, query: Tensor, *, positive_in_denominator: bool = True) -> None:
        self.sum, self.include = query.new_zeros(()), positive_in_denominator

    def see(self, scores: Tensor, spare: Tensor, tile: Tile, slopes: bool) -> Tensor | None:
        positive, diagonal = take_positives(scores, tile)
        largest = scores.amax(dim=2)
        pushes = scores.sub_(largest[..., None]).exp_()  # exp(s_j − max s), in place; 0 for the positive
        total_push = pushes.sum(dim=2)
        log_sum = largest + total_push.log()
        loss = log_sum - positive  # SupCLAP Eq. 6 as printed: the denominator sums over negatives only
        if self.include:
            # −log P⁺ = log(1 + Σ_j exp(s_j − s⁺)): exact where P⁺ rounds to 1.
            loss = F.softplus(loss, threshold=EXACT)
        self.sum += loss.sum()
        diagonal.copy_(-total_push)  # times the factor: P⁺ − 1, or −1 without the positive in the denominator
        return (largest - positive - loss).exp()[..., None]  # P of negative j is pushes_j times it (Eq. 3)


class RowsAndColumns(Rule):
    """The sum of `Rows` of scores and of their transpose, from one pass over them.

    A column is complete with the last tile only: its greatest score and the sum of exponentials are kept as they stand
    so far (online softmax). The slopes, which need both sums, come in the second pass.

    Example:
        >>> from pullpush.losses._tiles import tiled
        >>> pairs = torch.eye(3)[None]
        >>> tiled(pairs / 0.5, pairs, RowsAndColumns(pairs))
        tensor(0.4791)
    """

    looks_first, spare = True, True

    def __init__(self, query: Tensor) -> None:
        size = query.shape[:2]
        self.positive, self.of_rows, self.of_columns = (query.new_empty(size) for _ in range(3))
        # From the least number on, not from −∞, which is all that a column has seen if its positive came first.
        self.largest, self.sum = query.new_full(size, torch.finfo(query.dtype).min), query.new_zeros(size)

    def see(self, scores: Tensor, spare: Tensor, tile: Tile, slopes: bool) -> None:
        positive, diagonal = take_positives(scores, tile)
        if slopes:
            self._slopes(scores, spare, diagonal, tile)
            return
        self.positive[tile] = positive
        largest = scores.amax(dim=2)
        rest = torch.sub(scores, largest[..., None], out=spare).exp_().sum(dim=2)
        self.of_rows[tile] = F.softplus(largest + rest.log() - positive, threshold=EXACT)
        before, total = self.largest[tile.group], self.sum[tile.group]
        largest = torch.maximum(before, scores.amax(dim=1))
        total.mul_((before - largest).exp_()).add_(scores.sub_(largest[:, None]).exp_().sum(dim=1))
        before.copy_(largest)

    def _slopes(self, scores: Tensor, spare: Tensor, diagonal: Tensor, tile: Tile) -> None:
        """P of each row plus P of each column; at the positives P⁺ − 1 = exp(−loss) − 1 of both."""
        row, column = self.of_rows[tile], self.of_columns[tile.group]
        torch.sub(scores, (self.positive[tile] + row)[..., None], out=spare).exp_()
        scores.sub_((self.positive[tile.group] + column)[:, None]).exp_().add_(spare)
        diagonal.copy_(torch.expm1(-row) + torch.expm1(-column[:, tile.row]))

    def total(self) -> Tensor:
        self.of_columns = F.softplus(self.largest + self.sum.log() - self.positive, threshold=EXACT)
        return (self.of_rows + self.of_columns).sum()
